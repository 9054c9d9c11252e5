"""`assert_rope` names what is wrong with the rotary embedding of a model in memory, and accepts what is right.

The models are built by transformers, whose rotary modules are the reference; the faults are planted in them.
"""

import copy
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import rope_viz
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.shrink_config import shrink_config

pytestmark = pytest.mark.float32_products

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6, "original_max_position_embeddings": 32768}
SIZES = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 99}
CONFIG = {"model_type": "llama", **SIZES, "head_dim": 64, "max_position_embeddings": 131072, "rope_parameters": YARN}
PARTIAL = {
    **{"model_type": "glm4_moe", **SIZES, "head_dim": 128, "max_position_embeddings": 4096},
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
}


def build(config, device="cpu"):
    """The model of a config, with random weights."""
    read = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    auto = transformers.AutoModelForCausalLM
    auto = auto if type(read) in auto._model_mapping else transformers.AutoModel
    with torch.device(device):
        return auto.from_config(read).eval()


def rotary_of(config):
    """The rotary module of a small model of a config."""
    return build(config).model.rotary_emb


def set_values(change):
    """A fault: frequencies that a function makes of the right ones."""

    def plant(model):
        rotary = model.model.rotary_emb
        rotary.inv_freq = change(rotary.inv_freq.clone())

    return plant


def with_nan(values):
    values[3] = float("nan")
    return values


def use_module_of(**changes):
    """A fault: the rotary module of another config."""

    def plant(model):
        rope = {**CONFIG["rope_parameters"], **changes}
        model.model.rotary_emb = rotary_of({**CONFIG, "rope_parameters": rope})

    return plant


def lose_factor(model):
    model.model.rotary_emb.attention_scaling = 1.0


def lose_values(model):
    model.model.rotary_emb.to_empty(device="meta")


FAULTS = {
    "NaN": (set_values(with_nan), r"1 of 32 values are not finite.*Build the rotary modules again"),
    "zeros": (set_values(torch.zeros_like), r"all values are 0, not 1 for pair 0"),
    "bfloat16": (set_values(torch.Tensor.bfloat16), r"rounded to bfloat16 \(pair \d+ is .*Keep them in float32"),
    "bfloat16 and back": (set_values(lambda x: x.bfloat16().float()), r"frequencies rounded to bfloat16"),
    "float16": (set_values(torch.Tensor.half), r"frequencies rounded to float16"),
    "plain": (use_module_of(rope_type="default"), r"scaling ignored \(pair \d+ is .*Build the model from this config"),
    "another base": (use_module_of(rope_theta=2e6), r"frequencies of base 2e\+06 with yarn scaling by 4 \(pair"),
    "a base a little off": (use_module_of(rope_theta=1.001e6), r"frequencies of base 1.001e\+06 with yarn"),
    "class default": (use_module_of(rope_type="default", rope_theta=1e4), r"base lost|frequencies of base 10,000"),
    "factor lost": (lose_factor, r"attention factor ignored \(factor 1, not 1.13863\)"),
    "meta": (lose_values, r"it is on the meta device, without values"),
    "half of the pairs": (set_values(lambda x: x[:16]), r"16 pairs, not 32"),
    "noise": (set_values(lambda x: torch.rand(32, generator=torch.Generator().manual_seed(1))), r"no known mistake"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_named_with_a_remedy(fault):
    plant, message = FAULTS[fault]
    model = build(CONFIG)
    rope_viz.assert_rope(model, CONFIG)
    plant(model)
    with pytest.raises(AssertionError, match=message) as raised:
        rope_viz.assert_rope(model, CONFIG)
    assert "model.rotary_emb.inv_freq" in str(raised.value)


def test_head_size_for_rotary_size_is_named():
    model = build(PARTIAL)
    rope_viz.assert_rope(model, PARTIAL)
    whole = {**PARTIAL, "rope_parameters": {**PARTIAL["rope_parameters"], "partial_rotary_factor": 1.0}}
    model.model.rotary_emb = rotary_of(whole)
    with pytest.raises(AssertionError, match=r"head size for rotary size \(64 pairs, not 32\)"):
        rope_viz.assert_rope(model, PARTIAL)


def test_to_empty_is_refused_until_modules_are_rebuilt():
    model = build(CONFIG, "meta").to_empty(device="cpu")
    rotary = model.model.rotary_emb
    rotary.inv_freq.fill_(1e-30)  # memory that holds anything
    with pytest.raises(AssertionError, match="inv_freq"):
        rope_viz.assert_rope(model, CONFIG)
    rotary.__init__(rotary.config)
    rope_viz.assert_rope(model, CONFIG)


def test_weights_are_never_read():
    """On the meta device they have no values, so reading one would fail."""
    model = build(CONFIG, "meta")
    model.model.rotary_emb = rotary_of(CONFIG)
    assert all(weight.device.type == "meta" for weight in model.parameters())
    rope_viz.assert_rope(model, CONFIG)


def test_one_wrong_layer_of_eighty_is_named():
    model = build({**CONFIG, "num_hidden_layers": 80})
    for layer in model.model.layers:
        layer.self_attn.rotary_emb = type(model.model.rotary_emb)(model.config)
    rope_viz.assert_rope(model, CONFIG)
    wrong = model.model.layers[41].self_attn.rotary_emb
    wrong.inv_freq = wrong.inv_freq * 4
    with pytest.raises(AssertionError) as raised:
        rope_viz.assert_rope(model, CONFIG)
    assert re.findall(r"layer (\d+)", str(raised.value)) == ["41"]


class Tables(torch.nn.Module):
    """A rotary module of the older kind, with tables of cos and sin in place of frequencies."""

    def __init__(self, inv_freq, factor, positions, dtype, join):
        super().__init__()
        angles = np.arange(positions)[:, None] * inv_freq
        cos, sin = (torch.tensor(factor * table(angles)) for table in (np.cos, np.sin))
        if join == "cos_cached":
            self.cos_cached, self.sin_cached = (torch.cat([one, one], dim=-1).to(dtype) for one in (cos, sin))
        elif join == "freqs_cis":
            self.freqs_cis = torch.complex(cos, sin).to(torch.complex64)
        else:
            self.register_buffer("cos_sin_cache", torch.cat([cos, sin], dim=-1).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("join", ["cos_cached", "freqs_cis", "cos_sin_cache"])
def test_tables_of_cos_and_sin_are_compared_at_some_positions(join, dtype):
    spec = rope_viz.from_config(CONFIG)[""]
    right = (spec.inv_freq(), spec.attention_factor())
    rope_viz.assert_rope(Tables(*right, 8192, dtype, join), CONFIG, length=8192)
    for wrong in ((spec.plain_inv_freq, right[1]), (right[0], 1.0)):
        with pytest.raises(AssertionError, match=join):
            rope_viz.assert_rope(Tables(*wrong, 8192, dtype, join), CONFIG, length=8192)
    with pytest.raises(AssertionError, match=r"the table has 8,192 positions, not 131,072.*length="):
        rope_viz.assert_rope(Tables(*right, 8192, dtype, join), CONFIG)


def test_dynamic_frequencies_follow_the_cached_length():
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}
    config = {**CONFIG, "max_position_embeddings": 64, "rope_parameters": rope}
    model = build(config)
    rope_viz.assert_rope(model, config)
    with torch.inference_mode():
        model(input_ids=torch.arange(90)[None])
    assert model.model.rotary_emb.max_seq_len_cached == 90
    rope_viz.assert_rope(model, config)
    model.model.rotary_emb.max_seq_len_cached = 64
    with pytest.raises(AssertionError, match="inv_freq"):
        rope_viz.assert_rope(model, config)


def test_layer_types_are_found_by_their_names():
    config = {
        **{"model_type": "gemma3_text", **SIZES, "num_key_value_heads": 1, "head_dim": 64, "sliding_window": 8},
        **{"max_position_embeddings": 4096, "layer_types": ["sliding_attention", "full_attention"]},
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        },
    }
    model = build(config)
    rope_viz.assert_rope(model, config)
    rotary = model.model.rotary_emb
    rotary.full_attention_inv_freq = rotary.sliding_attention_inv_freq.clone()
    with pytest.raises(AssertionError, match=r"rotary_emb.full_attention_inv_freq: frequencies of base 10,000"):
        rope_viz.assert_rope(model, config)


def test_models_and_configs_without_rope_are_refused():
    with pytest.raises(AssertionError, match="no tensor of frequencies"):
        rope_viz.assert_rope(torch.nn.Linear(2, 2), CONFIG)
    with pytest.raises(ValueError, match="no rotary embedding"):
        rope_viz.assert_rope(torch.nn.Linear(2, 2), {"model_type": "gpt2"})


RANKS = textwrap.dedent(
    """
    import sys
    import torch
    import torch.distributed as distributed
    import rope_viz
    from tests.advice.test_assert_rope import CONFIG

    place, rank, fault = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    distributed.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=2)
    spec = rope_viz.from_config(CONFIG)[""]
    module = torch.nn.Module()
    module.inv_freq = torch.tensor(spec.inv_freq())
    if fault == "wrong" and rank == 1:
        module.inv_freq = torch.tensor(spec.plain_inv_freq)
    config = CONFIG
    if fault == "own config" and rank == 1:
        # Right by the config of this rank, which is not that of the other.
        config = {**CONFIG, "rope_parameters": {**CONFIG["rope_parameters"], "rope_theta": 5e5}}
        module.inv_freq = torch.tensor(rope_viz.from_config(config)[""].inv_freq())
    try:
        rope_viz.assert_rope(module, config)
        print("accepted")
    except AssertionError as error:
        print(error)
    distributed.destroy_process_group()
    """
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "first", "second"),
    [
        ("none", "accepted", "accepted"),
        ("wrong", "rank 1: it found a fault", "scaling ignored"),
        ("own config", "rank 1 holds other values", "rank 1 holds other values"),
    ],
)
def test_all_ranks_raise_if_one_differs(fault, first, second, tmp_path):
    command = [sys.executable, "-c", RANKS, str(tmp_path / "meeting")]
    ranks = [subprocess.Popen([*command, str(rank), fault], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert first in printed[0], printed
    assert second in printed[1], printed


@pytest.mark.slow
def test_models_of_the_list_are_accepted_unless_empty():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    accepted, wrong = set(), []
    for model in catalog().values():
        try:
            config = shrink_config(ModelConfig.read(model.whole, known=model))
        except ValueError:  # its code travels with the weights
            continue
        try:
            rope_viz.assert_rope(build(config), config)
            accepted.add(config["model_type"])
        except AssertionError as error:
            wrong.append(f"{model.id}: {error}")
        with pytest.raises(AssertionError, match="meta device"):
            rope_viz.assert_rope(build(config, "meta"), config)
    assert not wrong, "\n".join(wrong)
    assert len(accepted) >= 35
