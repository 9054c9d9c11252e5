"""Values that transformers refuses are errors here too, key by key."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.lint import check, repair
from tests.configs import yarn

GOLDENS = Path(__file__).parents[1] / "goldens"
GOLDEN = json.loads((GOLDENS / "refused.json").read_text())


def changed(base, key, value):
    inner = base.get("text_config")
    return {**base, key: value} if inner is None else {"text_config": {**inner, key: value}}


def errors(config):
    return [one for one in check(config) if one.severity == "error"]


@pytest.mark.parametrize("kind", GOLDEN["refused"])
def test_a_value_that_transformers_refuses_is_an_error(kind):
    base = GOLDEN["bases"][kind]
    assert not errors({"model_type": kind, **base})
    for key, values in GOLDEN["refused"][kind].items():
        for value in values:
            assert errors({"model_type": kind, **changed(base, key, value)}), (key, value)


def test_every_text_type_refuses_what_its_class_refuses():
    """154 types, each with nulls and fractions in its place (tests/goldens/make_refused_types.py)."""
    golden = json.loads((GOLDENS / "refused_types.json").read_text())
    # Their sizes stand under other names than those of the small configs.
    for kind in ("codegen", "gptj"):
        del golden["types"][kind]
    assert len(golden["types"]) > 150
    for kind, row in golden["types"].items():
        base = {"model_type": kind, **golden["bases"][row["base"]]}
        assert not errors(base), kind
        for key, values in row["refused"].items():
            for value in values:
                assert errors({**base, key: value}), (kind, key, value)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("falcon", "num_kv_heads", 4096.0),
        ("falcon", "alibi", 0),
        ("starcoder2", "head_dim", 4096.0),
        ("exaone4", "sliding_window", None),
        ("exaone4", "sliding_window_pattern", None),
        ("gpt_oss", "num_local_experts", 4096.0),
        ("phi3", "original_max_position_embeddings", 4096.0),
        ("phi3", "original_max_position_embeddings", None),
        ("qwen3_vl_text", "layer_types", None),
    ],
)
def test_a_key_of_one_type_is_refused_by_name(kind, key, value):
    config = {name: value for name, value in GOLDEN["bases"]["llama"].items() if (kind, name) != ("falcon", "head_dim")}
    assert not errors({"model_type": kind, **config})
    assert [one for one in errors({"model_type": kind, **config, key: value}) if key in one.message]


def test_a_method_without_its_factor_is_an_error_with_a_repair():
    """transformers raises KeyError; some runtimes take the ratio of the lengths, or 1."""
    yarn = {"rope_type": "yarn", "original_max_position_embeddings": 2048}
    for faulty in (yarn, {**yarn, "Factor": 4.0}):
        config = {"model_type": "llama", **GOLDEN["bases"]["llama"], "rope_scaling": faulty}
        assert "transformers-refuses" in [one.rule for one in errors(config)]
        mended = repair(config)
        assert mended["rope_scaling"]["factor"] == 4.0
        assert not errors(mended)


YARN = yarn(4096)


def test_scaling_outside_the_text_part_fails_as_in_transformers():
    """Run on five composite classes: they have no length of their own, and these types ask for it."""
    llava = {"model_type": "llava", **GOLDEN["bases"]["llava"]}
    for key in ("rope_scaling", "rope_parameters"):
        for raising in (YARN, {"rope_type": "linear"}, {**YARN, "rope_type": "llama3"}):
            assert errors({**llava, key: raising})
        assert not errors({**llava, key: {"rope_type": "linear", "factor": 4.0}})
        assert not errors({**llava, key: YARN, "max_position_embeddings": 8192})


def test_flat_scaling_over_layer_types_is_an_error():
    sizes = {key: value for key, value in GOLDEN["bases"]["llama"].items() if key != "rope_theta"}
    linear = {"rope_type": "linear", "factor": 4.0}
    for kind in ("ultrabert", "neomme", "mellum"):
        assert not errors({"model_type": kind, **sizes})
        assert errors({"model_type": kind, **sizes, "rope_scaling": linear})
    nameless = {"model_type": "exaone4_5", "text_config": sizes}
    assert errors(nameless)
    assert not errors(repair(nameless))


def test_a_null_type_and_a_null_base_are_errors_with_a_repair():
    llama = {"model_type": "llama", **GOLDEN["bases"]["llama"]}
    for faulty in (
        {**llama, "rope_theta": None},
        {**llama, "rope_scaling": {"rope_type": None, "type": "linear", "factor": 4.0}},
    ):
        assert errors(faulty)
        assert not errors(repair(faulty))


def test_a_method_that_a_class_does_not_know_is_an_error():
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    for kind in ("phi3", "gemma4_text"):
        assert errors({"model_type": kind, **GOLDEN["bases"]["llama"], **linear})


GPTJ = {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128, "rotary_dim": 8}
NUMBERS = [None, "1", 1.5, True, [1]]
# {type: (its other keys, {key: values that its class refuses})}: AutoConfig.for_model of transformers 5.23.0, run.
OTHER_NAMES = {
    "gptj": (
        GPTJ,
        {
            **dict.fromkeys(("rotary_dim", "n_embd", "n_head", "n_layer", "n_positions"), NUMBERS),
            "n_inner": ["1", 1.5, True, [1]],
        },
    ),
    "codegen": (GPTJ, dict.fromkeys(("rotary_dim", "n_embd", "n_head", "n_layer", "n_positions", "n_ctx"), NUMBERS)),
    "dbrx": ({}, {"d_model": NUMBERS, "n_heads": ["1", 1.5], "n_layers": ["1", 1.5], "max_seq_len": ["1", 1.5]}),
    "jetmoe": ({}, {"kv_channels": NUMBERS}),
    "moonshine": ({}, dict.fromkeys(("decoder_num_attention_heads", "decoder_num_hidden_layers"), NUMBERS)),
    "recurrent_gemma": ({}, {"attention_window_size": NUMBERS}),
    "longcat_flash": ({}, dict.fromkeys(("ffn_hidden_size", "num_layers", "expert_ffn_hidden_size"), NUMBERS)),
    "deepseek_v4": ({}, {"moe_intermediate_size": NUMBERS}),
    "gemma3_text": ({}, {"sliding_window_pattern": [None, "1", [1], 0]}),
    "cohere2": ({}, {"sliding_window_pattern": [None, "1", [1], 0]}),
    "modernbert": ({}, {"local_attention": NUMBERS, "global_attn_every_n_layers": [None, "1", [1], 0]}),
    "llama4_text": (
        {"num_hidden_layers": 4},
        {
            "no_rope_layers": ["1", 1.5, True, 0, [1], [1] * 5, ["1"] * 4, [1.0] * 4, [True] * 4],
            "no_rope_layer_interval": [*NUMBERS, 0],
            "attention_chunk_size": ["1", 1.5, True, [1]],
        },
    ),
    "smollm3": (
        {"num_hidden_layers": 4},
        {"no_rope_layers": ["1", 1.5, True, [1], [], ["1"] * 4], "no_rope_layer_interval": [*NUMBERS, 0]},
    ),
}
# What the same classes take.
TAKEN = [
    ("gptj", {"n_inner": None}),
    ("gemma3_text", {"sliding_window_pattern": 1.5}),
    ("gemma3_text", {"sliding_window_pattern": None, "layer_types": ["full_attention"] * 2, "num_hidden_layers": 2}),
    ("modernbert", {"global_attn_every_n_layers": 1}),
    ("llama4_text", {"no_rope_layers": None}),
    ("llama4_text", {"no_rope_layers": []}),
    ("llama4_text", {"no_rope_layers": [1, 0, 1, 0], "num_hidden_layers": 4}),
    ("llama4_text", {"attention_chunk_size": None}),
    ("smollm3", {"no_rope_layers": [1] * 5, "num_hidden_layers": 4}),
]


@pytest.mark.parametrize("kind", OTHER_NAMES)
def test_size_under_an_alias_is_refused_like_the_usual_key(kind):
    base, refused = OTHER_NAMES[kind]
    assert not errors({"model_type": kind, **base})
    for key, values in refused.items():
        for value in values:
            assert [one for one in errors({"model_type": kind, **base, key: value}) if key in one.message], (key, value)


@pytest.mark.parametrize(("kind", "keys"), TAKEN)
def test_values_that_the_class_accepts_are_no_error(kind, keys):
    assert not errors({"model_type": kind, **keys})


def test_table_of_refused_keys_matches_the_installed_classes():
    transformers = pytest.importorskip("transformers", "5.24.0")

    def takes(kind, keys):
        try:
            transformers.AutoConfig.for_model(kind, **keys)
        except Exception:
            return False
        return True

    for kind, (base, refused) in OTHER_NAMES.items():
        assert takes(kind, base), kind
        for key, values in refused.items():
            assert not any(takes(kind, {**base, key: value}) for value in values), (kind, key)
    assert all(takes(kind, keys) for kind, keys in TAKEN)


@pytest.mark.parametrize("kind", ["gptj", "codegen"])
def test_an_odd_rotary_dim_is_refused_where_pairs_are_neighbours(kind):
    """Run: the first forward raises RuntimeError, 7 against 8."""
    assert not errors({"model_type": kind, **GPTJ})
    assert [one for one in errors({"model_type": kind, **GPTJ, "rotary_dim": 7}) if "rotary_dim" in one.message]
