"""Run llama.cpp's converter on synthetic configs and keep the RoPE keys that it writes: tests/goldens/converted.json.

Run from the root of the repository with torch and transformers 5.23.0, and llama.cpp's source at 0c1e57098, as it lies
in the sdist of llama-cpp-python 0.3.36 under vendor/llama.cpp:
    python tests/goldens/make_converted.py path/to/llama.cpp
Of each model class `set_gguf_parameters` and `generate_extra_tensors` are run, without weights and vocabulary. The
configs are the defaults of the configuration classes of transformers; what a class does not have and the converter
wants stands in `WANTED`. `refused` holds what the converter raised.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from make_served import architectures
from make_transformers_goldens import keep_known_keys
from records import read_records
from transformers_classes import CONFIG_MAPPING, build

from rope_viz.models.no_rope_types import letters_of

HERE = Path(__file__).parent
RECORDS = HERE.parents[1] / "rope_viz" / "models" / "architectures"
VERSION = "0c1e57098"
SCALINGS: tuple[dict[str, Any], ...] = (
    {},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024},
    {
        **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 1024,
    },
)
LENGTH = 4096
# Keys of published configs that the classes of transformers 5 name otherwise or do not have.
WANTED: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {
        **{"no_kda_lora": True, "kda_safe_gate": True, "gated_attention_proj_granularity_type": "head_wise"},
        "moe_shared_expert_intermediate_size": 512,
        "norm_topk_prob": True,
    },
    "bamba": {"attn_layer_indices": [1, 3]},
    "cohere2": {"rotary_pct": 1.0},
    "eurobert": {"classifier_pooling": "mean"},
    "falcon_h1": {"head_dim": 128},
    "gemma4_unified_text": {"moe_intermediate_size": 704},
    "gpt_neox": {"rotary_pct": 0.25},
    "hunyuan_v1_moe": {"moe_intermediate_size": [3072], "moe_topk": [1], "num_shared_expert": [1], "head_dim": 128},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "minimax_m2": {"rotary_dim": 64},
    **{kind: {"mtp_num_hidden_layers": 1} for kind in ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")},
    "dbrx": {"attn_config": {"rope_theta": 50_000.0, "kv_n_heads": 8, "clip_qkv": 8}},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
}
LLAMA = {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 2, "intermediate_size": 4096}
LLAMA |= {"num_key_value_heads": 16, "vocab_size": 1000, "rms_norm_eps": 1e-6}
GLM = {"num_layers": 2, "padded_vocab_size": 1000, "ffn_hidden_size": 4096, "kv_channels": 128, "seq_length": LENGTH}
MLA = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "kv_lora_rank": 512, "q_lora_rank": 1536}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "num_shared_experts": 1}
MOE |= {"norm_topk_prob": True}
# Types that transformers does not have: {type: (class, its own keys)}.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "baichuan": ("BaichuanForCausalLM", {"model_max_length": LENGTH}),
    "bailing_moe": ("BailingMoeForCausalLM", {**MOE, "head_dim": 128, "first_k_dense_replace": 1, "use_bias": False}),
    "bailing_moe_v2": (
        "BailingMoeV2ForCausalLM",
        {
            **{**MOE, "head_dim": 128, "first_k_dense_replace": 1, "partial_rotary_factor": 0.5},
            **{"moe_shared_expert_intermediate_size": 512, "routed_scaling_factor": 1.0},
        },
    ),
    "chatglm": (
        "ChatGLMModel",
        {**GLM, "multi_query_group_num": 2, "layernorm_epsilon": 1e-5, "rope_ratio": 50.0, "attention_dropout": 0.0},
    ),
    "exaone": ("ExaoneForCausalLM", {"num_layers": 2, "head_dim": 128, "activation_function": "silu"}),
    "internlm2": ("InternLM2ForCausalLM", {"bias": False}),
    "kimi_k2": (
        "DeepseekV3ForCausalLM",
        {
            **{**MLA, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512},
            **{"n_shared_experts": 1, "first_k_dense_replace": 1, "routed_scaling_factor": 1.0, "norm_topk_prob": True},
            **{"scoring_func": "sigmoid", "n_group": 1, "topk_group": 1},
        },
    ),
    "minicpm": ("MiniCPMForCausalLM", {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256}),
    "orion": ("OrionForCausalLM", {"model_max_length": LENGTH}),
    "qwen": ("QWenLMHeadModel", {"kv_channels": 128, "rotary_emb_base": 50000.0, "layer_norm_epsilon": 1e-6}),
    "xverse": ("XverseForCausalLM", {}),
    "arctic": ("ArcticForCausalLM", {"num_local_experts": 8, "num_experts_per_tok": 2}),
    "deepseek": (
        "DeepseekForCausalLM",
        {
            **{"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "n_shared_experts": 1},
            "first_k_dense_replace": 1,
        },
    ),
}
SIZES = ("context_length", "embedding_length", "attention.head_count", "attention.key_length")


def converter(root: str) -> Any:
    """llama.cpp's package `conversion`, with its own gguf."""
    sys.path[:0] = [root, str(Path(root, "gguf-py"))]
    import conversion

    logging.disable(logging.CRITICAL)
    conversion.load_all_models()
    return conversion


def converted(conversion: Any, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """The RoPE keys and factors that the model class of this name writes for a config."""
    import gguf

    config = {**copy.deepcopy(config), "architectures": [name]}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        kind = conversion.ModelBase.from_model_architecture(name)
        model = kind(Path(folder), gguf.LlamaFileType.ALL_F32, Path(folder, "out"), eager=True, hparams=config)
        model.set_gguf_parameters()
        pairs = (
            (key.partition(".")[2], value.value) for part in model.gguf_writer.kv_data for key, value in part.items()
        )
        written = {key: value for key, value in pairs if key.startswith("rope.") or key in SIZES}
        found = {key: value for key, value in written.items() if not isinstance(value, list)}
        factors = [tensor.tolist() for name, tensor in model.generate_extra_tensors() if "rope_freqs" in name]
    short = [[float(f"{value:.7g}") for value in one] for one in factors]
    return {"written": found, **({"factors": short[0]} if short else {})}


def list_types() -> list[str]:
    """The model types that a file of llama.cpp reads."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(RECORDS.glob("*.json"))}
    return [kind for kind, record in records.items() if "llama.cpp" in record.get("runtimes", {})]


def name_of(conversion: Any, kind: str) -> str | None:
    """The model class by which the converter knows a type of transformers."""
    known = {letters_of(name): str(name) for name in conversion.ModelBase._model_classes[conversion.ModelType.TEXT]}
    names = (known.get(letters_of(name)) for name in architectures(kind, read_records()))
    return next((name for name in names if name is not None), None)


def scaled(config: dict[str, Any], scaling: dict[str, Any]) -> dict[str, Any]:
    """The config with this scaling on the layers that it is about."""
    config = copy.deepcopy(config)
    rope = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 10_000.0)}
    layer = next((key for key in ("full_attention", "compress") if isinstance(rope.get(key), dict)), "")
    part = {**(rope[layer] if layer else rope), **scaling}
    config["rope_parameters"] = {**rope, layer: part} if layer else part
    return config


def configs(kind: str) -> dict[str, Any]:
    """A whole config of this type, shorter than its class's."""
    if kind in OTHERS:
        long = {"max_position_embeddings": LENGTH}
        if kind != "baichuan":
            long["rope_theta"] = 50_000.0
        return {**LLAMA, **long, **OTHERS[kind][1], "model_type": kind}
    config: dict[str, Any] = json.loads(build(CONFIG_MAPPING[kind]).to_json_string(use_diff=False))
    given = {key: value for key, value in config.items() if key not in ("id2label", "label2id")}
    return {**given, **WANTED.get(kind, {})}


def main(root: str) -> None:
    conversion = converter(root)
    rows, refused = [], {}
    for kind in list_types():
        name = OTHERS[kind][0] if kind in OTHERS else name_of(conversion, kind) if kind in CONFIG_MAPPING else None
        if name is None:
            continue
        base = configs(kind)
        # Phi-3 takes longrope alone, which runtimes.json has.
        for scaling in SCALINGS[:1] if kind == "phi3" else SCALINGS[:3] if kind in OTHERS else SCALINGS:
            config = scaled(base, scaling) if scaling else base
            short = {
                **keep_known_keys(config),
                **{key: config[key] for key in WANTED.get(kind, {})},
                "model_type": kind,
            }
            if kind in OTHERS:
                short = {**short, **{key: value for key, value in base.items() if key not in LLAMA}}
                short |= {key: config[key] for key in ("rope_parameters", *list(LLAMA)[:2]) if key in config}
            if "layer_types" in short and "per_layer_config" not in short:
                short["layer_types"] = list(dict.fromkeys(short["layer_types"]))
            row = {"runtime": "llama.cpp", "version": VERSION, "class": name, "config": short}
            try:
                made = converted(conversion, name, config)
                if made["written"]:
                    rows.append({**row, **made})
            except Exception as error:
                refused[f"{kind} {scaling.get('rope_type', '')}".strip()] = f"{type(error).__name__}: {error}".split(
                    "\n"
                )[0][:120]
    about = f"Made by make_converted.py from the converter of llama.cpp {VERSION}; no tensors, no vocabulary."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path = HERE / "converted.json"
    path.write_text(f'{{"_about": {json.dumps(about)}, "refused": {json.dumps(refused)}, "rows": [\n{lines}\n]}}\n')
    kinds = {row["config"]["model_type"] for row in rows}
    print(len(rows), "rows of", len(kinds), "types;", path.stat().st_size, "bytes")
    for key, reason in refused.items():
        print(key, reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
