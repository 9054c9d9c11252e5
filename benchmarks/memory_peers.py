"""Compare `rope_viz.memory` with the caches and the parameters of the classes of transformers.

Caches: a tiny model of every class that generates text reads a prompt on the processor; counted is every tensor that
its cache holds. Each config is given in two spellings, whole (`to_dict`) and short (`to_diff_dict`). Parameters: every
class at its defaults on the meta device. Usage: python benchmarks/memory_peers.py [caches|parameters] [TYPE ...]
"""

from __future__ import annotations

import collections
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto import modeling_auto

from rope_viz.advice.memory.estimate_memory import memory

LENGTH = 21
MOST = 40_000_000
"""Parameters of a model that is run."""
TINY = {
    **{"vocab_size": 96, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128, "moe_intermediate_size": 32},
    **{"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1},
    **{"topk_group": 1, "kv_lora_rank": 24, "q_lora_rank": 20, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16},
    **{"v_head_dim": 16, "sliding_window": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    **{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12},
    **{"d_model": 64, "ffn_dim": 48, "decoder_layers": 2, "encoder_layers": 2, "decoder_attention_heads": 4},
    **{"encoder_attention_heads": 4, "decoder_ffn_dim": 48, "encoder_ffn_dim": 48, "n_embd": 64, "n_layer": 4},
    **{"n_head": 4, "n_inner": 48, "n_positions": 128, "rotary_dim": 8, "ffn_hidden_size": 48, "num_kv_heads": 2},
    **{"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_ssm": 128},
    **{"mamba_expand": 2, "state_size": 8, "time_step_rank": 4, "attention_hidden_size": 64, "n_groups": 2},
    **{"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "lru_width": 64, "index_head_dim": 16},
    **{"index_n_heads": 2, "index_topk": 8, "moe_num_experts": 4, "moe_k": 2, "hidden_size_per_layer_input": 8},
    **{"vocab_size_per_layer_input": 96, "global_head_dim": 16, "num_global_key_value_heads": 2, "expert_ffn_size": 32},
    **{"num_shared_experts": 1, "n_shared_experts": 1, "shared_expert_intermediate_size": 32, "num_heads": 4},
    **{"d_kv": 16, "d_ff": 48, "num_layers": 4, "expert_layer_period": 2, "first_k_dense_replace": 1, "o_lora_rank": 8},
    **{"partial_rotary_factor": 0.5, "embedding_size": 64, "word_embed_proj_dim": 64, "max_seq_len": 128},
}
RATIOS = ("head_dim", "partial_rotary_factor", "num_key_value_heads")
OWN: dict[str, dict[str, Any]] = {
    # A hybrid model of four layers needs one with attention, which its class has only in deeper models.
    **{"bamba": {"attn_layer_indices": [1]}, "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1}},
    **{kind: {"layer_types": ["mamba", "attention", "mamba", "mamba"]} for kind in ("granitemoehybrid",)},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"]},
    "mamba2": {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "n_groups": 2, "num_hidden_layers": 4},
    "zamba": {"num_hidden_layers": 12, "n_mamba_heads": 2, "attention_head_dim": 32},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 16, "intermediate_size": 48},
    "gemma3n_text": {"num_kv_shared_layers": 2},
    "longcat_flash": {"num_layers": 2, "expert_ffn_hidden_size": 32, "zero_expert_num": 2, "moe_topk": 2},
    "bailing_hybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "kimi_linear": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "reformer": {"is_decoder": True},
}
"""Keys of single types, because the small sizes alone do not make a model that runs."""
HEADS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")


def find_class(config: PreTrainedConfig, order: tuple[str, ...]) -> type | None:
    """Return the first class that transformers has for a configuration."""
    for name in order:
        mapping = getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING", None)
        if mapping is not None and type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    return None


def shrink(kind: type) -> dict[str, Any]:
    """Return the small sizes that a configuration class has a field for."""
    names = kind.__dataclass_fields__
    if "qk_rope_head_dim" in names:
        # Latent attention: what a class calls head_dim follows from these sizes.
        return {key: value for key, value in TINY.items() if key in names and key not in RATIOS}
    return {key: value for key, value in TINY.items() if key in names or key in kind.attribute_map}


def make_tiny(kind: type) -> PreTrainedConfig:
    """Return a small configuration: the sizes that the class takes, its layer types by its own rule."""
    given = shrink(kind) | OWN.get(kind.model_type, {})
    while True:
        try:
            return kind(**given)
        except Exception as error:
            # A size that this class refuses keeps its default.
            key = next((key for key in given if key in str(error)), None)
            if key is None:
                raise
            del given[key]


def find_tensors(value: Any, seen: dict[int, int], depth: int = 0) -> None:
    """Note {id of a storage: bytes} of every tensor that a cache holds."""
    if isinstance(value, torch.Tensor):
        if value.dim() > 1 and value.numel():
            seen[value.data_ptr()] = value.numel() * value.element_size()
    elif depth < 6:
        parts: Any = ()
        if isinstance(value, Mapping):
            parts = value.values()
        elif isinstance(value, (list, tuple)):
            parts = value
        elif "cache" in type(value).__module__ or "Cache" in type(value).__name__ or "Layer" in type(value).__name__:
            parts = vars(value).values()
        for part in parts:
            find_tensors(part, seen, depth + 1)


def run_cache(config: PreTrainedConfig, length: int) -> int | None:
    """Return the bytes of the cache of a model with random weights after a prompt; None where it keeps none."""
    model_class = find_class(config, ("CAUSAL_LM",))
    if model_class is None:
        raise LookupError("no class that generates text")
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in model_class._from_config(config).parameters())
    if count > MOST:
        raise ValueError(f"{count:,} parameters are too many to run")
    torch.manual_seed(0)
    model = model_class._from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():
        found = model(torch.arange(length)[None] % 90 + 3, use_cache=True)
    held = next(
        (found[key] for key in ("past_key_values", "cache_params", "state") if found.get(key) is not None), None
    )
    if held is None:
        return None
    seen: dict[int, int] = {}
    find_tensors(held, seen)
    return sum(seen.values())


def compare_caches(kinds: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (type, spelling, outcome) for the cache of every class."""
    for kind in kinds:
        try:
            config = make_tiny(CONFIG_MAPPING[kind])
            measured = run_cache(config, LENGTH)
        except LookupError:
            continue
        except Exception as error:
            yield kind, "", f"not run: {type(error).__name__} {str(error)[:90]}"
            continue
        if measured is None:
            continue
        for spelling, given in (("whole", config.to_dict()), ("short", config.to_diff_dict())):
            try:
                found = memory({**given, "model_type": kind}, length=LENGTH)
                answer = found["kv_cache_bytes"]
            except ValueError as error:
                answer, found = None, {"reasons": {"kv_cache_bytes": str(error)}}
            reason = found["reasons"].get("kv_cache_bytes", "")
            yield kind, spelling, "equal" if answer == measured else f"{answer} is not {measured} {reason[:80]}"


def compare_parameters(kinds: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (type, spelling, outcome) for the parameters of every class at its defaults."""
    for kind in kinds:
        try:
            config = CONFIG_MAPPING[kind]()
            order = HEADS
            if config.is_encoder_decoder:
                order = ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", *HEADS)
            model_class = find_class(config, order)
            if model_class is None:
                continue
            with torch.device("meta"):
                model = model_class._from_config(config)
        except Exception as error:
            yield kind, "", f"not run: {type(error).__name__} {str(error)[:90]}"
            continue
        measured = sum(parameter.numel() for parameter in model.parameters())
        for spelling, given in (("whole", config.to_dict()), ("short", config.to_diff_dict())):
            try:
                found = memory({**given, "model_type": kind}, length=LENGTH)
            except ValueError as error:
                found = {"parameters": None, "reasons": {"parameters": str(error)}}
            answer, reason = found["parameters"], found["reasons"].get("parameters", "")
            near = answer is not None and abs(answer / measured - 1) <= 0.02
            off = "" if answer is None else f" ({answer / measured - 1:+.1%})"
            yield kind, spelling, "equal" if near else f"{answer} is not {measured}{off} {reason[:80]}"


def main() -> None:
    """Print every difference, and the counts."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    chosen = sys.argv[1:]
    tables = {"caches": compare_caches, "parameters": compare_parameters}
    names = [name for name in chosen if name in tables] or list(tables)
    kinds = [name for name in chosen if name not in tables] or sorted(CONFIG_MAPPING)
    for name in names:
        counts: collections.Counter[str] = collections.Counter()
        for kind, spelling, outcome in tables[name](kinds):
            if sum(counts.values()) % 50 == 49:
                print(f"{name}: {sum(counts.values()) + 1} answers", flush=True)
            counts[f"{spelling} {'equal' if outcome == 'equal' else 'different'}" if spelling else "not run"] += 1
            if outcome != "equal":
                print(f"{name}: {kind} {spelling}: {outcome}", flush=True)
        for spelling in ("whole", "short"):
            equal, other = counts[f"{spelling} equal"], counts[f"{spelling} different"]
            if equal + other:
                print(f"{name}, {spelling}: {equal} of {equal + other} right ({equal / (equal + other):.1%})")
        print(f"{name}: {counts['not run']} not run")


if __name__ == "__main__":
    main()
