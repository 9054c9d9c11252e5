"""Contradicting keys are named, and so are keys that are never read."""

import pytest

from rope_viz.advice.lint import check, repair
from rope_viz.models.catalog import catalog
from tests.configs import llama, llama3, yarn
from tests.offenders import for_each

LLAMA = llama(rope_theta=500000.0)
YARN = yarn(2048)
LLAMA3 = llama3(2048)
QWEN2_VL = llama(model_type="qwen2_vl")

LLAVA = {"model_type": "llava", "text_config": LLAMA, "max_position_embeddings": 8192}


def with_sections(section):
    return {**QWEN2_VL, "rope_scaling": {"type": "mrope", "mrope_section": section}}


GEMMA3 = {"model_type": "gemma3_text", "hidden_size": 2048, "num_attention_heads": 8, "head_dim": 256}
BOTH = ["full_attention", "sliding_attention"]

# (rule, severity, a config with the fault, the same without)
CASES = [
    (
        *("numbers-as-text", "error"),
        {**LLAMA, "rope_scaling": {**YARN, "factor": "4"}},
        {**LLAMA, "rope_scaling": YARN},
    ),
    (
        *("numbers-as-text", "error"),
        {"model_type": "llava", "text_config": {**LLAMA, "rope_theta": "5e5"}},
        {"model_type": "llava", "text_config": LLAMA},
    ),
    (
        *("two-rope-dicts", "warning"),
        {**LLAMA, "rope_scaling": YARN, "rope_parameters": {"rope_type": "linear", "factor": 2.0}},
        {**LLAMA, "rope_scaling": YARN, "rope_parameters": {**YARN, "rope_theta": 500000.0}},
    ),
    (
        *("two-bases", "warning"),
        {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
    ),
    (
        *("unread-rope-keys", "error"),
        {"model_type": "llava", "rope_scaling": YARN, "text_config": LLAMA},
        {"model_type": "llava", "text_config": {**LLAMA, "rope_scaling": YARN}},
    ),
    (
        *("unread-rope-keys", "warning"),
        {"model_type": "llava", "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "text_config": LLAMA},
        {"model_type": "llava", "text_config": LLAMA},
    ),
    (
        *("sizes-outside", "warning"),
        {"model_type": "step3p7", "hidden_size": 5120, "num_attention_heads": 40, "text_config": {"rope_theta": 1e6}},
        {"model_type": "step3p7", "text_config": {"hidden_size": 5120, "num_attention_heads": 40}, "rope_theta": 1e4},
    ),
    (
        *("part-without-type", "error"),
        {"model_type": "exaone4_5", "text_config": {key: LLAMA[key] for key in LLAMA if key != "model_type"}},
        {"model_type": "exaone4_5", "text_config": {**LLAMA, "model_type": "exaone4"}},
    ),
    (
        *("layer-types-unknown", "error"),
        {**GEMMA3, "layer_types": ["full_attention", "slidding_attention"]},
        {**GEMMA3, "layer_types": BOTH},
    ),
    (
        *("layer-types-unknown", "error"),
        {**GEMMA3, "layer_types": BOTH, "num_hidden_layers": 5},
        {**GEMMA3, "layer_types": BOTH, "num_hidden_layers": 2},
    ),
    (
        *("heads-do-not-divide", "warning"),
        {**LLAMA, "model_type": "qwen2", "hidden_size": 4100},
        {**LLAMA, "model_type": "qwen2", "hidden_size": 4100, "head_dim": 128},
    ),
    (
        *("out-of-range", "warning"),
        {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 0.5}},
        {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 1.0}},
    ),
    (
        *("out-of-range", "error"),
        {**LLAMA, "rope_scaling": {**YARN, "attention_factor": 0.0}},
        {**LLAMA, "rope_scaling": {**YARN, "attention_factor": 0.5}},
    ),
    (
        *("out-of-range", "error"),
        {**LLAMA, "rope_parameters": {**YARN, "rope_theta": None}},
        {**LLAMA, "rope_parameters": YARN},
    ),
    (
        *("out-of-range", "warning"),
        {**LLAMA, "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 16384}},
        {**LLAMA, "rope_scaling": LLAMA3},
    ),
    # With lengths of its own this level is taken, until a base stands there too.
    *(
        (*("unread-rope-keys", severity), {**LLAVA, "rope_scaling": YARN, **keys}, {**LLAVA, **keys})
        for severity, keys in (
            ("warning", {}),
            ("error", {"rope_theta": 1e4}),
            ("warning", {"rope_theta": 1e4, "model_type": "vibevoice_asr"}),
        )
    ),
    *(
        ("sections-do-not-add-up", "error", with_sections(section), with_sections([16, 24, 24]))
        for section in ([None], ["a"], "x", [16, 24.5, 24], [16, 24, 25])
    ),
    ("heads-do-not-divide", "error", {**LLAMA, "num_key_value_heads": 7}, {**LLAMA, "num_key_value_heads": 8}),
]


@pytest.mark.parametrize(("rule", "severity", "faulty", "sound"), CASES, ids=[case[0] for case in CASES])
def test_contradiction_is_reported_only_when_present(rule, severity, faulty, sound):
    assert [one.severity for one in check(faulty) if one.rule == rule] == [severity]
    assert [one for one in check(sound) if one.rule == rule] == []


def test_numbers_as_text_are_repaired_to_what_they_say():
    text = {**LLAMA, "rope_theta": "500000.0", "rope_scaling": {**YARN, "factor": "4.0"}}
    number = {**LLAMA, "rope_scaling": {**YARN, "factor": 4.0}}
    assert repair(text) == repair(number)
    assert repair({**LLAMA, "rope_theta": "four"})["rope_theta"] == "four"


OLD_NAMES = [
    ("llama", {"type": "mrope", "mrope_section": [16, 24, 24]}, True),
    ("qwen2_vl", {"type": "mrope", "mrope_section": [16, 24, 24]}, False),
    ("qwen3", {"type": "none"}, True),
    ("mistral", {"rope_type": "su", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64}, True),
]


@pytest.mark.parametrize(("kind", "rope", "refused"), OLD_NAMES, ids=[str(case[0]) for case in OLD_NAMES])
def test_old_type_name_is_an_error_unless_the_class_renames_it(kind, rope, refused):
    config = {**LLAMA, "model_type": kind, "rope_scaling": rope}
    assert ("transformers-refuses" in [one.rule for one in check(config) if one.severity == "error"]) == refused


@for_each(list(catalog()))
def test_no_published_config_contradicts_itself(id):
    ours = {case[0] for case in CASES}
    assert [one.rule for one in check(catalog()[id].config) if one.rule in ours] == []


@pytest.mark.parametrize("kind", ["aya_vision", "cohere2_vision", "granite4_vision"])
def test_wrapper_named_like_its_tower_has_clean_defaults(kind):
    assert [one for one in check({"model_type": kind}) if one.severity != "note"] == []


def test_megatrons_switch_of_llama_3_scaling_is_named():
    # megatron-core, rotary_pos_embedding.py: factor 8 and its constants, executed (tests/goldens/training.json).
    sizes = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_query_groups": 8}
    arguments = {**sizes, "seq_length": 8192, "max_position_embeddings": 131072, "rotary_base": 500000}
    arguments |= {"position_embedding_type": "rope", "use_rope_scaling": True, "rope_scaling_factor": 8.0}
    found = {one.rule: one for one in check(arguments)}["megatron-scaling"]
    assert (found.severity, found.key) == ("note", "use_rope_scaling")
    assert "original length 8192" in found.message
    # In a config.json nothing reads the switch: no class of transformers 5.23.0 has the name.
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072}
    assert {one.rule: one for one in check({**config, "use_rope_scaling": True})}[
        "megatron-scaling"
    ].severity == "warning"
    assert "megatron-scaling" not in {one.rule for one in check({**config, "use_rope_scaling": False})}
