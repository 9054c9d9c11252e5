"""The CSV of a figure: every distance or labelled bins, under remarks that name its content."""

import csv
import json

import numpy as np
import pytest

from rope_viz import __version__
from rope_viz.figures import cell_text, compared, theme
from rope_viz.figures.files import Style, format_span, format_stem, render
from rope_viz.models.catalog import model_specs
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.frequencies import figures as frequencies
from rope_viz.pages.precision import figures as precision
from rope_viz.studies import scores
from rope_viz.studies.scores import Thinning
from tests.figures.drawn import DRAWN, LLAMA, PARTS

QWEN = model_specs("qwen3-8b-yarn")[""]


def table(fig, **options):
    """{column: values} of a figure's CSV; numbers where all of a column are."""
    text = render(fig, "csv", **options).decode()
    rows = list(csv.reader(line for line in text.splitlines() if not line.startswith("#")))
    return {name: numbers_of(column) for name, *column in zip(*rows, strict=True)}


def numbers_of(column):
    try:
        return np.array([float(cell) if cell else np.nan for cell in column])
    except ValueError:
        return column


def mean_cosine(length, *, log=False, view=None):
    where = decay.Range.from_length(length, view, log=log)
    return decay.main("mean", compared.compared(LLAMA, []), where, PARTS, "iid")[0]


def test_decay_table_holds_every_distance():
    found = table(mean_cosine(20_000))
    np.testing.assert_array_equal(found["distance m − n (tokens)"], np.arange(20_000))
    exact = scores.scores_at(LLAMA.inv_freq(LLAMA.target), *PARTS[:2], np.arange(20_000))
    np.testing.assert_allclose(found["Llama 3"], exact, atol=1e-12)


@pytest.mark.parametrize("log", [False, True])
def test_long_decay_table_is_binned_with_min_max_and_mean(log):
    length = cell_text.MOST_ROWS + 30_000
    found = table(mean_cosine(length, log=log))
    assert list(found) == ["from", "to", "Llama 3 min", "Llama 3 max", "Llama 3 mean"]
    first, last = found["from"].astype(int), found["to"].astype(int)
    assert (first[0], last[-1]) == (int(log), length - 1)
    np.testing.assert_array_equal(first[1:], last[:-1] + 1)
    exact = scores.scores_at(LLAMA.inv_freq(LLAMA.target), *PARTS[:2], np.arange(length))
    for row in (0, 1, len(first) // 2, len(first) - 1):
        inside = exact[first[row] : last[row] + 1]
        assert found["Llama 3 min"][row] == pytest.approx(inside.min(), abs=1e-11)
        assert found["Llama 3 max"][row] == pytest.approx(inside.max(), abs=1e-11)
        assert found["Llama 3 mean"][row] == pytest.approx(inside.mean(), abs=1e-11)


def test_bins_are_the_columns_of_the_figure():
    fig = mean_cosine(200_000)
    found = table(fig)
    low, high, mean = fig.data
    np.testing.assert_array_equal(found["Llama 3 min"], low.y)
    np.testing.assert_array_equal(found["Llama 3 max"], high.y)
    np.testing.assert_array_equal(found["Llama 3 mean"], mean.y)
    # Only the mean is a line: the range of several curves would hide the others.
    assert (low.line.width, high.line.width, high.fill) == (0, 0, "tonexty")
    assert mean.line.width > 1
    np.testing.assert_array_equal((found["from"] + found["to"]) / 2, low.x)


def test_thinned_distances_are_always_bins():
    lines = [("x", LLAMA.plain_inv_freq, PARTS)]
    found = cell_text.score_table(lines, Thinning(0, 1000, 9000, 4), columns=100, log=False)
    assert list(found) == ["from", "to", "x min", "x max", "x mean"]
    exact = scores.scores_at(LLAMA.plain_inv_freq, *PARTS[:2], np.arange(9000))
    assert found["x mean"][50] == pytest.approx(exact[found["from"][50] : found["to"][50] + 1].mean(), abs=1e-12)


def test_unrotated_constant_is_in_every_number():
    parts = (np.ones(64), np.zeros(64), 5.0)
    line = ("x", LLAMA.plain_inv_freq, parts)
    each = cell_text.score_table([line], Thinning.for_curve(0, 3, 64), columns=9, log=False)
    bins = cell_text.score_table([line], Thinning.for_curve(0, cell_text.MOST_ROWS + 10, 64), columns=9, log=False)
    assert each["x"][0] == bins["x max"][0] == pytest.approx(69)
    bare = cell_text.score_table(
        [("x", line[1], (*parts[:2], 0.0))], Thinning.for_curve(0, 90_000, 64), columns=9, log=False
    )
    more = cell_text.score_table([line], Thinning.for_curve(0, 90_000, 64), columns=9, log=False)
    np.testing.assert_allclose(more["x mean"] - bare["x mean"], 5, rtol=1e-12)


def test_a_zoom_shows_its_own_distances():
    found = table(mean_cosine(10_000_000, view=(9_000_000.0, 9_000_199.0)))
    np.testing.assert_array_equal(found["distance m − n (tokens)"], np.arange(9_000_000, 9_000_200))


def test_sequence_has_columns_with_its_own_distances():
    q, k = np.random.default_rng(0).standard_normal((2, 40, 128))
    where = decay.Range.from_length(100, None, log=False)
    fig, _ = decay.main("own", compared.compared(LLAMA, []), where, scores.parts(LLAMA, q[0], k[0]), "iid", (q, k))
    found = table(fig)
    assert np.isfinite(found["mean over 40 tokens"]).sum() == 40
    np.testing.assert_array_equal(found["distance m − n (tokens), sequence"][:40], np.arange(40))


def test_the_bands_are_bins_of_positions_by_pair():
    fig = frequencies.heatmap(LLAMA, stop=100_000)
    found = table(fig)
    assert list(found)[:3] == ["from", "to", "pair 0: mean of cos of the angle"]
    np.testing.assert_array_equal((found["from"] + found["to"]) / 2, fig.data[0].x)
    grid = np.array([values for name, values in found.items() if name.startswith("pair")])
    np.testing.assert_allclose(grid, fig.data[0].z, atol=1e-6)
    row = 7
    inside = np.arange(found["from"][row], found["to"][row] + 1)
    assert grid[40, row] == pytest.approx(np.cos(inside * LLAMA.inv_freq(100_000)[40]).mean(), abs=1e-7)


def test_single_positions_are_called_by_their_number():
    found = table(frequencies.heatmap(LLAMA, stop=64))
    np.testing.assert_array_equal(found["position"], np.arange(64))
    assert len(found) == 1 + 64


def test_the_errors_of_rounding_are_bins_in_radians():
    fig = precision.heatmap(LLAMA, "bf16-angles", position=4096)
    found = table(fig)
    grid = np.array([values for name, values in found.items() if name.endswith("error found (rad)")])
    some = np.isfinite(fig.data[0].z)
    np.testing.assert_allclose(np.log10(np.maximum(grid[some], precision.FLOOR)), fig.data[0].z[some], atol=1e-5)
    assert found["from"][0] == 1


@pytest.mark.parametrize("name", ["wavelengths", "ratio", "errors", "random", "softmax", "contributions", "costs"])
def test_curves_are_written_as_they_are_drawn(name):
    found = table(DRAWN[name])
    for trace in DRAWN[name].data:
        if (trace.meta or {}).get("csv") is not False:
            np.testing.assert_array_equal(found[trace.name][: len(trace.y)], trace.y)


def test_maps_are_stacked_and_named_in_the_table():
    fig = DRAWN["attention weights"]
    found = table(fig)
    assert list(found)[:2] == ["map", "query \\ key"]
    words = list(fig.data[0].x)
    assert found["map"][:: len(words)] == ["No position", "Sinusoidal, added", "RoPE", "RoPE, YaRN"]
    grid = np.array([found[word] for word in words]).T
    for place, trace in enumerate(fig.data):
        mine = grid[place * len(words) : (place + 1) * len(words)]
        np.testing.assert_array_equal(mine.astype(np.float32), trace.z)


def test_matrices_and_permutations_are_lists_of_cells_and_rows():
    cells = table(DRAWN["matrices few"])
    kept = {name: np.array(cells["matrix"]) == name for name in ("interleaved", "P", "in halves")}
    assert {int(mine.sum()) for mine in kept.values()} == {256}
    assert cells["value"][kept["P"]].sum() == 16
    assert max(cells["row (dimension)"][kept["in halves"]]) == 71
    rows = table(DRAWN["permutation"])
    assert sorted(rows["row, interleaved"]) == list(range(256))


def test_remarks_above_the_table_name_its_content():
    meta = {"spec": {"base": 500_000.0, "name": "θ"}, "view": "ratio", "address": "https://x/?a=1#b", "nothing": ""}
    text = render(DRAWN["ratio"], "csv", title="A\ntitle", meta=meta).decode()
    head = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# "))
    assert head["title"] == "A title"
    assert json.loads(head["spec"]) == meta["spec"]
    assert head["address"] == meta["address"]
    assert head["version"] == f"RoPE Viz {__version__}"
    assert "nothing" not in head
    assert not render(DRAWN["ratio"], "csv").startswith(b"#")


def test_cells_never_start_a_spreadsheet_formula():
    trace = {"type": "scatter", "x": ["=1+1", "-5", "word"], "y": [1, 2, 3], "name": "@cmd"}
    text = render(theme.figure([trace], x={"type": "category"}, y={}), "csv").decode()
    assert text.splitlines() == ["x,'@cmd", "'=1+1,1", "-5,2", "word,3"]


def test_both_themes_hold_the_same_numbers():
    for name in ("ratio", "cos", "dials"):
        assert render(DRAWN[name], "csv", options=Style(theme="dark", grey=True)) == render(DRAWN[name], "csv")


def test_stem_names_models_specs_and_range():
    name = format_stem("decay/curves", ["llama-3.1-8b", "llama-2-7b", "qwen3-8b"], spec=LLAMA, span=(0, 131_072))
    first = "llama-3.1-8b_d128_base500000_L8k_to128k_llama3x8"
    assert name == f"rope-decay-curves_{first}_vs_llama-2-7b_qwen3-8b_0-128k"
    assert format_stem("frequencies.wavelengths", ["llama-2-7b"]) == "rope-frequencies-wavelengths_llama-2-7b"
    assert format_stem("decay/curves", ["a", "a"], span=(0.5, 2.25)) == "rope-decay-curves_a_0.5-2.25"


def test_stem_writes_ranges_unambiguously():
    assert format_stem("a/b", ["m"], span=(1e6, 5e6)) == "rope-a-b_m_1000000-5000000"
    assert format_stem("a/b", ["m"], span=(1e-7, 1e20)) == "rope-a-b_m_1e-07-1e20"
    assert format_span(-1, None, "x") == "xfrom-1"
    assert format_span(None, 0.25, "y") == "yupto0.25"
    assert format_span(None, None) == ""


@pytest.mark.parametrize("odd", ["../../etc/passwd", "a b;rm -rf", "名前", "x" * 500, "C:\\con", "é·θ"])
def test_stem_is_a_valid_file_name_everywhere(odd):
    name = format_stem("decay/curves", [odd, "qwen3-8b"], span=(-1, 1e12))
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert 10 < len(name) <= 180
    assert ".." not in name
    assert name.startswith("rope-decay-curves")


def test_shortened_file_names_stay_distinct():
    one, other = (format_stem("a/b", ["x" * 300, "y" * 300, end]) for end in ("one", "two"))
    assert one != other
