"""Sentences of the Recall page: what tiny_lm finds, and which of its two heads fails."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.figures.recall import TEXTS
from rope_viz.texts import Sentence, join
from rope_viz.texts.lists import join_list

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
