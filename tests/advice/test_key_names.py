"""Misspelled keys are named, and no key of a real config or class is called a misspelling."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.lint import check, repair
from rope_viz.advice.lint.rules import misspelled_keys
from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from tests.configs import llama, yarn

ROOT = Path(__file__).parents[1]
LLAMA = llama(max_position_embeddings=32768, rope_theta=5e6)
PLAIN = {key: value for key, value in LLAMA.items() if key != "rope_theta"}
TYPOS = [
    ("rope_scalling", "rope_scaling", yarn(8192)),
    ("ropeScaling", "rope_scaling", yarn(8192)),
    ("rope-scaling", "rope_scaling", yarn(8192)),
    ("rope_scaling\u200b", "rope_scaling", yarn(8192)),
    ("\ufeffrope_theta", "rope_theta", 1e6),
    ("rope_thetha", "rope_theta", 1e6),
    ("rope_freq_base", "rope_theta", 1e6),
    ("maxPositionEmbeddings", "max_position_embeddings", 65536),
    ("max_position_embedding", "max_position_embeddings", 65536),
    ("num_key_value_head", "num_key_value_heads", 8),
]


def find_misspelled(config):
    return [one for one in check(config, without=("runtimes-differ",)) if one.rule == "misspelled-keys"]


def list_alarms(config):
    try:
        return [one.message for one in misspelled_keys(ModelConfig.read(config))]
    except ValueError:
        return []  # no text RoPE


@pytest.mark.parametrize(("key", "meant", "value"), TYPOS, ids=[ascii(row[0]) for row in TYPOS])
def test_a_misspelled_key_is_named_with_what_is_meant(key, meant, value):
    (found,) = find_misspelled({**PLAIN, key: value})
    assert found.severity == "warning"
    assert f"Unknown key {key!a}" in found.message
    assert f"Did you mean '{meant}'?" in found.message
    assert ("invisible character U+" in found.message) == (not key.isprintable())


def test_a_misspelled_key_next_to_the_right_one_is_named_too():
    assert [one.key for one in find_misspelled({**LLAMA, "rope_thetha": 1e6})] == ["rope_thetha"]


def test_a_misspelled_key_of_a_wrapper_and_of_its_text_part():
    config = {"model_type": "llava", "text_config": {**LLAMA, "ropeTheta": 1e6}, "rope_scalling": yarn(8192)}
    assert {one.key for one in find_misspelled(config)} == {"rope_scalling", "text_config.ropeTheta"}


def test_the_repair_renames_a_misspelled_key():
    config = {**PLAIN, "rope_thetha": 1e6}
    assert repair(config)["rope_theta"] == 1e6
    assert "rope_thetha" not in repair(config)


def find_configs(part):
    if isinstance(part, dict):
        if "model_type" in part:
            yield part
        for inner in part.values():
            yield from find_configs(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from find_configs(inner)


FILES = [*(ROOT / "cases").rglob("*.json"), *(ROOT / "goldens").glob("*.json")]


def test_no_key_of_a_known_config_is_called_misspelled():
    configs = [dict(model.config) for model in catalog().values()]
    configs += [{"model_type": kind, **record.defaults} for kind, record in all_architectures().items()]
    for path in FILES:
        configs += find_configs(json.loads(path.read_text(encoding="utf-8")))
    assert len(configs) > 1000
    keys_seen, found = set(), []
    for config in configs:
        keys = (config.get("model_type"), tuple(sorted(map(str, config))))
        if keys not in keys_seen:
            keys_seen.add(keys)
            found += list_alarms(config)
    assert found == []


def test_no_key_of_a_class_of_transformers_is_called_misspelled():
    transformers = pytest.importorskip("transformers")
    known, found = 0, []
    for kind in transformers.CONFIG_MAPPING:
        try:
            config = transformers.CONFIG_MAPPING[kind]().to_dict()
        except Exception:
            continue  # a class without defaults for all of its parts
        known += 1
        found += [(kind, text) for text in list_alarms(config)]
    assert known > 400
    assert found == []


def test_a_factor_next_to_the_default_type_is_named():
    config = {**LLAMA, "rope_scaling": {"rope_type": "default", "factor": 4.0}}
    (found,) = (one for one in check(config) if one.rule == "unknown-keys")
    assert (found.severity, found.key) == ("warning", "rope_scaling.factor")
    assert "rope_type is default, which scales nothing" in found.message


def test_a_limit_that_was_not_raised_is_named():
    """The rope_scaling of Qwen2.5's model card, whose max_position_embeddings is 32,768.

    Source: vLLM 0.33.0, config/model.py, no longer multiplies the length of YaRN.
    """
    config = {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1e6}
    rope = {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}
    config |= {"max_position_embeddings": 32768, "rope_scaling": rope}
    found = [one for one in check(config) if one.rule == "factor-mismatch"]
    assert [one.severity for one in found] == ["warning"]
    assert "max_position_embeddings was not raised to 131,072" in found[0].message
    assert not [one for one in check({**config, "max_position_embeddings": 131072}) if one.rule == "factor-mismatch"]
