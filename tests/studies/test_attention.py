"""Attention of a sentence under four position encodings, against torch and transformers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.attention import (
    DEFAULT_SENTENCE,
    attention_maps,
    embed,
    norms,
    project,
    repeated_words,
    row_difference,
    same_word,
    shift_differences,
    sinusoidal,
    sinusoidal_dots,
    softmax,
    split_words,
)
from rope_viz.studies.rotation import rotate

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "attention_transformers.json").read_text())
ROOT = Path(__file__).parents[2]
YARN = RopeSpec(head_dim=64, scaling=Yarn(factor=4), target=16384)
CASES = {
    "half plain": RopeSpec(head_dim=16),
    "half yarn": RopeSpec(head_dim=16, scaling=Yarn(factor=4)),
    "interleaved plain": RopeSpec(head_dim=16, pairing="interleaved"),
}
# transformers multiplies float32 angles of about 1,000 rad: 6e-5 rad at most, on entries of at most 4.
ATOL = 2.5e-4


@pytest.mark.parametrize("case", CASES)
def test_rotation_and_weights_match_transformers(case):
    spec, golden = CASES[case], GOLDEN["cases"][case]
    positions = GOLDEN["offset"] + np.arange(len(GOLDEN["q"]))
    q, k = (rotate(spec, GOLDEN[name], positions, gain=spec.attention_factor()) for name in "qk")
    np.testing.assert_allclose(q, golden["q"], rtol=0, atol=ATOL)
    np.testing.assert_allclose(k, golden["k"], rtol=0, atol=ATOL)
    np.testing.assert_allclose(softmax(q @ k.T / 4.0), golden["weights"], rtol=0, atol=ATOL)


def test_the_sinusoidal_table_is_that_of_transformers():
    waves = sinusoidal(GOLDEN["offset"] + np.arange(5), 16)
    # RoFormer's module keeps all sines first, then all cosines.
    np.testing.assert_allclose(
        np.hstack([waves[:, 0::2], waves[:, 1::2]]), GOLDEN["sines_then_cosines"], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["none", "sinusoidal", "rope", "scaled"])
def test_weights_match_the_attention_of_torch(name, causal):
    offset, size = 321, 64
    x = embed(DEFAULT_SENTENCE, size)
    positions = offset + np.arange(len(x))
    placed = x + sinusoidal(positions, size) if name == "sinusoidal" else x
    q, k = project(placed, "q", size), project(placed, "k", size)
    if name == "rope":
        q, k = rotate(YARN.plain(), q, positions), rotate(YARN.plain(), k, positions)
    if name == "scaled":
        q, k = (rotate(YARN, each, positions, gain=YARN.attention_factor()) for each in (q, k))
    eye = np.eye(len(x))
    theirs = scaled_dot_product_attention(*(torch.from_numpy(each)[None] for each in (q, k, eye)), is_causal=causal)
    ours = attention_maps(YARN, offset=offset, causal=causal)[name].weights
    np.testing.assert_allclose(ours, theirs[0].numpy(), rtol=0, atol=1e-12)


def test_equal_words_attend_alike_only_without_position():
    (word, first, second), *_ = repeated_words(DEFAULT_SENTENCE)
    assert (word, first, second) == ("Jane", 0, 8)
    maps = attention_maps(YARN)
    assert max(row_difference(maps["none"], first, second)) < 1e-14
    for name in ("sinusoidal", "rope", "scaled"):
        assert min(row_difference(maps[name], first, second)) > 0.05, name


def test_causal_mask_changes_weights_of_equal_words_not_scores():
    scores, weights = row_difference(attention_maps(YARN, causal=True)["none"], 0, 8)
    assert scores < 1e-14
    assert weights > 0.5


def test_shift_changes_only_the_sinusoidal_map():
    for offset in (1, 4096, 1_000_000):
        changed = shift_differences(YARN, offset=offset)
        assert changed["none"] == (0.0, 0.0)
        assert max(changed["rope"] + changed["scaled"]) < 1e-9
        assert min(changed["sinusoidal"]) > 0.02


def test_the_attention_factor_enters_the_scores_squared():
    # A token sees itself at distance 0, where nothing turns.
    maps = attention_maps(YARN)
    square = YARN.attention_factor() ** 2
    np.testing.assert_allclose(np.diag(maps["scaled"].scores), square * np.diag(maps["none"].scores), rtol=1e-12)
    np.testing.assert_allclose(np.diag(maps["rope"].scores), np.diag(maps["none"].scores), rtol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_rows_of_weights_sum_to_one(causal):
    for attention in attention_maps(YARN, causal=causal).values():
        np.testing.assert_allclose(attention.weights.sum(axis=-1), 1.0)
        if causal:
            assert not np.triu(attention.weights, 1).any()


def test_equal_words_have_equal_vectors_for_any_hash_seed():
    vectors = embed("Jane, jane «JANE» Janet", 8)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert np.abs(vectors[0] - vectors[3]).max() > 0.1
    code = "from rope_viz.studies.attention import embed; print(embed('Jane', 8).tobytes().hex())"
    for hash_seed in ("1", "2"):
        run = [sys.executable, "-c", code]
        printed = subprocess.run(
            run, env=os.environ | {"PYTHONHASHSEED": hash_seed}, cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert printed.stdout.strip() == vectors[0].tobytes().hex()


def test_another_seed_gives_other_vectors():
    assert np.abs(embed("Jane", 8, seed=0) - embed("Jane", 8, seed=1)).max() > 0.1


def test_punctuation_alone_is_still_a_word():
    assert same_word("—") == "—"
    assert same_word("back!") == same_word("Back")
    assert repeated_words("a b a b a") == (("a", 0, 2), ("b", 1, 3), ("a", 2, 4))


@pytest.mark.parametrize("offset", [0, 1000])
def test_sinusoidal_dots_are_the_scaled_mean_cosine(offset):
    spec = RopeSpec(head_dim=64)
    dots = sinusoidal_dots(spec, 40, offset=offset)
    waves = sinusoidal(offset + np.arange(40), 64)
    np.testing.assert_allclose(dots.dots, waves @ waves.T, rtol=0, atol=1e-10)
    distance = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
    mean = np.mean([np.cos(distance * 10_000.0 ** (-i / 32)) for i in range(32)], axis=0)
    np.testing.assert_allclose(dots.mean_cosine, mean, rtol=0, atol=1e-12)
    assert dots.factor == 32.0
    assert dots.error < 1e-10


def test_rotation_preserves_norms_and_adding_does_not():
    lengths = norms(YARN, offset=12345)
    np.testing.assert_allclose(lengths.rotated, lengths.projected, rtol=1e-13)
    np.testing.assert_allclose(lengths.scaled, YARN.attention_factor() * lengths.projected, rtol=1e-13)
    assert np.abs(lengths.added - lengths.embedded).min() > 0.3
    # The same word at two places: equal before, different after adding.
    assert lengths.embedded[0] == lengths.embedded[8]
    assert abs(lengths.added[0] - lengths.added[8]) > 1e-3


def test_odd_sizes_end_with_a_sine():
    assert sinusoidal(3, 5).shape == (5,)
    np.testing.assert_allclose(sinusoidal(3, 1), [np.sin(3.0)])


@pytest.mark.parametrize(
    ("sentence", "offset", "said"),
    [
        ("", 0, "at least one word"),
        ("word " * 65, 0, "at most 64 words, got 65"),
        ("a b", -1, "offset"),
        ("a", 1.5, "whole"),
    ],
)
def test_bad_sentence_or_offset_raises_a_clear_error(sentence, offset, said):
    with pytest.raises(ValueError, match=said):
        attention_maps(RopeSpec(head_dim=8), sentence, offset=offset)


def test_words_are_used_as_typed():
    assert split_words(" Jane,  went\nhome ") == ("Jane,", "went", "home")
