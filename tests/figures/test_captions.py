"""Captions are true in both themes and for the state that is shown."""

import re

import pytest

from rope_viz.pages.attention import figures as attention
from rope_viz.pages.attention import words as attention_words
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.scaling import figures as scaling
from rope_viz.pages.scaling import words as scaling_words
from rope_viz.texts import Texts

PAGES = ("attention", "axes", "decay", "frequencies", "heads", "kernels", "precision", "recall", "rotation", "scaling")


@pytest.mark.parametrize("page", PAGES)
def test_captions_name_no_shade_that_a_theme_inverts(page):
    entries = Texts(page).entries
    captions = [text for key, text in entries.items() if key == "legend" or key.startswith("legends.")]
    assert captions
    assert not [text for text in captions if re.search(r"\b(darker|lighter|black|white|dark|light)\b", text, re.I)]


def test_every_view_has_a_caption():
    for page, views in (("decay", decay.VIEWS), ("scaling", scaling.VIEWS), ("attention", attention.VIEWS)):
        assert set(views) <= set(Texts(page).group("legends"))


def test_the_captions_name_only_what_is_shown():
    assert "Framed" in attention_words.describe_marks("weights", "the cat saw the dog")
    assert "Framed" not in attention_words.describe_marks("weights", "one cat saw two dogs")
    assert "attention" not in attention_words.describe_marks("scores", "the cat saw the dog")
    assert "Other lines" not in scaling_words.describe_marks("ratio", others=False)
    assert "other methods" not in scaling_words.describe_marks("paper", others=True)
