"""Decay draws each curve as its mean, and its range as a faint band that covers no line."""

import json

import pytest

from rope_viz.reports.draw import figure


@pytest.mark.parametrize("address", ["decay/curves?model=llama-3.1-8b", "decay/curves?model=qwen3-8b&method=yarn"])
def test_no_band_covers_a_line(address):
    traces = json.loads(figure(address, "json"))["data"]
    bands = [number for number, trace in enumerate(traces) if "fillcolor" in trace]
    lines = [number for number, trace in enumerate(traces) if trace.get("line", {}).get("width", 0) > 1]
    assert len(lines) >= 2
    assert bands
    assert max(bands) < min(lines)
    for number in bands:
        colour = traces[number]["fillcolor"]  # #RRGGBBAA
        assert int(colour[7:], 16) <= 0.2 * 255, colour
