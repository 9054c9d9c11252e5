"""Lines that end together are named where they are apart; the names are nearest to their own lines."""

import numpy as np
import pytest

from rope_viz.figures.method_curves import HIGH, LETTER, OWN, WIDTH, Named, name_lines
from rope_viz.models.catalog import catalog
from rope_viz.reports.draw import figure

PAIR = np.arange(64.0)


def places(lines):
    return {note["text"]: note for note in name_lines(lines, [0, 1], log=False, plot=300.0)}


def test_lines_that_end_apart_are_named_at_their_ends():
    found = places([Named(PAIR / 64, "up", "#111111"), Named(0.4 - PAIR / 200, "down", "#222222")])
    assert {name: note["x"] for name, note in found.items()} == {"up": 63, "down": 63}


def test_lines_that_end_together_are_named_inside():
    lines = [
        Named(np.minimum(0.1 + PAIR / 64, 0.8), "first", "#111111"),
        Named(np.full(64, 0.8), "second", "#222222"),
        Named(np.maximum(0.3, 0.8 * (PAIR > 40)), "third", "#333333"),
    ]
    found = places(lines)
    assert all(note["x"] < 60 for note in found.values())
    for own in lines:
        note = found[own.name]
        left = note["x"] * WIDTH / 63 + (OWN if note["xanchor"] == "left" else -OWN - LETTER * len(own.name))
        bottom = 300 * own.y[note["x"]] + (2 if note["yanchor"] == "bottom" else -2 - HIGH)
        under = slice(int(left / WIDTH * 63) + 1, int((left + LETTER * len(own.name)) / WIDTH * 63))
        for line in lines:
            heights = 300 * line.y[under]
            assert not np.any((heights > bottom) & (heights < bottom + HIGH)), (own.name, line.name)


def test_a_line_without_values_has_no_name():
    found = places([Named(np.full(64, np.nan), "nothing", "#111111"), Named(PAIR / 64, "up", "#222222")])
    assert list(found) == ["up"]


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-8b"])
@pytest.mark.parametrize("view", ["ratio", "wavelength"])
def test_every_compared_line_keeps_its_name(model, view):
    assert model in catalog()
    drawn = figure(f"scaling/comparison?model={model}&scaling.show={view}").decode()
    for name in ("YaRN", "NTK-aware", "Linear"):
        assert name in drawn
