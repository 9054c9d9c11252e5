"""Models without rotary embedding are recognised, layer by layer where only some rotate."""

import json
from pathlib import Path

import pytest

from rope_viz.models import TEXTS
from rope_viz.models.architecture import all_architectures, find_architecture
from rope_viz.models.layer_patterns import describe_rotated_shares, describe_rotating_layers, find_rotating_layers
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import NoRope, reasons
from tests.configs import llama
from tests.offenders import for_each

GOLDENS = Path(__file__).parents[1] / "goldens"
RUN = json.loads((GOLDENS / "turning.json").read_text())["rows"]
LLAMA = llama(max_position_embeddings=4096)


# Wrappers whose language model has no rotary embedding unless the config names another.
WRAPPERS = sorted(
    name
    for name, record in all_architectures().items()
    if record.text is not None
    and (
        record.text.type in reasons()
        or (record.text.type in ("gemma4_text", "lasr_encoder", "paligemma") and not record.since)
    )
)


@for_each(RUN, lambda row: row["config"]["model_type"])
def test_rotating_layers_match_executed_models(row):
    # A null head stands where the class has no such key.
    config = {key: value for key, value in row["config"].items() if (key, value) != ("head_dim", None)}
    seen = row["turning"]
    if not any(seen):
        with pytest.raises(NoRope, match="has no rotary embedding: "):
            from_config(config)
        return
    fields = ModelConfig.read(config).fields
    if all(seen):
        assert describe_rotating_layers(fields) == ""
    else:
        assert find_rotating_layers(fields) == seen
        assert f"{sum(seen)} of {len(seen)}" in describe_rotating_layers(fields)


@for_each(sorted(reasons()))
def test_every_type_without_rope_has_a_reason(kind):
    assert kind not in all_architectures()
    with pytest.raises(NoRope) as caught:
        from_config({**LLAMA, "model_type": kind, "text_config": {}})
    assert str(caught.value).split(": ")[1] in TEXTS.group("no_rope.why").values()


SWITCHED = [
    {"model_type": "granitemoehybrid", "position_embedding_type": "nope"},
    {"model_type": "granitemoehybrid", "position_embedding_type": None},
    {"model_type": "falcon", "alibi": True},
    {"model_type": "esm", "position_embedding_type": "absolute"},
    {"model_type": "zamba2", "use_mem_rope": False},
    {"model_type": "olmo_hybrid", "rope_theta": None},
    {"model_type": "olmo_hybrid", "rope_parameters": {"rope_type": "default", "rope_theta": None}},
    {"model_type": "nobody_knows", "position_embedding_type": "alibi"},
    {"model_type": "RefinedWeb", "alibi": True},
    {"model_type": "nobody_knows", "attn_config": {"alibi": True}},
    {"model_type": "nobody_knows", "rotary_pct": 0.0},
    {"model_type": "mpt", "attn_config": {"alibi": True, "rope": False}},
]


@pytest.mark.parametrize("config", SWITCHED)
def test_config_that_disables_rope_has_none(config):
    with pytest.raises(NoRope):
        from_config({**LLAMA, **config})


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "granitemoehybrid", "position_embedding_type": "rope"},
        {"model_type": "falcon", "alibi": False},
        {"model_type": "esm", "position_embedding_type": "rotary"},
        {"model_type": "zamba2", "use_mem_rope": True},
        {"model_type": "olmo_hybrid", "rope_theta": 500000.0},
        {"model_type": "llama", "position_embedding_type": "absolute", "alibi": True},
        {"model_type": "nobody_knows", "position_embedding_type": "rope"},
        {"model_type": "mpt", "attn_config": {"alibi": False, "rope": True, "rope_theta": 10000}},
    ],
)
def test_config_that_leaves_rope_enabled_is_read(config):
    assert from_config({**LLAMA, **config})


@for_each(WRAPPERS)
def test_wrapper_is_judged_by_its_text_part(kind):
    key = find_architecture(kind).text.path[0]
    assert from_config({"model_type": kind, key: LLAMA})[""].head_dim == 128
    if find_architecture(kind).text.type in ("gemma4_text", "lasr_encoder", "paligemma"):
        assert from_config({"model_type": kind})
    else:
        with pytest.raises(NoRope, match=find_architecture(kind).text.type):
            from_config({"model_type": kind})


def test_rotated_share_of_gemma_4_is_described():
    assert "0.25" in describe_rotated_shares(ModelConfig.read({"model_type": "gemma4"}).fields)
    assert describe_rotated_shares(ModelConfig.read(LLAMA).fields) == ""


def test_exaone_4_rotates_windowed_layers_or_all_without_window():
    exaone = {"model_type": "exaone4", "num_hidden_layers": 30}
    # Without layer_types its model divides by a pattern of 0 layers.
    everywhere = {"sliding_window": None, "layer_types": ["full_attention"] * 30}
    assert describe_rotating_layers(ModelConfig.read({**exaone, **everywhere}).fields) == ""
    assert "23 of 30" in describe_rotating_layers(ModelConfig.read(exaone).fields)
    assert "the full-attention layers have no positions" in describe_rotating_layers(
        ModelConfig.read({"model_type": "exaone4"}).fields
    )


JINA = {"hidden_size": 768, "num_attention_heads": 12, "max_position_embeddings": 8192}
TOLD = [
    ({"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_head": 12, "n_positions": 1024}, "gpt2 has no rotary"),
    ({"architectures": ["OPTForCausalLM"], **JINA}, "opt has no rotary"),
    # The code that travels with Florence 2 calls its BART so.
    (
        {"model_type": "florence2", "text_config": {"model_type": "florence2_language"}},
        "florence2_language has no rotary",
    ),
    ({"d_model": 2560, "n_layer": 64, "ssm_cfg": {}}, "this model has no rotary"),
    ({"model_type": "bert", "position_embedding_type": "alibi", **JINA}, r"position_embedding_type is 'alibi'"),
]


@pytest.mark.parametrize(("config", "said"), TOLD, ids=str)
def test_config_without_type_can_declare_no_rope(config, said):
    with pytest.raises(NoRope, match=said):
        from_config(config)


def test_config_can_enable_rope_for_a_type_without_it():
    config = {"model_type": "xlm-roberta", "position_embedding_type": "rotary", "rotary_emb_base": 20000.0, **JINA}
    assert from_config(config)[""].base == 20000.0
    assert list(from_config({"architectures": ["LlamaForCausalLM"], **JINA})) == [""]
