"""The language of texts: chosen for each call, English where a sentence is missing."""

import threading
from unittest import mock

import pytest

from rope_viz.embedding.spec import Knob
from rope_viz.picture.choices import Pick
from rope_viz.texts import (
    Texts,
    cache_by_language,
    cached_text_property,
    current_language,
    join,
    languages,
    translate,
    use_language,
)
from rope_viz.texts import texts as text_module
from rope_viz.texts.numbers import format_share, format_signed, format_tokens
from rope_viz.texts.texts import join_list

ENTRIES = {
    ("decay", "en"): {
        "title": "Decay",
        "show": "Show",
        "kinds.a": "one",
        "kinds.b": "two",
        "n.one": "one",
        "n.other": "{count} many",
    },
    ("decay", "xx"): {"title": "Abfall", "kinds.a": "eins", "n.other": "{count} viele"},
    ("language", "en"): {"code": "en", "sentences": " "},
    ("language", "xx"): {"code": "xx", "sentences": ""},
    ("lists", "en"): {"more": "{items}, {item}", "end": "{items} and {item}"},
    ("lists", "xx"): {"end": "{items} und {item}"},
    ("numbers", "en"): {"larger": "{millions:.4g} million", "under_percent": "under 1 %"},
    ("numbers", "xx"): {"larger": "{hundred_millions:.4g} x", "under_percent": "unter 1 %"},
}


def read_file(page, language):
    try:
        return dict(ENTRIES[page, language])
    except KeyError:
        raise FileNotFoundError(page) from None


@pytest.fixture(autouse=True)
def two_languages():
    """Put two small languages in place of the files."""
    with (
        mock.patch.object(languages, "read_file", read_file),
        mock.patch.object(languages, "list_languages", return_value=("en", "xx")),
    ):
        clear_caches()
        yield
    clear_caches()


def clear_caches():
    """Forget what was read from files, or from what replaces them."""
    languages.read_entries.cache_clear()
    text_module._find_keys.cache_clear()


def test_each_call_is_in_the_current_language():
    texts = Texts("decay")
    with use_language("xx"):
        assert (texts("title"), texts.entries["title"]) == ("Abfall", "Abfall")
    assert texts("title") == "Decay"


def test_missing_sentence_is_english():
    with use_language("xx"):
        assert Texts("decay")("show") == "Show"


def test_language_without_singular_has_one_form():
    with use_language("xx"):
        assert Texts("decay")("n", count=1) == "1 viele"
    assert Texts("decay")("n", count=1) == "one"


def test_unknown_language_is_an_error_that_lists_the_others():
    with pytest.raises(ValueError, match="'fr'; choose en, xx"), use_language("fr"):
        pass
    assert current_language() == "en"


def test_labels_made_at_import_follow_the_language():
    texts = Texts("decay")
    pick = Pick(key="decay.x", label=texts("title"), options=texts.group("kinds"))
    mixed = Pick(key="decay.y", label="own", options={"none": texts("title"), "id": "Qwen3"})
    knob = Knob(texts("title"), 0, 1, texts("show"))
    assert (pick.label, pick.help, dict(pick.options)) == ("Decay", "", {"a": "one", "b": "two"})
    with use_language("xx"):
        assert (pick.label, knob.label, knob.help) == ("Abfall", "Abfall", "Show")
        assert dict(pick.options) == {"a": "eins", "b": "two"}
        assert mixed.options == {"none": "Abfall", "id": "Qwen3"}
        assert mixed.label == "own"


def test_group_has_the_named_entries_in_their_order():
    texts = Texts("decay")
    assert list(texts.group("kinds", only=("b", "a"))) == ["b", "a"]
    assert texts.group("kinds") | {"c": "three"} == {"a": "one", "b": "two", "c": "three"}
    with pytest.raises(KeyError):
        texts.group("kinds", only=("c",))


def test_translated_sentence_has_its_values():
    with use_language("xx"):
        foreign = Texts("decay")("n", count=3)
    assert (foreign, translate(foreign), translate("plain")) == ("3 viele", "3 many", "plain")


def test_joins_and_numbers_are_those_of_the_language():
    assert (join("A.", "B."), join_list(["a", "b", "c"])) == ("A. B.", "a, b and c")
    assert (format_tokens(2_000_000_001), format_share(0.001)) == ("2000 million", "under 1 %")
    with use_language("xx"):
        assert (join("A.", "B."), join_list(["a", "b", "c"])) == ("A.B.", "a, b und c")
        assert (format_tokens(2_000_000_001), format_share(0.001)) == ("20 x", "unter 1 %")


def test_a_signed_number_that_rounds_to_zero_has_no_sign():
    assert [format_signed(value) for value in (1.5, -0.0204, 0.0004, -0.0004)] == ["+1.500", "−0.020", "0.000", "0.000"]


def test_caches_hold_one_result_for_each_language():
    texts, calls = Texts("decay"), []

    @cache_by_language(8)
    def describe(number):
        calls.append(number)
        return f"{texts('title')} {number}"

    class Model:
        @cached_text_property
        def title(self):
            calls.append("title")
            return str(texts("title"))

    model = Model()
    for _ in range(2):
        assert (describe(1), model.title) == ("Decay 1", "Decay")
        with use_language("xx"):
            assert (describe(1), model.title) == ("Abfall 1", "Abfall")
    assert calls == [1, "title", 1, "title"]


def test_another_thread_does_not_inherit_the_language():
    found = []
    with use_language("xx"):
        thread = threading.Thread(target=lambda: found.append(current_language()))
        thread.start()
        thread.join()
    assert found == ["en"]
