"""The list of keys that a link may carry: what readers ask for is on it, and nothing else."""

import contextlib
import json
from pathlib import Path

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.models import config_reader
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.several_axes.model_axes import from_model
from rope_viz.own_files.config_keys import (
    DECLARED,
    KINDS,
    NUMBERED,
    PRIVATE,
    cut_config,
    cut_text,
    is_about_positions,
    list_keys,
)
from rope_viz.runtimes.axes import axes_answers
from rope_viz.runtimes.compare import compare
from tests.configs import QWEN3_8B
from tests.own_files.noted_keys import ASKED, list_words, note_keys
from tests.own_files.test_config_link import CONFIGS, answers

GOLDENS = Path(__file__).parents[1] / "goldens"
OF_OTHER_FILES = {
    "model": "YAML of Megatron, which becomes a config before it is shown",
    "args": "a checkpoint of Megatron, likewise",
    "config": "likewise",
    "weight_map": "tells the index of a checkpoint, which is refused",
    "peft_type": "tells an adapter, which is refused",
    "wrapper": "a remark of the catalog",
}
"""Keys that are asked for and that no shown config has, with the reason."""


def find_configs(part):
    """Yield the configs in a golden."""
    if isinstance(part, dict):
        if {"model_type", "rope_scaling", "rope_parameters", "_class_name"} & part.keys():
            yield part
            return
        part = list(part.values())
    for each in part if isinstance(part, list) else ():
        yield from find_configs(each)


def read_goldens():
    for path in sorted(GOLDENS.glob("*.json")):
        yield from find_configs(json.loads(path.read_text(encoding="utf-8")))


def ask_all(config):
    """Let every reader read a config."""
    readers = (
        check,
        axes_answers,
        from_model,
        lambda config: memory(config, length=3000),
        lambda config: compare(ModelConfig.read(config)),
    )
    for reader in readers:
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
            reader(config)


def find_unlisted():
    listed = list_keys() | PRIVATE | OF_OTHER_FILES.keys()
    asked = {key: where for key, where in ASKED.items() if not NUMBERED.fullmatch(key)}
    # A key with a dot is that of an object: its words are keys.
    return {key: where for key, where in asked.items() if not {key, *key.split(".")} & listed}


def test_every_key_that_readers_ask_for_is_on_the_list():
    for config in list(CONFIGS.values())[::4]:
        ask_all(note_keys(config))
    assert {"rope_theta", "hidden_size", "layer_types"} <= ASKED.keys()
    assert find_unlisted() == {}


@pytest.mark.slow
def test_every_key_asked_for_in_any_config_is_on_the_list():
    for config in CONFIGS.values():
        with contextlib.suppress(ValueError):
            answers(note_keys(config))
    for config in list(read_goldens())[::5]:
        ask_all(note_keys(config))
    assert len(ASKED) > 150
    assert find_unlisted() == {}


def test_a_key_that_is_not_on_the_list_is_noticed(monkeypatch):
    read = config_reader.read_model_type

    def read_more(config):
        config.get("favourite_colour")
        return read(config)

    monkeypatch.setattr("rope_viz.models.text_config.read_model_type", read_more)
    ask_all(note_keys({**QWEN3_8B, "favourite_colour": 3}))
    assert list(find_unlisted()) == ["favourite_colour"]
    del ASKED["favourite_colour"]


def test_every_declared_key_is_a_word_in_the_code():
    declared = {key for keys in DECLARED["keys"].values() for key in keys}
    assert declared - list_words() == set()


def test_declarations_agree():
    listed = list_keys()
    assert DECLARED["texts"].keys() <= listed
    assert not listed & PRIVATE
    for kind in DECLARED["texts"].values():
        assert isinstance(kind, list) or kind in KINDS
    for key in listed - DECLARED["texts"].keys():
        assert cut_text(key, "a secret of mine") is None, key


TEXTS = {
    "model_type": ("qwen3", "hf_AbCdEfGh"),
    "architectures": ("Qwen3ForCausalLM", "/home/anna/model"),
    "torch_dtype": ("torch.bfloat16", "bfloat16 of anna"),
    "transformers_version": ("4.34.0.dev0", "4.34.0+anna"),
    "quant_method": ("compressed-tensors", "annas"),
    "quant_algo": ("NVFP4", "ANNA4"),
    "rope_type": ("yarn", "annas-yarn"),
    "layer_types": ("full_attention", "annas_attention"),
    "hidden_act": ("silu", "anna"),
    "position_embedding_type": ("rope", "anna"),
    "hybrid_override_pattern": ("MEM*-", "ANNA"),
    "num_hidden_layers": ("36", "36 of anna"),
    "remarks": ("mistral.no_length 128,000", "mistral.no_length of anna"),
    "unread": ("gemma3.rope.extra", "gemma3.rope.Anna7"),
}


@pytest.mark.parametrize("key", TEXTS)
def test_texts_are_from_closed_sets_and_patterns(key):
    kept, cut = TEXTS[key]
    assert cut_text(key, kept) == kept
    assert cut_text(key, cut) in (None, "unlisted")


def test_unknown_class_keeps_its_ending():
    assert cut_text("architectures", "AnnasSecretForSequenceClassification") == "ForSequenceClassification"
    assert cut_text("architectures", "LlamaForSequenceClassification") == "LlamaForSequenceClassification"


def test_unknown_keys_about_positions_travel_with_numbers_alone():
    config = {
        **QWEN3_8B,
        "rotary_note": "for Anna",
        "rope_extra": [1, 2.5, True, None],
        "position_names": ["anna", 3],
        "annas_budget": 4,
        "max_position_embedings": "x",
        "hf_rope_AbCdEf": 1,
        "rope_" + "a" * 40: 1,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0, "annas": 3, "note": "of Anna", "Anna@x": 1},
    }
    cut = cut_config(config)
    assert cut["rotary_note"] is None
    assert cut["rope_extra"] == [1, 2.5, True, None]
    assert cut["position_names"] is None
    assert cut["max_position_embedings"] is None
    assert not {"annas_budget", "hf_rope_AbCdEf", "rope_" + "a" * 40} & cut.keys()
    assert cut["rope_scaling"] == {"rope_type": "linear", "factor": 2.0, "annas": 3, "note": None}
    assert is_about_positions("my_freqs")
    assert not is_about_positions("rephrase")


def test_a_link_gives_the_findings_of_its_file():
    config = {
        **QWEN3_8B,
        "model_type": "annas_own",
        "max_position_embedings": 5,
        "rope_scaling": {"rope_type": "linear", "factor": "2.0", "fator": 3, "note": "of Anna"},
    }
    rules = [(one.rule, one.severity, one.key) for one in check(config)]
    assert rules == [(one.rule, one.severity, one.key) for one in check(cut_config(config))]
    assert "misspelled-keys" in {rule for rule, *_ in rules}
