"""Sentences of the attention page, with the current numbers."""

from __future__ import annotations

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.attention import linear, sentence_maps, timed
from rope_viz.studies import attention
from rope_viz.studies.linear_attention import crossover
from rope_viz.texts.numbers import format_number, format_percent


def maps(spec: RopeSpec, sentence: str, *, offset: int, causal: bool) -> str:
    """Say whether attention distinguishes a repeated word, and what changes when the sentence moves."""
    by_encoding, moved = sentence_maps(spec, sentence, offset, causal)
    repeated = attention.repeated_words(sentence)
    if repeated:
        word, first, second = repeated[0]
        none, rope = (attention.row_difference(by_encoding[name], first, second) for name in ("none", "rope"))
        text = (
            f"Without position, both {quoted(word)} attend alike: their score rows are **equal** (largest difference "
            f"{_brief(none[0])}). RoPE sets these scores up to {_brief(rope[0])} apart."
        )
        if causal and none[1] > 0.0:
            text += f" Under the mask their weights differ all the same ({_brief(none[1])}): the later sees more keys."
    else:
        text = "No word comes twice. Write one twice and see that nothing but position tells the two apart."
    if not offset:
        return f"{text} Move the sentence: RoPE does not notice, the sinusoidal encoding does."
    return (
        f"{text} Moved from position 0 to {offset:,}, RoPE's scores change by **{_brief(moved['rope'][0])}**, "
        f"the sinusoidal ones by **{_brief(moved['sinusoidal'][0])}**."
    )


def added_or_multiplied(spec: RopeSpec, *, offset: int) -> str:
    """Say how closely the two maps agree."""
    both = attention.sinusoidal_dots(spec, offset=offset)
    return (
        f"The same angles, added or multiplied. pₘ·pₙ is {both.factor:.0f} times the mean of cos (m − n)θᵢ over the "
        f"rotated pairs, to within {_brief(both.error)}: what RoPE multiplies into the score, the sinusoidal encoding "
        f"has only between its own vectors. Added, it also changes every vector's length; a rotation keeps it."
    )


def linear_maps(spec: RopeSpec, sentence: str, *, spacing: int, causal: bool) -> str:
    """Give the share of negative weights, and how closely the two ways to compute them agree."""
    result = linear(spec, sentence, spacing, causal)
    share = f"**{format_percent(result.negative)}**" if result.negative else "**None**"
    low, high = (f"{value:.2f}" for value in (result.row_sums.min(), result.row_sums.max()))
    sums = f"a row adds up to {low} to {high} instead of 1" if low != high else f"every row still adds up to {low}"
    return (
        f"Rotate φ(q) and φ(k) in the numerator, leave the denominator alone. {share} of the weights are negative with "
        f"the words {spacing:,} tokens apart, and {sums}. By all pairs and by the running state the output is the same "
        f"to {_brief(result.error)}."
    )


def costs(spec: RopeSpec, *, causal: bool, shown: str, live: bool) -> str:
    """Say from which length the running state is less work, or what was measured."""
    if shown == "time" and not live:
        measured = timed(spec.head_dim)
        if not measured:
            return f"A head of {spec.head_dim:,} takes too long to be measured here; its operations are counted."
        last = measured[-1]
        return (
            f"At {last.tokens:,} tokens: {_brief(last.pairs)} s by all pairs, {_brief(last.state)} s by the state, "
            f"outputs equal to {_brief(last.error)}. One causal head of {spec.head_dim} in NumPy; the state is a loop "
            "in Python and carries its cost."
        )
    cross = crossover(spec.head_dim, spec.head_dim, causal=causal)
    return (
        f"All pairs grow with N², the running state with N: from {cross:,} tokens on it is less work for a head of "
        f"{spec.head_dim}."
    )


def quoted(word: str) -> str:
    """Quote a word from the user in a Markdown sentence, so that it cannot act as markup."""
    short = word if len(word) <= 24 else word[:23] + "…"
    return f"**{short}**" if short.isalnum() else "`" + short.replace("`", "′") + "`"


def _brief(value: float) -> str:
    return format_number(float(f"{value:.2g}"))
