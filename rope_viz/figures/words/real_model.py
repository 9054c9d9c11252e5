"""Sentences and tables of a real model beyond its trained length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures.recall import TEXTS, Line
from rope_viz.figures.scaling import short_label
from rope_viz.studies.real_model import BIN, compare_losses
from rope_viz.texts import Sentence, join


def describe_losses(losses: Mapping[str, FloatArray], trained: int) -> Sentence:
    """Give the losses of the last two bins of (texts, bins) for three methods, and what was read."""
    texts, bins = losses["none"].shape
    plain, linear, yarn = (float(losses[name][:, -2:].mean()) for name in ("none", "linear", "yarn"))
    return join(
        TEXTS("real.loss", last=f"{(bins - 2) * BIN:,}", end=f"{bins * BIN:,}", plain=plain, linear=linear, yarn=yarn),
        TEXTS("real.loss_measured", trained=trained, count=texts, tokens=bins * BIN),
    )


def describe_text(losses: Mapping[str, FloatArray], tokens: int, size: int, factor: float, *, own: bool) -> Sentence:
    """Give the mean loss of (1, bins of `size` tokens) without scaling and the difference of each other method."""
    differences = []
    for method, values in losses.items():
        if method != "none":
            value, error = compare_losses(values, losses["none"])
            text = TEXTS("live.difference", method=short_label(method), value=value, error=error)
            differences.append(text.replace("-", "−"))
    text = TEXTS("live.own" if own else "live.shipped")
    return join(
        TEXTS("live.plain", plain=float(losses["none"].mean())),
        TEXTS("live.others", differences=", ".join(differences)) if differences else "",
        TEXTS("live.measured", tokens=tokens, text=text, block=size, factor=factor),
    )


def list_text_keys(found: Mapping[str, Sequence[int]], depths: Sequence[float], digits: int) -> dict[str, list[str]]:
    """Return the columns of a table of one pass key, a column per depth; {method: right digits at each depth}."""
    columns = {str(TEXTS("real.method")): [short_label(method) for method in found]}
    for number, depth in enumerate(depths):
        cells = [
            TEXTS("live.found") if row[number] == digits else TEXTS("live.digits", right=row[number], digits=digits)
            for row in found.values()
        ]
        columns[str(TEXTS("live.depth", depth=depth))] = [str(cell) for cell in cells]
    return columns


def describe_text_keys(found: Mapping[str, Sequence[int]], tokens: int, factor: float, key: str) -> Sentence:
    """Give the number of depths at which a pass key is found without scaling; key "": measured ones of five digits."""
    plain, digits = found["none"], len(key) or 5
    right = sum(count == digits for count in plain)
    name = TEXTS("live.key", digits=key) if key else TEXTS("live.shipped_key")
    text = TEXTS("live.own" if key else "live.shipped")
    return join(
        TEXTS("live.keys_found", name=name, right=right, asked=len(plain)),
        TEXTS("live.keys_measured", tokens=tokens, text=text, factor=factor),
    )


def list_costs(losses: Mapping[str, FloatArray], trained: int) -> dict[str, list[str]]:
    """Return the columns of a table: loss within and beyond the trained length, and the difference to no scaling."""
    bins, middle = losses["none"].shape[1], trained // BIN
    columns = {str(TEXTS("real.method")): [short_label(method) for method in losses]}
    for first, last in ((0, middle), (middle, bins)):
        part = TEXTS("real.part", first=first * BIN, last=last * BIN)
        columns[str(part)] = [TEXTS("real.value", value=each[:, first:last].mean()) for each in losses.values()]
        compared = [compare_losses(each[:, first:last], losses["none"][:, first:last]) for each in losses.values()]
        columns[str(TEXTS("real.against", part=part))] = [
            TEXTS("real.difference", value=value, error=error).replace("-", "−") if method != "none" else ""
            for method, (value, error) in zip(losses, compared, strict=True)
        ]
    return columns


def describe_short_cost(lines: Sequence[Line], plain: float, tokens: int, texts: int) -> Sentence:
    """Give the loss of texts of one length without scaling, what each line adds to it, and who applies YaRN there."""
    differences = []
    for line in lines:
        at = [int(length) for length in line.x].index(tokens)
        value, error = float(line.mean[at]), float(line.high[at] - line.mean[at])
        differences.append(TEXTS("real.short_difference", way=line.label, value=value, error=error).replace("-", "−"))
    return join(
        TEXTS("real.short", tokens=tokens, plain=plain),
        TEXTS("real.short_added", differences=" and ".join(differences)),
        TEXTS("real.short_measured", count=texts),
        TEXTS("real.short_runtimes"),
    )


def list_pass_keys(
    found: Mapping[int, Mapping[str, tuple[int, int]]], methods: Mapping[str, object]
) -> dict[str, list[str]]:
    """Return the columns of a table of pass keys found, a column per length; {length: {method: (found, asked)}}."""
    columns = {str(TEXTS("real.method")): [short_label(method) for method in methods]}
    for length, rows in found.items():
        cells = {method: TEXTS("real.found", right=right, asked=asked) for method, (right, asked) in rows.items()}
        columns[str(TEXTS("real.length_column", length=length))] = [
            cells.get(method, TEXTS("real.unmeasured")) for method in methods
        ]
    return columns


def describe_pass_keys(found: Mapping[int, Mapping[str, tuple[int, int]]], depths: int) -> Sentence:
    """Give the pass keys found at the greatest length with YaRN and without scaling."""
    length = max(found)
    yarn, asked = found[length]["yarn"]
    return join(
        TEXTS("real.keys", length=length, yarn=yarn, asked=asked, plain=found[length]["none"][0]),
        TEXTS("real.keys_measured", depths=depths),
    )
