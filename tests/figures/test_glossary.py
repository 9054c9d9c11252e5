"""Terms in texts link to one sentence each; code, formulas, headings and links stay unchanged."""

from pathlib import Path

import pytest

from rope_viz.figures.words import glossary

TEXTS = sorted((Path(__file__).parents[2] / "rope_viz" / "ui" / "texts").glob("*.md"))


def test_only_the_first_mention_becomes_a_link():
    found = glossary.linked("Two logits and a logit.")
    assert found == f"Two [logits](#{glossary.SLUG['logit']}) and a logit."


@pytest.mark.parametrize("text", ["`logit`", "$logit$", "# logit", "[logit](https://a.b)", "logits_", "<b logit>"])
def test_code_and_links_get_no_glossary_link(text):
    assert glossary.linked(text) == text


def test_the_longest_term_wins():
    assert glossary.linked("the attention factor").count("](#") == 1


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_linking_changes_nothing_but_links(path):
    text = path.read_text(encoding="utf-8")
    bare = glossary.linked(text)
    for term, slug in glossary.SLUG.items():
        for form in (term, f"{term}s"):
            bare = bare.replace(f"[{form}](#{slug})", form)
    assert bare == text


def test_every_term_has_one_sentence_of_its_own():
    for term, sentence in glossary.WORDS.items():
        assert sentence.endswith("."), term
        assert len(sentence) < 140, term
    assert len(set(glossary.SLUG.values())) == len(glossary.WORDS)
    assert set(glossary.LINKED) <= set(glossary.WORDS)
