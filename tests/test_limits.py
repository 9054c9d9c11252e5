"""The numeric limits stand in one module, and the tables of the documentation are made from it."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from rope_viz.storage import limits
from tests.offenders import for_each

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "limits_table.py"
ROOMS = [path for room in ("serving", "own_files", "ui") for path in (ROOT / "rope_viz" / room).rglob("*.py")]
# Numbers that limit nothing.
OTHERS = {
    "SALT": "bytes of random numbers in a format",
    "LEVEL": "of gzip",
    "SLEEP": "a code of WebSocket",
    "MOVING": "a rank",
    "SHOWN": "a rank",
    "FILES": "a rank",
    "LATE_PART": "a part of a picture",
    "DAY": "seconds of a day",
    "M_ARENA_MAX": "of glibc",
    "M_MMAP_THRESHOLD": "of glibc",
    "HEIGHT": "pixels",
    "ROW": "pixels",
    "SLIDER": "pixels",
    "GAP": "pixels",
    "CARD": "pixels",
    "FOOT": "pixels",
    "ACROSS": "cards",
}
NAMES = [name for name in vars(limits) if name.isupper()]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("limits_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_constants(tree):
    """Return (name, value) of the assignments of a module, and the documented names."""
    constants, documented = [], set()
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        is_tuple = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(target.elts, value.elts, strict=True) if is_tuple else [(target, value)]
        named = [(name.id, part) for name, part in pairs if isinstance(name, ast.Name)]
        constants += named
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            documented |= {name for name, _ in named}
    return constants, documented


def is_number(node):
    """True for a number, or what is computed from numbers alone."""
    parts = list(ast.walk(node))
    plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(part, plain) for part in parts) and all(
        isinstance(part.value, (int, float)) and not isinstance(part.value, bool)
        for part in parts
        if isinstance(part, ast.Constant)
    )


@for_each(ROOMS, lambda path: path.relative_to(ROOT).as_posix())
def test_rooms_hold_no_limits_of_their_own(path):
    constants, _ = list_constants(ast.parse(path.read_text(encoding="utf-8")))
    assert [name for name, value in constants if is_number(value) and name not in OTHERS] == []


def test_each_limit_is_a_number_with_its_reason():
    constants, documented = list_constants(ast.parse(Path(limits.__file__).read_text(encoding="utf-8")))
    names = [name for name, _ in constants]
    assert sorted(names) == sorted(NAMES)
    assert len(set(names)) == len(names)
    assert set(names) - documented == set()
    assert all(getattr(limits, name) > 0 for name in names)


@for_each(NAMES)
def test_each_limit_is_used(name):
    sources = (path for path in (ROOT / "rope_viz").rglob("*.py") if path.name != "limits.py")
    used = any(re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")) for path in sources)
    own = Path(limits.__file__).read_text(encoding="utf-8")
    assert used or len(re.findall(rf"\b{name}\b", own)) > 1


def test_documentation_has_the_tables_that_are_made_from_the_limits(script):
    text = script.DOCUMENT.read_text(encoding="utf-8")
    assert script.write_tables(text) == text, "run python tools/limits_table.py"


def test_changed_limit_changes_the_tables(script, monkeypatch):
    before = script.make_tables()
    monkeypatch.setattr(limits, "STORE_BYTES", 100 << 20)
    for old, new in zip(before, script.make_tables(), strict=True):
        assert old != new
    monkeypatch.setattr(script, "HEADS", ("| no | such |", "| table | here |"))
    with pytest.raises(ValueError, match="has no table"):
        script.write_tables(script.DOCUMENT.read_text(encoding="utf-8"))


def test_tables_name_limits_that_exist(script):
    for _, _, where in script.list_limits():
        for name in filter(None, where.partition(";")[0].split(", ")):
            pattern = re.compile(name.replace("…", "[A-Z_]*"))
            assert any(map(pattern.fullmatch, NAMES)), name


def test_parts_of_the_server_add_up_to_500_mb_at_most(script):
    assert sum(script.list_sizes().values()) <= 500
