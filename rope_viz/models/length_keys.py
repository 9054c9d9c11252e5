"""The keys in which each server looks for the longest length of a model.

Sources, read: vLLM 0.33.0, transformers_utils/model_arch_config_convertor.py, derive_max_model_len_and_key; SGLang
0.5.23, srt/utils/hf_transformers/common.py, CONTEXT_LENGTH_KEYS.
"""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.models.config_reader import Fields, is_number

LENGTH_KEYS: Mapping[str, tuple[str, ...]] = {
    "vllm": (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_target_positions",
        "max_sequence_length",
        "max_seq_length",
        "seq_len",
    ),
    "sglang": ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings"),
}
"""{runtime: its keys in the language model's part}. vLLM takes the least, SGLang the first."""
USUAL = "max_position_embeddings"
OVER_ALL = "model_max_length"
"""vLLM takes this one whatever the others say, and SGLang before the usual one."""


def read_lengths(fields: Fields, runtime: str) -> dict[str, float]:
    """Return {key: length} of the keys that hold a number once a runtime has loaded the config.

    Classes that keep the limit under another name give it under both; a runtime's own class may have defaults.
    """
    keys = LENGTH_KEYS[runtime]
    is_limit = {key for key in keys if USUAL in (key, fields.architecture.aliases.get(key))}
    given = {**own_lengths(fields, runtime), **fields.config}
    given |= {key: fields.value(USUAL) for key in is_limit if given.get(key) is None}
    return {key: given[key] for key in keys if is_number(given.get(key))}


def own_lengths(fields: Fields, runtime: str) -> dict[str, int]:
    """Return {key: default} of the length keys that only a runtime's own class of this model has."""
    found: dict[str, int] = fields.architecture.runtime(runtime).get("lengths", {})
    return found


def find_lower_lengths(config: Mapping[str, object], limit: int) -> list[str]:
    """Return the keys of a file, other than max_position_embeddings, that keep some runtime below this limit."""
    keys = dict.fromkeys(key for each in LENGTH_KEYS.values() for key in each if key != USUAL)
    return [key for key in keys if is_number(value := config.get(key)) and value < limit]
