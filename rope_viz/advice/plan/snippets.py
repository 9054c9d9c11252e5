"""Snippets to run with a model: each writes the frequencies it really uses to inv_freq.json.

`rope-viz verify config.json --from inv_freq.json` compares them with what the config means. The one for transformers
is run by tests; those for vLLM, SGLang and mlx-lm follow from their code and were not run.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRANSFORMERS = """import json
from transformers import {auto_class}

model = {auto_class}.from_pretrained("./model")
text = model.config.get_text_config(decoder=True)
rotary, name = next(
    (module, name)
    for module in model.modules()
    for name in ({names})
    if hasattr(module, name) and isinstance(getattr(module, "config", None), type(text))
)
factor = getattr(rotary, name.replace("inv_freq", "attention_scaling"), 1.0)
found = {{"inv_freq": getattr(rotary, name).float().tolist(), "attention_factor": float(factor)}}
json.dump(found, open("inv_freq.json", "w"))"""
"""The decoder's rotary module, and the buffer of one layer type where a module has several."""

# Servers store only the table of cosines and sines: one row per position, cosines first.
TABLE = """import json

def read_table(model):  # the first table of cosines and sines among the model's modules
    rotary = next(module for module in model.modules() if hasattr(module, "cos_sin_cache"))
    cos, sin = rotary.cos_sin_cache[:2].double().chunk(2, dim=-1)
    factor = (cos[0] ** 2 + sin[0] ** 2).sqrt().mean().item()
    # At position 1 every angle is below half a turn.
    return json.dumps({"inv_freq": sin[1].atan2(cos[1]).tolist(), "attention_factor": factor})
"""

VLLM = f"""{TABLE}
from vllm import LLM

# The overrides and the length of the server. VLLM_ALLOW_INSECURE_SERIALIZATION=1 lets a function run inside.
llm = LLM("./model", hf_overrides=OVERRIDES, max_model_len=LENGTH)
open("inv_freq.json", "w").write(llm.apply_model(read_table)[0])"""

SGLANG = f"""{TABLE}
# A running server cannot be inspected: this runs its own rotary code with the config of the server.
from sglang.srt.layers.rotary_embedding import get_rope
from transformers import AutoConfig

config = AutoConfig.from_pretrained("./model", **OVERRIDES)
rope = dict(config.rope_parameters)
head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
base = rope.pop("rope_theta")
rotary = get_rope(head, head, config.max_position_embeddings, base, True, rope)
rotary.modules = lambda: [rotary]
open("inv_freq.json", "w").write(read_table(rotary))"""

GGUF = "rope-viz verify config.json --from gguf:model.gguf"

MLX = """import json
from mlx_lm import load

model, _ = load("./model")
rope = model.layers[0].self_attn.rope
# mlx stores periods, the inverse of frequencies; plain RoPE stores only its base.
periods = getattr(rope, "_freqs", None)
if periods is None:
    inv_freq = [rope.base ** (-2 * pair / rope.dims) * rope.scale for pair in range(rope.dims // 2)]
else:
    inv_freq = (1.0 / periods).tolist()
found = {"inv_freq": inv_freq, "attention_factor": float(getattr(rope, "mscale", 1.0))}
json.dump(found, open("inv_freq.json", "w"))"""

SNIPPETS = {"vllm": VLLM, "sglang": SGLANG, "llama.cpp": GGUF, "mlx-lm": MLX}
AUTO_CLASSES = Path(__file__).parents[2] / "models" / "auto_classes.json"
USUAL_CLASS = "AutoModelForCausalLM"


@functools.cache
def read_auto_classes() -> Mapping[str, str]:
    """Return {model type: Auto class of transformers} of the types that another class than the usual one loads."""
    by_class = json.loads(AUTO_CLASSES.read_text(encoding="utf-8"))
    return {kind: name for name, kinds in by_class.items() for kind in kinds}


def find_auto_class(config: Mapping[str, Any]) -> str:
    """Return the Auto class of transformers that loads a model with all of its parts, by its model type."""
    kind = config.get("model_type")
    return read_auto_classes().get(kind, USUAL_CLASS) if isinstance(kind, str) else USUAL_CLASS


def find_snippet(runtime: str, config: Mapping[str, Any], layer: str = "") -> str:
    """Return what to run to get the frequencies of a running model, for layers of this type where types differ."""
    if not runtime.startswith("transformers"):
        return SNIPPETS[runtime]
    names = f'"{layer}_inv_freq", "inv_freq"' if layer else '"inv_freq",'
    return TRANSFORMERS.format(auto_class=find_auto_class(config), names=names)
