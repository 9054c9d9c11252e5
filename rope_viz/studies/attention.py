"""Attention maps of one sentence under four position encodings: none, sinusoidal, rotary, rotary and scaled.

Vaswani et al., https://arxiv.org/abs/1706.03762 (section 3.5); Su et al., RoFormer, https://arxiv.org/abs/2104.09864.
Every word has one fixed random vector, and q and k are fixed random projections of it. Nothing is trained: the maps
show what position adds to identical words, not what a model would attend to.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rope_viz.embedding.spec import MAX_LENGTH, FloatArray, RopeSpec, freeze, require_number
from rope_viz.studies.rotation import largest_entry, position_angles, rotate
from rope_viz.studies.vectors import draw_normals
from rope_viz.texts import Texts

TEXTS = Texts("studies")

DEFAULT_SENTENCE = "Jane went to the movie theater and then Jane went back home"
MAX_WORDS = 64
MAX_WIDTH = 512
SINUSOIDAL_BASE = 10_000.0


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """One encoding's attention: rows are queries, columns keys.

    `scores`, shape (words, words), are q·k/√head_dim before the mask; `weights` their softmax over the visible keys, 0
    elsewhere.
    """

    name: str
    scores: FloatArray
    weights: FloatArray


def split_words(sentence: str) -> tuple[str, ...]:
    """Return the words as typed. Raises `ValueError` for no word, or more than 64."""
    words = tuple(sentence.split())
    if not words:
        raise ValueError(TEXTS("sentence.empty"))
    if len(words) > MAX_WORDS:
        raise ValueError(TEXTS("sentence.long", most=MAX_WORDS, count=len(words)))
    return words


def same_word(word: str) -> str:
    """Return the key by which words are compared: case-folded, without punctuation around it."""
    core = word.casefold()
    while core and not core[0].isalnum():
        core = core[1:]
    while core and not core[-1].isalnum():
        core = core[:-1]
    return core or word


def repeated_words(sentence: str) -> tuple[tuple[str, int, int], ...]:
    """Return every repetition of a word: (word as first typed, index, index of its next occurrence), in order."""
    words = split_words(sentence)
    last: dict[str, int] = {}
    found = []
    for index, word in enumerate(words):
        if same_word(word) in last:
            found.append((words[last[same_word(word)]], last[same_word(word)], index))
        last[same_word(word)] = index
    return tuple(found)


def embed(sentence: str, size: int, *, seed: int = 0) -> FloatArray:
    """Return a standard normal vector per word, shape (words, size), equal for equal words in every process."""
    return np.stack([draw_normals(f"word {seed} {same_word(word)}", size) for word in split_words(sentence)])


def project(x: FloatArray, name: str, size: int, *, seed: int = 0) -> FloatArray:
    """Project `x`, shape (..., width), by the fixed random matrix called `name`: (..., size) with the same variance."""
    projected: FloatArray = x @ projection(name, x.shape[-1], size, seed)
    return projected


@functools.lru_cache(maxsize=6)
def projection(name: str, width: int, size: int, seed: int) -> FloatArray:
    """Return the fixed random matrix called `name`, (width, size); read-only."""
    return freeze(draw_normals(f"projection {seed} {name}", width, size) / np.sqrt(width))


def sinusoidal(positions: ArrayLike, size: int, *, base: float = SINUSOIDAL_BASE) -> FloatArray:
    """Return sinusoidal encodings, shape of `positions` + (size,): entry 2t is sin(k/base^(2t/size)), 2t + 1 cos."""
    require_number(size, "size", least=1, integer=True)
    t = np.arange((size + 1) // 2)
    return interleaved_waves(np.asarray(positions, dtype=np.float64)[..., None] * base ** (-2.0 * t / size))[..., :size]


def attention_maps(
    spec: RopeSpec,
    sentence: str = DEFAULT_SENTENCE,
    *,
    offset: int = 0,
    causal: bool = False,
    seed: int = 0,
    length: int | None = None,
) -> dict[str, AttentionMap]:
    """Return the four maps of a sentence that starts at position `offset`, by name: none, sinusoidal, rope, scaled.

    "rope" is the spec without scaling, "scaled" the spec with its scaling and its attention factor (on the rotated
    dimensions only). The embedding is head_dim wide, 512 at most; the sinusoidal encoding has its paper's base 10,000.
    Angles are float64: accurate to 1.1e-10 rad at 1M. Raises `ValueError` for a bad sentence or offset.
    """
    x, positions, placed = embed_at_positions(spec, sentence, offset, seed)
    (q, placed_q), (k, placed_k) = (project(np.stack([x, placed]), name, spec.head_dim, seed=seed) for name in "qk")
    plain, gain = spec.plain(), spec.attention_factor(length)
    vectors = {
        "none": (q, k),
        "sinusoidal": (placed_q, placed_k),
        "rope": (rotate(plain, q, positions), rotate(plain, k, positions)),
        "scaled": tuple(rotate(spec, each, positions, length=length, gain=gain) for each in (q, k)),
    }
    maps = {}
    for name, (queries, keys) in vectors.items():
        scores = queries @ keys.T / np.sqrt(spec.head_dim)
        maps[name] = AttentionMap(name, scores, softmax(scores, causal=causal))
    return maps


def row_difference(attention: AttentionMap, first: int, second: int) -> tuple[float, float]:
    """Return the largest difference between two queries' rows: of the scores, and of the weights.

    Without position two equal words have equal rows (0 to rounding). Under a causal mask the weights still differ,
    because the later one sees more keys; the scores do not.
    """
    return (
        largest_entry(attention.scores[first] - attention.scores[second]),
        largest_entry(attention.weights[first] - attention.weights[second]),
    )


def shift_differences(
    spec: RopeSpec,
    sentence: str = DEFAULT_SENTENCE,
    *,
    offset: int,
    causal: bool = False,
    seed: int = 0,
    length: int | None = None,
) -> dict[str, tuple[float, float]]:
    """Return the largest change of scores and weights, by encoding, if the sentence moves from 0 to `offset`.

    0 for no position, rounding (about 1e-9 at 1M) for RoPE, of the order of the scores for the sinusoidal encoding.
    """
    zero, moved = (
        attention_maps(spec, sentence, offset=at, causal=causal, seed=seed, length=length) for at in (0, offset)
    )
    return {
        name: (
            largest_entry(moved[name].scores - zero[name].scores),
            largest_entry(moved[name].weights - zero[name].weights),
        )
        for name in zero
    }


@dataclass(frozen=True, eq=False)
class SinusoidalDots:
    """p_m·p_n of the sinusoidal encoding and the mean cosine of RoPE's score, each of shape (count, count).

    `error` is the largest difference between `dots` and `factor` (d/2) times `mean_cosine`.
    """

    dots: FloatArray
    mean_cosine: FloatArray
    factor: float
    error: float


def sinusoidal_dots(spec: RopeSpec, count: int = 64, *, offset: int = 0) -> SinusoidalDots:
    """Compare the sinusoidal encoding of the spec's plain angles, against itself, with RoPE's score.

    p_m·p_n = Σ sin(mθ) sin(nθ) + cos(mθ) cos(nθ) = Σ cos((m − n)θ), which is d/2 times the score of equal q and k under
    RoPE, over positions `offset` … `offset` + `count` − 1.
    """
    require_number(count, "count", least=1, most=4096, integer=True)
    require_number(offset, "offset", least=0, most=MAX_LENGTH, integer=True)
    places = np.arange(int(count))
    waves = interleaved_waves(position_angles(spec.plain(), int(offset) + places))
    dots = waves @ waves.T
    by_distance = np.cos(position_angles(spec.plain(), places)).mean(axis=-1)
    mean_cosine = by_distance[np.abs(places[:, None] - places)]
    return SinusoidalDots(dots, mean_cosine, float(spec.pairs), largest_entry(dots - spec.pairs * mean_cosine))


@dataclass(frozen=True, eq=False)
class Norms:
    """Lengths of the sentence's vectors before and after position is added, each of shape (words,)."""

    embedded: FloatArray
    added: FloatArray
    projected: FloatArray
    rotated: FloatArray
    scaled: FloatArray


def norms(
    spec: RopeSpec,
    sentence: str = DEFAULT_SENTENCE,
    *,
    offset: int = 0,
    seed: int = 0,
    length: int | None = None,
) -> Norms:
    """Return vector lengths: adding the sinusoidal encoding changes a word's length by position, rotating q does not.

    `scaled` is longer by the attention factor, if there is one.
    """
    x, positions, placed = embed_at_positions(spec, sentence, offset, seed)
    q = project(x, "q", spec.head_dim, seed=seed)
    rotated = rotate(spec.plain(), q, positions)
    scaled = rotate(spec, q, positions, length=length, gain=spec.attention_factor(length))
    return Norms(*(np.linalg.norm(vectors, axis=-1) for vectors in (x, placed, q, rotated, scaled)))


def embed_at_positions(
    spec: RopeSpec, sentence: str, offset: int, seed: int
) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return the words' vectors, their positions from `offset` on, and the vectors plus the sinusoidal encoding."""
    require_number(offset, "offset", least=0, most=MAX_LENGTH, integer=True)
    x = embed(sentence, min(spec.head_dim, MAX_WIDTH), seed=seed)
    positions = int(offset) + np.arange(len(x), dtype=np.int64)
    return x, positions, x + sinusoidal(positions, x.shape[-1])


def visible_keys(count: int, *, causal: bool) -> NDArray[np.bool_]:
    """Return which keys a query may see, shape (count, count)."""
    everything = np.ones((count, count), dtype=bool)
    return np.tril(everything) if causal else everything


def softmax(scores: FloatArray, *, causal: bool = False) -> FloatArray:
    """Return weights over the keys a query may see, shape of `scores`; rows sum to 1."""
    seen = np.where(visible_keys(len(scores), causal=causal), scores, -np.inf)
    powers = np.exp(seen - seen.max(axis=-1, keepdims=True))
    weights: FloatArray = powers / powers.sum(axis=-1, keepdims=True)
    return weights


def interleaved_waves(angle: FloatArray) -> FloatArray:
    """Interleave sin and cos of every angle: (…, pairs) to (…, 2 pairs)."""
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*angle.shape[:-1], -1)
