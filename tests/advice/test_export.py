"""An exported config or command gives back its embedding, or explains why it cannot."""

import dataclasses
import itertools
import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.advice.plan.export import TARGETS, export, is_same, measure_distance
from rope_viz.embedding.scaling import (
    LARGEST_FACTOR,
    LEAST_FACTOR,
    METHODS,
    DynamicNtk,
    Linear,
    Llama3,
    LongRope,
    NtkAware,
    NtkByParts,
    PaperYarn,
    Yarn,
)
from rope_viz.embedding.spec import RopeSpec, Scaling
from rope_viz.models.model_config import from_config
from rope_viz.runtimes import emulate
from tests.offenders import for_each

CATALOG = Path(__file__).parents[2] / "rope_viz" / "models" / "catalog"
FACTORS = st.floats(1.0, 64.0)
BETAS = st.floats(1.5, 64.0)

PLAIN = st.builds(Scaling)
LINEAR = st.builds(Linear, FACTORS)
NTK = st.builds(NtkAware, FACTORS)
PARTS = st.builds(NtkByParts, FACTORS, st.floats(0.5, 2.0), st.floats(3.0, 64.0))
LLAMA3 = st.builds(Llama3, FACTORS, st.floats(0.5, 2.0), st.floats(3.0, 64.0))
YARN = st.builds(Yarn, FACTORS, BETAS, st.floats(0.5, 1.4))
ANY_YARN = st.builds(Yarn, FACTORS, BETAS, st.floats(0.5, 1.4), st.booleans(), st.none() | st.floats(0.5, 2.0))
PAPER = st.builds(PaperYarn, FACTORS)
DYNAMIC = st.builds(DynamicNtk, FACTORS)

# {target: the methods that its runtime supports}
SUPPORTED = {
    "transformers": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | ANY_YARN | PAPER | DYNAMIC,
    "transformers-4": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | ANY_YARN | PAPER | DYNAMIC,
    "vllm": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | ANY_YARN | PAPER,
    "sglang": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | ANY_YARN | PAPER,
    "llama.cpp": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | YARN,
    "mlx-lm": PLAIN | LINEAR | NTK | PARTS | LLAMA3 | YARN | DYNAMIC,
}


@st.composite
def cases(draw):
    target = draw(st.sampled_from(list(TARGETS)))
    context = draw(st.integers(512, 65536))
    spec = RopeSpec(
        head_dim=2 * draw(st.integers(4, 128)),
        base=draw(st.floats(1e3, 1e7)),
        context=context,
        target=draw(st.integers(context, 8 * context)),
        scaling=draw(SUPPORTED[target]),
    )
    return target, spec


def emulated(target, result, length, layer_type=None):
    runtime, version, _ = TARGETS[target]
    return emulate(
        result.config,
        runtime=runtime,
        version=version,
        length=length,
        layer_type=layer_type,
        flags=result.flags or None,
    )


@given(cases())
def test_emulating_a_faithful_export_returns_the_spec(case):
    target, spec = case
    result = export(spec, to=target)
    assert result.faithful, result.reason
    for length in (None, spec.context, spec.target):
        back = emulated(target, result, length)
        np.testing.assert_allclose(back.inv_freq, spec.inv_freq(length), rtol=1e-6)
        assert back.attention_factor == pytest.approx(spec.attention_factor(length), rel=1e-6)


@for_each(itertools.product(TARGETS, METHODS, [64, 32]))
def test_an_export_never_claims_more_than_emulation_shows(case):
    target, method, rotary_dim = case
    sizes = {"head_dim": 64, "rotary_dim": rotary_dim, "base": 5e5, "context": 8192, "target": 32768}
    spec = RopeSpec(**sizes, scaling=METHODS[method]())
    result = export(spec, to=target)
    for length in (8192, 8193, 32768):
        back = emulated(target, result, length)
        same = (
            back.supported
            and len(back.inv_freq) == spec.pairs
            and np.allclose(back.inv_freq, spec.inv_freq(length), rtol=1e-6, atol=0)
            and back.attention_factor == pytest.approx(spec.attention_factor(length), rel=1e-6)
        )
        assert same or not result.faithful
    assert result.faithful == (result.reason == "")


WITH_FACTOR = ["linear", "ntk", "ntk-by-parts", "yarn-paper", "yarn", "llama3", "proportional"]


@for_each(itertools.product(TARGETS, WITH_FACTOR, [64, 32]))
def test_the_largest_and_the_least_factor_can_be_exported(case):
    target, method, rotary_dim = case
    for factor in (LEAST_FACTOR, LARGEST_FACTOR):
        for base in (1e4, 5e5, 1e6, 4.7e7):
            spec = RopeSpec(head_dim=64, rotary_dim=rotary_dim, base=base, scaling=METHODS[method](factor=factor))
            result = export(spec, to=target)
            assert result.faithful == (result.reason == "")


@pytest.mark.parametrize(
    ("target", "scaling", "why"),
    [
        ("vllm", DynamicNtk(2.0), "static"),
        ("sglang", DynamicNtk(2.0), "static"),
        ("llama.cpp", DynamicNtk(2.0), "not written"),
        ("sglang", LongRope(), "one token late"),
        ("mlx-lm", LongRope(), "always uses the long list"),
        ("llama.cpp", Yarn(4.0, attention=1.0), "factor on cos and sin is 1.13863"),
        ("mlx-lm", Yarn(4.0, truncate=False), "does not read attention_factor and truncate"),
    ],
)
def test_unfaithful_export_names_the_runtime_rule(target, scaling, why):
    spec = RopeSpec(head_dim=128, base=1e6, context=32768, target=131072, scaling=scaling)
    result = export(spec, to=target)
    assert not result.faithful
    assert why in result.reason
    assert result.effect is not None or result.attention_ratio != 1.0


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "qwen3-8b-yarn", "gemma-3-12b-global", "ministral-3-3b", "gemma-4-full"]
)
def test_published_model_survives_export_to_transformers(name):
    config = json.loads((CATALOG / f"{name}.json").read_text())
    for layer, spec in from_config(config).items():
        result = export(spec, to="transformers", config=config, layer_type=layer or None)
        assert result.faithful, result.reason
        assert {key: from_config(result.config)[key].inv_freq().tolist() for key in from_config(config)} == {
            key: other.inv_freq().tolist() for key, other in from_config(config).items()
        }


def test_export_writes_the_documented_command_for_qwen3():
    config = json.loads((CATALOG / "qwen3-8b.json").read_text())
    spec = from_config(json.loads((CATALOG / "qwen3-8b-yarn.json").read_text()))[""]
    words = shlex.split(export(spec, to="llama.cpp", config=config).text)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--rope-scaling"] == "yarn"
    assert float(options["--rope-scale"]) == 4
    assert options["--yarn-orig-ctx"] == "32768"
    assert options["-c"] == "131072"


def test_export_writes_the_flag_that_repairs_kimi_on_llama_cpp():
    config = json.loads((CATALOG / "kimi-k2-instruct.json").read_text())
    result = export(from_config(config)[""], to="llama.cpp", config=config)
    assert "--yarn-beta-fast 1.0" in result.flags
    assert result.faithful
    assert emulate(config, runtime="llama.cpp").attention_factor == pytest.approx(1.0)
    plain = emulate(config, runtime="llama.cpp").inv_freq
    assert np.max(emulated("llama.cpp", result, None).inv_freq / plain) == pytest.approx(8.93, abs=0.005)


def test_olmo_3_is_exported_to_sglang_with_flat_keys():
    config = json.loads((CATALOG / "olmo-3.1-32b.json").read_text())
    spec = from_config(config)["full_attention"]
    result = export(spec, to="sglang", config=config, layer_type="full_attention")
    assert result.faithful, result.reason
    assert "rope_parameters" not in result.config


def test_the_overrides_of_the_servers_are_json_in_one_argument():
    spec = RopeSpec(head_dim=128, base=1e6, context=32768, target=131072, scaling=Yarn(4.0))
    for target, name in (("vllm", "--hf-overrides"), ("sglang", "--json-model-override-args")):
        words = shlex.split(export(spec, to=target).text)
        assert words[0] == name
        assert json.loads(words[1])["rope_parameters"]["factor"] == 4.0
        assert words[3] == "131072"


def test_plain_rope_can_be_written_for_every_target():
    assert all(export(RopeSpec(), to=target).text for target in TARGETS)


def test_unknown_target_error_lists_the_known_ones():
    with pytest.raises(ValueError, match="must be one of transformers"):
        export(RopeSpec(), to="ollama")


@pytest.mark.parametrize("attention", [0.0, -1.0])
def test_nonpositive_factor_is_answered_without_a_crash(attention):
    spec = RopeSpec(128, context=32768, target=131072, scaling=METHODS["yarn"](4.0, attention=attention))
    for target in TARGETS:
        export(spec, to=target)


def test_ntk_beyond_the_largest_base_is_exported_as_lists():
    spec = RopeSpec(128, base=1e30, context=32768, target=131072, scaling=METHODS["ntk"](4.0))
    assert export(spec, to="transformers").faithful


def test_equal_results_or_none_make_two_runs_equal():
    sizes = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}
    read, scaled = (
        emulate({**sizes, **rope}, "vllm") for rope in ({}, {"rope_scaling": {"type": "linear", "factor": 2.0}})
    )
    refused = emulate({**sizes, "rope_scaling": {"rope_type": "linear", "factor": 2}}, "vllm")
    assert not refused.supported
    assert is_same(None, None)
    assert is_same(refused, None)
    assert is_same(read, read)
    assert not is_same(read, scaled)
    assert not is_same(read, refused)
    assert not is_same(None, read)


def test_distance_of_an_export_grows_with_its_error():
    same = dataclasses.replace(export(RopeSpec(), to="vllm"), effect=None, attention_ratio=1.0)
    assert measure_distance(same) == math.inf
    assert measure_distance(dataclasses.replace(same, attention_ratio=2.0)) == pytest.approx(math.log(2.0))
    assert measure_distance(dataclasses.replace(same, attention_ratio=0.25)) == pytest.approx(math.log(4.0))
