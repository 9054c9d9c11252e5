"""Compare `rope_viz.memory` with the caches and the parameters of the classes of transformers.

Caches: a tiny model of every class that generates text reads a prompt on the processor; counted is every tensor that
its cache holds. Each config is given in three spellings: whole (`to_dict`), short (`to_diff_dict`) and with the given
keys alone, without what the class fills in. Parameters: every class on the meta device. Sizes: the defaults of the
class, tiny ones, and two further ones, "wider" (caches in float32) and "deeper".
Usage: python benchmarks/memory_peers.py [caches|parameters] [defaults|tiny|wider|deeper] [TYPE ...]
"""

from __future__ import annotations

import collections
import copy
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto import modeling_auto

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.advice.memory.estimate_memory import memory

LENGTH = 21
TOLERANCES = {"kv_cache_bytes": 0.02, "parameters": 0.01}
"""The largest difference that counts as equal, of the measured number."""
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
# Two further sizes: other numbers of layers, heads and experts, and widths that are not in the ratios of the defaults.
WIDER = {
    **TINY,
    **{"vocab_size": 112, "hidden_size": 96, "intermediate_size": 80, "num_hidden_layers": 7, "num_attention_heads": 6},
    **{"num_key_value_heads": 3, "head_dim": 24, "moe_intermediate_size": 40, "num_experts": 6, "num_local_experts": 6},
    **{"n_routed_experts": 6, "moe_num_experts": 6, "n_group": 2, "kv_lora_rank": 40, "q_lora_rank": 28},
    **{"qk_rope_head_dim": 12, "qk_nope_head_dim": 20, "v_head_dim": 24, "sliding_window": 12},
    **{"linear_num_key_heads": 3, "linear_num_value_heads": 6, "linear_key_head_dim": 10, "linear_value_head_dim": 14},
    **{"d_model": 96, "ffn_dim": 80, "decoder_layers": 3, "encoder_layers": 5, "decoder_attention_heads": 6},
    **{"encoder_attention_heads": 6, "decoder_ffn_dim": 88, "encoder_ffn_dim": 80, "n_embd": 96, "n_layer": 7},
    **{"n_head": 6, "n_inner": 80, "ffn_hidden_size": 80, "num_kv_heads": 3, "mamba_n_heads": 12, "mamba_d_head": 16},
    **{"mamba_d_state": 20, "mamba_n_groups": 2, "mamba_d_ssm": 192, "state_size": 12, "time_step_rank": 6},
    **{"attention_hidden_size": 96, "mamba_num_heads": 6, "mamba_head_dim": 20, "ssm_state_size": 24, "lru_width": 96},
    **{"index_head_dim": 20, "index_n_heads": 3, "hidden_size_per_layer_input": 12, "vocab_size_per_layer_input": 112},
    **{"global_head_dim": 32, "num_global_key_value_heads": 1, "expert_ffn_size": 40, "num_shared_experts": 2},
    **{"n_shared_experts": 2, "shared_expert_intermediate_size": 56, "shared_intermediate_size": 72, "num_heads": 6},
    **{
        "d_kv": 24,
        "d_ff": 80,
        "num_layers": 7,
        "expert_layer_period": 3,
        "first_k_dense_replace": 2,
        "o_lora_rank": 12,
    },
    **{"embedding_size": 96, "word_embed_proj_dim": 96, "mamba_dt_rank": 5, "conv_kernel": 3, "mamba_d_conv": 3},
    **{"moe_latent_size": 24, "moe_shared_expert_intermediate_size": 56, "out_hidden_size": 96, "embed_dim": 96},
}
DEEPER = {
    **TINY,
    **{"vocab_size": 104, "hidden_size": 128, "intermediate_size": 72, "num_hidden_layers": 12},
    **{"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "moe_intermediate_size": 24},
    **{"num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "moe_num_experts": 8, "kv_lora_rank": 32},
    **{"q_lora_rank": 36, "qk_rope_head_dim": 16, "qk_nope_head_dim": 12, "v_head_dim": 20, "sliding_window": 8},
    **{"linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 12, "linear_value_head_dim": 8},
    **{"d_model": 128, "ffn_dim": 72, "decoder_layers": 6, "encoder_layers": 3, "decoder_attention_heads": 8},
    **{"encoder_attention_heads": 8, "decoder_ffn_dim": 72, "encoder_ffn_dim": 72, "n_embd": 128, "n_layer": 12},
    **{"n_head": 8, "n_inner": 72, "ffn_hidden_size": 72, "mamba_n_heads": 8, "mamba_d_head": 32},
    **{"mamba_d_state": 24, "mamba_n_groups": 4, "mamba_d_ssm": 256, "state_size": 20, "time_step_rank": 7},
    **{"attention_hidden_size": 128, "mamba_num_heads": 12, "mamba_head_dim": 12, "ssm_state_size": 20},
    **{"lru_width": 128, "index_head_dim": 24, "index_n_heads": 4, "hidden_size_per_layer_input": 16},
    **{"vocab_size_per_layer_input": 104, "global_head_dim": 40, "expert_ffn_size": 24, "num_shared_experts": 3},
    **{"n_shared_experts": 3, "shared_expert_intermediate_size": 40, "shared_intermediate_size": 40, "num_heads": 8},
    **{"d_kv": 32, "d_ff": 72, "num_layers": 12, "expert_layer_period": 4, "first_k_dense_replace": 4},
    **{"o_lora_rank": 16, "embedding_size": 128, "word_embed_proj_dim": 128, "mamba_dt_rank": 9, "mamba_d_conv": 5},
    **{"moe_latent_size": 40, "moe_shared_expert_intermediate_size": 40, "out_hidden_size": 128, "embed_dim": 128},
}
SPELLINGS = ("whole", "short", "given")
SIZES = {"tiny": TINY, "wider": WIDER, "deeper": DEEPER}
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
FURTHER: dict[str, dict[str, Any]] = {
    "gpt_neo": {
        "num_layers": 6,
        "num_hidden_layers": 6,
        "attention_types": [[["global", "local"], 3]],
        "window_size": 8,
    },
    "mamba2": {"head_dim": 16, "num_heads": 12, "expand": 2, "hidden_size": 96},
    "zamba": {"num_hidden_layers": 15, "n_mamba_heads": 2},
    "longcat_flash": {"num_layers": 3, "expert_ffn_hidden_size": 40, "zero_expert_num": 3, "moe_topk": 2},
    "bamba": {"attn_layer_indices": [1, 4]},
    "granitemoehybrid": {"num_hidden_layers": 5, "layer_types": ["mamba", "attention", "mamba", "mamba", "attention"]},
    "lfm2_moe": {"num_hidden_layers": 5, "layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 4},
    "diffllama": {"num_attention_heads": 8, "num_key_value_heads": 4},
    "glm5_next_text": {"qk_rope_head_dim": 0, "num_attention_heads": 8, "num_key_value_heads": 8},
    "helium": {"num_attention_heads": 4, "head_dim": 24},
    "nemotron_h": {"layers_block_type": ["mamba", "moe", "attention", "mlp", "mamba", "attention", "mamba", "moe"]},
}
HEADS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ")


def find_class(config: PreTrainedConfig, order: tuple[str, ...]) -> type | None:
    """Return the first class that transformers has for a configuration."""
    for name in order:
        mapping = getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING", None)
        if mapping is not None and type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    return None


def shrink(kind: type, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the small sizes that a configuration class has a field for, those of its parts as objects."""
    names = kind.__dataclass_fields__
    if "qk_rope_head_dim" in names:
        # Latent attention: what a class calls head_dim follows from these sizes.
        found = {key: value for key, value in sizes.items() if key in names and key not in RATIOS}
    else:
        own = {key: kind.attribute_map.get(key, key) for key in sizes}
        found = {key: value for key, value in sizes.items() if key in names or own[key] in names.keys() - sizes.keys()}
    parts = {key: type(value) for key, value in vars(kind()).items() if isinstance(value, PreTrainedConfig)}
    made = {key: make_small(part, sizes)[0] for key, part in parts.items() if key in names}
    return found | {key: {"model_type": parts[key].model_type, **part} for key, part in made.items()}


def make_small(kind: type, sizes: Mapping[str, Any]) -> tuple[dict[str, Any], PreTrainedConfig]:
    """Return a small file and configuration: the sizes that the class takes, its layer types by its own rule."""
    given = shrink(kind, sizes) | (OWN if sizes is TINY else FURTHER).get(kind.model_type, {})
    while True:
        try:
            return given, kind(**copy.deepcopy(given))
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


def run_cache(config: PreTrainedConfig, length: int, dtype: str) -> int | None:
    """Return the bytes of the cache of a model with random weights after a prompt; None where it keeps none."""
    model_class = find_class(config, ("CAUSAL_LM",))
    if model_class is None:
        raise LookupError("no class that generates text")
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in model_class._from_config(config).parameters())
    if count > MOST:
        raise ValueError(f"{count:,} parameters are too many to run")
    torch.manual_seed(0)
    model = model_class._from_config(config, dtype=getattr(torch, dtype)).eval()
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


def compare_caches(kinds: list[str], sizes: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (type, spelling, outcome) for the cache of every class."""
    dtype = "float32" if sizes is WIDER else "bfloat16"
    for kind in kinds:
        try:
            given, config = make_small(CONFIG_MAPPING[kind], sizes)
            measured = run_cache(config, LENGTH, dtype)
        except LookupError:
            continue
        except Exception as error:
            yield kind, "", f"not run: {type(error).__name__} {str(error)[:90]}"
            continue
        if measured is not None:
            yield from compare(kind, given, config, "kv_cache_bytes", measured, dtype)


def compare_parameters(kinds: list[str], sizes: Mapping[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    """Yield (type, spelling, outcome) for the parameters of every class; without sizes, at its defaults."""
    for kind in kinds:
        try:
            given, config = ({}, CONFIG_MAPPING[kind]()) if sizes is None else make_small(CONFIG_MAPPING[kind], sizes)
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
        yield from compare(kind, given, config, "parameters", measured)


def compare(
    kind: str, given: Mapping[str, Any], config: PreTrainedConfig, key: str, measured: int, dtype: str = "bfloat16"
) -> Iterator[tuple[str, str, str]]:
    """Yield (type, spelling, outcome) of one number for each spelling of a file."""
    for spelling, file in zip(SPELLINGS, (config.to_dict(), config.to_diff_dict(), given), strict=True):
        try:
            found = memory({**file, "model_type": kind}, length=LENGTH, dtype=dtype)
        except ValueError as error:
            found = {key: None, "reasons": {key: str(error)}}
        answer, reason = found[key], found["reasons"].get(key, "")
        if answer is None:
            outcome = f"not known, {measured}: {reason[:120]}"
        elif abs(answer - measured) <= TOLERANCES[key] * measured:
            outcome = "equal"
        else:
            outcome = f"{answer} is not {measured} ({answer / max(measured, 1) - 1:+.1%}) {reason[:80]}"
        yield kind, spelling, outcome


def main() -> None:
    """Print every difference, and the counts."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    chosen = sys.argv[1:]
    runs: dict[str, Iterator[tuple[str, str, str]]] = {}
    kinds = [name for name in chosen if name not in (*TABLES, *SIZES, "defaults")] or sorted(CONFIG_MAPPING)
    for table in [name for name in chosen if name in TABLES] or list(TABLES):
        for name in [name for name in chosen if name in (*SIZES, "defaults")] or ["defaults", *SIZES]:
            if name in SIZES:
                runs[f"{table}, {name}"] = TABLES[table](kinds, SIZES[name])
            elif table == "parameters":
                runs[f"{table}, {name}"] = compare_parameters(kinds, None)
    for name, outcomes in runs.items():
        counts: collections.Counter[str] = collections.Counter()
        for kind, spelling, outcome in outcomes:
            word = "unknown" if outcome.startswith("not known") else "equal" if outcome == "equal" else "different"
            counts[f"{spelling} {word}" if spelling else "not run"] += 1
            if outcome != "equal":
                print(f"{name}: {kind} {spelling}: {outcome}", flush=True)
        for spelling in SPELLINGS:
            equal, other, unknown = (counts[f"{spelling} {word}"] for word in ("equal", "different", "unknown"))
            total = equal + other + unknown
            if total:
                print(f"{name}, {spelling}: {equal} of {total} right ({equal / total:.1%}), {unknown} not known")
        print(f"{name}: {counts['not run']} not run", flush=True)


TABLES = {"caches": compare_caches, "parameters": compare_parameters}

if __name__ == "__main__":
    main()
