"""Chinese texts: the glossary's terms, all placeholders and formulas, Chinese punctuation, and no English left."""

import re
import tomllib

from rope_viz.texts.languages import FOLDER, list_texts, read_file
from tests.offenders import for_each

# Fonts and the words of numbers are those of the language.
PAGES = sorted({*list_texts("zh")} & {*list_texts("en")} - {"language", "numbers"})
TERMS = {
    english: [chinese] if isinstance(chinese, str) else chinese
    for english, chinese in tomllib.loads((FOLDER / "glossary.zh.toml").read_text(encoding="utf-8")).items()
}
HAN = r"[\u4e00-\u9fff]"
# Code, formulas, addresses, tags and placeholders are the same in every language.
FIXED = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|https?://[^\s)）]+|</?[a-z][^>]*>|%\{\{.*?\}\}|\{[^{}]*\}", re.DOTALL
)

# Where the English word has another sense: two tokens as a "pair", a "band" of values, the "query" of an address.
OTHER_SENSES = {
    "pair": {
        *("attention.costs_title", "attention.linear.same", "attention.costs.growth", "attention.costs.measured"),
        *("decay.packing.title", "decay.packing.sentence", "decay.packing.negative", "decay.packing.legend"),
        *("attention.costs.pairs", "findings.draft.vocabularies_refused", "pictures.attention.costs"),
        *("pictures.decay.distances", "pictures.heads.distance"),
        *("gallery.names.attention.costs", "heads.whole.exact", "heads.whole.rebuilt_legend", "recall.bands.none"),
    },
    "band": {"decay.legends.mean", "decay.legends.own", "decay.legends.random", "pictures.recall.lengths"},
    "query": {"app.server.too_long", "app.server.repeated"},
    "clock": {"learn.scene2.picture.source", "learn.scene4.title"},
    "factor": {"model/runtimes.table", "findings.no-rotation.class", "findings.no-rotation.published"},
    "base": {"configs.other_file.peft_type"},
    "hand": {"training.loses.torchtitan"},
    "kernel": {"frequencies.explain.text", "learn.scene3.maths.text"},
    "runtime": {"axes.choices.no_runtime"},
}
# English that a Chinese text quotes: a sentence, an error, titles of papers.
QUOTED = {
    *("The pass key of Paris is", "int' object is not iterable"),
    *("TensorRT-LLM test_modeling_gemma3.py GEMMA", "m rope_viz.tiny_lm train"),
    *("Frequency Bands in RoPE", "Does RoPE Prevent or Degrade Retrieval Heads"),
}


def match_term(term):
    """Return a pattern that finds an English term, also in its plural."""
    word = f"{re.escape(term[:-1])}(?:y|ies)" if term.endswith("y") else f"{re.escape(term)}(?:e?s)?"
    return re.compile(rf"(?<![\w/.-]){word}(?![\w/-])", re.IGNORECASE)


PATTERNS = {term: match_term(term) for term in sorted(TERMS, key=len, reverse=True)}


def list_terms(text):
    """Return the terms of an English text; of overlapping ones the longest."""
    text, found = FIXED.sub(" ", text), []
    for term, pattern in PATTERNS.items():
        if pattern.search(text):
            found.append(term)
            text = pattern.sub(" ", text)
    return found


def list_fixed(text):
    """Return what a translation leaves as it is, without line breaks and the words inside formulas."""
    return {re.sub(r"\\text\{[^}]*\}| (and|且) ", "", each) for each in FIXED.findall(text)} - {"<br>"}


def pair_entries(page):
    """Return the full key, the English and the Chinese of every entry of a page."""
    english = read_file(page, "en")
    chinese = read_file(page, "zh")
    return [(f"{page}.{key}", english[key], chinese[key]) for key in english.keys() & chinese.keys()]


def test_terms_are_those_of_the_glossary():
    """A term may stay English where it is the name of a key."""
    others = {
        (term, key)
        for page in PAGES
        for key, english, chinese in pair_entries(page)
        for term in list_terms(english)
        if not any(each in chinese for each in TERMS[term]) and not PATTERNS[term].search(chinese)
    }
    assert others - {(term, key) for term, keys in OTHER_SENSES.items() for key in keys} == set()


@for_each(PAGES)
def test_placeholders_code_and_formulas_are_unchanged(page):
    changed = [
        (key, english, chinese)
        for key, english, chinese in pair_entries(page)
        if list_fixed(english) != list_fixed(chinese)
    ]
    assert not changed, changed


# ASCII punctuation after a Chinese character, a space between Chinese characters or after Chinese punctuation, and no
# space between Chinese and Latin.
WRONG = re.compile(
    rf"{HAN} ?[,.;:?!()](?!\w)|{HAN} {HAN}|[，。：；！？、] |{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}|[，。：；！？、][,;:]"
)


@for_each(PAGES)
def test_punctuation_is_chinese(page):
    wrong = [
        (key, found[0])
        for key, text in read_file(page, "zh").items()
        for found in WRONG.finditer(FIXED.sub("{}", text))
    ]
    assert not wrong, wrong


@for_each(PAGES)
def test_no_english_sentence_is_left(page):
    left = [
        (key, found[0])
        for key, text in read_file(page, "zh").items()
        for found in re.finditer(r"(?:[A-Za-z][\w'’-]*[ ,.]+){3,}[A-Za-z]+", FIXED.sub("{}", text))
        if found[0] not in QUOTED and not key.startswith("explain.")
    ]
    assert not left, left


def is_mark(sign):
    """Return True for a sign that Markdown takes as punctuation; a placeholder's value may begin or end with one."""
    return bool(re.fullmatch(r"[^\w\s]", sign))


@for_each(PAGES)
def test_bold_text_opens_and_closes(page):
    """CommonMark does not close bold text whose last sign is punctuation and that is followed by a letter."""
    broken = [
        (key, found[0])
        for key, text in read_file(page, "zh").items()
        for found in re.finditer(r"(.?)\*\*(.+?)\*\*(.?)", text)
        for outer, inner in ((found[1], found[2][0]), (found[3], found[2][-1]))
        if is_mark(inner) and re.fullmatch(r"\w", outer)
    ]
    assert not broken, broken
