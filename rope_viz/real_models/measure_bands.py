"""Measure the rows of a table of band changes: the loss of texts by position, and the answers to needles in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from rope_viz.embedding.spec import RopeSpec
from rope_viz.real_models.band_change import BandChange, name_heads
from rope_viz.real_models.band_table import DEPTHS, FIRST, LEAST_TEXTS, UNCHANGED
from rope_viz.tiny_lm.numpy_model import Floats
from rope_viz.tiny_lm.passkey import ASKED, HIDDEN
from rope_viz.tiny_lm.tasks import Tokens

CITIES = ("Paris", "London", "Rome", "Madrid", "Vienna")
"""A city per depth, so that a question names one key."""
BLOCKS, LEAST_BLOCK = 16, 32
"""Blocks of a text, and tokens of a block at least."""
SEED = 43


class ChangeableModel(Protocol):
    """A model that runs with a change of some pairs. Its tokenizer puts `prefix` before every text."""

    prefix: tuple[int, ...]

    @property
    def spec(self) -> RopeSpec: ...

    def losses(self, ids: Tokens, spec: RopeSpec, change: BandChange | None = None) -> Floats: ...

    def last_logits(self, ids: Tokens, count: int, change: BandChange | None = None) -> Tensor: ...


@dataclass(frozen=True)
class BandRequest:
    """A change with the name of its condition, and the lengths of the texts that are read with it and without it.

    Losses are measured on `tokens`, a needle is hidden in `needle_tokens`. Raises `ValueError` for too few texts.
    """

    change: BandChange
    condition: str
    tokens: int
    needle_tokens: int
    texts: int = LEAST_TEXTS

    def __post_init__(self) -> None:
        if self.texts < LEAST_TEXTS:
            raise ValueError(f"intervals need at least {LEAST_TEXTS} texts, got {self.texts}")

    @property
    def block(self) -> int:
        """Return the tokens over which losses are averaged."""
        return max(self.tokens // BLOCKS, LEAST_BLOCK)


def average_losses(losses: ArrayLike, block: int) -> list[float]:
    """Return the mean of every `block` tokens; the first block lacks the first token, which has no loss."""
    whole = np.concatenate([[np.nan], np.asarray(losses, dtype=np.float64)])
    return [round(float(each), 4) for each in np.nanmean(whole.reshape(-1, block), axis=1)]


def judge_answers(logits: Sequence[Tensor], questions: Sequence[Tokens]) -> dict[str, list[float]]:
    """Return, per question, the share of its answer's tokens that are the first choice, and the answer's loss in nats.

    `logits` are those of the answer, the last tokens of the question: (answer tokens, vocabulary).
    """
    right, nats = [], []
    for each, ids in zip(logits, questions, strict=True):
        wanted = torch.as_tensor(ids[-len(each) :], dtype=torch.long, device=each.device)
        right.append(round(float((each.argmax(dim=1) == wanted).float().mean()), 4))
        nats.append(round(float(torch.nn.functional.cross_entropy(each.float(), wanted, reduction="sum")), 3))
    return {"right": right, "nats": nats}


def cut_pieces(texts: Sequence[Tokens], tokens: int, count: int) -> list[Tokens]:
    """Return the first `count` pieces of so many tokens, one of each text in turn. Raises `ValueError` for fewer."""
    pieces = [[ids[first : first + tokens] for first in range(0, len(ids) - tokens + 1, tokens)] for ids in texts]
    deepest = max(map(len, pieces), default=0)
    found = [each[number] for number in range(deepest) for each in pieces if number < len(each)][:count]
    if len(found) < count:
        raise ValueError(
            f"bands need {count} pieces of {tokens:,} tokens, and the texts have {len(found)}: "
            "give longer texts, more of them, or fewer --tokens"
        )
    return found


def count_answer(encode: Callable[[str], Tokens], city: str) -> int:
    """Return the number of tokens of a key of five digits at the end of the question."""
    one, other = (encode(ASKED.format(city=city, key=key)) for key in ("11111", "22222"))
    same = np.flatnonzero(one[: len(other)] != other[: len(one)])
    return len(one) - int(same[0])


@dataclass(frozen=True, eq=False)
class Needles:
    """A reading with a key of each city, one at each depth: the tokens of each key's sentence, and its question.

    A question ends in its answer, the key.
    """

    reading: Tokens
    spans: list[tuple[int, int]]
    questions: list[Tokens]

    def ask_alone(self, number: int) -> Tokens:
        """Return a text with one of the keys only, and its question."""
        others = [np.arange(*span) for index, span in enumerate(self.spans) if index != number]
        return np.concatenate([np.delete(self.reading, np.concatenate(others)), self.questions[number]])


def hide_needles(encode: Callable[[str], Tokens], text: Tokens, rng: np.random.Generator) -> Needles:
    """Hide keys of five random digits in a text. The reading and the longest question have as many tokens as the text.

    Raises `ValueError` for a text that is too short.
    """
    keys = ["".join(str(digit) for digit in rng.integers(0, 10, 5)) for _ in CITIES]
    hidden, questions = (
        [encode(words.format(city=city, key=key)) for city, key in zip(CITIES, keys, strict=True)]
        for words in (HIDDEN, ASKED)
    )
    room = sum(map(len, hidden)) + max(map(len, questions))
    if len(text) < 2 * room:
        raise ValueError(f"needles and a question have {room} tokens: give at least {2 * room} --needle-tokens")
    text = text[: len(text) - room]
    places = [round(depth * len(text)) for depth in DEPTHS]
    parts, spans = [text[: places[0]]], []
    for needle, first, last in zip(hidden, places, [*places[1:], len(text)], strict=True):
        begin = sum(map(len, parts))
        spans.append((begin, begin + len(needle)))
        parts += [needle, text[first:last]]
    return Needles(np.concatenate(parts), spans, questions)


def measure_bands(
    subject: ChangeableModel,
    encode: Callable[[str], Tokens],
    texts: Sequence[Tokens],
    request: BandRequest,
    table: dict[str, Any],
    save: Callable[[], None] = lambda: None,
    progress: Callable[[str, int, int], None] = lambda step, done, of: None,
) -> None:
    """Add the rows of a change, and those of the unchanged model, to a table {"about", "rows"} that lacks them.

    `save` is called after each row. Raises `ValueError` for texts that are too short.
    """
    longest = max(request.tokens, request.needle_tokens) - len(subject.prefix)
    pieces = cut_pieces(texts, longest, request.texts)
    rng = np.random.default_rng(SEED)
    prefix = np.asarray(subject.prefix, dtype=np.int64)
    counts = [count_answer(encode, city) for city in CITIES]
    jobs: list[tuple[str, Callable[[BandChange | None], dict[str, Any]]]] = []
    for number, piece in enumerate(pieces, 1):
        read = np.concatenate([prefix, piece])[: request.tokens // request.block * request.block]
        needles = hide_needles(encode, piece[: request.needle_tokens - len(prefix)], rng)

        def measure_loss(change: BandChange | None, read: Tokens = read) -> dict[str, Any]:
            return {"loss": average_losses(subject.losses(read, subject.spec, change), request.block)}

        def ask(change: BandChange | None, needles: Needles = needles) -> dict[str, Any]:
            texts = [np.concatenate([prefix, needles.ask_alone(index)]) for index in range(len(CITIES))]
            logits = [subject.last_logits(ids, count, change) for ids, count in zip(texts, counts, strict=True)]
            return judge_answers(logits, texts)

        jobs += [(f"loss/{FIRST}/{number}", measure_loss), (f"needle/{FIRST}/{number}", ask)]
    changes = {UNCHANGED: None, request.condition: request.change}
    every = [(f"{text}/{name}", job, change) for text, job in jobs for name, change in changes.items()]
    for done, (key, job, change) in enumerate(every, 1):
        if key not in table["rows"]:
            table["rows"][key] = job(change)
            save()
        progress("bands", done, len(every))


def describe_bands(request: BandRequest) -> dict[str, Any]:
    """Return what a table says of its texts; tables that say the same can be continued."""
    return {
        "block": request.block,
        "tokens": {"loss": request.tokens // request.block * request.block, "needle": request.needle_tokens},
        "depths": list(DEPTHS),
        "texts": request.texts,
        "seed": SEED,
    }


def describe_change(change: BandChange) -> dict[str, Any]:
    """Return a change as JSON data; no `heads` are all heads."""
    return {
        "pairs": list(change.pairs),
        "how": change.how,
        "divisor": change.divisor,
        "heads": name_heads(change.heads),
    }
