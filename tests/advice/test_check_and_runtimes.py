"""`check` and `runtimes` never contradict each other: who reads a key, refuses or differs, and which layers rotate."""

import json
import math
import re
from pathlib import Path

import pytest

from rope_viz.advice.lint import check
from rope_viz.models.catalog import catalog
from rope_viz.models.layer_patterns import resolve_layer_types
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import compare
from rope_viz.runtimes.longest_length import find_derived_lengths
from rope_viz.runtimes.releases import RELEASES
from tests.configs import DEEPSEEK_V3, LLAMA_3_1_8B, QWEN3_8B, llama, yarn
from tests.offenders import for_each

CASES = Path(__file__).parents[1] / "cases"
NAMES = {runtime.name: name for name, runtime in RELEASES.items()}
SHARED = {"model_type": "bailing_hybrid", "hidden_size": 4096, "num_attention_heads": 32, "kv_lora_rank": 512}


def read_cases():
    """Return {name: config} of the files under tests/cases that are configs."""
    found = {path.relative_to(CASES).as_posix(): json.loads(path.read_text("utf-8")) for path in CASES.rglob("*.json")}
    return {name: config for name, config in found.items() if isinstance(config, dict) and "model_type" in config}


MADE = {
    "partial share that one class ignores": llama(partial_rotary_factor=0.5, rope_theta=500_000.0),
    "partial share without a file in vLLM": {**SHARED, "partial_rotary_factor": 0.5, "max_position_embeddings": 8192},
    "attention factor": {**QWEN3_8B, "rope_scaling": yarn(32_768, attention_factor=1.2)},
    "attention factor, code of transformers": {
        **{"model_type": "helium", "hidden_size": 2560, "num_attention_heads": 20, "max_position_embeddings": 16_384},
        "rope_parameters": {**yarn(4096, attention_factor=1.2), "rope_theta": 100_000.0},
    },
    "integer factor": llama(rope_scaling={"rope_type": "linear", "factor": 2}),
    "linear": llama(rope_scaling={"rope_type": "linear", "factor": 2.0}),
    "no factor": llama(rope_scaling={"rope_type": "yarn", "original_max_position_embeddings": 2048}),
    "no scaling": {**DEEPSEEK_V3, "rope_scaling": None},
    "llama 3.1": LLAMA_3_1_8B,
}
CONFIGS = {**{name: model.whole for name, model in catalog().items()}, **read_cases(), **MADE}


def find_layers(model):
    return [layer or None for layer in model.specs]


def agree_on_attention(model, found):
    """The users that a warning names have the factor of the file; the others that are computed have not."""
    layer = next((name for name in find_layers(model) if name and f".{name}." in f".{found.key}."), None)
    explicit = float(re.match(r"attention_factor (\S+) is used", found.message)[1])
    named = {NAMES[name] for name in re.findall(r"transformers|vLLM|SGLang", found.message.partition(" only")[0])}
    for name in ("transformers", "vllm", "sglang"):
        factor = emulate(model, name, layer_type=layer).attention_factor
        assert (name in named) == (factor is not None and math.isclose(factor, explicit, rel_tol=1e-5)), name


def agree_on_share(model, found):
    counts = {name: emulate(model, name).inv_freq for name in ("transformers", "vllm")}
    assert counts["transformers"] is None or counts["transformers"].size == model.specs[model.main_layer].pairs
    differs = counts["vllm"] is not None and counts["vllm"].size != model.specs[model.main_layer].pairs
    assert ("vLLM honours it" in found.message) == differs


def agree_on_differences(model, found):
    layer = next((name for name in find_layers(model) if name and f"the {name} layers" in found.message), None)
    rows = {one.emulation.name: one for one in compare(model, layer_type=layer)}
    named = [name for name in rows if f"{name}: " in found.message]
    assert named
    assert all(rows[name].differs for name in named)


def agree_on_refusal(model, found):
    assert any(not emulate(model, "transformers", layer_type=layer).supported for layer in find_layers(model))


def agree_on_integers(model, found):
    for name in ("vllm", "sglang"):
        assert not emulate(model, name).supported


def agree_on_layers(model, found):
    turns = model.rotating_layers
    counted = re.search(r"(\d+) of (\d+)", found.message)
    assert counted is None or (int(counted[1]), int(counted[2])) == (sum(turns), len(turns))
    # A kind of layer has an embedding, which `runtimes` compares, where some layer of it rotates.
    kinds = resolve_layer_types(model.fields) or []
    for kind in model.specs.keys() & set(kinds) if turns is not None else ():
        assert any(turned for turned, one in zip(turns, kinds, strict=True) if one == kind), kind


def agree_on_length(model, found):
    lengths = {name: f"{one.length:,.0f}" for name, one in find_derived_lengths(model).items()}
    for name, length in lengths.items():
        if RELEASES[name].name in found.message:
            assert length in found.message


AGREE = {
    "attention-factor": agree_on_attention,
    "derived-length": agree_on_length,
    "integer-factor": agree_on_integers,
    "partial-ignored": agree_on_share,
    "runtimes-differ": agree_on_differences,
    "some-layers": agree_on_layers,
    "transformers-refuses": agree_on_refusal,
}


def list_findings(config):
    return [one for one in check(config) if one.rule in AGREE]


@for_each(list(CONFIGS), str)
def test_what_the_check_says_of_runtimes_is_what_they_compute(name):
    model = ModelConfig.read(CONFIGS[name])
    for found in list_findings(CONFIGS[name]):
        AGREE[found.rule](model, found)


@for_each(list(CONFIGS), str)
def test_the_check_names_every_runtime_that_is_off(name):
    """A frequency that is off by more than 5 % in a release of today is a finding, unless an older one is at fault."""
    model = ModelConfig.read(CONFIGS[name])
    if model.problems:
        return
    said = " ".join(one.message for one in check(CONFIGS[name]))
    for layer in find_layers(model):
        rows = compare(model, layer_type=layer)
        off = [
            one.emulation.name
            for one in rows
            if one.differs and one.emulation.runtime != "paper" and one.effect is not None and one.effect.ratio > 1.05
        ]
        today = [name for name in off if not name.startswith("transformers 4")]
        if rows[0].emulation.supported and today:
            assert all(name in said for name in off), (layer, off)


@pytest.mark.parametrize("rule", sorted(AGREE))
def test_every_kind_of_statement_occurs(rule):
    assert any(rule in {one.rule for one in list_findings(config)} for config in CONFIGS.values())
