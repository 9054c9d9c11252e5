"""Measure the power of the tests: break the package in small ways and count how often a test notices.

    python tools/mutants.py choose mutants.jsonl --seed 56 --count 60
    python tools/mutants.py run mutants.jsonl results.jsonl
    python tools/mutants.py run mutants.jsonl older.jsonl --suite ../older-checkout
    python tools/mutants.py report older.jsonl results.jsonl

A mutant is one change of one expression: a number, a comparison, `and` for `or`, a key, a keyword that is dropped.
`run` applies each in a copy of this checkout and runs the tests without a browser that import the mutated module
directly. It stops at the first failure, and checks that this test passes without the mutant. An interrupted run goes
on where it ended. `--suite` takes the tests of another checkout.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("embedding", "models", "runtimes", "advice", "pages")
NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".venv", ".hypothesis")

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    choose = commands.add_parser("choose", help="write a random sample of mutants, as many from each room")
    choose.add_argument("mutants", type=Path)
    choose.add_argument("--seed", type=int, default=56)
    choose.add_argument("--count", type=int, default=60)
    run = commands.add_parser("run", help="run the tests on each mutant")
    run.add_argument("mutants", type=Path)
    run.add_argument("results", type=Path)
    run.add_argument("--suite", type=Path, default=ROOT, help="the checkout whose tests are run")
    run.add_argument("--seconds", type=int, default=150, help="processor time per mutant")
    report = commands.add_parser("report", help="print how many mutants each run caught, and the survivors")
    report.add_argument("results", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "choose":
        write_lines(options.mutants, choose_mutants(options.seed, options.count))
    elif options.command == "run":
        run_mutants(options.mutants, options.results, options.suite.resolve(), options.seconds)
    else:
        print(format_report({path: read_lines(path) for path in options.results}))


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write_lines(path: Path, rows: list[dict], mode: str = "w") -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# Choosing


def choose_mutants(seed: int, count: int) -> list[dict]:
    """Return `count` mutants, as many from each room, of modules that some test imports directly."""
    chooser = random.Random(seed)
    imported = set().union(*find_imports(ROOT / "tests").values())
    chosen = []
    for room in ROOMS:
        mutants = [
            mutant
            for path in sorted((ROOT / "rope_viz" / room).rglob("*.py"))
            if path.relative_to(ROOT).as_posix() in imported
            for mutant in list_mutants(path)
        ]
        chosen += chooser.sample(mutants, count // len(ROOMS))
    return [{"number": number, **mutant} for number, mutant in enumerate(chosen)]


def list_mutants(path: Path) -> Iterator[dict]:
    """Yield every mutant of a file: where it is, the code before and after."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, after in change_code(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        mutant = {
            "module": path.relative_to(ROOT).as_posix(),
            "line": node.lineno,
            "start": start,
            "end": end,
            "before": source[start:end].decode(),
            "after": after,
        }
        yield mutant


def change_source(source: bytes, mutant: dict) -> bytes:
    """Return a module's source with the mutant's code in place of the original."""
    assert source[mutant["start"] : mutant["end"]].decode() == mutant["before"], f"{mutant['module']} has changed"
    return source[: mutant["start"]] + mutant["after"].encode() + source[mutant["end"] :]


def change_code(node: ast.AST, key: bool = False) -> Iterator[tuple[ast.expr, str]]:
    """Yield (expression, other code for it) of all code that a test could notice: no annotation, text or error."""
    yield from change_node(node, key)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(node, SKIPPED):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_all(child):
                yield from change_code(child, is_key(node, name))


SKIPPED = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)


def is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def is_key(node: ast.AST, field: str) -> bool:
    """Return whether a string in this field is a key, and not a text."""
    if isinstance(node, ast.Call):
        return field == "args" and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop")
    return (type(node), field) in {(ast.Subscript, "slice"), (ast.Dict, "keys")} or isinstance(node, ast.Compare)


def change_node(node: ast.AST, key: bool) -> Iterator[tuple[ast.expr, str]]:
    """Yield the changes of one node itself."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node.value, int):
            yield from ((node, f"({number})") for number in {node.value + 1, node.value - 1, node.value * 2 or 2})
        elif isinstance(node.value, float):
            yield node, repr(node.value * 2 or 1.0)
        elif isinstance(node.value, str) and key:
            yield node, repr(node.value + "_")
    elif isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = COMPARISONS[type(operator)]()
            yield node, f"({ast.unparse(changed)})"
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield node, f"({ast.unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield node.value, "None"
    elif isinstance(node, ast.Call):
        for place, keyword in enumerate(node.keywords):
            if keyword.arg:
                yield (
                    node,
                    ast.unparse(ast.Call(node.func, node.args, node.keywords[:place] + node.keywords[place + 1 :])),
                )


# Running


def run_mutants(mutants: Path, results: Path, suite: Path, seconds: int) -> None:
    """Append one row to `results` for each mutant that has none yet."""
    finished = {row["number"] for row in read_lines(results)}
    imports = find_imports(suite / "tests")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
        shutil.rmtree(tree / "tests")
        shutil.copytree(suite / "tests", tree / "tests", ignore=NOT_COPIED)
        # Compiled code is compared by content: a mutant of the same size within the same second must be seen.
        compiling = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "rope_viz"]
        subprocess.run([sys.executable, *compiling], cwd=tree, check=True)
        for mutant in read_lines(mutants):
            if mutant["number"] not in finished:
                tests = order_tests(mutant["module"], imports, suite)
                row = {**mutant, "tests": len(tests), **run_mutant(mutant, tests, tree, seconds)}
                write_lines(results, [row], "a")
                print(row["number"], row["outcome"], row["by"], flush=True)


def find_imports(tests: Path) -> dict[str, set[str]]:
    """Return {test file: the package's files that it imports itself}."""
    return {
        path.relative_to(tests.parent).as_posix(): set(list_imported_files(path))
        for path in sorted(tests.rglob("test_*.py"))
    }


def list_imported_files(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            for file in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py"):
                if (ROOT / file).is_file():
                    yield file


def order_tests(module: str, imports: dict[str, set[str]], suite: Path) -> list[str]:
    """Return the tests of a module: first the file of its name, then from the smallest to the largest file."""
    own = f"test_{Path(module).stem}.py"
    tests = [test for test, files in imports.items() if module in files]
    return sorted(tests, key=lambda test: (Path(test).name != own, (suite / test).stat().st_size, test))


def run_mutant(mutant: dict, tests: list[str], tree: Path, seconds: int) -> dict:
    """Return the outcome of the tests on one mutant, and the first test that failed because of it."""
    path = tree / mutant["module"]
    original = path.read_bytes()
    failing_anyway: list[str] = []
    started = measure_processor_time()
    # Collecting a hundred files takes longer than the tests that notice most mutants.
    batches = [batch for batch in (tests[:FIRST_FILES], tests[FIRST_FILES:]) if batch]
    while batches:
        left = seconds - int(measure_processor_time() - started)
        path.write_bytes(change_source(original, mutant))
        deselected = [f"--deselect={test}" for test in failing_anyway]
        outcome, by = run_tests([*batches[0], *deselected], tree, left) if left > 0 else ("out of time", "")
        path.write_bytes(original)
        if outcome == "survived":
            batches.pop(0)
        elif outcome != "caught" or run_tests([by], tree, seconds)[0] == "survived":
            break
        else:
            failing_anyway.append(by)
    used = round(measure_processor_time() - started, 1)
    return {"outcome": outcome, "by": by, "failing_anyway": failing_anyway, "seconds": used}


FIRST_FILES = 4


def measure_processor_time() -> float:
    """Return the processor time of all processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_tests(tests: list[str], tree: Path, seconds: int) -> tuple[str, str]:
    """Return what became of the tests, and the first that failed (or the end of the output, if none was named)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not browser", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
    )
    try:
        output = process.communicate(timeout=6 * seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    if process.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
        return "survived", ""
    if process.returncode in (1, 2) and failed:
        return "caught", failed[1]
    return "out of time" if process.returncode < 0 else "error", output.strip()[-300:]


# Reporting


def format_report(runs: dict[Path, list[dict]]) -> str:
    """Return how many mutants each run caught, and what no run or not every run caught."""
    lines = [f"{path}: {dict(Counter(row['outcome'] for row in rows))}" for path, rows in runs.items()]
    outcomes: dict[int, list[str]] = {}
    for rows in runs.values():
        for row in rows:
            outcomes.setdefault(row["number"], []).append(row["outcome"])
    described = {row["number"]: row for rows in runs.values() for row in rows}
    for number, found in sorted(outcomes.items()):
        if set(found) != {"caught"}:
            row = described[number]
            lines.append(
                f"{number} {row['module']}:{row['line']}: {row['before']} -> {row['after']} ({', '.join(found)})"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
