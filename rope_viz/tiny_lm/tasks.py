"""Training and test tasks: facts in filler, repeated segments, and Markov chains with an exact best answer.

Every sequence starts with `<s>`. A fact is a key followed by a value; a question is the key again, at the end. Repeats
are induction (Olsson et al., https://arxiv.org/abs/2209.11895), chains are those of Edelman et al.,
https://arxiv.org/abs/2402.11004: each sequence has its own transition probabilities, uniform on the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Tokens: TypeAlias = NDArray[np.int64]

START = 0
KEYS, VALUES, FILLER, STATES = 64, 64, 64, 8
FIRST_KEY = 1
FIRST_VALUE = FIRST_KEY + KEYS
FIRST_FILLER = FIRST_VALUE + VALUES
FIRST_STATE = FIRST_FILLER + FILLER
VOCABULARY = FIRST_STATE + STATES

FACTS = 16  # in a sequence of the trained length and beyond
NOT_ASKED = -100  # a target that carries no loss


@dataclass(frozen=True)
class Questions:
    """Sequences with facts and questions about all of them.

    `tokens` (sequences, length); question j of a row is at `rows[j]` (the same in every row), its answer is
    `answers[row, j]`, and its fact's key is at `places[row, j]`. `depth` is that place as a share of the text before
    the questions: 0 is the oldest.
    """

    tokens: Tokens
    rows: Tokens
    answers: Tokens
    places: Tokens

    @property
    def depth(self) -> NDArray[np.float64]:
        """Return depths (sequences, questions): 0 is the first token of the text, 1 the last before the questions."""
        return (self.places - 1) / max(int(self.rows[0]) - 2, 1)


def facts_for(length: int, most: int = FACTS) -> int:
    """Return the number of facts in a sequence of this length: one per eight tokens, at most `most`."""
    return max(1, min(most, length // 8))


def questions(
    random: np.random.Generator, sequences: int, length: int, *, facts: int | None = None, even: bool = True
) -> Questions:
    """Return facts at random places in filler, then a question about each, in random order.

    `even` puts one fact into each of as many equal parts of the text, so that all depths are asked equally often;
    otherwise the places are free. Raises `ValueError` if the length is too short.
    """
    count = facts_for(length) if facts is None else facts
    text = length - 1 - 2 * count
    if count < 1 or count > min(KEYS, VALUES) or text < 2 * count:
        raise ValueError(f"{length} tokens cannot hold {count} facts and as many questions")
    tokens = random.integers(FIRST_FILLER, FIRST_FILLER + FILLER, (sequences, length))
    tokens[:, 0] = START
    keys = FIRST_KEY + distinct(random, sequences, KEYS, count)
    answers = random.integers(FIRST_VALUE, FIRST_VALUE + VALUES, (sequences, count))
    if even:
        edges = np.arange(count + 1) * text // count
        places = 1 + edges[:-1] + (random.random((sequences, count)) * (np.diff(edges) - 1)).astype(np.int64)
    else:
        # Uniform over all placements of `count` pieces of two tokens in the text.
        places = 1 + np.sort(distinct(random, sequences, text - count, count), axis=1) + np.arange(count)
    order = np.argsort(random.random((sequences, count)), axis=1)
    all_rows = np.arange(sequences)[:, None]
    tokens[all_rows, places], tokens[all_rows, places + 1] = keys, answers
    rows = length - 2 * count + 2 * np.arange(count)
    keys, answers, places = (np.take_along_axis(part, order, axis=1) for part in (keys, answers, places))
    tokens[:, rows], tokens[:, rows + 1] = keys, answers
    return Questions(tokens, rows, answers, places)


def repeats(random: np.random.Generator, sequences: int, length: int) -> tuple[Tokens, Tokens]:
    """Return segments of random tokens, repeated to the end: (tokens, targets), targets from the second time on."""
    tokens = np.empty((sequences, length), dtype=np.int64)
    targets = np.full((sequences, length), NOT_ASKED, dtype=np.int64)
    for row in range(sequences):
        size = int(random.integers(length // 4, length // 2))
        segment = random.integers(FIRST_KEY, FIRST_STATE, size)
        tokens[row] = np.concatenate([[START], np.resize(segment, length - 1)])
        # The first repeated token cannot be predicted; all later ones can.
        targets[row, size + 1 : -1] = tokens[row, size + 2 :]
    return tokens, targets


def chains(random: np.random.Generator, sequences: int, length: int) -> tuple[Tokens, NDArray[np.float64]]:
    """Return Markov chains with a transition matrix each: (tokens, transitions (sequences, STATES, STATES))."""
    transitions = random.dirichlet(np.ones(STATES), (sequences, STATES))
    bounds = np.cumsum(transitions, axis=2)
    state = random.integers(0, STATES, sequences)
    tokens = np.empty((sequences, length), dtype=np.int64)
    tokens[:, 0] = START
    all_rows, draws = np.arange(sequences), random.random((length, sequences))
    for at in range(1, length):
        tokens[:, at] = FIRST_STATE + state
        state = np.minimum((draws[at][:, None] > bounds[all_rows, state]).sum(axis=1), STATES - 1)
    return tokens, transitions


def best_chain_loss(tokens: Tokens) -> NDArray[np.float64]:
    """Return the lowest expected loss on `chains`, in nats: (sequences, length − 1), of each next token.

    With transition probabilities uniform on the simplex, the best prediction is the posterior mean: (n_ij + 1) / (n_i +
    STATES), with n_ij the transitions seen so far. The first state is one of STATES.
    """
    states = tokens[:, 1:] - FIRST_STATE
    sequences, length = states.shape
    counts = np.ones((sequences, STATES, STATES))
    loss = np.empty((sequences, length))
    loss[:, 0] = np.log(STATES)
    all_rows = np.arange(sequences)
    for at in range(1, length):
        before, after = states[:, at - 1], states[:, at]
        row = counts[all_rows, before]
        loss[:, at] = np.log(row.sum(axis=1) / row[all_rows, after])
        counts[all_rows, before, after] += 1
    return loss


def distinct(random: np.random.Generator, rows: int, of: int, count: int) -> Tokens:
    """Return (rows, count) numbers below `of`, all different within a row."""
    if count > of // 4:
        return np.argsort(random.random((rows, of)), axis=1)[:, :count]
    found = np.empty((rows, count), dtype=np.int64)
    for row in range(rows):
        found[row] = random.choice(of, count, replace=False)
    return found
