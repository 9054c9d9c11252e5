"""Sentences of the Recall page: what tiny_lm finds, and which of its two heads fails."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.evaluation.search_divisors import TINY
from rope_viz.evaluation.search_results import Rating, SearchResult
from rope_viz.figures.compared import short_label
from rope_viz.figures.words import plain
from rope_viz.pages.recall.figures import TEXTS, RecallCurve
from rope_viz.studies.real_model import BIN, compare_losses
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_items, join_list

FINDS = 0.9
LEAST = 0.8  # a head with less than this share of its attention in training has failed
SAME = 0.02  # recalls closer than this count as equal


def describe_recall(
    method: str, length: int, trained: int, share: float, plain: float | None, previous: float, finder: float
) -> Sentence:
    """Give recall at one length, and the reason from how much attention two heads give the correct tokens.

    `previous` and `finder` are shares of what the heads gave in training. `plain` is the recall without scaling, None
    if `share` is that.
    """
    return join(
        TEXTS(
            "lengths.plain" if plain is None else "lengths.scaled",
            length=length,
            share=share,
            plain=plain,
            method=method,
        ),
        TEXTS("lengths.times", times=length / trained) if length > trained else "",
        explain_recall(previous, finder, share),
    )


def explain_recall(previous: float, finder: float, share: float) -> Sentence:
    """Say which head fails, by how much attention it still gives."""
    if min(previous, finder) >= LEAST:
        return TEXTS("heads.intact")
    return join(
        TEXTS("heads.previous", previous=previous) if previous < LEAST else "",
        TEXTS("heads.finder", finder=finder) if finder < LEAST else "",
        TEXTS("heads.sufficient") if share > FINDS else "",
    )


def describe_maps(lengths: tuple[int, ...], plain: FloatArray, current: FloatArray, method: str) -> Sentence:
    """Give the longest length with nine in ten facts found, without scaling and with the method."""
    found = {"plain": find_reach(lengths, plain), "scaled": find_reach(lengths, current)}
    values = {f"{name}_length": length for name, length in found.items()}
    keys = (f"maps.{name}" if length else f"maps.{name}_never" for name, length in found.items())
    return join(*(TEXTS(key, method=method, **values) for key in keys), TEXTS("maps.axes"))


def describe_one_map() -> Sentence:
    """Explain the map without scaling."""
    return join(TEXTS("maps.axes"), TEXTS("maps.alone"))


def find_reach(lengths: tuple[int, ...], values: FloatArray) -> int | None:
    """Return the last length up to which recall is at least 0.9 at all lengths; None if it never is."""
    found = None
    for length, column in zip(lengths, values.T, strict=True):
        answered = column[column == column]
        if not len(answered) or answered.mean() < FINDS:
            break
        found = length
    return found


def describe_evaluation(model: str, answers: int) -> Sentence:
    """Say which model gave these answers."""
    if model:
        return TEXTS("yours.model", model=short_repr(model), answers=answers)
    return join(TEXTS("yours.ask"), TEXTS("yours.tiny_lm", answers=answers))


def describe_attention(head: str, before: float, after: float) -> Sentence:
    """Say how much attention a head ("previous" or "finder") gives the correct token, in training and now."""
    return TEXTS(f"attention.{head}", before=before, after=after)


def describe_contributions(values: FloatArray, head: str) -> Sentence:
    """Name the pairs that raise the logit of the correct token most."""
    target = TEXTS(f"contributions.{head}")
    top = sorted(int(pair) for pair in values.argsort()[::-1][:4] if values[pair] > 0)
    if not top:
        return join(TEXTS("contributions.none", target=target), TEXTS("contributions.marks"))
    share = float(values[top].sum()) / float(values[values > 0].sum())
    pairs = join_list([str(pair) for pair in top])
    largest = TEXTS("contributions.top", share=share, target=target, pairs=pairs, count=len(top))
    return join(largest, TEXTS("contributions.marks"))


def describe_single_pairs(values: FloatArray, before: float, how: str, length: int) -> Sentence:
    """Name the pair that costs the most recall if switched alone."""
    worst, frequency = int(values.argmin()), TEXTS(f"switched.{how}")
    after = float(values[worst])
    effect = (
        TEXTS("carry.none", frequency=frequency)
        if before - after < SAME
        else TEXTS("carry.worst", pair=worst, frequency=frequency, after=after)
    )
    return join(TEXTS("carry.before", length=length, before=before), effect, TEXTS("carry.line"), TEXTS("carry.drag"))


def describe_switch(pairs: tuple[int, ...], how: str, share: float, before: float, length: int = 256) -> Sentence:
    """Describe the effect of switching pairs."""
    first, last = pairs[0], pairs[-1]
    names = TEXTS("switched.one" if first == last else "switched.several", first=first, last=last)
    effect = "switched.stays" if abs(share - before) < SAME else "switched.changes"
    frequency = TEXTS(f"switched.{how}")
    return TEXTS(effect, pairs=names, frequency=frequency, length=length, before=before, after=share)


def describe_recovery(
    recalls: Mapping[str, tuple[float, float, float, float]], steps: int, target: int, trained: int
) -> Sentence:
    """Describe fine-tuning: {method: recall at the target before and after, at the trained length before and after}."""
    if not recalls:
        return TEXTS("recover.choose")
    names = ("before", "after", "trained_before", "trained_after")
    return join(
        TEXTS("recover.steps", steps=steps, recalls=recalls),
        *(
            TEXTS("recover.method", method=method, target=target, trained=trained, **dict(zip(names, row, strict=True)))
            for method, row in recalls.items()
        ),
        TEXTS("recover.lines", trained=trained),
    )


def describe_loss(within: float, beyond: float | None, trained: int) -> Sentence:
    """Compare the loss of tiny_lm with the lowest possible, within its trained length and beyond."""
    return join(
        TEXTS("loss.about"),
        TEXTS("loss.within", within=within, trained=trained),
        TEXTS("loss.beyond", beyond=beyond, trained=trained) if beyond is not None else "",
    )


def describe_search(found: SearchResult, *, own: bool) -> Sentence:
    """Give the share of right answers with the found frequencies, and what was searched; `own` is the user's search."""
    best = found.best
    model = "tiny_lm" if found.model == TINY else plain(short_repr(found.model))
    about = TEXTS("search.measured", model=model, length=found.length, trained=found.trained)
    about = about if own else join(about, TEXTS("search.example"))
    if best.interval is None:
        return join(TEXTS("search.so_far", count=found.trials, right=best.right, loss=best.loss), about)
    low, high = best.interval
    return join(TEXTS("search.best", count=found.trials, right=best.right, low=low, high=high), about)


def describe_gain(found: SearchResult) -> Sentence:
    """Give the gain over the best start on held-out texts."""
    if found.gain is None:
        return TEXTS("search.no_gain")
    over, right, low, high = found.gain
    points = {name: format_points(value) for name, value in (("right", right), ("low", low), ("high", high))}
    text = TEXTS("search.gain", over=short_label(over), **points)
    return join(text, TEXTS("search.held_out", texts=found.held_out))


def format_points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.0f}".replace("-", "−")


def list_scores(found: SearchResult) -> dict[str, list[str]]:
    """Return the columns of a table: the found frequencies and each start, right answers, and their loss."""
    rows: dict[str, Rating] = {str(TEXTS("search.found")): found.best}
    rows |= {str(TEXTS("search.start", method=short_label(name))): each for name, each in found.starts.items()}
    return {
        str(TEXTS("search.frequencies")): list(rows),
        str(TEXTS("search.right")): [format_right(each) for each in rows.values()],
        str(TEXTS("search.loss")): [TEXTS("search.nats", loss=each.loss) for each in rows.values()],
    }


def format_right(found: Rating) -> str:
    """Return the share of right answers, with its interval where it is known."""
    if found.interval is None:
        return TEXTS("search.share", right=found.right)
    low, high = found.interval
    return TEXTS("search.share_of", right=found.right, low=low, high=high)


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
        TEXTS("live.others", differences=join_items(differences)) if differences else "",
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


def describe_short_cost(lines: Sequence[RecallCurve], plain: float, tokens: int, texts: int) -> Sentence:
    """Give the loss of texts of one length without scaling, what each line adds to it, and who applies YaRN there."""
    differences = []
    for line in lines:
        at = [int(length) for length in line.x].index(tokens)
        value, error = float(line.mean[at]), float(line.high[at] - line.mean[at])
        differences.append(TEXTS("real.short_difference", way=line.label, value=value, error=error).replace("-", "−"))
    return join(
        TEXTS("real.short", tokens=tokens, plain=plain),
        TEXTS("real.short_added", differences=join_list(differences)),
        TEXTS("real.short_measured", count=texts),
        TEXTS("real.short_runtimes"),
    )


def list_pass_keys(found: Mapping[int, Mapping[str, tuple[int, int]]], methods: Sequence[str]) -> dict[str, list[str]]:
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


def format_config(config: Mapping[str, Any]) -> str:
    """Return a fragment of config.json, each list in one line."""
    text = json.dumps(config, indent=2)
    return re.sub(r"\[\s+([^][]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text)
