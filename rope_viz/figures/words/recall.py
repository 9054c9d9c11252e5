"""Sentences about recall: what the tiny_lm finds, and which of its two heads fails."""

from __future__ import annotations

from rope_viz.embedding.spec import FloatArray, short_repr
from rope_viz.models.user_config import join_words
from rope_viz.texts.numbers import format_share, format_tokens

FINDS = 0.9
LEAST = 0.8  # a head with less than this share of its attention in training has failed


def over_lengths(
    label: str, length: int, trained: int, share: float, plain: float | None, previous: float, finder: float
) -> str:
    """Give recall at one length, and the reason from how much attention two heads give the right tokens.

    `previous` and `finder` are shares of what the heads gave in training. `plain` is the recall without scaling, None
    if `share` is that.
    """
    times = length / trained
    where = f"At {format_tokens(length)} tokens"
    if times > 1:
        where += f", {times:g} times its training,"
    text = f"{where} the reader finds **{format_share(share)}** of the facts"
    if plain is None:
        text += " without scaling"
    else:
        text += f" with {label} and {format_share(plain)} without scaling"
    return f"{text}. {why(previous, finder, share)}"


def why(previous: float, finder: float, share: float) -> str:
    """Say which head fails, by how much attention it still gives."""
    lost = []
    what = "the right token {} of the attention it gave in training"
    if previous < LEAST:
        lost.append(f"the head that looks one token back gives {what.format(format_share(min(previous, 1.0)))}")
    if finder < LEAST:
        given = format_share(min(finder, 1.0))
        lost.append(f"the head that finds the key {given if lost else 'gives ' + what.format(given)}")
    if not lost:
        return "Both heads still look where they did in training."
    if share > FINDS:
        return f"It copes, although {join_words(lost)}."
    return f"{join_words(lost)[0].upper()}{join_words(lost)[1:]}."


def maps(lengths: tuple[int, ...], plain: FloatArray, current: FloatArray, label: str) -> str:
    """Give the longest length with nine in ten facts found, without scaling and with the method."""
    return (
        f"Without scaling nine in ten facts are found {reach(lengths, plain)}; with {label} {reach(lengths, current)}. "
        "Each row is a depth, each column a length."
    )


def reach(lengths: tuple[int, ...], values: FloatArray) -> str:
    """Say up to which length recall is at least 0.9 at all shorter lengths too."""
    found = None
    for length, column in zip(lengths, values.T, strict=True):
        asked = column[column == column]
        if not len(asked) or asked.mean() < FINDS:
            break
        found = length
    return "at no length" if found is None else f"up to {format_tokens(found)} tokens"


MAP_ALONE = "Each row is a depth, each column a length. Choose a scaling method to see it beside no scaling."
CHOOSE = "Choose pairs and how they turn, and see what recall loses: that is what they carry."
NO_PAIRS = "There are no such pairs under this method: nothing is switched."


def yours(model: str, answers: int) -> str:
    """Say which model gave these answers."""
    if model:
        return f"What {short_repr(model)} found, from {answers:,} answers, a line for each method."
    return (
        "Ask a model of your own the same with `rope-viz evaluate`, and drop the file it writes here. "
        f"Until then: the reader, run by transformers, from {answers:,} answers."
    )


def head(what: str, before: float, after: float) -> str:
    """Say how much attention a head gives the right token, in training and now."""
    return (
        f"The head that {what} gives the right token {format_share(before)} of its attention in training, "
        f"**{format_share(after)}** now."
    )


def by_pair(values: FloatArray, what: str) -> str:
    """Name the pairs that raise the logit of the right token most."""
    top = sorted(int(pair) for pair in values.argsort()[::-1][:4] if values[pair] > 0)
    if not top:
        return f"No pair lifts {what} any more."
    total = float(values[values > 0].sum())
    share = float(values[top].sum()) / total
    return f"{format_share(share)} of what lifts {what} comes from pairs {join_words([str(pair) for pair in top])}."


def carried(values: FloatArray, before: float, how: str, length: int) -> str:
    """Name the pair that costs the most recall if switched alone."""
    worst = int(values.argmin())
    text = f"At {format_tokens(length)} tokens recall is {format_share(before)}. "
    if before - float(values[worst]) < 0.02:
        return text + f"No single pair costs any of it when it is {VERBS[how]}. Drag over pairs to switch a range."
    return text + (
        f"Pair {worst} alone, {VERBS[how]}, takes it to **{format_share(float(values[worst]))}**. "
        "Drag over pairs to switch a range; a double click takes that back."
    )


VERBS = {"still": "standing still", "plain": "at plain speed", "divided": "divided by the factor"}


def switched(chosen: tuple[int, ...], how: str, share: float, before: float, length: int = 256) -> str:
    """Describe the effect of switching pairs."""
    first, last = chosen[0], chosen[-1]
    pairs = f"pair {first}" if first == last else f"pairs {first} to {last}"
    change = (
        "changes nothing"
        if abs(share - before) < 0.02
        else f"takes recall from {format_share(before)} to {format_share(share)}"
    )
    return f"{pairs[0].upper()}{pairs[1:]} {VERBS[how]}: that {change} at {format_tokens(length)} tokens."


def recover(rows: dict[str, tuple[float, float, float, float]], last: int) -> str:
    """Describe fine-tuning: {method: recall at the target before and after, at the trained length before and after}."""
    parts = [
        f"{method} from {format_share(before)} to **{format_share(after)}** (at the trained length from {format_share(was)} to "
        f"{format_share(now)})"
        for method, (before, after, was, now) in rows.items()
    ]
    return f"{last:,} steps take {join_words(parts)}." if parts else "Choose a method to see how it recovers."


def chains(excess: float, beyond: float | None, trained: int) -> str:
    """Compare the tiny_lm's loss with the best possible, within its trained length and beyond."""
    text = f"Within {format_tokens(trained)} tokens the reader's loss is **{excess:+.3f} nats** a token from the best possible"
    return text + ("." if beyond is None else f"; beyond them {beyond:+.3f}.")
