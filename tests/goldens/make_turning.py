"""Run tiny models of transformers 5.23.0 and see which of their layers rotate: writes tests/goldens/turning.json.

Run: `pip install transformers==5.23.0 torch==2.13.0` into an environment of its own, then
`python tests/goldens/make_turning.py`. Each row is a config and, for each decoder layer of the real model with random
weights, whether its forward called a function of the modeling file that applies a rotation.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from transformers_classes import CONFIG_MAPPING

PATH = Path(__file__).with_name("turning.json")
TINY = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "vocab_size": 64,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_hidden_layers": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WINDOW = {"sliding_window": 8}
CASES = (
    {"model_type": "llama"},
    {"model_type": "smollm3"},
    {"model_type": "smollm3", "no_rope_layer_interval": 3},
    {"model_type": "smollm3", "no_rope_layers": [1, 0, 1, 1, 1, 1, 0, 0]},
    {"model_type": "llama4_text", "intermediate_size_mlp": 64},
    {"model_type": "llama4_text", "intermediate_size_mlp": 64, "no_rope_layers": []},
    {"model_type": "cohere2", **WINDOW},
    {"model_type": "cohere2", **WINDOW, "sliding_window_pattern": 2},
    {"model_type": "exaone4", **WINDOW},
    {
        "model_type": "exaone4",
        **WINDOW,
        "sliding_window_pattern": "LLLG",
        "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2,
    },
    {"model_type": "exaone4", "sliding_window": None, "layer_types": ["full_attention"] * 8},
    {"model_type": "exaone_moe", **WINDOW, "num_experts_per_tok": 2},
    {"model_type": "afmoe", **WINDOW, "num_dense_layers": 8},
    {"model_type": "granite_swa", "layer_rope_theta": [10000.0, 0, 10000.0, 10000.0, 0, 0, 10000.0, 10000.0], **WINDOW},
    {"model_type": "qwen3_next", "mlp_only_layers": list(range(8))},
    {"model_type": "qwen3_5_text"},
    {"model_type": "lfm2", "full_attn_idxs": [2, 5]},
    {"model_type": "bamba", "attn_layer_indices": [1, 6], "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16},
    {
        "model_type": "granitemoehybrid",
        "position_embedding_type": "rope",
        "layer_types": ["mamba", "mamba", "attention", "mamba", "mamba", "mamba", "attention", "mamba"],
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "shared_intermediate_size": 64,
    },
    {
        "model_type": "granitemoehybrid",
        "position_embedding_type": "nope",
        "layer_types": ["mamba", "mamba", "attention", "mamba", "mamba", "mamba", "attention", "mamba"],
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "shared_intermediate_size": 64,
    },
    {"model_type": "falcon", "alibi": True, "head_dim": None},
    {"model_type": "falcon", "alibi": False, "head_dim": None},
    {"model_type": "gemma3_text", **WINDOW},
    {"model_type": "olmo_hybrid", "rope_theta": None},
    {"model_type": "olmo_hybrid", "rope_theta": 500000.0},
    {"model_type": "jamba", "num_experts": 1, "use_mamba_kernels": False},
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M*M*M*M*", "mamba_num_heads": 8, "mamba_head_dim": 16},
    {"model_type": "bloom", "n_layer": 8, "n_head": 4},
    {"model_type": "mpt", "n_layers": 8, "n_heads": 4, "d_model": 64},
    {"model_type": "gpt2", "n_layer": 8, "n_head": 4, "n_embd": 64},
    {"model_type": "opt", "ffn_dim": 64, "word_embed_proj_dim": 64},
    {"model_type": "mamba", "state_size": 4},
    {
        "model_type": "kimi_linear",
        "num_experts_per_token": 2,
        "layer_types": ["linear_attention", "full_attention"] * 4,
        "mlp_layer_types": ["dense"] * 8,
    },
)


def turning(config):
    """Whether each decoder layer applies a rotation."""
    kind = CONFIG_MAPPING[config["model_type"]]
    values = {**TINY, **config, "use_cache": False}
    values = {key: value for key, value in values.items() if value is not None or key == "sliding_window"}
    values |= {key: None for key in ("rope_theta",) if config.get(key, 0) is None}
    model = AutoModelForCausalLM.from_config(kind(**values))
    module = importlib.import_module(type(model).__module__)
    layers = max(
        (found for found in model.modules() if isinstance(found, torch.nn.ModuleList)),
        key=lambda found: (len(found) == 8, -len(str(found))),
    )
    seen, current = [False] * len(layers), [None]
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: current.__setitem__(0, index))
    originals = dict(vars(module))
    for name, function in originals.items():
        if re.match(r"apply_.*rotary", name) and callable(function):

            def watched(*args, function=function, **kwargs):
                if current[0] is not None:
                    seen[current[0]] = True
                return function(*args, **kwargs)

            setattr(module, name, watched)
    with torch.no_grad():
        model.eval()(input_ids=torch.arange(12)[None] % 60)
    vars(module).update(originals)
    return seen


def main():
    """Write every row."""
    rows = []
    for config in CASES:
        try:
            rows.append({"config": {"num_hidden_layers": 8, **config}, "turning": turning(config)})
        except Exception as error:
            print(config["model_type"], type(error).__name__, str(error)[:200])
    about = "Made by make_turning.py from the models of transformers 5.23.0 with random weights: who calls a rotation."
    lines = ",\n".join(json.dumps(row) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
