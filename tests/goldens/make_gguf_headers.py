"""Keep the headers that llama.cpp's converter writes for configs of other than default sizes: gguf_headers.json.

Run from the root of the repository as make_converted.py, whose functions it shares:
    python tests/goldens/make_gguf_headers.py path/to/llama.cpp
Each row has the class of the converter, the config and every key of its architecture. The sizes of `CHANGES` are tried
one after another; a change is left out where a class refuses it or where the converter writes the same file without
it. `PUBLISHED` are configs in the form of released models, with fewer layers, for types whose class has other keys.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from make_converted import OTHERS, RECORDS, VERSION, WANTED, configs, converter, list_types, name_of
from transformers_classes import CONFIG_MAPPING, build

OUT = Path(__file__).with_name("gguf_headers.json")
# Types without a rotary embedding have a cache all the same.
WITHOUT_ROPE = ("mamba", "mamba2", "falcon_mamba", "jamba", "nemotron_h")
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 5120, "beta_fast": 24.0}
MLA = {"q_lora_rank": 384, "kv_lora_rank": 256, "qk_rope_head_dim": 32, "qk_nope_head_dim": 96, "v_head_dim": 80}
CHANGES: tuple[dict[str, Any], ...] = (
    {"num_hidden_layers": 8},
    {"max_position_embeddings": 20480},
    {"sliding_window": 640},
    {"num_key_value_heads": 2},
    {"head_dim": 96},
    {"global_head_dim": 160, "num_global_key_value_heads": 1},
    {"num_kv_shared_layers": 3},
    {"kv_lora_rank": 256, "qk_rope_head_dim": 32},
    {"linear_num_value_heads": 24, "linear_num_key_heads": 8, "linear_key_head_dim": 64, "linear_conv_kernel_dim": 3},
    {"mamba_d_state": 48, "mamba_d_conv": 3},
    {"conv_L_cache": 5},
)
# Keys of published configs that decide an answer and that the class leaves out or fills in otherwise.
MORE: dict[str, dict[str, Any]] = {
    "granitemoehybrid": {"position_embedding_type": "nope", "layer_types": ["mamba", "attention"] * 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 4},
    "modernbert": {"local_attention": 128},
    "paddleocr_vl_text": {"num_key_value_heads": 2},
}
TRUNK = {"num_hidden_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 1000}
TRUNK |= {"intermediate_size": 2048, "max_position_embeddings": 20480, "rms_norm_eps": 1e-6}
EXPERTS = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "n_shared_experts": 1}
EXPERTS |= {"norm_topk_prob": True, "routed_scaling_factor": 1.5, "scoring_func": "sigmoid", "first_k_dense_replace": 2}
LOCAL = ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"] * 2
PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "bailing_hybrid": (
        "BailingMoeV3ForCausalLM",
        {
            **{**TRUNK, **MLA, "num_key_value_heads": 16, "head_dim": 64, "layer_group_size": 4, "rope_theta": 5e5},
            **{"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "num_shared_experts": 1},
            **{"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "moe_shared_expert_intermediate_size": 256},
            **{"norm_topk_prob": True, "routed_scaling_factor": 2.5, "short_conv_kernel_size": 3, "no_kda_lora": True},
            **{"kda_safe_gate": True, "gated_attention_proj_granularity_type": "head_wise", "kda_lower_bound": -5.0},
        },
    ),
    "deepseek_v4": (
        "DeepseekV4ForCausalLM",
        {
            **{
                **TRUNK,
                **EXPERTS,
                "head_dim": 256,
                "num_key_value_heads": 1,
                "q_lora_rank": 512,
                "rope_theta": 10_000.0,
            },
            **{"sliding_window": 64, "qk_rope_head_dim": 32, "compress_rope_theta": 120_000.0, "swiglu_limit": 10.0},
            **{"index_n_heads": 8, "index_head_dim": 96, "index_topk": 256, "o_groups": 4, "o_lora_rank": 256},
            **{"hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "num_hash_layers": 0},
            "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 0],
            "scoring_func": "sqrtsoftplus",
            "rope_scaling": {**YARN, "type": "yarn", "beta_fast": 32.0, "beta_slow": 1.0},
        },
    ),
    "mimo_v2_flash": (
        "MiMoV2FlashForCausalLM",
        {
            **{**TRUNK, **EXPERTS, "head_dim": 96, "v_head_dim": 64, "num_key_value_heads": 2, "rope_theta": 5e6},
            **{"swa_head_dim": 96, "swa_v_head_dim": 64, "swa_num_attention_heads": 16, "swa_num_key_value_heads": 4},
            **{"swa_rope_theta": 20_000.0, "partial_rotary_factor": 0.334, "topk_method": "noaux_tc"},
            **{"sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 1, 0, 1, 1, 1], "n_group": 1, "topk_group": 1},
            "layer_types": LOCAL,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.334},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20_000.0, "partial_rotary_factor": 0.334},
                "partial_rotary_factor": 0.334,
            },
        },
    ),
    "step3p5": (
        "Step3p5ForCausalLM",
        {
            **{**TRUNK, "head_dim": 128, "num_attention_groups": 4, "sliding_window": 512, "layer_types": LOCAL},
            **{"rope_theta": [5e6, 1e4, 1e4, 1e4] * 2, "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0] * 2},
            "attention_other_setting": {"num_attention_heads": 24, "num_attention_groups": 4, "head_dim": 128},
            **{"moe_num_experts": 8, "moe_top_k": 2, "moe_intermediate_size": 256, "share_expert_dim": 256},
            **{"moe_layers_enum": "3,4,5,6,7", "moe_router_activation": "sigmoid", "moe_router_scaling_factor": 3.0},
            **{"norm_expert_weight": True, "swiglu_limits": [0.0] * 8, "swiglu_limits_shared": [0.0] * 8},
        },
    ),
    "minimax_m3_vl_text": (
        "MiniMaxM3SparseForCausalLM",
        {
            **{**TRUNK, "head_dim": 64, "num_key_value_heads": 4, "rope_theta": 5e6, "rotary_dim": 32},
            "partial_rotary_factor": 0.5,
            **{"num_local_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "routed_scaling_factor": 2.0},
            **{"scoring_func": "sigmoid", "dense_intermediate_size": 4096, "moe_layer_freq": [0, 0, 0, 1, 1, 1, 1, 1]},
            "sparse_attention_config": {
                **{"sparse_attention_freq": [0, 0, 0, 1, 1, 1, 1, 1], "sparse_num_index_heads": 4},
                **{"sparse_index_dim": 96, "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_local_block": 1},
                **{"sparse_init_block": 0, "use_sparse_attention": True, "sparse_disable_index_value": [0] * 8},
            },
        },
    ),
    "kimi_linear": (
        "KimiLinearForCausalLM",
        {
            **{
                **TRUNK,
                **MLA,
                "num_key_value_heads": 16,
                "q_lora_rank": None,
                "num_experts": 8,
                "rope_theta": 10_000.0,
            },
            **{"num_experts_per_token": 2, "moe_intermediate_size": 256, "num_shared_experts": 1, "head_dim": 72},
            **{"first_k_dense_replace": 1, "routed_scaling_factor": 2.4, "moe_router_activation_func": "sigmoid"},
            "linear_attn_config": {
                **{"full_attn_layers": [4, 8], "kda_layers": [1, 2, 3, 5, 6, 7], "head_dim": 64, "num_heads": 16},
                "short_conv_kernel_size": 4,
            },
            **{"linear_num_heads": 16, "linear_head_dim": 64, "linear_conv_kernel_dim": 4},
            "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
        },
    ),
    "nemotron_h": (
        "NemotronHForCausalLM",
        {
            **{**TRUNK, "num_key_value_heads": 2, "head_dim": 96, "hybrid_override_pattern": "M-M*M-M-"},
            **{"ssm_state_size": 64, "conv_kernel": 3, "mamba_num_heads": 32, "mamba_head_dim": 64, "n_groups": 4},
            **{"expand": 2, "layer_norm_epsilon": 1e-5},
            "layers_block_type": [{"M": "mamba", "*": "attention", "-": "mlp"}[letter] for letter in "M-M*M-M-"],
        },
    ),
    "falcon": (
        "FalconForCausalLM",
        {
            **{"num_hidden_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 1000},
            **{"multi_query": True, "new_decoder_architecture": False, "layer_norm_epsilon": 1e-5, "alibi": False},
        },
    ),
    "laguna": (
        "LagunaForCausalLM",
        {
            **{**TRUNK, "head_dim": 96, "num_key_value_heads": 4, "sliding_window": 640, "layer_types": LOCAL},
            **{"num_attention_heads_per_layer": [16, 24, 24, 24] * 2, "gating": True, "num_experts": 8},
            **{"num_experts_per_tok": 2, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256},
            **{"moe_routed_scaling_factor": 1.0, "mlp_layer_types": ["dense"] + ["sparse"] * 7},
            "rope_parameters": {
                "full_attention": {**YARN, "rope_theta": 400_000.0, "partial_rotary_factor": 0.5},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20_000.0, "partial_rotary_factor": 1.0},
            },
        },
    ),
}


def write_header(conversion: Any, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys and divisors that the model class of this name writes for a config."""
    import gguf

    whole = {**copy.deepcopy(dict(config)), "architectures": [name]}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(whole))
        kind = conversion.ModelBase.from_model_architecture(name)
        model = kind(Path(folder), gguf.LlamaFileType.ALL_F32, Path(folder, "out"), eager=True, hparams=whole)
        model = getattr(model, "impl", model)
        model.set_gguf_parameters()
        pairs = ((key, one.value) for part in model.gguf_writer.kv_data for key, one in part.items())
        architecture = gguf.MODEL_ARCH_NAMES[model.model_arch]
        keys = {
            key.removeprefix(f"{architecture}."): value
            for key, value in pairs
            if key.startswith(f"{architecture}.") and "epsilon" not in key and "swiglu" not in key
        }
        try:
            factors = [tensor.tolist() for name, tensor in model.generate_extra_tensors() if "rope_freqs" in name]
        except KeyError:  # it wants weights
            factors = []
    rounded = [[float(f"{value:.7g}") for value in one] for one in factors]
    return {"architecture": architecture, "keys": keys, **({"factors": rounded[0]} if rounded else {})}


def list_changes(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes that concern the keys of a config."""
    rope, types = config.get("rope_parameters") or {}, config.get("layer_types") or []
    layer = "full_attention" if isinstance(rope.get("full_attention"), dict) else ""
    part = {**(rope[layer] if layer else rope), **YARN}
    found = [values for values in CHANGES if set(values) <= set(config)]
    found += [{"rope_parameters": {**rope, layer: part} if layer else part}] if rope else []
    return found + ([{"layer_types": types[:8][::-1]}] if len(set(types)) > 1 else [])


def vary(conversion: Any, kind: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a short config of other than default sizes, and its header."""
    more = {**WANTED.get(kind, {}), **MORE.get(kind, {})}
    given: dict[str, Any] = {key: value for key, value in more.items() if key == "layer_types"}
    if given:
        given["num_hidden_layers"] = len(given["layer_types"])

    def whole(values: dict[str, Any]) -> dict[str, Any]:
        built = build(CONFIG_MAPPING[kind], **values)
        if built is None:
            raise ValueError("the class refuses it")
        config = json.loads(built.to_json_string(use_diff=False))
        return {**{key: value for key, value in config.items() if key not in ("id2label", "label2id")}, **more}

    config = whole(given)
    header = write_header(conversion, name, config)
    for values in list_changes(config):
        try:
            tried = whole({**given, **values})
            other = write_header(conversion, name, tried)
        except Exception:
            continue
        scaled = "rope_parameters" not in values or other["keys"].get("rope.scaling.type") == "yarn"
        if other != header and scaled:
            config, header, given = tried, other, {**given, **values}
    # The class may change a list of layers that it is given.
    listed = {key: config[key] for key in ("layer_types",) if config.get(key) and len(set(config[key])) > 1}
    return {**given, **more, **listed}, header


def main(root: str) -> None:
    conversion = converter(root)
    read = list_types()
    rows, refused = [], {}
    for kind in sorted({*read, *WITHOUT_ROPE, *PUBLISHED}):
        # A wrapper is converted by its language model.
        if kind in read and "text" in json.loads((RECORDS / f"{kind}.json").read_text()):
            continue
        try:
            if kind in PUBLISHED or kind in OTHERS:
                name, config = PUBLISHED.get(kind) or (OTHERS[kind][0], configs(kind))
                header = write_header(conversion, name, {**config, "model_type": kind})
            else:
                name = name_of(conversion, kind) if kind in CONFIG_MAPPING else None
                if name is None:
                    refused[kind] = "the converter has no class for it, or transformers none"
                    continue
                config, header = vary(conversion, kind, name)
            rows.append({"class": name, "config": {"model_type": kind, **config}, **header})
        except Exception as error:
            # The folder is a temporary one.
            refused[kind] = re.sub(r"/\S*/", "", f"{type(error).__name__}: {error}".split("\n")[0])[:120]
    about = f"Made by make_gguf_headers.py from the converter of llama.cpp {VERSION}; no tensors, no vocabulary."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    OUT.write_text(f'{{"_about": {json.dumps(about)}, "refused": {json.dumps(refused)}, "rows": [\n{lines}\n]}}\n')
    print(len(rows), "rows;", OUT.stat().st_size, "bytes")
    for key, reason in refused.items():
        print(key, reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
