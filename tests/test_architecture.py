"""The house rules that a machine can see: who imports whom, what starting the app loads, docstrings, length."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rope_viz"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"])
LONGEST = 400


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> set[str]:
    """Every module a file imports, at whatever depth it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer(path: Path) -> str:
    relative = path.relative_to(ROOT)
    if relative.parts[0] != "rope_viz":
        return "pages"
    if len(relative.parts) > 2 and relative.parts[1] in ("ui", "figures", "kernels"):
        return relative.parts[1]
    return "cli" if relative.name == "__main__.py" or relative.name.startswith("cli") else "core"


MAY_IMPORT = {
    "core": {"core", "kernels"},
    "kernels": {"core", "kernels"},
    "figures": {"core", "kernels", "figures"},
    "ui": {"core", "kernels", "figures", "ui"},
    "pages": {"core", "kernels", "figures", "ui"},
    "cli": {"core", "kernels", "figures", "cli"},
}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_one_way(path):
    for module in imports(path):
        if module.startswith("rope_viz."):
            part = module.split(".")[1]
            line = part == "__main__" or part.startswith("cli")
            target = part if part in ("ui", "figures", "kernels") else "cli" if line else "core"
            assert target in MAY_IMPORT[layer(path)], f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_heavy_libraries_stay_in_their_rooms(path):
    roots = {module.split(".")[0] for module in imports(path)}
    if layer(path) not in ("ui", "pages"):
        assert "streamlit" not in roots
    if layer(path) not in ("figures", "ui", "cli"):
        assert "plotly" not in roots
    if layer(path) != "kernels" and path.name not in TORCH_ELSEWHERE:
        assert not roots & {"torch", "triton"}


TORCH_ELSEWHERE = {"scores.py", "scores_torch.py", "devices.py"}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_opens_with_a_docstring_and_is_short(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no docstring"
    assert text.count("\n") <= LONGEST, f"{name_of(path)} is past {LONGEST} lines: split it"


@pytest.mark.parametrize("path", [path for path in SOURCES if layer(path) != "pages"], ids=name_of)
def test_public_names_have_docstrings(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name_of(path)}: {node.name} has no docstring"


def test_starting_the_app_does_not_load_torch():
    probe = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "from rope_viz.ui import frame\n"
        "frame.warm()\n"
        f"AppTest.from_file({str(ROOT / 'pages/_frame.py')!r}, default_timeout=60).run()\n"
        "print(sorted({'torch', 'triton', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stdout + done.stderr


def test_the_project_names_no_place_outside_itself():
    for path in [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert "../shared" not in text, name_of(path)
            assert f"{ROOT}/" not in text, name_of(path)
