"""Every trainer computes what its own code computed when it was executed, and `match` comes to the recorded verdict."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.training.match_training import match_training
from rope_viz.runtimes.trainers import TRAINERS, find_trainer, train
from rope_viz.runtimes.trainers.arguments import short_version
from tests.configs import DEEPSEEK_V3, LLAMA_3_1_8B, QWEN3, llama, llama3, yarn
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "training.json").read_text())
PLACES = {"cos/sin": "cos_sin", "q and k output": "q_k"}
# What a row's call leaves out: the base that axolotl's override hid, and the option under which GPT-NeoX saves its
# buffer, which this row read instead of the angles that it trains with.
LEFT_OUT = {
    "axolotl-0.19.0:override-rope_theta-5e6": {"base_model_rope_theta": 1e6},
    "gpt-neox:default-1e6-bf16-buffer": {"rotary_save_freqs_buffer": True},
}


def name_of(row):
    return row["framework"].lower().replace("(", "").replace(")", "").replace(" ", "-")


def config_of(row):
    """Return a config with the rope parameters and limit of a row, of a type that rotates as the row's head."""
    rope = {"rope_type": "default", **row["hf_equivalent"]}
    rope.pop("comment", None)
    limit, dims = rope.pop("max_position_embeddings", 131072), row["dim"]
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": limit, "rope_parameters": rope}
    if rope["rope_type"] == "longrope":
        # The golden does not list the factors; those of the long list follow from what transformers computed with it.
        plain = rope["rope_theta"] ** (-np.arange(0, dims, 2) / dims)
        long = plain / np.asarray(row["transformers"]["inv_freq"])
        sizes["rope_parameters"] = {**rope, "short_factor": [1.0] * (dims // 2), "long_factor": long.tolist()}
    if row["transformers"]["softmax_scale_multiplier"] != 1.0:
        return {**DEEPSEEK_V3, **sizes, "rope_scaling": None, "rope_theta": None, "qk_rope_head_dim": dims}
    share = rope.get("partial_rotary_factor")
    if share is not None:
        return {**sizes, "model_type": "glm4_moe", "head_dim": max(dims, 128)}
    return {**sizes, "model_type": "llama", "head_dim": dims}


@functools.cache
def matched(place):
    row = GOLDEN["rows"][place]
    return match_training(
        config_of(row),
        name_of(row),
        version=short_version(row["version"]),
        arguments={**row["call"], **LEFT_OUT.get(row["id"], {})},
        length=row["seq_len"],
    )


ROWS = for_each(range(len(GOLDEN["rows"])), lambda place: GOLDEN["rows"][place]["id"])


@ROWS
def test_every_executed_row_is_reproduced(place):
    row, ours = GOLDEN["rows"][place], matched(place).training
    assert ours.supported, ours.reason
    assert ours.inv_freq.shape == np.shape(row["inv_freq"])
    np.testing.assert_allclose(ours.inv_freq, row["inv_freq"], rtol=3e-6)
    assert ours.attention_factor == pytest.approx(row["attention_factor"], rel=4e-6)
    assert ours.softmax_multiplier == pytest.approx(row["softmax_scale_multiplier"], rel=4e-6)
    if row["attention_factor"] != 1.0:
        assert ours.factor_place == PLACES[row["attention_factor_where"].split(" (")[0]]
    elif row["softmax_scale_multiplier"] != 1.0:
        assert ours.factor_place == "softmax"
    else:
        assert ours.factor_place == "none"


@ROWS
def test_every_verdict_against_transformers_is_reproduced(place):
    row, found = GOLDEN["rows"][place], matched(place)
    if row["id"] == "axolotl-0.19.0:override-rope_theta-5e6":
        assert found.effect.ratio == pytest.approx(1 + row["max_rel_diff_inv_freq"], rel=1e-5)
    assert found.same == (row["verdict"] == "same")
    assert found.score_ratio == pytest.approx(row["score_multiplier_ratio_rotated"], rel=4e-6)
    assert found.score_ratio_unrotated == pytest.approx(row["score_multiplier_ratio_unrotated"], rel=4e-6)
    if row["max_rel_diff_inv_freq"] is not None and row["max_rel_diff_inv_freq"] > 3e-6:
        assert found.effect.ratio - 1 == pytest.approx(row["max_rel_diff_inv_freq"], rel=1e-4)


def test_every_row_names_a_known_trainer_and_release():
    for row in GOLDEN["rows"]:
        trainer, release = find_trainer(name_of(row), short_version(row["version"]))
        assert trainer.label == row["framework"]
        assert short_version(release) == short_version(row["version"])


@pytest.mark.parametrize("name", TRAINERS)
def test_a_plain_model_is_trained_as_every_server_serves_it(name):
    if name == "mbridge":
        assert "KeyError" in train(llama(), name).reason
        return
    ours = train(llama(), name)
    np.testing.assert_allclose(ours.inv_freq, 10000.0 ** (-np.arange(0, 128, 2) / 128), rtol=1e-12)
    assert (ours.attention_factor, ours.softmax_multiplier, ours.factor_place) == (1.0, 1.0, "none")


def test_options_may_be_written_as_on_a_command_line():
    ours = train(llama(), "megatron-core", arguments={"--rotary-base": 500000, "--use-rope-scaling": True})
    theirs = train(llama(), "megatron-core", arguments={"rotary_base": 500000, "rope_scaling": True})
    np.testing.assert_array_equal(ours.inv_freq, theirs.inv_freq)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rotary_base": "many"}, "rotary_base must be a number"),
        ({"rotary_base": -1}, "rotary_base must be greater than 0"),
        ({"kv_channels": 7}, "must be even"),
        ({"scaling_factor": float("nan")}, "must be finite"),
    ],
)
def test_a_wrong_option_is_named(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        train(llama(), "megatron-core", arguments=arguments)


def test_unknown_trainers_and_versions_list_the_known_ones():
    with pytest.raises(ValueError, match=r"trainer must be one of megatron-core, .*got 'megatron-cor'"):
        train(llama(), "megatron-cor")
    with pytest.raises(ValueError, match=r"version of torchtitan must be one of 0\.3\.0, 0\.2\.2@b5bcd76c, got '9'"):
        train(llama(), "torchtitan", version="9")


SCALED = {**llama(max_position_embeddings=131072), "rope_theta": 500000.0, "rope_scaling": llama3(8192, 32.0)}
LINEAR = {**QWEN3, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
QWEN3_YARN = {**QWEN3, "rope_scaling": yarn(32768)}
REPORTS = [
    # (report, config, trainer, options, largest ratio of frequencies, ratio of scores)
    ("Megatron-LM#6305", SCALED, "megatron-lm", None, 4.0, 1.0),
    ("swiss-ai/Megatron-LM#80", SCALED, "megatron-lm", {"use_rope_scaling": True, "rope_scaling_factor": 32}, 4.0, 1.0),
    ("Megatron-Bridge#5097", {**llama(), "rope_scaling": LINEAR["rope_scaling"]}, "megatron-bridge", None, None, 1.0),
    ("Megatron-Bridge dropped linear", LINEAR, "megatron-bridge", None, 4.0, 1.0),
    ("verl#6654", QWEN3_YARN, "verl", None, 4.0, 0.771321),
    ("unsloth#7028", LLAMA_3_1_8B, "unsloth=before-7028", {"max_seq_length": 262144}, 4 * 50 ** (63 / 64), 1.0),
    ("ms-swift max_model_len", LLAMA_3_1_8B, "ms-swift", {"max_model_len": 32768}, 2.0, 1.0),
    ("litgpt#2202", QWEN3_YARN, "litgpt", None, 4.0, 0.771321),
]


@pytest.mark.parametrize(
    ("report", "config", "trainer", "options", "ratio", "score"), REPORTS, ids=lambda one: str(one)[:20]
)
def test_a_public_report_is_reproduced(report, config, trainer, options, ratio, score):
    name, _, version = trainer.partition("=")
    found = match_training(config, name, version=version or None, arguments=options)
    assert (found.effect and found.effect.ratio) == (ratio if ratio is None else pytest.approx(ratio, rel=1e-3))
    assert found.score_ratio == pytest.approx(score, rel=1e-5)
