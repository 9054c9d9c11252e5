"""Ask a release of transformers for the rotary embedding of synthetic configs: writes tests/goldens/releases.json.

Run once per release, in an environment that has that release and torch, from the root of the repository:
    python tests/goldens/make_releases.py
The file keeps the rows of the releases it already has. `error` is what the configuration class or the rotary class
raises. Left out, because this script cannot build the class as the model does: ModernBERT at 4.52.4, OLMo 3's sliding
layers before 5, Cohere (interleaved tables) at 4.43.4.
"""

import copy
import importlib
import itertools
import json
import math
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig

PATH = Path(__file__).with_name("releases.json")
VERSION = transformers.__version__
SHORT = [1.0 + 0.01 * i for i in range(32)]
LONG = [1.0 + i for i in range(32)]
LISTS = {"short_factor": SHORT, "long_factor": LONG}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def base(model_type="llama", **keys):
    """A small config."""
    sizes = {"hidden_size": 1024, "num_attention_heads": 16, "max_position_embeddings": 32768, "rope_theta": 10000.0}
    return {"model_type": model_type, **sizes, **keys}


def cases():
    """(config, length, layer type) of every row."""
    for knobs in (
        {},
        {"factor": 4},
        {"attention_factor": 1.0},
        {"mscale": 1.0, "mscale_all_dim": 0.5},
        {"mscale": 1.5},
        {"mscale": 1.0, "mscale_all_dim": 0.0},
        {"truncate": False},
        {"beta_fast": 16, "beta_slow": 2},
        {"beta_fast": 1.0, "beta_slow": 32.0},
        {"factor": 8.0},
        {"factor": 2.0},
    ):
        yield base(rope_scaling={**YARN, **knobs}), None, None
    yield base(rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}), None, None
    yield base(rope_scaling={"rope_type": "yarn", "factor": 4.0}), None, None
    yield base(rope_scaling={"rope_type": "yarn", "original_max_position_embeddings": 8192}), None, None
    yield base(partial_rotary_factor=0.5, rope_scaling=YARN), None, None
    yield base(partial_rotary_factor=0.5), None, None
    yield base(rope_scaling={"rope_type": "linear", "factor": 2}), None, None
    yield base(rope_scaling={"type": "linear", "factor": 2.5}), None, None
    yield base(rope_scaling={**LLAMA3, "original_max_position_embeddings": 8192}), None, None
    yield base(rope_scaling=LLAMA3), None, None
    swapped = {"low_freq_factor": 4.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 8192}
    yield base(rope_scaling={**LLAMA3, **swapped}), None, None
    yield base(rope_scaling={"rope_type": "foo", "factor": 2.0}), None, None
    yield (
        {key: value for key, value in base(rope_parameters={**YARN, "rope_theta": 5e5}).items() if key != "rope_theta"},
        None,
        None,
    )
    for length in (None, 100, 32768, 40000, 65536):
        yield base(rope_scaling={"rope_type": "dynamic", "factor": 2.0}), length, None
    for length in (None, 8192, 8193, 32768):
        inside = {"rope_type": "longrope", **LISTS, "original_max_position_embeddings": 8192}
        yield base(rope_scaling=inside), length, None
        for knobs in ({}, {"attention_factor": 1.3}, {"factor": 8.0}):
            scaling = {"rope_type": "longrope", **LISTS, **knobs}
            yield base(original_max_position_embeddings=8192, rope_scaling=scaling), length, None
        for knobs in ({}, {"attention_factor": 1.3}):
            scaling = {"type": "longrope", **LISTS, **knobs}
            phi3 = base("phi3", original_max_position_embeddings=8192, pad_token_id=0, rope_scaling=scaling)
            yield phi3, length, None
    for model_type in "qwen2 mistral mixtral qwen3 stablelm gpt_neox glm4 gemma2 olmo2 cohere phi".split():
        extra = {"partial_rotary_factor": 0.5} if model_type in ("stablelm", "glm4", "phi") else {}
        extra = {"rotary_pct": 0.25, "rotary_emb_base": 10000} if model_type == "gpt_neox" else extra
        for scaling, length in (
            (YARN, None),
            ({"type": "linear", "factor": 3.0}, None),
            ({"rope_type": "linear", "factor": 3.0}, None),
            ({"type": "dynamic", "factor": 3.0}, 50000),
            ({"type": "dynamic", "factor": 3.0}, None),
        ):
            yield base(model_type, rope_scaling=scaling, **extra), length, None
    bases = {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "rope_theta": None}
    layered = (("gemma3_text", {"rope_local_base_freq": 10000.0, "head_dim": 64}), ("modernbert", bases), ("olmo3", {}))
    for (model_type, extra), layer in itertools.product(layered, ("full_attention", "sliding_attention")):
        for scaling in (YARN, {**YARN, "truncate": False}, {"rope_type": "linear", "factor": 4.0}, None):
            config = base(model_type, **extra, **({"rope_scaling": scaling} if scaling else {}))
            yield {key: value for key, value in config.items() if value is not None}, None, layer


def left_out(config, layer):
    """Whether this script cannot build the class as the model does."""
    kind = config["model_type"]
    sliding = kind == "olmo3" and layer == "sliding_attention" and VERSION[0] == "4"
    return sliding or (kind, VERSION) in (("modernbert", "4.52.4"), ("cohere", "4.43.4"))


def ask(config, length, layer):
    """inv_freq and the factor on cos and sin."""
    keys = json.loads(json.dumps(config))
    kind = keys.pop("model_type")
    config = AutoConfig.for_model(kind, **keys)
    name = kind.removesuffix("_text")
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    start = name.replace("_", "")
    if VERSION == "4.43.4" and kind != "llama":
        config.num_hidden_layers = 1
        attention = next(
            getattr(module, found)
            for found in dir(module)
            if found.endswith("Attention") and "Flash" not in found and "Sdpa" not in found
            if found.lower().startswith(start[:4])
        )
        try:
            return measured(attention(config, layer_idx=0).rotary_emb, length)
        except TypeError:
            return measured(attention(config).rotary_emb, length)
    if VERSION[0] == "4" and layer:
        config = copy.deepcopy(config)
        if kind == "modernbert":
            config.rope_theta = config.local_rope_theta if layer == "sliding_attention" else config.global_rope_theta
        elif kind == "gemma3_text" and layer == "sliding_attention":
            config.rope_theta, config.rope_scaling = config.rope_local_base_freq, {"rope_type": "default"}
    rotary = next(
        found for found in dir(module) if found.lower().startswith(start) and found.endswith("RotaryEmbedding")
    )
    rotary = getattr(module, rotary)
    embedding = rotary(config=config)
    if VERSION == "4.43.4":
        return measured(embedding, length)
    arguments = (torch.zeros(1, 1, 2, 4), torch.tensor([[1, (length or 3) - 1]]))
    prefix = f"{layer}_" if layer and hasattr(embedding, f"{layer}_inv_freq") else ""
    embedding(*arguments, *([layer] if prefix else []))
    found = getattr(embedding, f"{prefix}inv_freq").double().tolist()
    return found, float(getattr(embedding, f"{prefix}attention_scaling"))


def measured(embedding, length):
    """inv_freq and the factor on cos and sin from the row of position 1, where the class keeps no attributes."""
    last = max((length or 2) - 1, 2)
    hidden = torch.zeros(1, 1, 2, 4)
    try:
        cos, sin = embedding(hidden, torch.tensor([[1, last]]))
    except (TypeError, RuntimeError, ValueError):
        cos, sin = (table[None, 1:2] for table in embedding(hidden, seq_len=last + 1))
    cos, sin = cos[0, 0].double(), sin[0, 0].double()
    pairs = len(cos) // 2
    return torch.atan2(sin[:pairs], cos[:pairs]).tolist(), math.hypot(float(sin[0]), float(cos[0]))


def main():
    """Add the rows of this release."""
    rows = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    rows = [row for row in rows if row["version"] != VERSION]
    for config, length, layer in cases():
        if left_out(config, layer):
            continue
        row = {"version": VERSION, "config": config, "length": length, "layer_type": layer}
        try:
            found, attention = ask(config, length, layer)
            row |= {"inv_freq": [float(f"{value:.9g}") for value in found], "attention_factor": attention}
        except Exception as error:
            row |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
        rows.append(row)
    about = "Made by make_releases.py from the real classes of each release, torch CPU, float32."
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: row["version"]))
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
