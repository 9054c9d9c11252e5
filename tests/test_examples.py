"""The notebooks in examples/ run from first cell to last; a spec is shown as a table and as dials."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from rope_viz import RopeSpec, bands, model_specs
from rope_viz.embedding.spec import band_rows
from rope_viz.models.catalog import catalog
from rope_viz.widgets.notebook import PictureWidget, StillPicture
from tests.offenders import for_each

pytestmark = pytest.mark.slow

SHOWN = {
    "rope.ipynb": {RopeSpec: 2, go.Figure: 2},
    "widgets.ipynb": {RopeSpec: 1, PictureWidget: 2, StillPicture: 1},
}
"""{notebook: {class: how many values of it the cells show}}."""
NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def results(notebook):
    """What each code cell of a notebook shows: the value of its last line."""
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        yield eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_and_holds_no_old_output(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    given = list(results(notebook))
    for kind, count in SHOWN[path.name].items():
        assert sum(isinstance(each, kind) for each in given) == count
    assert path.name != "rope.ipynb" or given[-1] > 5000, "bytes of a file"


def test_every_example_is_a_known_notebook():
    assert [path.name for path in NOTEBOOKS] == [*SHOWN]


@for_each(list(catalog()))
def test_spec_is_shown_as_a_table_with_all_its_bands(model):
    for spec in model_specs(model).values():
        html = spec._repr_html_()
        assert html.startswith("<table>")
        assert html.count("<tr>") == html.count("</tr>") == 6 + len(bands(spec, length=spec.target).runs)
        pairs = [row[1].split(" – ") for row in band_rows(spec)]
        assert sum(int(row[-1]) - int(row[0]) + 1 for row in pairs) == spec.pairs


def test_table_holds_sizes_and_wavelengths():
    spec = RopeSpec(head_dim=64, rotary_dim=32, base=10_000.0, context=2048)
    rows = dict(spec.sizes())
    assert rows["head dimension"] == "64, of which 32 rotate"
    assert rows["trained length"] == "2,048 tokens"
    ((band, pairs, first, last),) = band_rows(spec)
    assert (band, pairs) == ("kept", "0 – 15")
    assert float(first.replace(",", "")) == pytest.approx(2 * np.pi, rel=1e-3)
    assert float(last.replace(",", "")) == pytest.approx(2 * np.pi * 10_000 ** (30 / 32), rel=1e-3)


@for_each(list(catalog()))
def test_spec_is_shown_as_dials_at_the_trained_length(model):
    for spec in model_specs(model).values():
        hands = re.findall(r"M([\d.]+) ([\d.]+)l(-?[\d.]+) (-?[\d.]+)", spec._repr_html_())
        assert len(hands) == min(spec.pairs, 256)
        turned = np.array([complex(float(x), -float(y)) for _, _, x, y in hands]) / 0.36
        exact = np.exp(1j * spec.context * spec.inv_freq(spec.target)[:256])
        np.testing.assert_allclose(turned, exact, atol=3e-3)
