"""The check finds each fault, and nothing in configs without faults."""

import copy
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.advice.lint import RULES, SEVERITIES, check, repair
from rope_viz.models import model_config
from rope_viz.models.model_config import from_config
from rope_viz.runtimes import emulate
from tests.configs import (
    DEEPSEEK_V3,
    FOUR_NUMBERS_OF_LLAMA_3,
    GPT_OSS_20B,
    LLAMA_3_1_8B,
    QWEN3_8B,
    QWEN_7B,
    llama,
    with_scaling,
    yarn,
)
from tests.offenders import for_each

CATALOG = Path(__file__).parents[2] / "rope_viz" / "models" / "catalog"

LLAMA = llama(max_position_embeddings=32768, rope_theta=5e6)
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 8192}
YARN = yarn(8192)
LISTS = {"short_factor": [1.0] * 64, "long_factor": [4.0] * 64}
LONGROPE = {"rope_type": "longrope", **LISTS}
GEMMA3 = {
    "model_type": "gemma3_text",
    "hidden_size": 1024,
    "num_attention_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "rope_theta": 1e6,
}
MODERNBERT = {"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12, "global_rope_theta": 1e6}
QWEN_VL = {
    "model_type": "qwen3_vl_text",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "head_dim": 128,
    "max_position_embeddings": 32768,
    "rope_theta": 5e6,
}
MROPE = {"rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True}
# The sizes of DeepSeek-R1-0528-Qwen3-8B, whose attn_factor SGLang multiplies by and transformers does not know.
R1 = {**LLAMA, "model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6}
STOCK_YARN = yarn(32768)
HUNYUAN = {**QWEN_VL, "model_type": "hunyuan_vl_text"}
GGUF_YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 8192}


def gguf(**more):
    """The header of a GGUF file of Qwen3, as it is sent from the browser."""
    sizes = {"block_count": 4, "context_length": 32768, "embedding_length": 1024, "attention.head_count": 8}
    return {"gguf": {"keys": {"general.architecture": "qwen3"} | {f"qwen3.{k}": v for k, v in (sizes | more).items()}}}


def scaled(base=LLAMA, /, **knobs):
    return {**base, "rope_scaling": knobs}


# (rule, a config with the fault, one without)
CASES = [
    ("missing-original", scaled(rope_type="yarn", factor=4.0), scaled(**YARN)),
    ("factor-mismatch", scaled(**{**YARN, "factor": 8.0}), scaled(**YARN)),
    ("swapped-betas", scaled(**YARN, beta_fast=1.0, beta_slow=32.0), scaled(**YARN, beta_fast=32.0, beta_slow=1.0)),
    (
        "swapped-betas",
        scaled(**LLAMA3, low_freq_factor=4.0, high_freq_factor=1.0),
        scaled(**LLAMA3, low_freq_factor=1.0, high_freq_factor=4.0),
    ),
    ("integer-factor", scaled(rope_type="linear", factor=4), scaled(rope_type="linear", factor=4.0)),
    ("nested-truncate", scaled(GEMMA3, **YARN, truncate=False), scaled(**YARN, truncate=False)),
    ("type-keys", scaled(**{**YARN, "type": "linear"}), scaled(**{**YARN, "type": "yarn"})),
    ("type-keys", scaled(type="linear", factor=4.0), scaled(rope_type="linear", factor=4.0)),
    (
        "scaled-sliding",
        scaled(MODERNBERT, rope_type="linear", factor=4.0),
        scaled(GEMMA3, rope_type="linear", factor=4.0),
    ),
    (
        "scaled-window",
        scaled({**LLAMA, "model_type": "cohere2"}, **YARN),
        {**LLAMA, "model_type": "cohere2"},
    ),
    (
        "scaled-window",
        scaled({**LLAMA, "model_type": "llama4_text", "attention_chunk_size": 4096}, **YARN),
        scaled(**YARN),
    ),
    (
        "base-not-read",
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "attn_config": {"rope_theta": 500000}},
        {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "attn_config": {"rope_theta": 5e5}, "rope_theta": 5e5},
    ),
    ("head-dim-derived", {**LLAMA, "head_dim": 64}, {**LLAMA, "head_dim": 128}),
    (
        "null-head-dim",
        scaled({**LLAMA, "model_type": "mixtral"}, **YARN),
        scaled({**LLAMA, "model_type": "mixtral", "head_dim": 128}, **YARN),
    ),
    (
        "partial-ignored",
        {**LLAMA, "partial_rotary_factor": 0.5},
        {**LLAMA, "model_type": "stablelm", "partial_rotary_factor": 0.5},
    ),
    ("mscale-keys", scaled(**YARN, mscale=1.0, mscale_all_dim=1.0), scaled(**YARN)),
    ("mscale-keys", scaled(**YARN, mscale=1.5), scaled(**YARN, mscale=1.0)),
    ("attention-factor", scaled(**YARN, attention_factor=1.0), scaled(**YARN, attention_factor=0.1 * np.log(4.0) + 1)),
    (
        "longrope-lists",
        scaled(**{**LONGROPE, "long_factor": [4.0] * 63}, original_max_position_embeddings=8192),
        scaled(**LONGROPE, original_max_position_embeddings=8192),
    ),
    (
        "longrope-switch",
        scaled(**LONGROPE, original_max_position_embeddings=8192),
        scaled(**{**YARN}),
    ),
    (
        "two-originals",
        scaled({**LLAMA, "original_max_position_embeddings": 4096}, **LONGROPE, original_max_position_embeddings=8192),
        scaled(**YARN),
    ),
    ("dynamic-cache", scaled(rope_type="dynamic", factor=2.0), scaled(rope_type="linear", factor=2.0)),
    ("base-too-small", {**LLAMA, "rope_theta": 10000.0}, LLAMA),
    ("unknown-keys", scaled(**YARN, beta_fst=16), scaled(**YARN, beta_fast=16)),
    ("unknown-keys", scaled(**YARN, low_freq_factor=1.0), scaled(**YARN)),
    ("unlisted-type", {**LLAMA, "model_type": "nobody_knows"}, LLAMA),
    ("unlisted-type", {"model_type": "my_vlm", "text_config": LLAMA}, {"model_type": "llava", "text_config": LLAMA}),
    ("two-codes", {"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192}, LLAMA),
    ("class-head-dim", {**LLAMA, "model_type": "gemma"}, {**LLAMA, "model_type": "gemma", "head_dim": 256}),
    ("dual-chunk-attention", {**LLAMA, "dual_chunk_attention_config": {"chunk_size": 262144}}, LLAMA),
    ("some-layers", {**LLAMA, "model_type": "smollm3"}, LLAMA),
    ("learned-frequencies", {"model_type": "mistral_large4_text"}, LLAMA),
    ("megatron-scaling", {**LLAMA, "use_rope_scaling": True}, {**LLAMA, "use_rope_scaling": False}),
    ("some-layers", {**LLAMA, "model_type": "gemma4_text"}, LLAMA),
    ("sections-do-not-add-up", scaled(QWEN_VL, **{**MROPE, "mrope_section": [16, 16, 16]}), scaled(QWEN_VL, **MROPE)),
    (
        "sections-do-not-add-up",
        scaled({**QWEN_VL, "model_type": "qwen2_vl_text"}, rope_type="default", mrope_section=[16, 24, 23]),
        scaled({**QWEN_VL, "model_type": "qwen2_vl_text"}, rope_type="default", mrope_section=[16, 24, 24]),
    ),
    (
        "interleaving-by-another-key",
        scaled(QWEN_VL, rope_type="default", mrope_section=[24, 20, 20]),
        scaled(QWEN_VL, **MROPE),
    ),
    (
        "interleaving-by-another-key",
        scaled({**QWEN_VL, "model_type": "qwen2_vl_text"}, **{**MROPE, "mrope_section": [16, 24, 24]}),
        scaled({**QWEN_VL, "model_type": "qwen2_vl_text"}, rope_type="default", mrope_section=[16, 24, 24]),
    ),
    (
        "pairs-that-stand-still",
        scaled(QWEN_VL, **MROPE),
        scaled(QWEN_VL, **{**MROPE, "mrope_section": [22, 21, 21]}),
    ),
    (
        "no-rotation",
        scaled(HUNYUAN, rope_type="default", mrope_section=[16, 16, 16, 16]),
        scaled(QWEN_VL, **MROPE),
    ),
    ("runtimes-differ", scaled(R1, **YARN, attn_factor=0.8782488562869419), scaled(R1, **YARN)),
    ("runtimes-differ", {**R1, "rope_theta": None, "rope_parameters": {"rope_theta": 1e6}}, R1),
    ("trained-length", {**QWEN3_8B, "max_position_embeddings": 131072}, QWEN3_8B),
    (
        "trained-length",
        scaled(QWEN3_8B, **{**YARN, "original_max_position_embeddings": 40960}),
        scaled(QWEN3_8B, **STOCK_YARN),
    ),
    ("fixed-ntk", scaled(rope_type="ntk", factor=2.0), scaled(rope_type="linear", factor=2.0)),
    ("remote-dynamic-ntk", {**QWEN_7B, "use_dynamic_ntk": True}, QWEN_7B),
    ("not-as-shipped", with_scaling(LLAMA_3_1_8B, factor=4.0), LLAMA_3_1_8B),
    ("not-as-shipped", {**DEEPSEEK_V3, "rope_scaling": None}, DEEPSEEK_V3),
    ("not-as-shipped", with_scaling(GPT_OSS_20B, truncate=None), GPT_OSS_20B),
    ("missing-base", {key: value for key, value in LLAMA_3_1_8B.items() if key != "rope_theta"}, LLAMA_3_1_8B),
    ("other-base", {**LLAMA_3_1_8B, "rope_theta": 10_000.0}, LLAMA_3_1_8B),
    ("derived-length", scaled(rope_type="linear", factor=2.0), scaled(**YARN)),
    ("misplaced-keys", {**LLAMA, "rope_type": "yarn", "rope_scaling": {"factor": 4.0}}, scaled(**YARN)),
    ("keys-of-other-code", {**LLAMA, "rotary_scaling_factor": 2}, LLAMA),
    (
        "lists-longer-than-layers",
        {**LLAMA, "num_hidden_layers": 2, "no_rope_layers": [1, 1, 1]},
        {**LLAMA, "num_hidden_layers": 2, "no_rope_layers": [1, 1]},
    ),
    ("trained-scaling-gone", {**DEEPSEEK_V3, "rope_scaling": None}, DEEPSEEK_V3),
    ("trained-scaling-gone", {**DEEPSEEK_V3, "rope_scaling": None, "rope_theta": 40_000.0}, DEEPSEEK_V3),
    ("transformers-refuses", scaled(rope_type="yarn", original_max_position_embeddings=8192), scaled(**YARN)),
    ("type-spelling", scaled(**{**YARN, "rope_type": "YaRN"}), scaled(**YARN)),
    ("misspelled-keys", {**LLAMA, "rope_scalling": YARN}, scaled(**YARN)),
    ("long-names", {**LLAMA, "architectures": ["A" * 101]}, {**LLAMA, "architectures": ["A" * 100]}),
    ("factor-mismatch", {**scaled(**YARN), "max_position_embeddings": 8192}, scaled(**YARN)),
    ("unknown-keys", scaled(rope_type="default", factor=4.0), scaled(rope_type="default", factor=1.0)),
    ("not-computable", {**LLAMA, "rope_theta": "big"}, LLAMA),
    ("not-computable", scaled(rope_type="linear"), scaled(rope_type="linear", factor=4.0)),
    ("unread-gguf-keys", gguf(**{"attention.tomorrow": 3}), gguf()),
    ("gguf-differs", gguf(**GGUF_YARN, **{"rope.scaling.yarn_beta_fast": 64.0}), gguf(**GGUF_YARN)),
]


@pytest.mark.parametrize(("rule", "faulty", "sound"), CASES, ids=[case[0] for case in CASES])
def test_fault_is_found_only_when_present(rule, faulty, sound):
    assert rule in {finding.rule for finding in check(faulty)}
    assert rule not in {finding.rule for finding in check(sound)}


def test_a_raised_limit_is_repaired_as_the_maker_documented():
    raised = {**QWEN3_8B, "max_position_embeddings": 131_072}
    assert repair(raised)["rope_scaling"] == STOCK_YARN
    new = {key: value for key, value in raised.items() if key not in ("rope_scaling", "rope_theta")}
    new["rope_parameters"] = {"rope_type": "default", "rope_theta": 1_000_000}
    assert from_config(repair(new)) == from_config(repair(raised))
    for changes in ({"vocab_size": 152_000}, {"_name_or_path": "acme/support-bot"}):
        found = check({**raised, **changes})
        assert [one.severity for one in found if one.rule == "trained-length"] == ["warning"]


def test_raised_limit_is_reported_only_for_catalog_models():
    assert "trained-length" not in {
        one.rule for one in check({**FOUR_NUMBERS_OF_LLAMA_3, "max_position_embeddings": 131_072})
    }


def test_every_rule_has_a_case_and_a_source():
    names = {rule.__name__.replace("_", "-") for rule in RULES}
    apart = {rule.__name__.replace("_", "-") for rule in RULES if rule.__module__.endswith(".contradictions")}
    # Those have their cases in test_contradictions.py.
    assert (names - apart) | {"not-computable"} == {case[0] for case in CASES}
    assert all("Source:" in (inspect.getdoc(rule) or "") for rule in RULES)


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3.1-8b", "qwen3-8b-yarn", "codellama-7b", "glm-4-9b-0414"])
def test_a_clean_config_gives_nothing(name):
    assert check(json.loads((CATALOG / f"{name}.json").read_text())) == []


@for_each(sorted(CATALOG.glob("*.json")), lambda path: path.stem)
def test_no_published_config_is_called_an_error(path):
    assert [finding for finding in check(json.loads(path.read_text())) if finding.severity == "error"] == []


def test_qwen3_yarn_without_original_length_is_off_by_17_percent():
    config = json.loads((CATALOG / "qwen3-8b.json").read_text())
    faulty = {**config, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
    finding = check(faulty)[0]
    assert (finding.rule, finding.severity, finding.key) == ("missing-original", "error", "rope_scaling")
    assert finding.effect.pair == 40
    assert finding.effect.ratio == pytest.approx(1.1765, abs=5e-5)
    assert finding.repaired["rope_scaling"]["original_max_position_embeddings"] == 32768
    repaired = repair(faulty)
    assert repaired["max_position_embeddings"] == 131072
    published = json.loads((CATALOG / "qwen3-8b-yarn.json").read_text())
    ours, theirs = from_config(repaired)[""], from_config(published)[""]
    np.testing.assert_array_equal(ours.inv_freq(), theirs.inv_freq())
    assert check(repaired) == []


@pytest.mark.parametrize(("rule", "faulty", "sound"), CASES, ids=[case[0] for case in CASES])
def test_repair_removes_its_finding_and_leaves_the_input_alone(rule, faulty, sound):
    before = copy.deepcopy(faulty)
    for finding in check(faulty):
        if finding.rule == rule and finding.repaired is not None:
            assert rule not in {other.rule for other in check(finding.repaired) if other.key == finding.key}
    assert faulty == before
    assert repair(repair(faulty)) == repair(faulty)


def test_repairs_reach_into_a_wrapped_language_model():
    text = scaled(rope_type="linear", factor=4)
    config = {"model_type": "llava", "text_config": text}
    finding = next(finding for finding in check(config) if finding.rule == "integer-factor")
    assert finding.key == "text_config.rope_scaling.factor"
    assert isinstance(repair(config)["text_config"]["rope_scaling"]["factor"], float)


def test_a_repaired_integer_factor_runs_where_it_crashed():
    faulty = scaled(rope_type="linear", factor=4)
    assert not emulate(faulty, runtime="vllm").supported
    assert emulate(repair(faulty), runtime="vllm").supported


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "gpt2", "n_embd": 768},
        {"model_type": "bloom", "rope_theta": "nonsense"},
        {"model_type": "falcon", "alibi": True, "rope_scaling": {"rope_type": "yarn"}},
        {"model_type": "blip-2", "text_config": {"model_type": "opt"}},
    ],
)
def test_model_without_rope_gets_one_note_and_no_verdict(config):
    (finding,) = check(config)
    assert (finding.rule, finding.severity) == ("no-rope", "note")
    assert "has no rotary embedding: " in finding.message
    assert repair(config) == config


def test_findings_are_sorted_by_severity():
    found = check({**scaled(rope_type="yarn", factor=4.0, beta_fst=1), "head_dim": 64})
    ranks = [SEVERITIES.index(finding.severity) for finding in found]
    assert len(set(ranks)) == 3
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("value", [None, 3, "config", [1], True])
def test_config_that_is_no_object_raises_a_clear_error(value):
    with pytest.raises(ValueError, match="a config must be an object"):
        check(value)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([0, 1, 2, 64, 128, 4096, 32768, 10**400, 1e308, -1e308, 5e-324]),
    st.floats(),
    st.sampled_from(["", "yarn", "linear", "dynamic", "llama3", "longrope", "proportional", "default", "su", "x", "4"]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
ROPE_KEYS = (
    "rope_type type factor original_max_position_embeddings beta_fast beta_slow mscale mscale_all_dim attention_factor "
    "truncate low_freq_factor high_freq_factor short_factor long_factor partial_rotary_factor rope_theta alpha "
    "full_attention sliding_attention"
)
TOP_KEYS = (
    "hidden_size num_attention_heads head_dim max_position_embeddings rope_theta partial_rotary_factor layer_types "
    "original_max_position_embeddings sliding_window kv_lora_rank qk_rope_head_dim per_layer_config rotary_dim"
)
MODELS = (
    "llama phi3 gemma3_text modernbert deepseek_v3 gpt_neox gptj olmo3 mixtral stablelm internlm2 gpt_oss llava foo"
)
ROPE = st.dictionaries(st.sampled_from(ROPE_KEYS.split()), ANYTHING | st.just(8192), max_size=6)


@st.composite
def configs(draw):
    config = draw(st.sampled_from([{}, dict(LLAMA), dict(GEMMA3)]))
    config = {**config, "model_type": draw(st.sampled_from(MODELS.split()) | ANYTHING)}
    config |= draw(st.dictionaries(st.sampled_from(TOP_KEYS.split()), ANYTHING, max_size=3))
    for key in draw(st.sets(st.sampled_from(["rope_scaling", "rope_parameters"]), max_size=2)):
        config[key] = draw(ROPE | ANYTHING)
    return {"text_config": config} if draw(st.booleans()) and draw(st.booleans()) else config


# HYPOTHESIS_PROFILE=many tries 10,000.
@given(configs() | ANYTHING)
def test_no_json_value_raises_anything_but_value_error(value):
    for ask in (check, repair, lambda config: emulate(config, runtime="llama.cpp", length=9000)):
        assert "\n" not in sentence(ask, value)


def sentence(ask, value):
    """What it raises as `ValueError`, empty where it answers; any other exception goes through."""
    try:
        ask(value)
    except ValueError as error:
        return str(error) or "no sentence\n"
    return ""


def test_deep_nesting_raises_a_clear_error():
    config = {}
    for _ in range(100_000):
        config = {"text_config": config}
    assert "nested too deeply" in sentence(check, config)
    # The interpreter would free it recursively.
    while config:
        config = config.pop("text_config", None)


def test_attn_factor_that_one_server_reads_is_found_and_repaired():
    config = scaled(R1, **YARN, attn_factor=0.8782488562869419)
    found = next(finding for finding in check(config) if finding.rule == "runtimes-differ")
    assert found.severity == "warning"
    assert "SGLang 0.5.23: cos and sin × 0.8782" in found.message
    assert "The cause is attn_factor, which they read and transformers does not" in found.message
    assert repair(config)["rope_scaling"] == YARN


def test_base_unseen_by_transformers_4_is_found_and_repaired():
    config = {key: value for key, value in R1.items() if key != "rope_theta"}
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e6}
    found = next(finding for finding in check(config) if finding.rule == "runtimes-differ")
    assert found.severity == "warning"
    assert "transformers 4.57.6: frequencies off by up to ×93.06, at pair 63" in found.message
    assert repair(config)["rope_theta"] == 1e6
    assert not [one for one in check(repair(config)) if one.rule == "runtimes-differ"]


@pytest.mark.parametrize("spelled", ["YaRN", "YARN", "Yarn"])
def test_misspelled_type_is_read_as_the_intended_one(spelled):
    config = scaled(**{**YARN, "rope_type": spelled})
    assert from_config(config) == from_config(scaled(**YARN))
    found = next(finding for finding in check(config) if finding.rule == "type-spelling")
    assert f'No runtime reads "{spelled}". The spelling that they read is yarn.' in found.message
    assert repair(config)["rope_scaling"] == YARN


def test_messages_of_the_check_are_well_punctuated():
    for path in CATALOG.glob("*.json"):
        for finding in check(json.loads(path.read_text())):
            for blot in ("..", ".;", ".,", "; ;", " ."):
                assert blot not in finding.message, finding.message


def test_length_slightly_below_the_factor_is_only_a_note():
    rope = {"type": "yarn", "mrope_section": [16, 24, 24], "factor": 4, "original_max_position_embeddings": 32768}
    config = {"model_type": "qwen2_5_vl", "hidden_size": 8192, "num_attention_heads": 64, "rope_scaling": rope}
    found = check({**config, "max_position_embeddings": 128000})
    assert [one.severity for one in found if one.rule == "factor-mismatch"] == ["note"]
    found = check({**config, "max_position_embeddings": 65536})
    assert [one.severity for one in found if one.rule == "factor-mismatch"] == ["warning"]


@pytest.mark.parametrize("key", ["interleaved", "xdrope_section"])
def test_harmless_keys_of_published_configs_are_no_warning(key):
    rope = {"rope_type": "linear", "factor": 2.0, key: True}
    assert "unknown-keys" not in [one.rule for one in check(llama(rope_scaling=rope))]


@pytest.mark.parametrize("config", [LLAMA, GEMMA3, QWEN3_8B], ids=["llama", "gemma3", "qwen3"])
def test_a_check_finds_the_text_part_of_a_config_once(monkeypatch, config):
    read = []
    find = model_config.find_text_part
    monkeypatch.setattr(model_config, "find_text_part", lambda one: read.append(one) or find(one))
    assert not [one for one in check(config) if one.severity != "note"]
    assert len(read) == 1
