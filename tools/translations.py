"""Report what each language lacks, and which of its sentences are older than the English ones.

    python tools/translations.py                  # every language: missing, stale and unknown keys, other placeholders
    python tools/translations.py --accept zh      # record that the sentences of zh say what the English ones say today
    python tools/translations.py --accept zh decay app

`tests/texts/translated/<language>.json` holds, for every translated entry, a digest of the English sentence that it was
made from. An entry whose English has changed since then is stale: translate it again, then accept it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import string
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rope_viz.texts.languages import ENGLISH, list_languages, list_texts, read_file  # noqa: E402

RECORDS = ROOT / "tests/texts/translated"
OTHER_UNITS = ("numbers",)
"""Pages whose entries may have other names in braces than the English ones: languages count in other units."""


def make_digest(text: str) -> str:
    """Return a short digest of an English sentence."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def list_placeholders(key: str, text: str) -> set[str]:
    """Return the names in braces of an entry; an explanation has formulas instead."""
    if key.startswith("explain."):
        return set()
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def has_form(key: str, entries: Collection[str]) -> bool:
    """Return whether entries have a key, or what stands for it: a language may lack a singular, or both forms."""
    start, _, form = key.rpartition(".")
    return key in entries or (form in ("one", "other") and (start in entries or f"{start}.other" in entries))


def find_english(key: str, english: dict[str, str]) -> str | None:
    """Return the English sentence that an entry translates: one entry may stand for a singular and a plural."""
    return english.get(key, english.get(f"{key}.other"))


def read_translation(page: str, language: str) -> dict[str, str]:
    """Return the entries of a page in a language, {} if it has no such file."""
    try:
        return read_file(page, language)
    except FileNotFoundError:
        return {}


def read_record(language: str) -> dict[str, dict[str, str]]:
    """Return {page: {key: digest of the English that was translated}}."""
    path = RECORDS / f"{language}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def find_problems(language: str) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, page and key) of a language: missing, stale, unknown, and other placeholders."""
    record = read_record(language)
    for page in list_texts(ENGLISH):
        english, own = read_file(page, ENGLISH), read_translation(page, language)
        yield from (("missing", f"{page}: {key}") for key in english if not has_form(key, own))
        for key, text in own.items():
            source = find_english(key, english)
            if source is None:
                yield "unknown", f"{page}: {key}"
            elif page not in OTHER_UNITS and list_placeholders(key, text) != list_placeholders(key, source):
                yield "other placeholders", f"{page}: {key}"
            elif record.get(page, {}).get(key) != make_digest(source):
                yield "stale", f"{page}: {key}"
    yield from (("unknown", page) for page in list_texts(language) if page not in list_texts(ENGLISH))


def accept(language: str, pages: Collection[str] = ()) -> None:
    """Record that the entries of these pages, or of all, say what the English ones say today."""
    record = read_record(language)
    for page in pages or list_texts(ENGLISH):
        english, own = read_file(page, ENGLISH), read_translation(page, language)
        sources = {key: find_english(key, english) for key in own}
        record[page] = {key: make_digest(source) for key, source in sources.items() if source is not None}
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps({page: record[page] for page in sorted(record) if record[page]}, indent=1)
    (RECORDS / f"{language}.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> int:
    """Print the problems, or accept translations; return 1 if there are problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", metavar="LANGUAGE", choices=list_languages()[1:])
    parser.add_argument("pages", metavar="PAGE", nargs="*")
    parsed = parser.parse_args()
    if parsed.accept:
        accept(parsed.accept, parsed.pages)
        return 0
    found = [(language, *problem) for language in list_languages()[1:] for problem in find_problems(language)]
    for problem in found:
        print(*problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
