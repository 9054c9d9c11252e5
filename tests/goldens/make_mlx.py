"""Ask the model files of mlx-lm 0.32.2 for the rotary module of synthetic configs: writes tests/goldens/mlx.json.

Run from the root of the repository where mlx 0.32.4 (the CPU wheel) is installed and mlx-lm is on the path:
    python tests/goldens/make_mlx.py
mlx-lm's package initialiser wants transformers, which is not needed here, so it is stepped over. `error` is what the
model file raises. Frequencies are the angles of unit vectors turned at offset 1; a dynamic module's come from its base.
"""

import importlib
import importlib.util
import itertools
import json
import math
import sys
import types
from pathlib import Path

import mlx.core as mx
import numpy as np

PATH = Path(__file__).with_name("mlx.json")
SHORT = [1.0 + 0.01 * i for i in range(32)]
LONG = [1.0 + i for i in range(32)]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
LISTS = {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 8192}
SCALINGS = (
    None,
    {"rope_type": "linear", "factor": 3.0},
    {"type": "linear", "factor": 3.0},
    {"type": "dynamic", "factor": 3.0},
    YARN,
    {"rope_type": "yarn", "factor": 4.0},
    {**YARN, "mscale": 1.5},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    {**YARN, "truncate": False, "attention_factor": 1.0},
    {**YARN, "beta_fast": 16, "beta_slow": 2},
    {"rope_type": "llama3", "factor": 8.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
    {"type": "longrope", **LISTS},
    {"type": "su", **LISTS},
    {"rope_type": "proportional", "factor": 2.0},
    {"rope_type": "foo", "factor": 2.0},
)
MODELS = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "olmo2", "internlm2", "phi3", "stablelm", "gpt_neox", "glm4")
# What the model files want beside the keys of interest.
REST = {
    "num_hidden_layers": 1,
    "intermediate_size": 64,
    "vocab_size": 32,
    "rms_norm_eps": 1e-5,
    "layer_norm_eps": 1e-5,
    "num_key_value_heads": 16,
    "attention_bias": False,
    "bias": False,
    "tie_word_embeddings": True,
    "use_qkv_bias": False,
    "use_parallel_residual": True,
}


def cases():
    """(config, length) of every row."""
    for kind, scaling, head_dim in itertools.product(MODELS, SCALINGS, (64, 128)):
        config = {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16, "head_dim": head_dim}
        config |= {"max_position_embeddings": 32768, "rope_theta": 10000.0}
        if kind in ("stablelm", "glm4", "llama"):
            config["partial_rotary_factor"] = 0.5
        if kind == "gpt_neox":
            config |= {"rotary_pct": 0.25, "rotary_emb_base": 10000}
        if scaling is not None:
            config["rope_scaling"] = scaling
        yield config, 70000 if scaling and "dynamic" in scaling.values() else None


def module_of(name):
    """A module of mlx-lm without the package initialiser."""
    if "mlx_lm" not in sys.modules:
        root = Path(importlib.util.find_spec("mlx_lm").submodule_search_locations[0])
        for package, folder in (("mlx_lm", root), ("mlx_lm.models", root / "models")):
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = [str(folder)]
    return importlib.import_module(f"mlx_lm.models.{name}")


def ask(config, length):
    """inv_freq and the factor on cos and sin."""
    kind = config["model_type"]
    module = module_of({"mistral": "llama"}.get(kind, kind))
    arguments = module.ModelArgs.from_dict({**REST, **json.loads(json.dumps(config))})
    attention = next(
        value for name, value in vars(module).items() if name.endswith("Attention") and isinstance(value, type)
    )
    try:
        rope = attention(arguments).rope
    except TypeError:
        rope = attention(arguments, 0).rope
    if type(rope).__name__ == "DynamicNTKScalingRoPE":
        longest = max(length, rope.max_position_embeddings)
        growth = rope.factor * longest / rope.max_position_embeddings - (rope.factor - 1)
        base = rope.base * growth ** (rope.dims / (rope.dims - 2))
        return (base ** (-np.arange(0, rope.dims, 2) / rope.dims)).tolist(), 1.0
    dims = rope.dim if hasattr(rope, "dim") else rope.dims
    angles, sizes = [], []
    for pair in range(dims // 2):
        first, second = (2 * pair, 2 * pair + 1) if getattr(rope, "traditional", False) else (pair, pair + dims // 2)
        vector = np.zeros((1, 1, 1, max(dims, 128)), np.float32)
        vector[..., first] = 1
        turned = np.array(rope(mx.array(vector), offset=1))[0, 0, 0]
        angles.append(math.atan2(turned[second], turned[first]))
        sizes.append(math.hypot(turned[first], turned[second]))
    return angles, sizes[0]


def main():
    """Write every row."""
    rows = []
    for config, length in cases():
        row = {"config": config, "length": length}
        try:
            found, attention = ask(config, length)
            row |= {"inv_freq": [float(f"{value:.7g}") for value in found], "attention_factor": round(attention, 8)}
        except Exception as error:
            row |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
        rows.append(row)
    about = "Made by make_mlx.py from the model files of mlx-lm 0.32.2 on mlx 0.32.4 for CPU, float32."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
