"""House rules that a machine can check: imports between rooms, docstrings, dataclasses that hold arrays."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

from rope_viz.embedding.scaling import METHODS
from rope_viz.pages import registry
from tests.offenders import for_each

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rope_viz"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"])


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, at whatever depth it does so."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


# Floor by floor, from the ground up: a room imports from its own floor and the floors below it.
FLOORS = (
    ("embedding", "web", "texts", "storage"),
    ("models",),
    ("multi_axis", "studies", "kernels"),
    ("tiny_lm", "real_models", "evaluation", "runtimes"),
    ("advice",),
    ("probe",),
    ("own_files",),
    ("figures",),
    ("picture",),
    ("pages",),
    ("reports",),
    ("widgets",),
    ("ui", "cli"),
    ("serving",),
    ("layouts",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[1] if relative.parts[0] == "rope_viz" and len(relative.parts) > 2 else "layouts"


def arrows() -> set[tuple[str, str]]:
    """(room, room it imports from) over all files; the public face and the two ways in stand outside."""
    return {
        (room(path), module.split(".")[1])
        for path in SOURCES
        for module in imports(path)
        if module.startswith("rope_viz.") and module.split(".")[1] in FLOOR and room(path) != module.split(".")[1]
    }


def test_every_folder_is_a_known_room():
    doors = {"rope_viz/__init__.py", "rope_viz/__main__.py"}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(FLOOR) - {"layouts"}
    assert {name_of(path) for path in PACKAGE.glob("*.py")} == doors


@for_each(SOURCES, name_of)
def test_imports_go_down(path):
    own = [module for module in imports(path) if module.startswith("rope_viz.") and module.split(".")[1] in FLOOR]
    assert [module for module in own if FLOOR[module.split(".")[1]] > FLOOR[room(path)]] == []


def test_no_two_rooms_import_each_other():
    graph: dict[str, set[str]] = {}
    for start, end in arrows():
        graph.setdefault(start, set()).add(end)
    assert list(graphlib.TopologicalSorter(graph).static_order())


def test_no_two_modules_import_each_other():
    """No circle of modules, imports inside functions and imports for types alone included."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph = {name: imported_modules(path, set(modules)) for name, path in modules.items()}
    assert list(graphlib.TopologicalSorter(graph).static_order())


def imported_modules(path: Path, modules: set[str]) -> set[str]:
    """Return the package's modules that a file imports; `from package import module` means the module."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name_of(path)}: relative imports are not followed here"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names}
    return found & modules


# Files outside kernels/ and tiny_lm/ that import torch when they are asked to compute with it.
TORCH_ELSEWHERE = {"rope_viz/studies/scores.py"}


@for_each(SOURCES, name_of)
def test_heavy_libraries_stay_in_their_rooms(path):
    roots = {module.split(".")[0] for module in imports(path)}
    if room(path) not in ("ui", "serving", "layouts"):
        assert "streamlit" not in roots
    if room(path) not in ("figures", "picture", "pages", "reports", "ui", "serving", "cli"):
        assert "plotly" not in roots
    if (
        room(path) not in ("kernels", "tiny_lm", "real_models", "evaluation", "probe")
        and name_of(path) not in TORCH_ELSEWHERE
    ):
        assert not roots & {"torch", "triton"}


@for_each(TORCH_ELSEWHERE)
def test_each_exception_for_torch_is_needed(name):
    assert "torch" in {module.split(".")[0] for module in imports(ROOT / name)}


@for_each(SOURCES, name_of)
def test_a_file_begins_with_a_docstring(path):
    assert ast.get_docstring(parsed(path))


@for_each([path for path in SOURCES if room(path) != "layouts"], name_of)
def test_public_names_have_docstrings(path):
    named = [node for node in parsed(path).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    public = [node for node in named if not node.name.startswith("_")]
    assert [node.name for node in public if not ast.get_docstring(node)] == []


@for_each(SOURCES, name_of)
def test_dataclasses_with_arrays_do_not_compare_them(path):
    """Whether two arrays are equal is no yes or no: from Python 3.13 on not even for an array and itself."""
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ClassDef):
            continue
        how = next((ast.unparse(each) for each in node.decorator_list if "dataclass" in ast.unparse(each)), "eq=False")
        fields = [ast.unparse(item) for item in node.body if isinstance(item, ast.AnnAssign)]
        held = [field for field in fields if re.search(r": .*(Array|Tensor)", field) and "compare=False" not in field]
        held = [field for field in held if "Callable" not in field]
        assert not held or "eq=False" in how, f"{node.name} is compared by {held}"


def test_no_page_imports_another():
    """What two pages need belongs to the rooms below; only the list of pages knows them all, by name."""
    for path in (PACKAGE / "pages").rglob("*.py"):
        own = path.relative_to(PACKAGE / "pages").parts[0]
        others = [module for module in imports(path) if module.startswith("rope_viz.pages.")]
        assert {module.split(".")[2] for module in others} <= {own}, f"{name_of(path)} imports {others}"


# Modules outside embedding/ that name a scaling method, each with its reason. What else a room asks of a method is a
# class variable or a method of `Scaling`. The `rope_type` of a config is a word of a file, not a method's name.
NAMES_METHODS = {
    "rope_viz/models/rope_config.py": "reads each rope_type into the class with its keys",
    "rope_viz/models/formats/gguf_config.py": "recognises Llama 3 by the divisors in a GGUF file",
    "rope_viz/models/several_axes/diffusion.py": "reads the two methods that diffusion models have keys for",
    "rope_viz/multi_axis/mrope_runtimes.py": "reads the YaRN arguments of one runtime's class",
    "rope_viz/runtimes/llamacpp.py": "writes the flags of the two methods that llama.cpp has flags for",
    "rope_viz/studies/axis_extrapolation.py": "extends image axes by two of the methods and by others of its own",
    "rope_viz/evaluation/search_divisors.py": "writes what a search found as LongRoPE's lists",
    "rope_viz/advice/training/make_match.py": "splits a softmax scale between YaRN's two mscale keys",
    "rope_viz/advice/verify/conformance.py": "makes the typical mistakes of each published formula",
    "rope_viz/advice/verify/identify_rotation.py": "tells two ramps apart by measured frequencies",
    "rope_viz/pages/learn/scenes.py": "draws the three repairs that the lesson tells of",
}


def words(node: ast.AST) -> set[str]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def names_a_method(path: Path) -> list[int]:
    """Lines that use a method's class, compare a method's name, look for its fields, or make a table by methods."""
    classes, methods = {kind.__name__ for kind in METHODS.values()} - {"Scaling"}, set(METHODS) - {"none"}
    lines: list[int] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rope_viz"):
            found = bool(classes & {alias.name for alias in node.names})
        elif isinstance(node, ast.Attribute):
            found = node.attr in classes
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            compared = {
                ast.unparse(side).rpartition(".")[2] for side in sides if isinstance(side, (ast.Attribute, ast.Name))
            }
            found = bool(compared & {"name", "method"} and methods & set().union(*map(words, sides)))
        elif isinstance(node, ast.Match):
            patterns = [case.pattern for case in node.cases]
            found = not ast.unparse(node.subject).endswith("kind") and any(words(each) & methods for each in patterns)
        elif isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            found = len(keys & methods) > 1
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "hasattr":
            found = ast.unparse(node.args[0]).endswith("scaling") and bool(words(node))
        else:
            continue
        lines += [node.lineno] if found else []
    return lines


@for_each([path for path in SOURCES if room(path) != "embedding"], name_of)
def test_a_method_is_named_where_that_has_a_reason(path):
    lines = names_a_method(path)
    assert bool(lines) == (name_of(path) in NAMES_METHODS), f"{name_of(path)} names a scaling method in lines {lines}"


def test_few_modules_name_a_method():
    assert len(NAMES_METHODS) <= 12


@for_each(SOURCES, name_of)
def test_a_page_s_texts_are_read_by_the_page_alone(path):
    """Other rooms have texts of their own in `rope_viz/texts/en/`, or the caller passes the text."""
    calls = [
        node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Texts"
    ]
    named = [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]
    pages = {name.split("/")[0] for name in named}.intersection(registry.ORDER)
    own = path.relative_to(PACKAGE / "pages").parts[0] if (PACKAGE / "pages") in path.parents else path.stem
    assert pages <= ({own} if room(path) in ("pages", "layouts") else set())


def test_importing_the_package_is_light():
    probe = (
        "import sys, rope_viz\n"
        "assert not [name for name in sys.modules if name.startswith('rope_viz.') or name == 'numpy'], sys.modules\n"
        "from rope_viz import METHODS, RopeSpec, from_config\n"
        "assert all(getattr(rope_viz, name) for name in rope_viz.__all__)\n"
        "print(sorted({'torch', 'streamlit', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_starting_the_app_does_not_load_torch():
    probe = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "from rope_viz.ui import app_shell\n"
        "app_shell.warm()\n"
        f"AppTest.from_file({str(ROOT / 'pages/_frame.py')!r}, default_timeout=60).run()\n"
        "print(sorted({'torch', 'triton', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stdout + done.stderr


PYTHON = [*SOURCES, *(path for folder in ("tests", "benchmarks", "tools") for path in (ROOT / folder).rglob("*.py"))]


@for_each([path for path in PYTHON if path != Path(__file__)], name_of)
def test_the_project_names_no_place_outside_itself(path):
    text = path.read_text(encoding="utf-8")
    assert "../shared" not in text
    assert f"{ROOT}/" not in text


# Keys of widgets whose values the app sets or reads.
WIDGET_KEYS = {"more", "truncate", "choice.tab", "second.file", "second.text"}


def test_values_of_a_session_have_fields():
    """Streamlit's session state has one key, that of `ui/session.py`, besides those of widgets."""
    found = {}
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            key = session_key(node)
            if isinstance(key, ast.JoinedStr) or (isinstance(key, ast.Constant) and key.value not in WIDGET_KEYS):
                found[f"{name_of(path)}:{node.lineno}"] = ast.unparse(key)
    assert found == {}


def session_key(node: ast.AST) -> ast.AST | None:
    """Return the key that an expression looks up in st.session_state."""
    state = "st.session_state"
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == state:
        return node.slice
    if isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == state:
        return node.left
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[0] == state and node.args:
        return node.args[0]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == state:
        is_method = node.attr in ("get", "pop", "setdefault", "update", "to_dict")
        return None if is_method else ast.Constant(node.attr)
    return None


def test_each_class_has_a_name_of_its_own():
    places: dict[str, list[str]] = {}
    for path in [*SOURCES, *(ROOT / "tools").rglob("*.py")]:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# They import from older checkouts, too.
OLD_CHECKOUTS = {"benchmarks/checkouts.py", "benchmarks/extend_all.py", "tools/manifest.py"}


@for_each([path for path in PYTHON if name_of(path) not in OLD_CHECKOUTS], name_of)
def test_imports_inside_strings_name_what_exists(path):
    """A script that a test or a benchmark starts is text for the other tools."""
    texts = [node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)]
    lines = "\n".join(text for text in texts if isinstance(text, str))
    for module, names in re.findall(r"^\s*from (rope_viz[\w.]*) import ([\w, ]+)", lines, re.MULTILINE):
        place = ROOT / module.replace(".", "/")
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        for name in re.findall(r"\w+", names.partition(" as ")[0]):
            is_module = (place.is_dir() and any(place.glob(f"{name}.py"))) or (place / name).is_dir()
            assert is_module or re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), f"{module} has no {name}"


READS_FILES = {
    # Files of the package itself.
    "rope_viz/advice/plan/runtime_instructions.py",
    "rope_viz/advice/verify/check_rope.py",
    "rope_viz/advice/verify/conformance.py",
    "rope_viz/figures/files/style.py",
    "rope_viz/kernels/card_files.py",
    "rope_viz/models/architecture.py",
    "rope_viz/models/catalog/__init__.py",
    "rope_viz/models/parameter_formulas.py",
    "rope_viz/multi_axis/catalog/__init__.py",
    "rope_viz/pages/learn/figures.py",
    "rope_viz/pages/recall/__init__.py",
    "rope_viz/storage/decode_json.py",
    "rope_viz/studies/real_model.py",
    "rope_viz/texts/languages.py",
    "rope_viz/tiny_lm/checkpoints.py",
    "rope_viz/ui/app_shell.py",
    "rope_viz/ui/components/scripts.py",
    "rope_viz/serving/picture_route.py",
    "rope_viz/serving/static_middleware.py",
    "rope_viz/web/__init__.py",
    "rope_viz/web/bundle.py",
    # Files in /proc and /sys that tell of this machine.
    "rope_viz/kernels/report.py",
    "rope_viz/real_models/measure_model.py",
    "rope_viz/storage/processes.py",
    "rope_viz/serving/memory.py",
    # What a process of ours sends to another one.
    "rope_viz/probe/engines/run_llama_cpp.py",
    "rope_viz/probe/engines/run_mlx_lm.py",
    "rope_viz/probe/engines/run_transformers.py",
    "rope_viz/probe/engines/run_vllm.py",
    # The one place for all others.
    "rope_viz/storage/read_file.py",
}
"""Modules that read files other than those that a user names."""
READERS = {"json.load", "tomllib.load", "np.load", "np.fromfile", "np.loadtxt", "np.genfromtxt", "sys.stdin.read"}


def reads_a_file(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called in ("open", "os.open", "io.open") or called.endswith((".open", ".read_text", ".read_bytes")):
        words = [ast.unparse(argument) for argument in (*node.args, *(each.value for each in node.keywords))]
        writes = any(word in ("'a'", "'wb'", "'xb'") for word in words)
        # A member of an archive, a browser, a web server and a folder are no files of a user.
        others = ("archive.open", "webbrowser.open", "BORDER.open", "opener.open", "os.open")
        return not writes and called not in others
    return called in READERS


@for_each(SOURCES, name_of)
def test_a_file_of_a_user_is_read_in_one_place(path):
    """A device never ends, a pipe never begins, and a file may be of any size: `read_limited` knows all of them."""
    lines = [node.lineno for node in ast.walk(parsed(path)) if reads_a_file(node)]
    assert not lines or name_of(path) in READS_FILES, f"{name_of(path)} reads a file in lines {lines}"


def test_each_module_that_may_read_files_does():
    unused = {name for name in READS_FILES if not any(map(reads_a_file, ast.walk(parsed(ROOT / name))))}
    assert not unused


def test_a_child_process_has_the_environment_of_its_parent():
    """Without it another BLAS kernel may compute in the child, and a folder that the user chose is not used."""
    offenders = []
    for folder in ("rope_viz", "tests", "tools", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = parsed(path)
            assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
            made = {
                name.id
                for node in assigned
                if "environ" in ast.unparse(node.value)
                for name in ast.walk(node.targets[0])
                if isinstance(name, ast.Name)
            }
            given = {name.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for name in node.args}
            for node in ast.walk(tree):
                if isinstance(node, ast.keyword) and node.arg == "env":
                    text = ast.unparse(node.value)
                    names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
                    if "environ" not in text and not names & (made | given):
                        offenders.append(f"{name_of(path)}:{node.value.lineno} {text}")
    assert not offenders


def test_no_way_of_reading_is_a_swapped_global():
    """What reads contents from outside is handed down: by the server to its routes and connections."""
    swapped = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            targets = node.targets if isinstance(node, ast.Assign) else []
            named = [ast.unparse(target) for target in targets if isinstance(target, ast.Attribute)]
            swapped += [f"{path}: {name}" for name in named if name.startswith("outside.")]
    assert swapped == []
