"""The options of `export --to` give the intended embedding when the trainer reads them, or a reason why not."""

import json
import math

import numpy as np
import pytest

from rope_viz.advice.training.trainer_export import WRITERS, export_training
from rope_viz.cli.main import main
from rope_viz.cli.match import parse_flags
from rope_viz.models.model_config import from_config
from rope_viz.runtimes.trainers import train
from tests.configs import DEEPSEEK_V3, LLAMA_3_1_8B, QWEN3, llama, llama3, yarn

QWEN3_YARN = {**QWEN3, "rope_scaling": yarn(32768), "max_position_embeddings": 131072}
CONFIGS = {"llama-3.1-8b": LLAMA_3_1_8B, "qwen3-8b-yarn": QWEN3_YARN, "deepseek-v3": DEEPSEEK_V3}
YARN_FACTOR = 0.1 * math.log(4.0) + 1.0


def spec_of(config):
    return next(iter(from_config(config).values()))


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_options_give_the_intended_embedding(name, target):
    spec = spec_of(CONFIGS[name])
    found = export_training(spec, to=target, config=CONFIGS[name])
    assert found.faithful == ((name, target) != ("qwen3-8b-yarn", "torchtitan")), found.reason
    np.testing.assert_allclose(found.training.inv_freq, spec.inv_freq(), rtol=1e-9)
    score = found.training.attention_factor**2 * found.training.softmax_multiplier
    deepseek = (0.1 * math.log(40.0) + 1.0) ** 2
    intended = {"llama-3.1-8b": 1.0, "qwen3-8b-yarn": YARN_FACTOR**2, "deepseek-v3": deepseek}[name]
    assert (score == pytest.approx(intended)) == found.faithful
    assert found.loses


def test_torchtitan_says_that_yarn_has_no_factor():
    found = export_training(spec_of(QWEN3_YARN), to="torchtitan", config=QWEN3_YARN)
    assert found.reason.startswith("scores are x0.7713 of the intended ones: YaRN has no factor on cos and sin")


def test_megatron_says_that_its_factor_is_always_8():
    config = {**LLAMA_3_1_8B, "head_dim": 64, "rope_scaling": llama3(8192, 32.0)}
    found = export_training(spec_of(config), to="megatron", config=config)
    assert not found.faithful
    assert "pair 18 is off by x4: --rope-scaling-factor is parsed and does not reach the model" in found.reason


def test_an_own_attention_factor_becomes_an_mscale_of_megatron():
    config = {**QWEN3_YARN, "rope_scaling": yarn(32768, attention_factor=1.25)}
    found = export_training(spec_of(config), to="megatron", config=config)
    assert found.faithful, found.reason
    assert found.options["mscale"] == pytest.approx(0.25 / (0.1 * math.log(4.0)))
    assert found.training.attention_factor == pytest.approx(1.25)


def test_the_printed_flags_are_read_back(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN3_YARN))
    assert main(["export", str(path), "--to", "megatron"]) == 0
    printed = capsys.readouterr()
    ours = train(QWEN3_YARN, "megatron-lm", arguments=parse_flags(printed.out))
    np.testing.assert_allclose(ours.inv_freq, spec_of(QWEN3_YARN).inv_freq(), rtol=1e-9)
    assert ours.attention_factor == pytest.approx(YARN_FACTOR)
    assert "Megatron-Bridge copies that of the hub" in printed.err


def test_a_method_that_a_trainer_lacks_is_refused_with_a_reason(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**llama(), "rope_scaling": {"rope_type": "linear", "factor": 4.0}}))
    assert main(["export", str(path), "--to", "torchtitan", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["reason"] == "it has no linear scaling: only none, llama and yarn"


def test_adjacent_pairs_are_a_flag_of_megatron():
    config = {**llama(), "model_type": "glm4", "partial_rotary_factor": 0.5}
    found = export_training(spec_of(config), to="megatron", config=config)
    assert found.faithful
    assert "--rotary-interleaved" in found.text


def test_trainer_that_rotates_other_pairs_is_named():
    config = {**llama(), "model_type": "cohere"}
    found = export_training(spec_of(config), to="automodel", config=config)
    assert (found.faithful, found.reason) == (False, "other pairs of channels rotate, so permute q and k")
