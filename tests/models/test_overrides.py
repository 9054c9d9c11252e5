"""Overrides are merged as transformers, vLLM and SGLang do it (tests/goldens/make_overrides.py ran their code)."""

import json
from pathlib import Path

import pytest

from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.overrides import merge_overrides
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "overrides.json").read_text())
CASES = {f"{row['config']}, {row['override']}, {row['loader']}": row for row in GOLDEN["rows"]}
# What the loader leaves without a base: vLLM and SGLang fall back to one, transformers raises TypeError.
BASES = {"vllm": {"qwen3": 1e6}, "sglang": {}}


@for_each(CASES)
def test_overrides_are_merged_as_the_loader_does(row):
    override = GOLDEN["overrides"][row["override"]]
    merged = merge_overrides(GOLDEN["configs"][row["config"]], override, row["loader"])
    rope, nests = row.get("rope_parameters"), row["config"] == "gemma3"
    if "error" in row:
        # Without a wrapper, text_config is a plain attribute that RoPE does not read.
        assert merged.refusal or merged.config["text_config"] == override["text_config"]
        return
    if merged.refusal:
        lost = nests and not {"full_attention", "sliding_attention"} <= set(rope or {})
        wrong = not nests and any(isinstance(part, dict) for part in (rope or {}).values())
        layers = rope.values() if nests and rope else [rope or {}]
        no_base = any(isinstance(part, dict) and part.get("rope_theta") is None for part in layers)
        assert lost or wrong or no_base
        return
    read = ModelConfig.read(merged.config)
    assert read.limit == row["max_position_embeddings"]
    if row["config"] == "wrapper" and row["loader"] == "transformers":
        assert read.rope_parameters[""] == rope
        return
    text = merged.config
    for key in read.path:
        text = text[key]
    base = BASES.get(row["loader"], {}).get(row["config"], 1e4)
    rope = rope or {}
    assert text["rope_parameters"] == (rope if nests else {"rope_theta": base, **rope})


def test_a_lost_base_is_refused_or_noted():
    merged = merge_overrides(GOLDEN["configs"]["llama3"], {"rope_scaling": {"rope_type": "linear"}}, "transformers")
    assert "500,000" in merged.refusal
    found = merge_overrides(GOLDEN["configs"]["llama3"], GOLDEN["overrides"]["parameters"], "vllm")
    assert not found.refusal
    assert "takes 10,000 in place of the file's 500,000" in found.notes[0]


def test_a_base_outside_the_rope_dict_changes_nothing():
    for loader in ("transformers", "vllm", "sglang"):
        merged = merge_overrides(GOLDEN["configs"]["qwen3"], {"rope_theta": 5e6}, loader)
        assert "changes nothing" in merged.notes[0]
        assert ModelConfig.read(merged.config).specs[""].base == 1e6


@for_each([id for id in sorted(catalog()) if not read_catalog_model(id).problems])
def test_without_overrides_a_config_stays_the_same(id):
    config = read_catalog_model(id)
    assert ModelConfig.read(merge_overrides(config, {}, "sglang").config).specs == config.specs


def test_other_loaders_take_no_overrides():
    with pytest.raises(ValueError, match="overrides are for transformers, vllm, sglang"):
        merge_overrides(GOLDEN["configs"]["qwen3"], {}, "llama.cpp")
