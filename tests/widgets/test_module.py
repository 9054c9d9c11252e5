"""`rope-viz.js` is joined from the app's own scripts, is small, and needs no other file."""

import gzip
import re

from rope_viz.ui.components import scripts
from rope_viz.widgets.module import make_module, make_states
from tests.offenders import for_each

MODULE = make_module()
PART = re.compile(r"^const \$(\w+) = \(\(\) => \{\n(.*?)^return \{[^\n]*\};\n\}\)\(\);\n", re.MULTILINE | re.DOTALL)
PARTS = dict(PART.findall(MODULE))


def read_script(name: str) -> bytes:
    """Return what the app serves for a script; the app has no states."""
    return make_states() if name == "states" else scripts.source(f"{name}.js")


@for_each([*PARTS])
def test_each_part_is_a_script_of_the_app_byte_for_byte(name):
    """All bytes but the lines that import, those that list exports, and the word `export` at the start of a line."""
    ours = [line for line in PARTS[name].splitlines(keepends=True) if not re.match(r"const \{.*\} = \$\w+;$", line)]
    lines = read_script(name).decode().splitlines(keepends=True)
    theirs = [line for line in lines if not re.match(r'import .* from "\./\w+\.js";$|export \{', line)]
    assert "".join(ours) == "".join(re.sub(r"^export (default )?", "", line) for line in theirs)


def test_the_last_part_is_the_widget_byte_for_byte():
    rest = MODULE[MODULE.rindex("})();\n") + len("})();\n") :]
    lines = scripts.source("widget.js").decode().splitlines(keepends=True)
    assert rest.count(" = $") == sum(line.startswith("import ") for line in lines)
    assert rest.endswith("".join(lines[max(at for at, line in enumerate(lines) if line.startswith("import ")) + 1 :]))


def test_every_script_is_in_it_once_and_before_its_users():
    assert {"dials", "clocks", "circle", "hands", "chart", "chart_input", "texts", "states"} <= PARTS.keys()
    seen: set[str] = set()
    for name, part in PARTS.items():
        assert MODULE.count(f"const ${name} = ") == 1
        assert set(re.findall(r"^const \{.*\} = \$(\w+);$", part, re.MULTILINE)) <= seen
        seen.add(name)


def test_it_is_small_and_imports_nothing():
    assert len(gzip.compress(MODULE.encode(), 9)) <= 120_000
    assert not re.search(r"^(import|export \{)", MODULE, re.MULTILINE)
    assert "</script" not in MODULE, "it is inside saved pages"
    assert "plotly.js v" not in MODULE


def test_it_has_the_interface_of_notebooks_and_that_of_pages():
    exports = re.findall(r"^export .*", MODULE, re.MULTILINE)
    assert [line.rstrip(" {") for line in exports] == [
        "export function makeModel(state)",
        "export function show(el, name, spec = {})",
        "export default { render };",
    ]
