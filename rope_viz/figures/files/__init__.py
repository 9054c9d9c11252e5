"""Render a figure as a file without a browser: `render` returns its bytes in any of `FORMS`.

Matplotlib draws SVG, PNG and PDF; HTML, CSV and JSON are made from Plotly's data. Equal figure, style and metadata give
equal bytes on any thread, so that files can be cached.

    from rope_viz.figures.files import Style, render
    render(fig, "pdf", options=Style.read({"preset": "one-column"}), title="…", meta={"address": "…", "spec": {…}})
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rope_viz import __version__
from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files.style import ERRORS, format_one_line
from rope_viz.figures.files.style import PARAMETERS as PARAMETERS
from rope_viz.figures.files.style import PRESETS as PRESETS
from rope_viz.figures.files.style import Style as Style
from rope_viz.figures.files.style import is_key as is_key
from rope_viz.storage.write_file import write_file
from rope_viz.texts.texts import join_list

if TYPE_CHECKING:
    import plotly.graph_objects as go
import re
import unicodedata
from collections.abc import Sequence

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.spec_url import format_value
from rope_viz.texts.numbers import format_tokens

LONGEST = 180


def format_stem(
    picture: str,
    models: Sequence[str] = (),
    *,
    spec: RopeSpec | None = None,
    span: tuple[float, float] | None = None,
    extra: Sequence[str] = (),
) -> str:
    """Return the name of a file without its extension.

    `picture` is "page/name" or "page.name"; `models` are the ids of all models in it, the current one first, with
    `spec` as its current state. `span` is the visible range in axis units; `extra` holds further distinguishing parts.

        stem("decay/curves", ["llama-3.1-8b", "qwen3-8b"], spec=spec, span=(0, 131072))
        # rope-decay-curves_llama-3.1-8b_d128_base500000_L8k_to128k_llama3x8_vs_qwen3-8b_0-128k
    """
    first, *others = list(dict.fromkeys(models)) or [""]
    parts = ["rope-" + picture.replace(".", "-"), first]
    if spec is not None:
        parts += [f"d{spec.head_dim}", f"base{format_value(spec.base)}", f"L{format_length(spec.context)}"]
        parts.append(f"to{format_length(spec.target)}")
        if spec.is_scaled:
            parts.append(f"{spec.scaling.name}x{format_value(spec.scaling.factor_for(spec))}")
    if others:
        parts.append("vs_" + "_".join(others))
    parts += list(extra)
    if span is not None:
        parts.append("-".join(format_length(end) for end in span))
    # Other characters may have a meaning to a shell or a file system.
    clean = (unicodedata.normalize("NFKD", part).encode("ascii", "ignore").decode() for part in parts if part)
    # The plus of an exponent would become a hyphen, which reads as a minus.
    clean = (re.sub(r"(?<=[0-9]e)\+", "", part) for part in clean)
    joined = "_".join(re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip("-.") for part in clean)
    return shorten_name(re.sub(r"_{2,}", "_", joined).strip("_"))


def format_span(low: float | None, high: float | None, before: str = "") -> str:
    """Format a range: 10-100, or from10 or upto100 with one end, "" without. `before` names the axis."""
    if low is not None and high is not None:
        return f"{before}{format_number(low)}-{format_number(high)}"
    return (
        f"{before}from{format_number(low)}"
        if low is not None
        else f"{before}upto{format_number(high)}"
        if high is not None
        else ""
    )


def format_length(value: float) -> str:
    """Format a length: 131072 is 128k, others as numbers."""
    return format_tokens(value) if value and value % 1024 == 0 and value < 1e13 else format_number(value)


def format_number(value: float) -> str:
    """Format a number: whole ones in full, others with six significant digits."""
    return format_value(value) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def shorten_name(name: str) -> str:
    """Limit the length of a name by replacing its middle by a hash."""
    if len(name) <= LONGEST:
        return name
    import hashlib

    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - 50]}_{mark}_{name[-40:]}"


# Plotly and Matplotlib are imported lazily, so that reading the parameters stays fast.
FORMS: dict[str, str] = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
}
"""{form, also the file extension: media type}."""


def render(
    fig: go.Figure,
    form: str,
    *,
    options: Style | None = None,
    title: str = "",
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the figure as the bytes of a file.

    `title` names it, and is drawn above it if the style asks for that. `meta` is metadata for the file: "spec" (a
    mapping), "view", "address" and others; "version" is added. Without `meta`, a CSV is only the table.
    Raises `ValueError` for an unknown form, for a style that does not fit the figure, and if Matplotlib is missing.
    """
    if form not in FORMS:
        raise ValueError(ERRORS("form", forms=join_list([*FORMS], "or"), given=short_repr(form)))
    from rope_viz.figures.files import csv, html_json, render_sheet

    style = options or Style()
    facts = None if meta is None else {"version": f"RoPE Viz {__version__}", **meta}
    if form == "csv":
        return csv.to_csv(fig, style, title, facts)
    if form == "json":
        return html_json.to_json(fig, style, title, facts)
    if form == "html":
        return html_json.to_html(fig, style, title, facts)
    return render_sheet.draw(fig, form, style, title, format_metadata(form, title, facts or {}))


def from_json(content: bytes | str) -> tuple[go.Figure, dict[str, Any]]:
    """Return the figure in a JSON file and the file's other entries; raise `ValueError` for any other content."""
    from rope_viz.figures.files import redraw_json

    return redraw_json.from_json(content)


def format_metadata(form: str, title: str, meta: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the metadata for the format's own fields: title, address, version, spec."""
    version, address = f"RoPE Viz {__version__}", str(meta.get("address") or "")
    rest = {key: value for key, value in meta.items() if key not in ("address", "version") and value not in (None, "")}
    details = json.dumps(rest, ensure_ascii=False, default=str) if rest else ""
    if form == "png":
        out = {"Title": title, "Source": address, "Software": version, "Description": details}
    elif form == "pdf":
        out = {"Title": title, "Subject": address, "Creator": version, "Keywords": details}
    else:
        out = {"Title": title, "Source": address, "Creator": version, "Description": details}
    fields: dict[str, str | None] = {key: format_one_line(value) for key, value in out.items() if value}
    # No date, so that equal input gives equal bytes.
    return fields | ({"CreationDate": None} if form == "pdf" else {"Date": None} if form == "svg" else {})


def save(
    fig: go.Figure,
    path: str,
    *,
    title: str,
    options: Style | None = None,
    meta: Mapping[str, Any] | None = None,
) -> None:
    """Write the figure in the form named by the file extension; raise `ValueError` for an unknown one."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise ValueError(f"{path}: the file must end in {', '.join('.' + name for name in FORMS)}")
    write_file(path, render(fig, form, options=options, title=title, meta=meta))
