"""Tables of exact numbers, each with its download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words.common import plain
from rope_viz.ui import state


def pairs(spec: RopeSpec) -> None:
    """Every pair's dimensions, frequencies, wavelengths, turns and band."""
    scaled = spec.inv_freq(spec.target)
    first = np.arange(spec.pairs)
    both = (first, first + spec.pairs) if spec.pairing == "half" else (2 * first, 2 * first + 1)
    columns: dict[str, Any] = {
        "pair": first,
        "dimensions": [f"{a}, {b}" for a, b in zip(*both, strict=True)],
        "θ plain (rad/token)": spec.plain_inv_freq,
        "θ scaled (rad/token)": scaled,
        "scaled / plain": spectrum.ratio(spec, length=spec.target),
        "wavelength plain (tokens)": spectrum.wavelength(spec.plain_inv_freq),
        "wavelength scaled (tokens)": spectrum.wavelength(scaled),
        "turns in training": spec.context * spectrum.trained_inv_freq(spec) / spectrum.TAU,
        "band": [spectrum.BAND_NAMES[kind] for kind in spectrum.bands(spec, length=spec.target).kind],
    }
    table(columns, "pairs")


def words(rows: Sequence[Mapping[str, str]], *, alt: str) -> None:
    """A table to read: every text whole, on as many lines as it takes."""
    frame = pd.DataFrame([{column: plain(text) for column, text in row.items()} for row in rows])
    st.table(frame, border="horizontal", hide_index=True, alt=alt)


ROW = 35  # pixels; the head is as high as a row
Columns = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def table(columns: Columns, name: str, *, height: int = 320) -> None:
    """A table to sort and search, numbers to 6 significant digits on screen, all digits in the download."""
    frame = pd.DataFrame(columns)
    formats = {
        column: st.column_config.NumberColumn(format="%.6g")
        for column in frame.columns
        if frame[column].dtype.kind == "f"
    }
    st.dataframe(
        frame,
        hide_index=True,
        height=min(height, ROW * (len(frame) + 1)),
        row_height=ROW,
        column_config=formats,
        key=f"table.{name}",
    )
    st.download_button(
        "Download CSV",
        lambda: frame.to_csv(index=False),
        file_name=f"rope-{name}_{state.chosen().file}.csv",
        mime="text/csv",
        on_click="ignore",
        key=f"download.{name}",
    )
