"""from_config reads both generations of keys, names what is wrong, and to_config writes what it reads."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rope_viz.embedding.scaling import METHODS, DynamicNtk, Linear, LongRope, NtkAware, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import to_config
from tests.configs import llama, yarn

LLAMA = llama(max_position_embeddings=4096)
YARN = yarn(1024)


def read(**keys: Any) -> RopeSpec:
    return from_config({**LLAMA, **keys})[""]


def test_old_and_new_keys_give_the_same_spec() -> None:
    new = read(rope_parameters={**YARN, "rope_theta": 5e5})
    assert read(rope_scaling=YARN, rope_theta=5e5) == new
    legacy = {"type" if key == "rope_type" else key: value for key, value in YARN.items()}
    assert read(rope_scaling=legacy, rope_theta=5e5) == new
    assert (new.context, new.target, new.base) == (1024, 4096, 5e5)


def test_missing_original_length_defaults_to_the_limit() -> None:
    assert read(rope_scaling={"rope_type": "yarn", "factor": 4.0}).context == 4096


def test_the_original_length_at_the_top_wins() -> None:
    assert read(rope_scaling=YARN, original_max_position_embeddings=2048).context == 2048


def test_yarn_without_factor_takes_the_ratio_of_the_lengths() -> None:
    assert read(rope_scaling={**YARN, "factor": None}).scaling == Yarn(factor=4.0)


def test_partial_rotary_applies_to_scaled_and_few_plain_types() -> None:
    half = {"partial_rotary_factor": 0.5, "rope_theta": 1e4}
    assert read(rope_parameters={"rope_type": "default", **half}).rotary_dim == 128
    assert read(rope_parameters={"rope_type": "linear", "factor": 2.0, **half}).rotary_dim == 64
    assert from_config({**LLAMA, "model_type": "glm4", "partial_rotary_factor": 0.25})[""].rotary_dim == 32


def test_truncate_false_is_ignored_where_parameters_are_nested() -> None:
    nested = {"full_attention": {**YARN, "truncate": False}, "sliding_attention": {"rope_type": "default"}}
    full = from_config({"model_type": "gemma3_text", "rope_parameters": nested})["full_attention"]
    assert isinstance(full.scaling, Yarn)
    assert full.scaling.truncate
    flat = read(rope_parameters={**YARN, "truncate": False}).scaling
    assert isinstance(flat, Yarn)
    assert not flat.truncate


def test_gemma_3_scales_its_full_layers_only() -> None:
    config = {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    specs = from_config({"model_type": "gemma3", "text_config": config})
    assert specs["full_attention"].scaling == Linear(factor=8.0)
    assert specs["full_attention"].base == 1e6
    assert specs["sliding_attention"].scaling.name == "none"
    assert specs["sliding_attention"].base == 1e4


def test_gemma_4_has_larger_heads_in_its_full_layers() -> None:
    specs = from_config({"model_type": "gemma4_text"})
    full, sliding = specs["full_attention"], specs["sliding_attention"]
    assert (full.head_dim, sliding.head_dim) == (512, 256)
    assert full.scaling == Proportional(share=0.25, factor=1.0)


def test_layers_without_position_are_left_out() -> None:
    nested = {"full_attention": None, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    assert list(from_config({"model_type": "beam", "rope_parameters": nested})) == ["sliding_attention"]


def test_remote_code_of_chatglm_and_internlm_is_known() -> None:
    glm = from_config({"model_type": "chatglm", "kv_channels": 64, "seq_length": 8192, "rope_ratio": 500})[""]
    assert (glm.head_dim, glm.rotary_dim, glm.base, glm.context) == (64, 32, 5e6, 8192)
    scaling = {"type": "dynamic", "factor": 2.0}
    assert from_config({**LLAMA, "model_type": "internlm2", "rope_scaling": scaling})[""].scaling == DynamicNtk(2.0)


def test_hunyuan_alpha_is_ntk() -> None:
    config = {**LLAMA, "model_type": "hunyuan_v1_dense", "rope_scaling": {"type": "dynamic", "alpha": 1000.0}}
    assert from_config(config)[""].scaling == NtkAware(factor=1000.0)


def test_an_unknown_architecture_is_read_by_the_general_rules() -> None:
    config = {**LLAMA, "model_type": "of tomorrow", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
    spec = from_config(config)[""]
    assert (spec.base, spec.rotary_dim, spec.context) == (1e6, 64, 4096)
    assert from_config({"text_config": config})[""] == spec
    nested = {"a": {"rope_theta": 1e4}, "b": {"rope_theta": 1e6}}
    assert {key: spec.base for key, spec in from_config({**config, "rope_parameters": nested}).items()} == {
        "a": 1e4,
        "b": 1e6,
    }


def test_about_key_is_ignored() -> None:
    assert read(_about={"rope_theta": "x"}, rope_theta=1e4) == read(rope_theta=1e4)


LISTS = {"rope_type": "longrope", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"rope_theta": "ten thousand"}, "rope_theta must be a number"),
    ({"rope_theta": True}, "rope_theta must be a number"),
    ({"rope_theta": float("nan")}, "rope_theta must be finite"),
    ({"rope_theta": 10**400}, "rope_theta is too large"),
    ({"rope_theta": -1}, "rope_theta must be greater than 1"),
    ({"hidden_size": 0}, "hidden_size must be at least 1"),
    ({"num_attention_heads": 1.5}, "num_attention_heads must be a whole number"),
    ({"max_position_embeddings": -4}, "max_position_embeddings must be at least 1"),
    ({"head_dim": 7}, "head_dim must be even"),
    ({"model_type": "gemma3_text", "layer_types": "full"}, "layer_types must be a list of names"),
    ({"rope_scaling": "yarn"}, "rope_scaling must be an object"),
    ({"rope_parameters": [1]}, "rope_parameters must be an object"),
    ({"rope_scaling": {"rope_type": "ntk-2", "factor": 2.0}}, "rope_type must be one of default, linear"),
    ({"rope_scaling": {"rope_type": ["yarn"]}}, "rope_type must be a name"),
    ({"rope_scaling": {"rope_type": "linear"}}, "factor is missing"),
    ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor must be at least"),
    ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor is missing"),
    ({"rope_scaling": {**YARN, "truncate": "no"}}, "truncate must be true or false"),
    ({"rope_scaling": {**YARN, "partial_rotary_factor": 2}}, "partial_rotary_factor must be at most 1"),
    ({"rope_scaling": {**YARN, "partial_rotary_factor": 0.001}}, "partial_rotary_factor must rotate at least 2"),
    ({"rope_scaling": {**LISTS, "short_factor": None}}, "short_factor must be a list"),
    ({"rope_scaling": {**LISTS, "long_factor": [2.0] * 63 + ["x"]}}, "long_factor entries must be a number"),
    ({"rope_scaling": {**LISTS, "long_factor": [2.0]}}, "long_factor must have one number per pair, 64 of them, got 1"),
    ({"model_type": 3}, "model_type must be a name"),
    ({"model_type": "llava", "text_config": 3}, "text_config must be an object"),
]


@pytest.mark.parametrize(("keys", "message"), BAD, ids=[message for _, message in BAD])
def test_a_wrong_key_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**keys)


@pytest.mark.parametrize("missing", ["hidden_size", "num_attention_heads", "max_position_embeddings"])
def test_a_missing_key_of_an_unknown_architecture_is_named(missing: str) -> None:
    config = {key: value for key, value in LLAMA.items() if key not in (missing, "model_type")}
    with pytest.raises(ValueError, match=f"{missing} is missing"):
        from_config(config)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from([10**400, -(10**400), 2**63, 0, 1, 2, 3, -1, 1e308, 5e-324, 1e-9, "yarn", "default"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
TOP = (
    *("model_type", "hidden_size", "num_attention_heads", "head_dim", "max_position_embeddings", "rope_theta"),
    *("rope_scaling", "rope_parameters", "partial_rotary_factor", "rotary_pct", "rotary_emb_base", "rotary_dim"),
    *("rope_ratio", "rope_local_base_freq", "qk_rope_head_dim", "qk_nope_head_dim", "global_head_dim", "kv_channels"),
    *("n_embd", "n_head", "n_positions", "compress_rope_theta", "global_rope_theta", "local_rope_theta", "text_config"),
    *("layer_types", "per_layer_config", "rope_interleave", "original_max_position_embeddings", "vlm_config"),
    *("thinker_config", "decoder", "swa_head_dim", "swa_qk_nope_head_dim", "use_dsa", "partial_rotary_factors"),
)
INSIDE = (
    *("rope_type", "type", "rope_theta", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    *("attention_factor", "short_factor", "long_factor", "low_freq_factor", "high_freq_factor", "alpha"),
    *("original_max_position_embeddings", "partial_rotary_factor", "short_mscale", "max_position_embeddings"),
    *("full_attention", "sliding_attention", "main", "compress"),
)
TYPES = ("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional", "su", "mrope", "ntk")


@st.composite
def hostile_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A known architecture with arbitrary JSON under the keys that are read."""
    config = draw(st.dictionaries(st.sampled_from(TOP), JSON, max_size=5))
    params = draw(st.dictionaries(st.sampled_from(INSIDE), st.floats(0.1, 50) | JSON, max_size=6))
    params["rope_type"] = draw(st.sampled_from(TYPES))
    if draw(st.booleans()):
        params = {layer: params for layer in ("full_attention", "sliding_attention", "main", "compress")}
    config[draw(st.sampled_from(("rope_parameters", "rope_scaling")))] = params
    config["model_type"] = draw(st.sampled_from(sorted(all_architectures())))
    return config


@st.composite
def mutated_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A real config with a few values replaced."""
    config = copy.deepcopy(dict(catalog()[draw(st.sampled_from(sorted(catalog())))].config))
    for key in draw(st.lists(st.sampled_from(TOP + INSIDE), max_size=4)):
        inner = config.get("rope_scaling", config.get("rope_parameters"))
        target = inner if key in INSIDE and isinstance(inner, dict) else config
        target[key] = draw(JSON)
    return config


def read_or_refused(config: Any) -> None:
    """The config gives finite numbers or one short sentence."""
    refused = ""
    specs: dict[str, RopeSpec] = {}
    try:
        specs = from_config(config)
    except ValueError as error:
        refused = str(error)
    assert bool(specs) != bool(refused)
    assert len(refused) < 300
    assert "\n" not in refused
    for spec in specs.values():
        for length in (None, 1, spec.context + 1, 2**30):
            assert np.isfinite(spec.inv_freq(length)).all()
            assert math.isfinite(spec.attention_factor(length))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(JSON | hostile_configs() | mutated_configs())
def test_any_json_is_read_or_raises_a_clear_error(config: Any) -> None:
    read_or_refused(config)


def test_deep_nesting_is_refused_or_read() -> None:
    deep: Any = {}
    for _ in range(50_000):
        deep = {"text_config": deep}
    for config in (deep, {"model_type": "llava", "text_config": deep}, {**LLAMA, "rope_parameters": deep}):
        read_or_refused(config)
    read_or_refused({**LLAMA, "rope_theta": deep})


SPECS = [
    RopeSpec(128, base=5e5, context=8192, target=131072, scaling=METHODS[name]())
    for name in ("none", "linear", "dynamic", "yarn", "llama3", "proportional")
] + [
    RopeSpec(100, 29, 1e4, 4096, 4096, Linear(2.0)),
    RopeSpec(96, 48, 1e4, 4096, 16384, Yarn(4.0, 16.0, 2.0, False, 1.5, 0.7, 0.9), "interleaved"),
    RopeSpec(8, 8, 1e4, 4096, 16384, LongRope((1.0, 1.1, 1.2, 1.3), (1.0, 2.0, 3.0, 4.0))),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.scaling.name}-{spec.rotary_dim}")
def test_spec_survives_a_config_round_trip(spec: RopeSpec) -> None:
    assert from_config(json.loads(json.dumps(to_config(spec)))) == {"": spec}


@given(st.integers(2, 2048), st.integers(1, 2048))
def test_every_rotated_share_survives_a_round_trip(half: int, share: int) -> None:
    spec = RopeSpec(2 * half, min(2 * share, 2 * half))
    assert from_config(to_config(spec))[""] == spec


def test_an_attention_weight_is_written_as_the_factor_it_gives() -> None:
    spec = RopeSpec(128, base=1e6, context=8192, target=32768, scaling=Yarn(4.0, attention_weight=0.07))
    params = to_config(spec)["rope_parameters"]
    assert params["attention_factor"] == pytest.approx(0.07 * math.log(4.0) + 1.0)
    assert "attention_weight" not in params


def test_telechat3_yarn_is_read_with_its_weight() -> None:
    # vllm/transformers_utils/config.py of 0.33.0, executed by tests/goldens/make_telechat3.py.
    for row in json.loads((Path(__file__).parents[1] / "goldens" / "telechat3.json").read_text())["rows"]:
        spec = from_config(row["config"])[""]
        assert spec.attention_factor() == pytest.approx(row["attention_factor"], rel=1e-7)
        np.testing.assert_allclose(spec.inv_freq(), row["inv_freq"], rtol=2e-6)


def test_longrope_defaults_are_written_as_lists() -> None:
    spec = RopeSpec(64, context=4096, target=16384, scaling=LongRope())
    found = from_config(to_config(spec))[""]
    np.testing.assert_array_equal(found.inv_freq(4096), spec.inv_freq(4096))
    np.testing.assert_array_equal(found.inv_freq(4097), spec.inv_freq(4097))


@pytest.mark.parametrize("name", [name for name, kind in METHODS.items() if not kind.rope_type])
def test_methods_that_transformers_lacks_cannot_be_written(name: str) -> None:
    with pytest.raises(ValueError, match=f"transformers has no scaling method '{name}'"):
        to_config(RopeSpec(128, scaling=METHODS[name]()))
