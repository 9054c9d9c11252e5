"""Write refused.json: which wrong values transformers 5.23.0 refuses, key by key, asked of its classes and its models.

A configuration is built, then its model on the meta device, then its rotary module with memory; what raises on the way,
or gives a frequency that is no number, is refused. Run with transformers 5.23.0 and torch 2.13.0:

    python tests/goldens/make_refused.py
"""

import json
import math
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

PATH = Path(__file__).with_name("refused.json")
SIZES = {
    **{"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2},
    **{"num_hidden_layers": 2, "vocab_size": 128, "max_position_embeddings": 8192, "rope_theta": 10000.0},
    **{"head_dim": 16, "pad_token_id": 0},
}
MOE = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
MLA = {
    **{"kv_lora_rank": 32, "q_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16},
    **{"n_routed_experts": 4, "n_shared_experts": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1},
    **{"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "num_key_value_heads": 4},
}
BASES = {
    **{kind: SIZES for kind in ("llama", "qwen2", "qwen3", "gemma3_text", "phi3", "stablelm")},
    **{kind: {**SIZES, **MOE} for kind in ("mixtral", "gpt_oss")},
    "deepseek_v3": {**{key: value for key, value in SIZES.items() if key != "head_dim"}, **MLA},
    "llava": {"text_config": {"model_type": "llama", **SIZES}},
}
KEYS = "head_dim hidden_size num_attention_heads num_key_value_heads num_hidden_layers max_position_embeddings "
KEYS += "rope_theta partial_rotary_factor intermediate_size vocab_size sliding_window layer_types rope_scaling"
RANKS = "qk_rope_head_dim qk_nope_head_dim q_lora_rank kv_lora_rank v_head_dim"
VALUES = ["4096", None, True, [16], {}, -1, 0, 1.5, 4096.0, math.nan, math.inf]


def changed(base: dict, key: str, value: object) -> dict:
    """A config with one value, inside where it is composite."""
    inner = base.get("text_config")
    return {**base, key: value} if inner is None else {"text_config": {**inner, key: value}}


def takes(kind: str, given: dict) -> bool:
    """Whether the class, the model and its rotary module take a config."""
    try:
        config = AutoConfig.for_model(kind, **given).get_text_config()
        with torch.device("meta"):
            try:
                model = AutoModelForCausalLM.from_config(config)
            except ValueError as error:
                if "Unrecognized configuration" not in str(error):
                    raise
                model = AutoModel.from_config(config)
        for module in model.modules():
            names = [name for name, _ in module.named_buffers(recurse=False) if name.endswith("inv_freq")]
            if names and hasattr(module, "config"):
                live = type(module)(module.config)
                return all(bool(torch.isfinite(getattr(live, name)).all()) for name in names)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    refused: dict[str, dict[str, list]] = {}
    for kind, base in BASES.items():
        assert takes(kind, base), kind
        keys = KEYS.split() + (RANKS.split() if kind == "deepseek_v3" else [])
        refused[kind] = {key: [value for value in VALUES if not takes(kind, changed(base, key, value))] for key in keys}
    about = {"made by": Path(__file__).name, "transformers": transformers.__version__, "torch": torch.__version__}
    PATH.write_text(json.dumps({"_about": about, "bases": BASES, "refused": refused}) + "\n")
