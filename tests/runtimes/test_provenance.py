"""Executed, known by rule and not known are three different answers."""

import importlib.util
import json
from pathlib import Path

import pytest

from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import RUNTIMES, emulate, resolve_release
from rope_viz.runtimes.compare import compare
from rope_viz.runtimes.known_types import list_types
from rope_viz.runtimes.provenance import executed_types, find_provenance

GOLDENS = Path(__file__).parents[1] / "goldens"
SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 32768}


REMOTE = [kind for kind, record in all_architectures().items() if record.remote_code]


def served(runtime, kind):
    return all_architectures()[kind].runtime(runtime).get("file")


def made(name):
    spec = importlib.util.spec_from_file_location(name, GOLDENS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(GOLDENS)
        spec.loader.exec_module(module)
    return module


def test_executed_types_match_the_goldens():
    held: dict = {}
    for kind, record in all_architectures().items():
        for at, goldens in record.executed.items():
            for golden, types in goldens.items():
                held.setdefault(at, {}).setdefault(golden, {})[kind] = list(types)
    assert made("make_executed").executed() == held


def test_executed_types_name_an_existing_golden():
    for at, goldens in executed_types().items():
        for golden, kinds in goldens.items():
            assert (GOLDENS / golden).exists()
            runtime, version = at.split(" ")
            for kind in kinds:
                if all_architectures()[kind].text is not None:
                    continue  # a wrapper's answers are those of its part
                if runtime == "mlx-lm" and kind not in list_types(runtime, version):
                    continue  # executed as the part of a wrapper
                if version == "5":
                    continue  # each minor release has a range of its own: tests/runtimes/test_minor_releases.py
                for scaling in all_architectures()[kind].executed[at][golden]:
                    fields = ModelConfig.read({"model_type": kind, "rope_scaling": {"rope_type": scaling}}).fields
                    known = find_provenance(runtime, resolve_release(runtime, version)[1], fields, scaling)
                    assert known.how == "executed"
                    assert "tests/goldens/" in known.source


def test_a_scaling_that_was_not_executed_is_known_by_rule():
    """Llama 4 was run in vLLM with its own scaling alone."""
    keys = {"model_type": "llama4_text", **SIZES}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    ran = emulate({**keys, "rope_scaling": {**llama3, "original_max_position_embeddings": 8192}}, runtime="vllm")
    assert (ran.supported, ran.known.how) == (True, "executed")
    plain = emulate(keys, runtime="vllm")
    assert (plain.supported, plain.known.how) == (True, "by rule")
    assert "other types; default by its rules" in plain.known.source


def test_a_runtime_serves_only_types_of_the_list():
    for runtime in ("vllm", "sglang", "llama.cpp", "mlx-lm"):
        assert sum(served(runtime, kind) is not None for kind in all_architectures()) > 90
        assert served(runtime, "llama") is not None
    assert served("vllm", "gpt_neox") == "transformers"
    assert served("mlx-lm", "minimax_m2") == "minimax"
    assert served("llama.cpp", "roformer") is None


@pytest.mark.parametrize("config", [{"model_type": "nobody_knows"}, {"model_type": "my_vlm", "text_config": SIZES}])
def test_no_runtime_agrees_on_an_unread_type(config):
    config = {**SIZES, **config, "rotary_dim": 64} if "text_config" not in config else config
    for one in compare(config):
        assert (one.how, one.verdict(), one.agrees, one.effect) == ("not known", "not known", False, None)
        assert "was not read" in one.emulation.known.source


def test_listed_model_in_an_unlisted_wrapper_is_not_known():
    inner = {**SIZES, "model_type": "llama"}
    assert {one.how for one in compare({"model_type": "my_vlm", "text_config": inner})} == {"not known"}
    assert "executed" in {one.how for one in compare({"model_type": "llava", "text_config": inner})}


# {model type of the list: runtimes whose file for it was not executed yet}
NOT_EXECUTED = {
    "minimax_m3_vl_text": ("sglang", "llama.cpp"),
    "mimo_v2_flash": ("llama.cpp",),
    "gemma4_unified_text": ("vllm", "sglang", "mlx-lm"),
    "glm4_moe_lite": ("vllm", "sglang", "mlx-lm"),
    "muse_glimmer_text": ("vllm", "sglang", "mlx-lm"),
}
# {model of the list: runtimes whose file for it was read, not run, or run with another scaling}
BY_RULE = {
    "laguna-s-2.1": ("vllm", "sglang", "mlx-lm"),
    "laguna-xs.2": ("vllm", "sglang", "mlx-lm"),
    "ling-2.6-flash": ("vllm", "sglang", "mlx-lm"),
    "ling-3.0-flash": ("vllm", "sglang", "mlx-lm"),
    "llama-4-maverick": ("vllm",),
}


def test_every_catalog_model_is_executed_or_not_known():
    for model in catalog().values():
        missing = NOT_EXECUTED.get(model.config["model_type"], ())
        by_rule = BY_RULE.get(model.id, ())
        for one in compare(model.config):
            if one.emulation.runtime in ("vllm", "sglang", "llama.cpp", "mlx-lm") and one.emulation.supported:
                expected = "not known" if one.emulation.runtime in missing else "executed"
                expected = "by rule" if one.emulation.runtime in by_rule else expected
                assert one.how == expected, (model.id, one.emulation.runtime)


def test_answers_by_rule_are_marked_as_such():
    config = {**SIZES, "model_type": "persimmon"}
    found = {(one.emulation.runtime, one.emulation.version): one for one in compare(config)}
    assert found["transformers", "5.24.0"].verdict() == "agrees"
    assert found["transformers", "4.57.6"].verdict() == "agrees (by rule)"
    assert found["vllm", "0.33.0"].how == "by rule"
    assert "with the code of transformers" in found["vllm", "0.33.0"].emulation.known.source
    assert found["llama.cpp", RUNTIMES[6][1]].verdict() == "refuses (by rule)"


PUBLISHED = {
    "minimax_m2": {
        "head_dim": 128,
        "hidden_size": 3072,
        "num_attention_heads": 48,
        "rotary_dim": 64,
        "rope_theta": 5e6,
    },
    "hunyuan_v1_moe": {"rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}, "rope_theta": 10000.0},
    "nemotron": {"partial_rotary_factor": 0.5, "hidden_size": 6144, "num_attention_heads": 48},
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_runtimes_with_their_own_model_file_agree(kind):
    """They read rotary_dim, bake alpha into the base, rotate half of the head, as the model does."""
    config = {**SIZES, "model_type": kind, **PUBLISHED[kind]}
    reference = emulate(config, runtime="transformers")
    for runtime in ("vllm", "sglang", "llama.cpp", "mlx-lm"):
        if served(runtime, kind) is not None:
            assert emulate(config, runtime=runtime).inv_freq == pytest.approx(reference.inv_freq, rel=1e-9)


@pytest.mark.parametrize("kind", REMOTE)
def test_transformers_never_agrees_on_a_remote_code_type(kind):
    found = {(one.emulation.runtime, one.emulation.version): one for one in compare({"model_type": kind})}
    newest = found["transformers", "5.24.0"]
    assert (newest.verdict(), newest.agrees, newest.differs) == ("refuses: remote code (by rule)", False, False)
    assert "is remote code, not in transformers" in newest.emulation.remote
    # What the others are put beside is the model's own code all the same.
    assert newest.emulation.inv_freq is not None


def test_installed_transformers_has_no_remote_code_type():
    transformers = pytest.importorskip("transformers", "5.24.0")
    assert not [kind for kind in REMOTE if kind in transformers.CONFIG_MAPPING]


def test_a_type_of_transformers_is_not_called_remote():
    assert all(not one.emulation.remote for one in compare({"model_type": "llama", **SIZES}))


def test_the_day_of_the_goldens_is_that_of_these_goldens():
    script = made("make_executed")
    found = json.loads(script.EXECUTED_ON.read_text())
    assert found["goldens"] == script.digest(), "run python tests/goldens/make_executed.py"
