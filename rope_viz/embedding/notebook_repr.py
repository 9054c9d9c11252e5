"""HTML table of a spec for a notebook: its sizes, its scaling, and its bands."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from rope_viz.embedding.spectrum import BAND_NAMES, Embedding, bands, wavelength

LEFT = 'style="text-align:left"'


def band_rows(spec: Embedding) -> list[tuple[str, str, str, str]]:
    """Return (band, pairs, shortest and longest wavelength in tokens) of each run of one kind, at the target length."""
    lengths = wavelength(spec.inv_freq(spec.target))
    out = []
    for kind, first, last in bands(spec, length=spec.target).runs:
        pairs = f"{first} – {last}" if last > first else str(first)
        ends = [f"{length:,.4g}" if np.isfinite(length) else "∞" for length in lengths[[first, last]]]
        out.append((BAND_NAMES[kind], pairs, ends[0], ends[1]))
    return out


def render_table(sizes: Sequence[tuple[str, str]], spec: Embedding) -> str:
    """Return the table as HTML: `sizes` as (name, value), and a row for each band of the spec."""
    top = "".join(
        f'<tr><th {LEFT}>{html.escape(name)}</th><td {LEFT} colspan="3">{html.escape(value)}</td></tr>'
        for name, value in sizes
    )
    names = ("pairs that are", "pairs", "first turns once in", "last turns once in")
    head = "".join(f"<th {LEFT}>{name}</th>" for name in names)
    cells = ("".join(f"<td {LEFT}>{html.escape(cell)}</td>" for cell in row) for row in band_rows(spec))
    return f"<table><tbody>{top}<tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
