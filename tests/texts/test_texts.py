"""Text files: short sentences, known placeholders, the same entries in every language."""

import pickle
import re
import string

import pytest

from rope_viz.runtimes import RULES
from rope_viz.runtimes.gguf_converter import FILE_RULES
from rope_viz.runtimes.texts import TEXTS as RUNTIMES
from rope_viz.runtimes.trainers import TRAINERS, build_rules
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.languages import list_texts, read_file
from rope_viz.texts.texts import FORMATS
from tests.offenders import for_each

PAGES = list_texts("en")
MOST_WORDS, USUAL_WORDS = 25, 20


def split_sentences(text):
    """Return the sentences of a text, without formulas, code, tables, link targets and marks."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$?[^$]*\$?\$", "x", text)
    text = re.sub(r"`[^`]*`", "x", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )|\n(?=\|)", text)
    for block in blocks:
        if block.strip() and not block.lstrip().startswith(("#", "|")):
            yield from re.split(r"(?<=[.?!:;])[*_)]*\s+(?=[\"*_(\[{`A-Z0-9θαβγλ])", " ".join(block.split()))


def count_words(sentence):
    return len(re.findall(r"[^\W_][\w'’,.\-/]*", re.sub(r"\{[^}]*\}", "x", sentence)))


SENTENCES = [
    (f"{page}.{key}", sentence)
    for page in PAGES
    for key, text in read_file(page, "en").items()
    for sentence in split_sentences(text)
]


def test_no_sentence_has_more_than_25_words():
    assert [(key, each) for key, each in SENTENCES if count_words(each) > MOST_WORDS] == []


def test_nine_of_ten_sentences_have_at_most_20_words():
    long = [(key, each) for key, each in SENTENCES if count_words(each) > USUAL_WORDS]
    assert 10 * len(long) <= len(SENTENCES), long


@for_each(PAGES)
def test_placeholders_have_names_and_known_formats(page):
    for key, text in read_file(page, "en").items():
        if key.startswith("explain."):
            continue
        for _, name, spec, _ in string.Formatter().parse(text):
            assert name is None or name.isidentifier(), (key, name)
            assert not spec or spec in FORMATS or format(1.0 if "f" in spec else 1, spec), (key, spec)


def test_joined_sentence_retains_the_numbers_of_its_parts():
    texts = Texts("decay")
    inner = texts("unrotated.dimensions", count=64)
    sentence = join(texts("score.own"), "", texts("score.unrotated", unrotated=0.5, dimensions=inner))
    assert sentence.startswith("The score of one query and one key at every distance. Of it, 0.5 comes from")
    assert "64 unrotated dimensions" in sentence
    assert (sentence.values["count"], sentence.values["unrotated"]) == (64, 0.5)
    assert sentence.entries == ("score.own", "score.unrotated", "unrotated.dimensions")


def test_one_and_other_are_chosen_by_count():
    texts = Texts("decay")
    assert texts("unrotated.dimensions", count=1) == "one unrotated dimension"
    assert texts("unrotated.dimensions", count=0) == "0 unrotated dimensions"


def test_a_sentence_survives_another_process():
    sentence = pickle.loads(pickle.dumps(Sentence("x", {"a": 1}, ("key",))))
    assert (sentence, sentence.values, sentence.entries) == ("x", {"a": 1}, ("key",))


def test_a_missing_value_or_entry_is_an_error():
    with pytest.raises(KeyError):
        Texts("decay")("score.value", distance=1)
    with pytest.raises(KeyError):
        Texts("decay")("no.such.entry")


def test_every_rule_of_a_runtime_or_trainer_has_its_text():
    named = [build_rules(name, release) for name, one in TRAINERS.items() for release in one.releases]
    rules = [rule for each in (*RULES.values(), FILE_RULES, *named) for rule in each]
    assert len(rules) > 500
    assert {rule.entry for rule in rules} <= RUNTIMES.entries.keys()
    # A rule made of a function is named after it, and both have the same words.
    made = [rule for rule in rules if rule.entry.endswith(f".{rule.change.__name__}")]
    assert len(made) > 60
    assert [rule.entry for rule in made if " ".join(rule.change.__doc__.split()) != rule.text] == []
    # A rule that only refuses says so with the names of the config.
    assert all(rule.text for rule in rules if rule.key != "refused")
