"""The words and names that the project does not use (CONTRIBUTING.md, House rules).

To ban a function name, add it to NAMES. To ban a word, add it to WORDS with the number of places that may keep it: in
a flag, an address or a file format that users have, or in a text that is still to be rewritten. Lower it when you can.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "rope_viz").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]
TEXTS = [
    *SOURCES,
    *(
        path
        for folder in ("rope_viz", "docs", "benchmarks", "assets", "examples")
        for path in (ROOT / folder).rglob("*.md")
    ),
    *(ROOT / "rope_viz").rglob("*.js"),
    *(path for folder in ("benchmarks", "assets", "examples") for path in (ROOT / folder).rglob("*.py")),
    *ROOT.glob("*.md"),
]

# Bare participles, adverbs and prepositions say nothing about what a function does.
NAMES = {"says", "said", "chosen", "told", "kept", "lent", "laid", "of", "at", "but", "beside", "apart", "settled"}
NAMES |= {"asked", "again", "patient", "bare", "marked", "prose", "listened", "look_again", "shorten"}
# One word, one meaning: each of these may be defined so often.
AT_MOST = {"check": 2, "read": 2}
WORDS = {"beside": 70, "stands": 40, "said": 50, "whoever": 5, "nobody": 15, "lies": 10, "upright": 25}
LONGEST_TEST_NAME = 60


def functions(paths=SOURCES):
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield path.relative_to(ROOT).as_posix(), node.name


def test_no_function_has_a_banned_name():
    assert [(path, name) for path, name in functions() if name in NAMES] == []


@pytest.mark.parametrize("name", AT_MOST)
def test_a_short_name_has_few_meanings(name):
    found = [path for path, each in functions() if each == name]
    assert len(found) <= AT_MOST[name], found


@pytest.mark.parametrize("word", WORDS)
def test_a_banned_word_becomes_no_more_frequent(word):
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    found = {
        path.relative_to(ROOT).as_posix(): len(pattern.findall(path.read_text(encoding="utf-8"))) for path in TEXTS
    }
    places = {path: count for path, count in found.items() if count}
    assert sum(places.values()) <= WORDS[word], places


def test_test_names_are_short():
    tests = functions((ROOT / "tests").rglob("*.py"))
    assert [(path, name) for path, name in tests if name.startswith("test_") and len(name) > LONGEST_TEST_NAME] == []
