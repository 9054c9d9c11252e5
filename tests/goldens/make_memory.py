"""Write memory.json: what the caches of transformers 5.23.0 hold, measured, and what its classes have of parameters.

Small models with random weights read 24, then 96 tokens; counted are the bytes of every tensor in their caches. The
parameters are those of the published sizes, on the meta device. Run with transformers 5.23.0 and torch 2.13.0:

    python tests/goldens/make_memory.py
"""

import json
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

PATH = Path(__file__).with_name("memory.json")
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "vocab_size": 128,
    "num_hidden_layers": 8,
}
GQA = {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {
    **{"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4},
    **{"mamba_expand": 2, "mamba_d_ssm": 128},
}
MOE = {"num_local_experts": 4, "num_experts_per_tok": 2}
MLA = {
    **{"kv_lora_rank": 32, "q_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16},
    **{"n_routed_experts": 4, "n_shared_experts": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1},
    **{"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "max_position_embeddings": 256},
}
EXAONE = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 2
CACHES = [
    {"model_type": "llama", **GQA},
    {"model_type": "qwen3", **GQA},
    {"model_type": "gpt_neox", **SMALL, "max_position_embeddings": 256},
    {"model_type": "mistral", **GQA, "sliding_window": 32},
    {"model_type": "gemma2", **GQA, "sliding_window": 32},
    {"model_type": "gemma3_text", **GQA, "sliding_window": 32},
    {"model_type": "gpt_oss", **GQA, **MOE, "sliding_window": 32},
    {"model_type": "olmo3", **GQA, "sliding_window": 32},
    {"model_type": "cohere2", **GQA, "sliding_window": 32},
    {"model_type": "qwen2", **GQA, "use_sliding_window": True, "sliding_window": 32, "max_window_layers": 5},
    {"model_type": "deepseek_v3", **SMALL, **MLA},
    {"model_type": "qwen3_5_text", **GQA, **LINEAR, "partial_rotary_factor": 0.5},
    {"model_type": "llama", **GQA, "sliding_window": 32},
    {"model_type": "phi3", **GQA, "sliding_window": 32, "pad_token_id": 0},
    {"model_type": "falcon", **SMALL, "max_position_embeddings": 256},
    {"model_type": "falcon", **SMALL, "max_position_embeddings": 256, "multi_query": False},
    {"model_type": "deepseek_v2", **SMALL, **MLA},
    {"model_type": "exaone4", **GQA, "sliding_window": 32, "layer_types": EXAONE},
    {"model_type": "minimax", **GQA, **MOE},
    {"model_type": "falcon_h1", **GQA, **MAMBA},
    {"model_type": "granitemoehybrid", **GQA, **MOE, **MAMBA, "layer_types": ["mamba", "attention"] * 4},
    {"model_type": "bamba", **GQA, **MAMBA, "attn_layer_indices": [1, 5]},
    {"model_type": "qwen3_next", **GQA, **LINEAR, **MOE, "num_experts": 4, "moe_intermediate_size": 32},
    {"model_type": "lfm2", **GQA, "full_attn_idxs": [2, 5], "conv_L_cache": 3},
]
PUBLISHED = [
    "llama-3.1-8b",
    "qwen3-8b",
    "qwen3-0.6b",
    "gemma-2-9b",
    "gemma-3-12b-global",
    "gpt-oss-20b",
    "mixtral-8x7b",
]
PUBLISHED += ["deepseek-v3", "deepseek-v2-lite", "glm-4-9b-0414", "phi-4", "olmo-3.1-32b", "qwen3.5-9b", "pythia-6.9b"]


def held(cache) -> int:
    """The bytes of all tensors of a cache, each counted once."""
    seen = {}
    for layer in getattr(cache, "layers", [cache]):
        for value in vars(layer).values():
            for one in (
                value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
            ):
                if isinstance(one, torch.Tensor) and one.numel() and one.dim() > 1:
                    seen[one.data_ptr(), one.shape] = one.numel() * one.element_size()
    # MiniMax keeps the states of its recurrent layers beside the layers.
    beside = [one for one in getattr(cache, "linear_cache", ()) if isinstance(one, torch.Tensor)]
    return sum(seen.values()) + sum(one.numel() * one.element_size() for one in beside)


def measured(given: dict) -> dict:
    config = AutoConfig.for_model(**given)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    found = {}
    for length in (24, 96):
        cache = model(torch.arange(length)[None] % 100, use_cache=True).past_key_values
        found[str(length)] = held(cache)
    return {"config": given, "bytes": found}


def counted(name: str) -> dict:
    text = (PATH.parents[2] / "rope_viz" / "models" / "catalog" / f"{name}.json").read_text()
    given = json.loads(text)
    about = given.pop("_about")
    config = AutoConfig.for_model(**{**about["sizes"], **given})
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    tied = {id(parameter): parameter.numel() for parameter in model.parameters()}
    return {"model": name, "parameters": sum(tied.values())}


if __name__ == "__main__":
    caches = []
    with torch.no_grad():
        for given in CACHES:
            try:
                caches.append(measured(given))
            except Exception as error:
                print(given["model_type"], type(error), error)
    counts = []
    for name in PUBLISHED:
        try:
            counts.append(counted(name))
        except Exception as error:
            print(name, type(error), error)
    about = {"made by": Path(__file__).name, "transformers": transformers.__version__, "torch": torch.__version__}
    PATH.write_text(json.dumps({"_about": about, "caches": caches, "parameters": counts}, indent=1) + "\n")
