"""CONTRIBUTING's recipes, followed by their very blocks of code in a copy of the project, keep the laws."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^(?:In `(?P<changed>[^`\n]+)`, below `(?P<line>[^`\n]+)`|`(?P<new>[^`\n]+)`):\n\n```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Not the translations: a new text is English first.
LAWS = ("tests/test_architecture.py", "tests/texts/test_texts.py", "tests/test_language.py")
# {section: what shows that the result works: tests, and a command with a part of what it prints or writes}.
RECIPES = {
    "A page with one figure": (
        ("tests/pages/test_pages.py", "-k", "turns"),
        ("figure", "turns/by_pair", "llama-3.1-8b", "-o", "-", "--format", "csv"),
        "0,1303.79",
    ),
    "A scaling method": (("tests/embedding/test_scaling.py",), ("models",), "llama-3.1-8b"),
    "A command": (("tests/cli/test_every_command.py", "-k", "turns or list"), ("turns", "llama-2-7b"), "0 651.89"),
}


def read_blocks(section):
    """Return the blocks of a section: (path, line below which the text goes or None for a new file, text)."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    return [(each["changed"] or each["new"], each["line"], each["text"]) for each in BLOCK.finditer(found)]


def follow_recipe(section, root):
    """Write the blocks of a section into a copy of the project."""
    for name, line, text in read_blocks(section):
        path = root / name
        if line is None:
            assert not path.exists(), f"{name} exists: the recipe must say below which line its block goes"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            continue
        before, found, after = path.read_text(encoding="utf-8").partition(f"{line}\n")
        assert found, f"{name} has no line that ends with {line}"
        path.write_text(before + found + text + after, encoding="utf-8")


def run_python(root, *arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def copy(tmp_path):
    """The files of the project that git tracks, in a folder of its own."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("section", RECIPES)
def test_a_recipe_keeps_the_laws(section, copy):
    tests, command, expected = RECIPES[section]
    follow_recipe(section, copy)
    run_python(copy, "-m", "ruff", "check", ".")
    run_python(copy, "-m", "ruff", "format", "--check", ".")
    run_python(copy, "-m", "pytest", "-q", "-n", "0", "-m", "not browser", *LAWS)
    run_python(copy, "-m", "pytest", "-q", "-n", "0", "-m", "not browser", *tests)
    assert expected in run_python(copy, "-m", "rope_viz", *command)


def test_a_page_touches_one_folder_a_layout_and_one_line():
    blocks = read_blocks("A page with one figure")
    changed = [(name, text) for name, line, text in blocks if line is not None]
    assert [(name, text.count("\n")) for name, text in changed] == [("rope_viz/pages/registry.py", 1)]
    new = {name for name, line, _ in blocks if line is None}
    assert {name for name in new if not name.startswith("rope_viz/pages/turns/")} == {"pages/turns.py"}


def test_a_command_touches_one_module_and_two_lines():
    blocks = read_blocks("A command")
    assert [name for name, line, _ in blocks if line is None] == ["rope_viz/cli/turns.py"]
    assert [text.count("\n") for _, line, text in blocks if line is not None] == [1, 1]
