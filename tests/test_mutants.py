"""The mutants that measure the power of the tests change code, and nothing else."""

import ast

import pytest

from tools.mutants import ROOT, change_code, change_source, find_imports, list_mutants, order_tests


def list_changes(source):
    return [(ast.unparse(node), after) for node, after in change_code(ast.parse(source))]


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x < y", "(x <= y)"),
        ("x is None", "(x is not None)"),
        ("a and b", "(a or b)"),
        ("a + b", "(a - b)"),
        ("not a", "(a)"),
        ("config.get('head_dim')", "'head_dim_'"),
        ("config['head_dim']", "'head_dim_'"),
        ("read(x, strict=y)", "read(x)"),
        ("x if y else z", "(not (y))"),
        ("0.5", "1.0"),
        ("True", "False"),
        ("7", "(8)"),
        ("7", "(6)"),
        ("7", "(14)"),
    ],
)
def test_an_expression_is_changed(code, changed):
    assert changed in [after for _, after in list_changes(code)]


@pytest.mark.parametrize(
    "code",
    [
        '"""Return 1."""',
        "def f(x: Literal[1]) -> Literal[2]: pass",
        "raise ValueError('at least 1')",
        "f'{x + 1} of 2'",
        "__all__ = ['read', 1]",
        "from rope_viz import check",
    ],
)
def test_texts_annotations_and_errors_are_not_changed(code):
    assert list_changes(code) == []


def test_every_mutant_of_a_module_compiles():
    path = ROOT / "rope_viz" / "cli" / "verify.py"
    mutants = list(list_mutants(path))
    assert len(mutants) > 50
    for mutant in mutants:
        changed = change_source(path.read_bytes(), mutant)
        assert changed != path.read_bytes()
        compile(changed, path.name, "exec")


def test_the_test_of_the_same_name_is_run_first():
    tests = order_tests("rope_viz/cli/verify.py", find_imports(ROOT / "tests"), ROOT)
    assert tests[0] == "tests/advice/test_verify.py"
