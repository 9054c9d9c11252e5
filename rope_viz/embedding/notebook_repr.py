"""A spec as a small table, for a notebook: its sizes, its scaling, and what becomes of its pairs."""

from __future__ import annotations

import html

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import BAND_NAMES, bands, wavelength


def rows(spec: RopeSpec) -> list[tuple[str, str]]:
    """(name, value) of the sizes and the scaling, lengths in tokens."""
    partly = "" if spec.rotary_dim == spec.head_dim else f", of which {spec.rotary_dim} rotate"
    out = [("head dimension", f"{spec.head_dim}{partly}"), ("base", f"{spec.base:,.10g}")]
    out += [("trained length", f"{spec.context:,} tokens"), ("target length", f"{spec.target:,} tokens")]
    scaling = spec.scaling.name
    if scaling != "none":
        factor, logits = spec.scaling.factor_for(spec), spec.attention_factor(spec.target)
        scaling += f", factor {factor:.6g}" + (f", cos and sin × {logits:.6g}" if logits != 1.0 else "")
    return [*out, ("scaling", scaling)]


def band_rows(spec: RopeSpec) -> list[tuple[str, str, str, str]]:
    """(band, pairs, shortest and longest wavelength in tokens) of each run of one kind, at the target length."""
    lengths = wavelength(spec.inv_freq(spec.target))
    out = []
    for kind, first, last in bands(spec, length=spec.target).runs:
        pairs = f"{first} – {last}" if last > first else str(first)
        ends = [f"{length:,.4g}" if np.isfinite(length) else "∞" for length in lengths[[first, last]]]
        out.append((BAND_NAMES[kind], pairs, ends[0], ends[1]))
    return out


def table(spec: RopeSpec) -> str:
    """The table as HTML."""
    sizes = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:left" colspan="3">'
        f"{html.escape(value)}</td></tr>"
        for name, value in rows(spec)
    )
    names = ("pairs that are", "pairs", "first turns once in", "last turns once in")
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in names)
    found = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in band_rows(spec)
    )
    return f"<table><tbody>{sizes}<tr>{head}</tr>{found}</tbody></table>"
