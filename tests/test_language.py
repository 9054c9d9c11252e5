"""The names that the project does not use (CONTRIBUTING.md, House rules).

To ban the name of a function, add it to NAMES. To ban a word in the names of tests, fixtures and scripts, add it to
PARTS.
"""

import ast
import functools
import re
from pathlib import Path

from tests.offenders import for_each

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "rope_viz").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = sorted((ROOT / "rope_viz").rglob("*.js"))

# Bare participles, adverbs and prepositions say nothing about what a function does.
NAMES = {"says", "said", "chosen", "told", "kept", "lent", "laid", "of", "at", "but", "beside", "apart", "settled"}
NAMES |= {"asked", "again", "patient", "bare", "marked", "prose", "listened", "look_again", "shorten"}
PARTS = {"beside", "stands", "said", "told", "kept", "lent", "laid", "nobody", "whoever", "anew", "astray", "came"}
PARTS |= {"gone", "reader"}
# One word, one meaning: each of these may be defined so often.
AT_MOST = {"check": 2, "read": 2}
LONGEST_TEST_NAME = 60

FUNCTION = re.compile(
    r"\bfunction\s*\*?\s*(?P<declared>[\w$]+)"
    r"|\b(?:const|let|var)\s+(?P<assigned>[\w$]+)\s*=\s*(?:async\s*)?(?:function\b|(?:\([^()]*\)|[\w$]+)\s*=>)"
    r"|^\s*(?:(?:async|static|get|set)\s+)*[#*]?(?P<method>[\w$]+)\s*\([^()]*\)\s*\{",
    re.MULTILINE,
)


@functools.cache
def list_functions(path):
    """Return the names of the functions of a Python or JavaScript file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        return [match[match.lastgroup] for match in FUNCTION.finditer(text)]
    return [
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def split_name(name):
    """Return the words of a name in snake_case or camelCase."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def has_banned_part(name):
    """Return whether a name has a banned word; pairs and bands may be kept: that is the name of a band."""
    words = split_name(name)
    banned = words & PARTS
    return bool(banned - {"kept"} if words & {"pair", "pairs", "band", "bands"} else banned)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@for_each(SOURCES, name_of)
def test_no_function_has_a_banned_name(path):
    assert [name for name in list_functions(path) if name in NAMES] == []


@for_each([*TESTS, *SCRIPTS], name_of)
def test_names_of_tests_and_scripts_have_no_banned_part(path):
    assert [name for name in list_functions(path) if has_banned_part(name)] == []


@for_each(AT_MOST.items())
def test_a_short_name_has_few_meanings(entry):
    name, most = entry
    found = [name_of(path) for path in SOURCES if name in list_functions(path)]
    assert len(found) <= most, found


@for_each(TESTS, name_of)
def test_test_names_are_short(path):
    tests = [name for name in list_functions(path) if name.startswith("test_")]
    assert [name for name in tests if len(name) > LONGEST_TEST_NAME] == []


def test_names_are_split_at_underscores_and_capitals():
    assert split_name("test_links_leadAstray") == {"test", "links", "lead", "astray"}
    assert split_name("onHTTPReader2") == {"on", "http", "reader"}
    assert has_banned_part("isGone")
    assert has_banned_part("links_kept")
    assert not has_banned_part("test_all_pairs_are_kept")
    assert not has_banned_part("aforesaid")


def test_functions_of_scripts_are_found(tmp_path):
    script = tmp_path / "example.js"
    script.write_text(
        "function send() {}\nasync function* receive() {}\nconst apply = async (one, two) => {};\n"
        "let render = (one) => one;\nclass Chart {\n  static async #draw(one) {\n  }\n}\n"
    )
    assert list_functions(script) == ["send", "receive", "apply", "render", "draw"]
