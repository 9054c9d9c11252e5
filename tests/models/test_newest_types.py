"""The types that came with transformers 5.24.0; expected values were executed in it."""

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.models.architecture import all_architectures
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import NoRope
from rope_viz.runtimes import emulate

NEWEST = ("apertus1p5", "dory", "exaone", "hy_v4_vl", "lara_mini", "omniasr", "sarvam_mla", "sarvam_moe")


@pytest.mark.parametrize("kind", NEWEST)
def test_new_type_is_refused_by_older_releases(kind):
    assert all_architectures()[kind].since == "5.24.0"
    newest = emulate({"model_type": kind}, runtime="transformers")
    assert (newest.supported, newest.remote, newest.known.how) == (True, "", "executed")
    before = emulate({"model_type": kind}, runtime="transformers", version="5.23.0")
    assert before.reason == f"model type {kind} does not exist in transformers 5.23.0"


@pytest.mark.parametrize("kind", ["inkling2_loop", "omniasr_ctc"])
def test_type_without_rope_says_so(kind):
    with pytest.raises(NoRope):
        from_config({"model_type": kind})


def test_full_layers_of_dory_have_a_larger_base():
    specs = from_config({"model_type": "dory"})
    assert {layer: spec.base for layer, spec in specs.items()} == {"full_attention": 1e7, "sliding_attention": 1e4}


def test_blocks_of_dory_may_be_listed_one_by_one():
    """DoryConfig().to_dict() lists each attention block and each mlp block as a layer of its own."""
    blocks = [block for i in range(36) for block in ("full_attention" if i % 4 == 3 else "sliding_attention", "mlp")]
    config = {"model_type": "dory", "num_hidden_layers": 72, "layer_types": blocks}
    assert {layer: spec.base for layer, spec in from_config(config).items()} == {
        "full_attention": 1e7,
        "sliding_attention": 1e4,
    }
    assert not [one for one in check(config) if one.severity == "error"]


def test_deepseek_yarn_of_sarvam_is_yarn():
    scaling = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}
    scaling |= {"original_max_position_embeddings": 4096}
    keys = {"model_type": "sarvam_mla", "head_dim": 576, "max_position_embeddings": 163840, "rope_theta": 10000.0}
    old = {**keys, "rope_scaling": {**scaling, "type": "deepseek_yarn"}}
    (spec,) = from_config(old).values()
    (usual,) = from_config({**keys, "rope_scaling": {**scaling, "rope_type": "yarn"}}).values()
    np.testing.assert_array_equal(spec.inv_freq(), usual.inv_freq())
    assert (spec.scaling.name, spec.pairs, spec.pairing) == ("yarn", 32, "interleaved")
    assert not [one for one in check(old) if one.severity == "error"]
    # m(40, 1)², as DeepSeek V3 has it.
    assert emulate(old, runtime="transformers").softmax_multiplier == pytest.approx(1.8739, rel=1e-4)


def test_vllm_scales_the_softmax_of_sarvam_by_the_old_name_alone():
    """Read: sarvam.py of vLLM 0.33.0 compares the type with deepseek_yarn; its rotary module was run with both."""
    scaling = {"factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}
    keys = {"model_type": "sarvam_mla", "max_position_embeddings": 163840, "rope_theta": 10000.0}
    found = {
        name: emulate({**keys, "rope_scaling": {**scaling, "type": name}}, runtime="vllm")
        for name in ("deepseek_yarn", "yarn")
    }
    assert {one.known.how for one in found.values()} == {"executed"}
    np.testing.assert_allclose(found["yarn"].inv_freq, found["deepseek_yarn"].inv_freq, rtol=1e-9)
    assert found["deepseek_yarn"].softmax_multiplier == pytest.approx(1.8739, rel=1e-4)
    assert found["yarn"].softmax_multiplier == 1.0


def test_only_the_sliding_layers_of_lara_mini_rotate():
    cycle = ["linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention"]
    config = {"model_type": "lara_mini", "num_hidden_layers": 5, "layer_types": cycle}
    assert ModelConfig.read(config).rotating_layers == [kind == "sliding_attention" for kind in cycle]
