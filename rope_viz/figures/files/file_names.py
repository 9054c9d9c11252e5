"""File names: the picture, every model in it, and the range it shows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.spec_url import format_value

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
        # rope-decay-curves_llama-3.1-8b_d128_base500000_L8192_to131072_llama38_vs_qwen3-8b_0-131072
    """
    first, *others = list(dict.fromkeys(models)) or [""]
    parts = ["rope-" + picture.replace(".", "-"), first]
    if spec is not None:
        parts += [f"d{spec.head_dim}", f"base{format_value(spec.base)}", f"L{spec.context}", f"to{spec.target}"]
        if spec.scaling.name != "none":
            parts.append(spec.scaling.name + format_value(spec.scaling.factor_for(spec)))
    if others:
        parts.append("vs_" + "_".join(others))
    parts += list(extra)
    if span is not None:
        parts.append(format_span(*span))
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
