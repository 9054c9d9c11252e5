"""Recall questions in words: a key hidden in filler, at a depth, in a text of a length; also in tiny_lm's language.

The passkey task: Mohtashami and Jaggi, https://arxiv.org/abs/2305.16300, section 4.2, with the original wording.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding.spec import short_repr
from rope_viz.storage.decode_json import read_own
from rope_viz.tiny_lm import tasks

ANIMALS, FILLERS = read_own(__file__, "words.json").values()

LETTERS = [chr(ord("A") + state) for state in range(tasks.STATES)]

WORDS = ("<s>", *ANIMALS, *map(str, range(tasks.VALUES)), *FILLERS, *LETTERS)
"""The word of every token, in the order of `tasks`."""

IDS = {word: token for token, word in enumerate(WORDS)}


# A fact is an animal and a number, filler is common words, a chain's states are letters: `<s> the of fox 37 and …
# fox`.
def parse(text: str) -> list[int]:
    """Return the tokens of a text. Raises `ValueError` that names a word outside the vocabulary."""
    words = text.split()
    for word in words:
        if word not in IDS:
            raise ValueError(f"tiny_lm does not know the word {short_repr(word)}; it knows {len(WORDS)} words")
    return [IDS[word] for word in words]


def tokenizer() -> dict[str, Any]:
    """Return `tokenizer.json` for the tokenizers library: one token per word, split at spaces."""
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": tasks.START,
                "content": "<s>",
                "special": True,
                "single_word": False,
                "lstrip": True,
                "rstrip": True,
                "normalized": False,
            }
        ],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": IDS, "unk_token": "<s>"},
    }


def tokenizer_config() -> dict[str, Any]:
    """Return the matching `tokenizer_config.json`."""
    return {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "unk_token": "<s>"}


OPENING = (
    "There is an important info hidden inside a lot of irrelevant text. "
    "Find it and memorize them. I will quiz you about the important information there."
)
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
NEEDLE = "The pass key is {key}. Remember it. {key} is the pass key."
QUESTION = "What is the pass key? The pass key is"

HIDDEN = "\n\nThe pass key of {city} is {key}. Remember it.\n\n"
ASKED = "\n\nWhat is the pass key of {city}? The pass key of {city} is {key}"


@dataclass(frozen=True)
class Question:
    """A text that ends in a question, and its expected answer."""

    text: str
    answer: str


@dataclass(frozen=True)
class Wording:
    """A form of the question. `make(pieces, depth, seed)` returns one with that many pieces of filler.

    `answer_tokens` is the limit for an answer; `probes` are two piece counts from which the tokens per piece are
    measured.
    """

    name: str
    make: Callable[[int, float, int], Question]
    answer_tokens: int
    probes: tuple[int, int]

    def right(self, question: Question, answer: str) -> bool:
        """True if the answer contains the key as a separate word or number."""
        return re.search(rf"(?<!\w){re.escape(question.answer)}(?!\w)", answer) is not None


def english(pieces: int, depth: float, seed: int) -> Question:
    """Return a question for a five-digit pass key after the share `depth` of `pieces` repetitions of the filler."""
    random = np.random.default_rng([seed, pieces, round(depth * 10_000)])
    key = str(int(random.integers(10_000, 100_000)))
    before = round(depth * pieces)
    parts = [OPENING, *[FILLER] * before, NEEDLE.format(key=key), *[FILLER] * (pieces - before), QUESTION]
    return Question(" ".join(parts), key)


def hide_key(
    encode: Callable[[str], tasks.Tokens], text: tasks.Tokens, depth: float, key: str, city: str = "Paris"
) -> tasks.Tokens:
    """Return a text of as many tokens with a key after the share `depth`; it ends in the question and the key."""
    hidden, asked = (encode(words.format(city=city, key=key)) for words in (HIDDEN, ASKED))
    text = text[: len(text) - len(hidden) - len(asked)]
    place = round(depth * len(text))
    return np.concatenate([text[:place], hidden, text[place:], asked])


def tiny_lm_language(pieces: int, depth: float, seed: int) -> Question:
    """Return animals with numbers among `pieces` words; the animal in question is after the share `depth` of them."""
    random = np.random.default_rng([seed, pieces, round(depth * 10_000)])
    facts = max(1, min(tasks.FACTS, pieces // 4))
    animals = random.permutation(ANIMALS)[:facts]
    numbers = random.integers(0, tasks.VALUES, facts)
    # The first fact is the one asked for; the others are anywhere.
    places = [round(depth * pieces), *random.integers(0, pieces + 1, facts - 1).tolist()]
    words = random.choice(FILLERS, pieces).tolist()
    text: list[str] = []
    for place in range(pieces + 1):
        for fact in np.flatnonzero(np.array(places) == place):
            text += [str(animals[fact]), str(numbers[fact])]
        text += words[place : place + 1]
    return Question(" ".join(["<s>", *text, str(animals[0])]), str(numbers[0]))


WORDINGS = {
    "english": Wording("english", english, 12, (4, 64)),
    "reader": Wording("reader", tiny_lm_language, 1, (64, 192)),
}


def pieces_for(wording: Wording, length: int, count: Callable[[str], int]) -> int:
    """Return how many pieces make a text of at most `length` tokens, answer included, from two token counts.

    Raises `ValueError` if the length cannot hold the question.
    """
    few, many = wording.probes
    least, most = (count(wording.make(pieces, 0.5, 0).text) for pieces in (few, many))
    per_piece = (most - least) / (many - few)
    if per_piece <= 0:
        raise ValueError(f"the tokens of a text cannot be counted: {few} pieces took {least}, {many} took {most}")
    found = int((length - wording.answer_tokens - least) / per_piece + few)
    if found < 1:
        raise ValueError(f"{length:,} tokens cannot hold the question: it needs {int(least + wording.answer_tokens):,}")
    return found
