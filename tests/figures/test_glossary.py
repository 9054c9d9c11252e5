"""Terms in texts link to one meaning each; code, formulas, headings and links stay unchanged."""

from pathlib import Path

import pytest

import rope_viz
from rope_viz.figures import glossary
from rope_viz.texts import Texts
from rope_viz.texts.languages import list_texts

ROOT = Path(rope_viz.__file__).parent
EXPLANATIONS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "ui" / "texts").glob("*.md")} | {
    name: entries["explain.text"] for name in list_texts("en") if "explain.text" in (entries := Texts(name).entries)
}


def test_only_the_first_mention_becomes_a_link():
    found = glossary.linked("Two logits and a logit.")
    assert found == f"Two [logits](#{glossary.SLUG['logit']}) and a logit."


@pytest.mark.parametrize("text", ["`logit`", "$logit$", "# logit", "[logit](https://a.b)", "logits_", "<b logit>"])
def test_code_and_links_get_no_glossary_link(text):
    assert glossary.linked(text) == text


def test_the_longest_term_wins():
    assert glossary.linked("the attention factor").count("](#") == 1


@pytest.mark.parametrize("page", EXPLANATIONS)
def test_linking_changes_nothing_but_links(page):
    text = EXPLANATIONS[page]
    bare = glossary.linked(text)
    for term, slug in zip(glossary.meanings(), glossary.SLUG.values(), strict=True):
        for form in (term, f"{term}s"):
            bare = bare.replace(f"[{form}](#{slug})", form)
    assert bare == text


def test_every_term_has_one_short_meaning():
    for term, meaning in glossary.meanings().items():
        assert meaning.endswith("."), term
        assert len(meaning) < 140, term
    assert len(set(glossary.SLUG.values())) == len(glossary.meanings())
    assert set(glossary.LINKED) <= set(glossary.SLUG)
