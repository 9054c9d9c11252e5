"""The pairs of an embedding as dials, as a small SVG image that needs no package: for notebooks."""

from __future__ import annotations

import math

from rope_viz.embedding.spectrum import Embedding
from rope_viz.texts import Texts

TEXTS = Texts("widget")
CELL = 24
"""Pixels of one dial."""
ROW, MOST = 16, 256


def draw_dials(spec: Embedding, position: int) -> str:
    """Return the hand of every pair (at most 256) at a position, 0 at 3 o'clock and counterclockwise."""
    rates = [float(rate) for rate in spec.inv_freq(spec.target)[:MOST]]
    rings, hands = [], []
    for pair, rate in enumerate(rates):
        x, y, angle = pair % ROW + 0.5, pair // ROW + 0.5, math.fmod(position * rate, math.tau)
        rings.append(f"M{x + 0.42:.2f} {y}a.42 .42 0 1 0-.84 0a.42 .42 0 1 0 .84 0")
        hands.append(f"M{x} {y}l{0.36 * math.cos(angle):.3f} {-0.36 * math.sin(angle):.3f}")
    wide, high = min(len(rates), ROW), -(-len(rates) // ROW)
    label = TEXTS("still", count=len(rates), position=position)
    return (
        f'<figure style="margin:8px 0"><svg viewBox="0 0 {wide} {high}" width="{CELL * wide}" height="{CELL * high}" '
        'role="img" fill="none" stroke="currentColor">'
        f"<title>{label}</title>"
        f'<path d="{"".join(rings)}" stroke-width=".03" opacity=".5"/>'
        f'<path d="{"".join(hands)}" stroke-width=".08" stroke-linecap="round"/></svg>'
        f"<figcaption>{label}</figcaption></figure>"
    )
