"""Every language says what English says: no sentence is missing, older than the English one, or has other values."""

from rope_viz.texts.languages import list_languages
from tests.offenders import for_each
from tools import translations

TRANSLATED = list_languages()[1:]


@for_each(TRANSLATED)
def test_entries_have_the_keys_and_values_of_english(language):
    assert [each for each in translations.find_problems(language) if each[0] not in ("missing", "stale")] == []


@for_each(TRANSLATED)
def test_no_entry_is_missing_or_stale(language):
    """Translate what is listed, then run `python tools/translations.py --accept LANGUAGE`."""
    assert [*translations.find_problems(language)] == []


def test_changed_english_makes_a_translation_stale(tmp_path, monkeypatch):
    files = {
        ("decay", "en"): {"title": "Decay", "one": "{n} pair"},
        ("decay", "zh"): {"title": "衰减", "one": "{n} 对"},
    }
    monkeypatch.setattr(translations, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(translations, "read_file", lambda page, language: files[page, language])
    monkeypatch.setattr(translations, "list_texts", lambda language: ["decay"])
    assert {problem for problem, _ in translations.find_problems("zh")} == {"stale"}
    translations.accept("zh")
    assert [*translations.find_problems("zh")] == []
    files["decay", "en"] = {"title": "Falling", "one": "{n} pair", "more": "more"}
    files["decay", "zh"] = {"title": "衰减", "one": "{m} 对", "old": "旧"}
    assert {*translations.find_problems("zh")} == {
        ("stale", "decay: title"),
        ("missing", "decay: more"),
        ("other placeholders", "decay: one"),
        ("unknown", "decay: old"),
    }
