"""The numbers in the sentences of the Recall page, against values computed here."""

import numpy as np
import pytest

from rope_viz.pages.recall import words as recall

LENGTHS = (256, 512, 1024)
ALL, HALF, NONE = np.ones(4), np.full(4, 0.5), np.zeros(4)


def test_recall_gives_shares_and_the_multiple_of_training():
    values = recall.describe_recall("YaRN", 1024, 256, 0.97, 0.06, 1.1, 0.95).values
    assert (values["share"], values["plain"], values["times"]) == (0.97, 0.06, 4.0)
    within = recall.describe_recall("none", 256, 256, 0.97, None, 1.0, 1.0)
    assert "lengths.plain" in within.entries
    assert "times" not in within.values


@pytest.mark.parametrize("previous", [0.0, 0.79, 0.8, 1.2])
@pytest.mark.parametrize("finder", [0.0, 0.79, 0.8, 1.2])
@pytest.mark.parametrize("share", [0.0, 0.9, 0.91])
def test_a_head_that_lost_a_fifth_of_its_attention_is_named(previous, finder, share):
    entries = recall.explain_recall(previous, finder, share).entries
    assert ("heads.previous" in entries) == (previous < 0.8)
    assert ("heads.finder" in entries) == (finder < 0.8)
    assert ("heads.intact" in entries) == (previous >= 0.8 and finder >= 0.8)
    assert ("heads.sufficient" in entries) == (share > 0.9 and (previous < 0.8 or finder < 0.8))


def test_maps_give_the_length_before_recall_first_drops():
    plain, current = np.stack([ALL, HALF, ALL], axis=1), np.stack([ALL, ALL, NONE], axis=1)
    values = recall.describe_maps(LENGTHS, plain, current, "YaRN").values
    assert (values["plain_length"], values["scaled_length"]) == (256, 512)
    unknown = np.stack([np.full(4, np.nan), ALL, ALL], axis=1)
    sentence = recall.describe_maps(LENGTHS, np.stack([NONE] * 3, axis=1), unknown, "YaRN")
    assert {"maps.plain_never", "maps.scaled_never"} <= set(sentence.entries)


def test_contributions_name_the_four_largest_and_their_share():
    values = np.array([0.1, -5.0, 3.0, 0.4, 2.0, 0.0, 0.5])
    found = recall.describe_contributions(values, "finder").values
    assert found["pairs"] == "2, 3, 4 and 6"
    assert found["share"] == pytest.approx((3.0 + 0.4 + 2.0 + 0.5) / (0.1 + 3.0 + 0.4 + 2.0 + 0.5))
    assert recall.describe_contributions(np.array([-1.0, 2.0]), "finder").values["count"] == 1
    assert "contributions.none" in recall.describe_contributions(-np.ones(4), "previous").entries


def test_single_pairs_name_the_one_that_costs_most():
    sentence = recall.describe_single_pairs(np.array([0.9, 0.2, 0.5]), 0.95, "plain", 512)
    assert (sentence.values["pair"], sentence.values["after"], sentence.values["before"]) == (1, 0.2, 0.95)
    assert "switched.plain" in sentence.entries
    assert "carry.none" in recall.describe_single_pairs(np.array([0.94, 0.99]), 0.95, "still", 512).entries


def test_a_switch_that_changes_less_than_two_per_cent_stays():
    assert "switched.stays" in recall.describe_switch((3,), "still", 0.515, 0.5).entries
    sentence = recall.describe_switch((3, 4, 5), "divided", 0.1, 0.5, 1024)
    assert "switched.changes" in sentence.entries
    values = sentence.values
    assert (values["first"], values["last"], values["before"], values["after"], values["length"]) == (
        3,
        5,
        0.5,
        0.1,
        1024,
    )
    assert "switched.one" in recall.describe_switch((3,), "still", 0.1, 0.5).entries


def test_recovery_keeps_the_recalls_of_every_method():
    recalls = {"Linear": (0.0, 0.98, 0.1, 0.99), "YaRN": (1.0, 1.0, 1.0, 1.0)}
    sentence = recall.describe_recovery(recalls, 1000, 1024, 256)
    assert sentence.values["recalls"] == recalls
    assert sentence.entries.count("recover.method") == 2
    assert "Linear: 0 % → **98 %** at 1k tokens, 10 % → 99 % at 256" in sentence
    assert recall.describe_recovery({}, 1000, 1024, 256).entries == ("recover.choose",)


def test_loss_is_given_within_and_beyond_training():
    assert recall.describe_loss(0.01, 0.7, 256).values == {"within": 0.01, "beyond": 0.7, "trained": 256}
    assert "loss.beyond" not in recall.describe_loss(0.01, None, 256).entries


def test_an_evaluation_of_another_model_is_named():
    assert recall.describe_evaluation("llama", 64).values == {"model": "'llama'", "answers": 64}
    assert recall.describe_evaluation("", 64).entries == ("yours.ask", "yours.tiny_lm")
