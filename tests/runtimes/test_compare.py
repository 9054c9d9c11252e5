"""The matrix of runtimes shows which agree, and where and by how much the others differ, as executed."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.training.match_training import compare_trainers, find_far_position
from rope_viz.models.catalog import catalog
from rope_viz.runtimes import RUNTIMES
from rope_viz.runtimes.compare import compare, find_max_ratio

RUN = json.loads((Path(__file__).parents[1] / "goldens" / "runtimes.json").read_text())
BY_NAME = {"kimi-k2-instruct": ("llama.cpp", 8.93, 19), "gpt-oss-20b": ("mlx-lm", 1.763, 17)}


def cells(id, **options):
    return {one.emulation.runtime: one for one in compare(catalog()[id].config, **options)}


def test_a_plain_model_agrees_everywhere():
    found = compare(catalog()["llama-3-8b"].config)
    assert [(one.emulation.runtime, one.emulation.version) for one in found] == list(RUNTIMES)
    assert all(one.agrees and one.effect is None for one in found)


@pytest.mark.parametrize("id", BY_NAME)
def test_published_differences_are_reproduced(id):
    runtime, ratio, pair = BY_NAME[id]
    cell = cells(id)[runtime]
    assert not cell.agrees
    assert cell.effect.pair == pair
    assert cell.effect.ratio == pytest.approx(ratio, abs=0.005)


def test_each_executed_comparison_has_the_same_verdict():
    rows = {(row["id"], row["runtime"], row["version"], row["layer_type"], row["seq_len"]): row for row in RUN["rows"]}
    for (id, runtime, version, layer, length), row in rows.items():
        # Two models whose code travels with them ran next to 5.23.0.
        versions = ("5.24.0", "5.23.0")
        reference = next(
            (rows[key] for one in versions if (key := (id, "transformers", one, layer, length)) in rows), None
        )
        if runtime == "tensorrt-llm" or reference is None or not (row["supported"] and reference["supported"]):
            continue
        found = compare(RUN["configs"][id], length=length, layer_type=layer)
        if (runtime, version) == ("transformers", "5.23.0"):
            version = "5.24.0"
        cell = next(one for one in found if (one.emulation.runtime, one.emulation.version) == (runtime, version))
        ours, theirs = np.array(row["inv_freq"]), np.array(reference["inv_freq"])
        same = np.allclose(ours, theirs, rtol=1e-5, atol=0) and row["attention_factor"] == pytest.approx(
            reference["attention_factor"], rel=1e-5
        )
        # The softmax multiplier was not measured for every runtime.
        alike = cell.effect is None and cell.attention_ratio == pytest.approx(1.0, rel=1e-5)
        assert alike == same, (id, runtime, version, layer, length)


def test_a_missing_softmax_multiplier_is_a_difference():
    """transformers 4.57.6 has no m(s, mscale_all_dim)² for DeepSeek-V2: its scaling is qk_head_dim^-0.5 alone."""
    found = compare(catalog()["deepseek-v2-lite"].config)
    old = next(one for one in found if one.emulation.version == "4.57.6")
    assert old.effect is None
    assert not old.agrees
    assert old.softmax_ratio == pytest.approx(1 / 1.58962617, rel=1e-8)


def test_a_refusal_is_no_agreement():
    cell = cells("roformer-base")["vllm"]
    assert not cell.agrees
    assert "registry" in cell.emulation.reason


def test_different_number_of_rotating_pairs_is_reported():
    config = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 4096}
    found = {one.emulation.runtime: one for one in compare({**config, "partial_rotary_factor": 0.5})}
    assert found["vllm"].pairs_differ
    assert not found["vllm"].agrees
    assert found["llama.cpp"].agrees


def test_largest_ratio_is_symmetric_and_skips_zero_frequencies():
    assert find_max_ratio(np.array([1.0, 0.5, 0.0]), np.array([1.0, 2.0, 0.0])) == (4.0, 1)
    assert find_max_ratio(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert find_max_ratio(np.array([0.0]), np.array([1.0])) is None


@pytest.mark.parametrize("seed", range(8))
def test_rounding_does_not_decide_which_pair_is_worst(seed):
    noise = 1 + 1e-9 * np.random.default_rng(seed).standard_normal(32)
    frequencies = 10000.0 ** (-np.arange(32) / 32)
    divided = frequencies / np.where(np.arange(32) < 23, 1.0, 40.0)
    for ours, theirs in ((frequencies * noise, divided), (divided * noise, frequencies)):
        found = find_max_ratio(ours, theirs)
        assert found.pair == 23
        assert found.ratio == pytest.approx(40, rel=1e-8)


@pytest.mark.parametrize("noise", [-1e-9, 0.0, 1e-9])
def test_rounding_does_not_move_the_position_of_one_radian(noise):
    assert find_far_position(0.5 + noise) == 3  # half a radian per position: exactly one at position 2


@pytest.mark.parametrize("seed", range(8))
def test_rounding_does_not_decide_which_trainer_is_worst(seed):
    whole = compare_trainers(catalog()["qwen3-8b-yarn"].config)
    factors = 1 + 1e-9 * np.random.default_rng(seed).standard_normal(len(whole.rows) * len(whole.rows[0]))
    moved = iter(factors)

    def shake(match):
        factor = next(moved)
        effect = match.effect and match.effect._replace(ratio=match.effect.ratio * factor)
        return dataclasses.replace(match, effect=effect)

    rows = tuple(tuple(shake(match) for match in row) for row in whole.rows)
    assert dataclasses.replace(whole, rows=rows).worst == whole.worst
