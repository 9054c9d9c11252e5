"""The numbers in the sentences of the Heads page, against sums computed here."""

import numpy as np
import pytest

from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, Bands
from rope_viz.pages.heads import words as heads

RANDOM = np.random.default_rng(0)
STRENGTH = RANDOM.uniform(0.1, 1.0, size=(4, 34))
POSITIONAL = np.array([0.9, 0.51, 0.5, 0.0])


@pytest.mark.parametrize("unrotated", [0, 2])
def test_layer_gives_the_share_of_its_strongest_pairs(unrotated):
    values = heads.describe_layer("mine", 5, STRENGTH, POSITIONAL, unrotated).values
    rotated = 34 - unrotated
    strongest = sorted(range(rotated), key=lambda pair: -STRENGTH[:, pair].sum())[:3]
    assert (values["number"], values["name"], values["rotated"], values["count"]) == (5, "mine", rotated, 3)
    assert values["share"] == pytest.approx(STRENGTH[:, strongest].sum() / STRENGTH.sum())
    assert values["middle"] == sorted(strongest)[1]
    rest = STRENGTH[:, rotated:].sum() / STRENGTH.sum()
    assert values.get("unrotated", 0.0) == pytest.approx(rest)


def test_layer_counts_the_positional_heads():
    values = heads.describe_layer("mine", 5, STRENGTH, POSITIONAL, 0).values
    assert (values["positional"], values["heads"]) == (2, 4)


def test_layer_of_few_pairs_names_the_strongest():
    sentence = heads.describe_layer("mine", 5, STRENGTH[:, :4], POSITIONAL, 0)
    assert sentence.values["count"] == 1
    assert sentence.values["middle"] == int(STRENGTH[:, :4].sum(axis=0).argmax())
    assert "layer.middle" not in sentence.entries


@pytest.mark.parametrize(("positional", "entry"), [(0.9, "one.positional"), (0.5, "one.semantic")])
def test_head_is_positional_if_distance_explains_over_half(positional, entry):
    sentence = heads.describe_head(7, positional, Bands(np.array([KEPT], dtype=np.int8)), np.ones(1))
    assert entry in sentence.entries
    assert (sentence.values["head"], sentence.values["positional"]) == (7, positional)


def test_head_gives_the_shares_of_its_bands():
    bands = Bands(np.array([KEPT, KEPT, BLENDED, DIVIDED, SPED], dtype=np.int8))
    parts = np.array([3.0, 1.0, -5.0, 0.1, 40.0, 40.0])  # the last one does not rotate
    sentence = heads.describe_head(7, 0.9, bands, parts)
    assert sentence.values["kept"] == pytest.approx(4.0 / 9.1)
    assert sentence.values["blended"] == pytest.approx(5.0 / 9.1)
    assert "one.divided" not in sentence.entries, "a share below 5 % is left out"
    nothing = heads.describe_head(7, 0.9, bands, np.zeros(6))
    assert "one.bands" not in nothing.entries


def test_change_gives_the_attention_before_and_after():
    values = heads.describe_change(64, 0.25, 0.125).values
    assert (values["near"], values["before"], values["after"]) == (64, 0.25, 0.125)
