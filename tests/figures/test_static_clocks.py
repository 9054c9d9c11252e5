"""The static picture of the clocks: hands at the exact angles and the exact score."""

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import clocks, theme
from rope_viz.figures.files import Style, render
from rope_viz.models.catalog import model_specs
from rope_viz.studies import scores

LLAMA = model_specs("llama-3.1-8b")[""]


def packed(spec, mode="turn"):
    return clocks.packed(spec, mode=mode, plain=True)


def hands(fig, name):
    """(turns, lengths) of the hands of this name, from their ends."""
    out = []
    for trace in fig.data:
        if trace.name == name:
            x, y = np.asarray(trace.x).reshape(-1, 3), np.asarray(trace.y).reshape(-1, 3)
            out += list(zip(x[:, 1] - x[:, 0], y[:, 1] - y[:, 0], strict=True))
    dx, dy = np.array(out).T
    return np.arctan2(dy, dx) / (2 * np.pi) % 1.0, np.hypot(dx, dy)


@pytest.mark.parametrize("position", [0, 1000, 9_999_999])
def test_every_hand_points_at_its_angle(position):
    fig = clocks.draw_still(packed(LLAMA), position)
    exact = [float((int(position) * frac(rate)) % 1) for rate in LLAMA.inv_freq(LLAMA.target)]
    turn, _ = hands(fig, "hand")
    np.testing.assert_allclose(np.abs((turn - exact + 0.5) % 1 - 0.5), 0, atol=1e-4)
    before = [float((int(position) * frac(rate)) % 1) for rate in LLAMA.plain_inv_freq]
    turn, _ = hands(fig, "before scaling")
    np.testing.assert_allclose(np.abs((turn - before + 0.5) % 1 - 0.5), 0, atol=1e-4)


def frac(rate):
    """Turns per position, in more digits than a float has."""
    import mpmath

    with mpmath.workdps(40):
        return mpmath.mpf(float(rate)) / (2 * mpmath.pi)


def test_query_and_key_hands_and_score_bars_are_exact():
    fig = clocks.draw_still(packed(LLAMA, "score"), 1040, 1024)
    query, _ = hands(fig, "query")
    key, _ = hands(fig, "key")
    apart = 16 * LLAMA.inv_freq(LLAMA.target) / (2 * np.pi)
    np.testing.assert_allclose(np.abs((query - key - apart + 0.5) % 1 - 0.5), 0, atol=2e-4)
    bars = next(trace for trace in fig.data if trace.type == "bar")
    mean = next(trace for trace in fig.data if trace.name == "running mean")
    assert mean.x[-1] == pytest.approx(scores.mean_cosine(LLAMA.inv_freq(LLAMA.target), 17)[16], abs=1e-12)
    assert np.mean(bars.x) == pytest.approx(mean.x[-1], abs=1e-12)
    assert "score 0.7295" in fig.layout.xaxis2.title.text


def test_table_holds_every_pair_even_those_not_drawn():
    spec = RopeSpec(head_dim=1024)
    fig = clocks.draw_still(packed(spec), 12)
    found = fig.table()
    assert len(found["pair"]) == 512
    np.testing.assert_allclose(found["turns up to position 12"], 12 * spec.plain_inv_freq / (2 * np.pi))
    assert len(hands(fig, "hand")[0]) == 256


def test_ring_shows_the_band_by_colour_dash_and_name():
    fig = clocks.draw_still(packed(LLAMA), 0)
    rings = {trace.name: (trace.line.color, trace.line.dash) for trace in fig.data if trace.name in ("kept", "divided")}
    assert rings["kept"] == (theme.KEPT, "solid")
    assert rings["divided"][0] == theme.DIVIDED
    assert rings["divided"][1] != "solid"
    text = " ".join(note.text for note in fig.layout.annotations)
    assert "kept 29" in text
    assert "divided 29" in text


def test_narrow_picture_has_shorter_rows_with_every_dial():
    fig = clocks.draw_still(packed(LLAMA), 1000)
    narrow = fig.at_size(390.0, None)
    assert narrow.layout.xaxis.range[1] < fig.layout.xaxis.range[1]
    assert len(hands(narrow, "hand")[0]) == 64
    svg = render(fig, "svg", options=Style.read({"preset": "one-column"}))
    assert svg == render(narrow, "svg", options=Style.read({"preset": "one-column"}))


def test_unscaled_model_has_one_hand_and_a_pin_has_a_frame():
    fig = clocks.draw_still(packed(LLAMA.plain()), 5, pin=3)
    assert not [trace for trace in fig.data if trace.name == "before scaling"]
    assert len(fig.layout.shapes) == 1
    assert not clocks.draw_still(packed(LLAMA), 5, pin=999).layout.shapes


@pytest.mark.parametrize("head_dim", [2, 4, 64, 256, 4096])
@pytest.mark.parametrize("mode", ["turn", "score"])
def test_any_number_of_pairs_can_be_drawn(head_dim, mode):
    fig = clocks.draw_still(packed(RopeSpec(head_dim=head_dim), mode), 10, 3)
    assert render(fig, "svg", options=Style(dpi=36)).startswith(b"<?xml")
