"""Sentences of the Attention page, with the current numbers."""

from __future__ import annotations

from rope_viz.embedding.spec import RopeSpec
from rope_viz.pages.attention.figures import TEXTS, linear, sentence_maps, timed
from rope_viz.studies import attention
from rope_viz.studies.linear_attention import crossover
from rope_viz.texts import Sentence, join


def maps(spec: RopeSpec, sentence: str, *, offset: int, causal: bool) -> Sentence:
    """Describe the rows of a repeated word, and what changes when the sentence moves."""
    return join(
        describe_repetition(spec, sentence, offset=offset, causal=causal),
        describe_move(spec, sentence, offset=offset, causal=causal),
    )


def describe_marks(shown: str, sentence: str) -> Sentence:
    """Explain the colours of the maps, and their frames if a word is repeated."""
    framed = attention.repeated_words(sentence)
    return join(TEXTS(f"legends.{shown}"), TEXTS("legends.framed" if framed else "legends.moved"))


def describe_repetition(spec: RopeSpec, sentence: str, *, offset: int, causal: bool) -> Sentence:
    """Give the difference between the two rows of the first repeated word, without position and with RoPE."""
    repeated = attention.repeated_words(sentence)
    if not repeated:
        return join(TEXTS("repetition.none"), TEXTS("repetition.write"))
    word, first, second = repeated[0]
    by_encoding, _ = sentence_maps(spec, sentence, offset, causal)
    none, rope = (attention.row_difference(by_encoding[name], first, second) for name in ("none", "rope"))
    masked = TEXTS("repetition.masked", rows_masked=none[1]) if causal and none[1] > 0.0 else ""
    return join(
        TEXTS("repetition.equal", word=quote_word(word), rows_none=none[0]),
        TEXTS("repetition.rope", rows_rope=rope[0]),
        masked,
    )


def describe_move(spec: RopeSpec, sentence: str, *, offset: int, causal: bool) -> Sentence:
    """Give the largest change of the scores when the sentence moves from position 0 to `offset`."""
    if not offset:
        return TEXTS("move.try")
    _, moved = sentence_maps(spec, sentence, offset, causal)
    return TEXTS("move.moved", offset=offset, move_rope=moved["rope"][0], move_sinusoidal=moved["sinusoidal"][0])


def compare_products(spec: RopeSpec, *, offset: int) -> Sentence:
    """Give the factor between the two maps, and how closely they agree."""
    both = attention.sinusoidal_dots(spec, offset=offset)
    return join(
        TEXTS("products.equal", factor=both.factor, error=both.error),
        TEXTS("products.where"),
        TEXTS("products.lengths"),
    )


def describe_linear_weights(spec: RopeSpec, sentence: str, *, spacing: int, causal: bool) -> Sentence:
    """Give the share of negative weights, the sums of the rows, and how closely the two ways to compute agree."""
    result = linear(spec, sentence, spacing, causal)
    low, high = float(result.row_sums.min()), float(result.row_sums.max())
    negative = "negative" if result.negative else "none_negative"
    return join(
        TEXTS("linear.numerator"),
        TEXTS(f"linear.{negative}", spacing=spacing, negative=result.negative),
        TEXTS("linear.equal_sums" if f"{low:.2f}" == f"{high:.2f}" else "linear.sums", low=low, high=high),
        TEXTS("linear.same", error=result.error),
    )


def compare_costs(spec: RopeSpec, *, causal: bool, shown: str, live: bool) -> Sentence:
    """Give the length from which the running state is less work, or the measured times."""
    size = spec.head_dim
    if shown != "time" or live:
        cross = crossover(size, size, causal=causal)
        return join(TEXTS("costs.growth"), TEXTS("costs.crossover", size=size, crossover=cross))
    measured = timed(size)
    if not measured:
        return join(TEXTS("costs.too_large", size=size), TEXTS("costs.operations"))
    last = measured[-1]
    return join(
        TEXTS("costs.measured", tokens=last.tokens, pairs_seconds=last.pairs, state_seconds=last.state),
        TEXTS("costs.same", error=last.error),
        TEXTS("costs.machine", size=size),
        TEXTS("costs.loop"),
    )


def quote_word(word: str) -> str:
    """Quote a word from the user in a Markdown sentence, so that it cannot act as markup."""
    short = word if len(word) <= 24 else word[:23] + "…"
    return f"**{short}**" if short.isalnum() else "`" + short.replace("`", "′") + "`"
