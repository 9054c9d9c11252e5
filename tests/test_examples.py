"""The notebook in examples/ runs from its first cell to its last, and shows what it says it shows."""

import ast
import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from rope_viz import RopeSpec, bands, model_specs
from rope_viz.embedding.spec import band_rows
from rope_viz.models.catalog import catalog
from tests.offenders import for_each

pytestmark = pytest.mark.slow

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
    assert sum(isinstance(each, RopeSpec) for each in given) == 2
    assert sum(isinstance(each, go.Figure) for each in given) == 2
    assert given[-1] > 5000, "bytes of a file"


def test_examples_include_a_notebook():
    assert NOTEBOOKS


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
