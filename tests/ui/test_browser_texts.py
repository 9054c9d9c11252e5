"""Every text that the browser's scripts show is in the text files."""

import json
import re

from rope_viz.figures.files.style import PARAMETERS
from rope_viz.ui.components import scripts
from tests.offenders import for_each

SENT = json.loads(re.search(r"^export const TEXTS = (.*);$", scripts.texts().decode(), re.MULTILINE)[1])
USED = [
    (name, key)
    for name in scripts.SCRIPTS
    if name != "plotly.min.js"
    for key in re.findall(r'"((?:picture|knob|banner|export)\.[a-z_.]+)"', scripts.source(name).decode())
]


@for_each(USED)
def test_every_key_in_a_script_has_a_text(use):
    _, key = use
    assert SENT.get(key)


def test_scripts_use_texts():
    assert {"chart.js", "knob.js", "navigation.js", "picture.js", "export.js"} <= {name for name, _ in USED}


def test_texts_chosen_by_name_exist():
    groups, formats = ("size", "type", "colours", "axes"), ("png", "svg", "pdf", "html", "csv", "json")
    assert all(SENT[f"export.groups.{group}"] for group in groups)
    assert all(SENT[f"export.formats.{form}"] for form in formats)
    assert all(SENT[f"picture.{what}_failed"] for what in ("file", "dialog"))
    assert all(SENT[f"export.fields.{key}_help"] for key in PARAMETERS)


def test_the_browser_gets_placeholders_that_it_can_fill():
    for key, text in SENT.items():
        if not key.startswith("export.problems."):
            assert not re.search(r"\{[^}]*[:!]|\{\{", text), (key, text)
