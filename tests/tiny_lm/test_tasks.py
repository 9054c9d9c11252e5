"""The questions are about their texts, and the best loss on a chain is exact."""

import math

import numpy as np
import pytest

from rope_viz.tiny_lm import passkey, tasks


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("length", [32, 64, 256, 1000])
def test_every_question_is_about_a_fact_that_occurs_once(length, even):
    asked = tasks.questions(np.random.default_rng(1), 5, length, even=even)
    facts = tasks.facts_for(length)
    assert asked.tokens.shape == (5, length)
    assert asked.answers.shape == asked.places.shape == (5, facts)
    for row, tokens in enumerate(asked.tokens):
        text = tokens[: asked.rows[0]]
        for at, answer, place in zip(asked.rows, asked.answers[row], asked.places[row], strict=True):
            assert list(np.flatnonzero(text == tokens[at])) == [place]
            assert text[place + 1] == answer == tokens[at + 1]
        assert tokens[0] == tasks.START
        is_fact = np.isin(np.arange(len(text)), [*asked.places[row], *(asked.places[row] + 1)])
        assert np.all((text[1:] >= tasks.FIRST_FILLER)[~is_fact[1:]])
        assert text[1:].max() < tasks.FIRST_STATE


def test_every_depth_is_asked_equally_often():
    asked = tasks.questions(np.random.default_rng(2), 50, 256)
    part = np.minimum((asked.depth * tasks.FACTS).astype(int), tasks.FACTS - 1)
    assert np.all(np.abs(np.sort(part, axis=1) - np.arange(tasks.FACTS)) <= 1)
    assert 0.0 <= asked.depth.min() < 0.06
    assert 0.94 < asked.depth.max() <= 1.0


def test_free_places_are_uniform_and_do_not_overlap():
    asked = tasks.questions(np.random.default_rng(3), 4000, 13, facts=2, even=False)
    first, second = np.sort(asked.places, axis=1).T
    assert np.all(second - first >= 2)
    # Eight places of text hold two pieces of two in 15 ways.
    ways, counts = np.unique(first * 10 + second, return_counts=True)
    assert len(ways) == 15
    assert counts.min() > 4000 / 15 * 0.7


def test_a_text_too_short_for_its_facts_is_refused():
    with pytest.raises(ValueError, match="16 tokens cannot hold 5 facts"):
        tasks.questions(np.random.default_rng(0), 1, 16, facts=5)


def test_repeats_are_asked_from_the_second_occurrence():
    tokens, targets = tasks.repeats(np.random.default_rng(4), 20, 64)
    for row, wanted in zip(tokens, targets, strict=True):
        asked = np.flatnonzero(wanted != tasks.NOT_ASKED)
        np.testing.assert_array_equal(wanted[asked], row[asked + 1])
        period = next(p for p in range(8, 33) if np.array_equal(row[1 + p :], row[1:-p]))
        assert asked[0] == period + 1
        np.testing.assert_array_equal(asked, np.arange(period + 1, 63))


def test_a_chain_follows_its_own_transitions():
    tokens, transitions = tasks.chains(np.random.default_rng(5), 2, 20_000)
    states = tokens[:, 1:] - tasks.FIRST_STATE
    np.testing.assert_allclose(transitions.sum(axis=2), 1.0)
    for row, wanted in zip(states, transitions, strict=True):
        counts = np.zeros((tasks.STATES, tasks.STATES))
        np.add.at(counts, (row[:-1], row[1:]), 1)
        seen = counts.sum(axis=1, keepdims=True)
        assert np.all(np.abs(counts / seen - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / seen) + 1e-3)


def test_the_best_loss_of_a_chain_is_its_exact_probability():
    tokens, _ = tasks.chains(np.random.default_rng(6), 3, 200)
    total = tasks.best_chain_loss(tokens).sum(axis=1)
    for row, loss in zip(tokens[:, 1:] - tasks.FIRST_STATE, total, strict=True):
        # The marginal likelihood of transitions under a flat Dirichlet prior, in closed form.
        counts = np.zeros((tasks.STATES, tasks.STATES), dtype=int)
        np.add.at(counts, (row[:-1], row[1:]), 1)
        log = -math.log(tasks.STATES)
        for of in counts:
            log += math.lgamma(tasks.STATES) - math.lgamma(tasks.STATES + of.sum())
            log += sum(math.lgamma(1 + one) for one in of)
        assert loss == pytest.approx(-log, rel=1e-12)


def test_no_other_guess_beats_the_best_loss_on_average():
    tokens, transitions = tasks.chains(np.random.default_rng(7), 200, 100)
    states = tokens[:, 1:] - tasks.FIRST_STATE
    best = tasks.best_chain_loss(tokens).mean()
    known = -np.log(transitions[np.arange(200)[:, None], states[:, :-1], states[:, 1:]]).mean()
    assert known < best < math.log(tasks.STATES)


def test_words_and_tokens_are_inverse_mappings():
    assert len(passkey.WORDS) == len(set(passkey.WORDS)) == tasks.VOCABULARY
    asked = tasks.questions(np.random.default_rng(8), 1, 64).tokens[0]
    text = " ".join(passkey.WORDS[token] for token in asked)
    assert passkey.parse(text) == asked.tolist()
    assert text.startswith("<s> ")
    with pytest.raises(ValueError, match="does not know the word 'zebra'"):
        passkey.parse("the zebra")
