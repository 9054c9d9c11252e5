"""Laws for every figure, and the published numbers that figures show."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from rope_viz import RopeSpec
from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import METHODS
from rope_viz.figures import compared, theme, wavelengths
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.decay import per_distance, words
from rope_viz.pages.frequencies import figures as frequencies
from rope_viz.pages.scaling import figures as scaling
from rope_viz.picture.wire_format import pack
from rope_viz.studies import rotation, scores
from rope_viz.texts.numbers import format_number, format_tokens
from tests.figures.drawn import FIGURES

LLAMA = model_specs("llama-3.1-8b")[""]
QWEN = model_specs("qwen3-8b-yarn")[""]
EVEN = (np.full(64, 1 / 64), np.zeros(64))
PARTS = (*EVEN, 0.0)


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_titles_and_plots_have_none_inside(name):
    layout = FIGURES[name].layout
    assert layout.title.text is None
    assert layout.xaxis.title.text
    assert layout.yaxis.title.text or name == "bases"
    assert layout.height


@pytest.mark.parametrize("name", FIGURES)
def test_every_colour_has_a_dark_twin(name):
    used = set(re.findall(r'"(#[0-9A-Fa-f]{6})(?:[0-9A-Fa-f]{2})?"', FIGURES[name].to_json()))
    assert used <= set(theme.DARK), used - set(theme.DARK)


def plain(fig):
    return [trace.to_plotly_json() for trace in fig.data], fig.layout.to_plotly_json()


@pytest.mark.parametrize("name", FIGURES)
def test_packed_figure_is_read_back_unchanged(name):
    raw = pack(*plain(FIGURES[name]), {"title": name})
    size = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + size])
    assert (4 + size) % 8 == 0
    for trace, sent in zip(FIGURES[name].data, header["figure"]["data"], strict=True):
        for axis in "xyz":
            if isinstance(getattr(trace, axis, None), np.ndarray) and trace[axis].dtype.kind == "f":
                dtype, offset, count, *_ = sent[axis]["$"]
                found = np.frombuffer(raw, np.dtype(f"<{dtype}"), count, 4 + size + offset)
                np.testing.assert_array_equal(found, trace[axis].astype(found.dtype).ravel())


def test_moving_heatmap_is_sent_in_eight_bits_with_gaps():
    fig = theme.figure(
        [{"type": "heatmap", "z": np.array([[-1.0, 0.0], [1.0, np.nan]]), "zmin": -1, "zmax": 1}], x={}, y={}
    )
    raw = pack(*plain(fig), {}, quick=True)
    size = int.from_bytes(raw[:4], "little")
    dtype, offset, count, columns, low, high = json.loads(raw[4 : 4 + size])["figure"]["data"][0]["z"]["$"]
    assert (dtype, count, columns, low, high) == ("u1", 4, 2, -1, 1)
    assert list(raw[4 + size + offset :][:4]) == [0, 127, 254, 255]


def test_heatmap_of_single_positions_is_the_exact_cosine():
    fig = frequencies.heatmap(LLAMA, stop=10_000_000, view=(9_000_000.0, 9_000_199.0))
    trace = fig.data[0]
    assert trace.x[0] == 9_000_000
    assert len(trace.x) == 200
    cos, _ = spectrum.table(LLAMA.inv_freq(10_000_000), trace.x)
    np.testing.assert_allclose(trace.z, cos.T, atol=1e-6)


def test_a_zoom_into_the_decay_curve_shows_single_distances():
    where = decay.Range.from_length(10_000_000, (9_000_000.0, 9_000_199.0), log=False)
    fig, _ = decay.main("mean", decay.with_plain(compared.compared(LLAMA, [])), where, PARTS, "iid")
    trace = fig.data[-1]
    np.testing.assert_array_equal(trace.x, np.arange(9_000_000, 9_000_200))
    np.testing.assert_allclose(trace.y, scores.scores_at(LLAMA.inv_freq(LLAMA.target), *EVEN, trace.x), atol=1e-12)


def test_sequence_curve_is_the_mean_over_all_token_pairs():
    spec = RopeSpec(head_dim=16, rotary_dim=8, base=100.0, context=64)
    q, k = np.random.default_rng(0).standard_normal((2, 40, 16))
    own = scores.parts(spec, q[0], k[0])
    where = decay.Range.from_length(64, None, log=False)
    fig, _ = decay.main("own", compared.compared(spec, []), where, own, "iid", (q, k))
    drawn = fig.data[-1]
    assert drawn.name == "mean over 40 tokens"
    turned = [[rotation.rotation_matrix(spec, m) @ x for m, x in enumerate(side)] for side in (q, k)]
    for apart in (0, 1, 17, 39):
        expected = np.mean([turned[0][m] @ turned[1][m - apart] for m in range(apart, 40)])
        assert drawn.y[apart] == pytest.approx(expected, abs=1e-12)
    assert len(drawn.y) == 40


def test_the_whole_curve_shows_every_extreme():
    where = decay.Range.from_length(1_000_000, None, log=False)
    fig, _ = decay.main("mean", compared.compared(LLAMA.plain(), []), where, PARTS, "iid")
    exact = scores.mean_cosine(LLAMA.plain_inv_freq, 1_000_000)
    low, high, _ = fig.data
    assert np.min(low.y) == pytest.approx(exact.min(), abs=1e-12)
    assert np.max(high.y) == pytest.approx(exact.max(), abs=1e-12)


def test_a_moving_curve_is_close_to_the_whole_one_and_less_work():
    curves = compared.compared(LLAMA, [])
    sides, computed = {}, {}
    for quick in (True, False):
        where = dataclasses.replace(decay.Range.from_length(1 << 20, None, log=True, quick=True), quick=quick)
        fig, _ = decay.main("mean", decay.with_plain(curves), where, PARTS, "iid")
        sides[quick] = [(trace.x, trace.y) for trace in fig.data if trace.line.width == 0]
        computed[quick] = sum(map(len, where.thinning(64, shares=2).parts))
    assert computed[True] < 0.55 * computed[False]
    for (x, moving), (same, still) in zip(sides[True], sides[False], strict=True):
        np.testing.assert_array_equal(x, same)
        assert 0 < np.abs(np.subtract(moving, still)).max() < 0.06


def test_torch_gives_the_same_curve():
    curves = compared.compared(LLAMA, [])
    drawn = [
        decay.main("mean", curves, decay.Range.from_length(100_000, None, log=True, backend=backend), PARTS, "iid")[0]
        .data[0]
        .y
        for backend in ("numpy", "torch-cpu")
    ]
    np.testing.assert_allclose(drawn[0], drawn[1], atol=1e-12)


def test_the_running_total_ends_at_the_score():
    fig = per_distance.contributions(LLAMA, 12_345, PARTS, pin=None)
    assert fig.data[1].y[-1] == pytest.approx(per_distance.total(LLAMA, 12_345, PARTS), abs=1e-12)


def test_every_diagonal_of_the_attention_map_has_one_logit():
    grid = per_distance.attention_map(LLAMA, 1000, (np.linspace(0, 1, 64), np.linspace(1, 0, 64), 0.3), False).data[0].z
    for offset in range(per_distance.WINDOW):
        assert np.ptp(np.diagonal(grid, -offset)) == 0
    assert np.isnan(grid[0, 1])


def test_softmax_rows_of_the_attention_map_sum_to_one():
    grid = per_distance.attention_map(QWEN, 0, PARTS, True).data[0].z
    np.testing.assert_allclose(np.nansum(grid, axis=1), 1, atol=1e-5)


def test_decay_sentence_names_the_first_negative_distance():
    assert "**18,438**" in words.mean(LLAMA, 131_072)


@pytest.mark.parametrize("model", catalog())
def test_every_model_has_its_figures(model):
    for spec in model_specs(model).values():
        wavelengths.wavelengths(spec)
        scaling.summary(compared.compared(spec, compared.alternatives(spec, list(METHODS))))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4096, "4k"),
        (131_072, "128k"),
        (1 << 20, "1M"),
        (1000, "1,000"),
        (math.inf, "∞"),
        (40_960, "40k"),
        (6.2832, "6.283"),
    ],
)
def test_lengths_are_formatted_with_k_and_m(value, text):
    assert format_tokens(value) == text


def test_numbers_are_formatted_without_exponents():
    assert format_number(1.5e-7) == "1.5·10⁻⁷"
    assert format_number(0.04869675) == "0.0487"
    assert format_number(RopeSpec().base) == "10,000"
