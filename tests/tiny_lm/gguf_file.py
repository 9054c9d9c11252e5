"""The reader as a GGUF file for llama.cpp, to see that a runtime computes what we say of it. Needs the gguf package.

As llama.cpp's own `conversion/llama.py` at 0c1e57098 does it: float32, and the rows of q and k reordered, since this
architecture rotates neighbouring dimensions there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import Linear, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.tiny_lm.numpy_model import Floats, TinyLm

NAMES = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "before_attention": "attn_norm",
    "before_mlp": "ffn_norm",
}


def write_gguf(reader: TinyLm, path: str | Path, spec: RopeSpec | None = None) -> None:
    """The reader's weights without a vocabulary (tokens go in as numbers), with an embedding that GGUF can name.

    `spec` None is the one it was trained with. Raises `ValueError` for a method that the file has no keys for.
    """
    try:
        import gguf
    except ImportError:
        raise ValueError("writing GGUF needs the gguf package") from None
    spec = reader.spec if spec is None else spec
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("RopeViz reader")
    writer.add_vocab_size(len(reader.embedding))
    writer.add_context_length(spec.target)
    writer.add_embedding_length(reader.embedding.shape[1])
    writer.add_block_count(len(reader.layers))
    writer.add_feed_forward_length(reader.layers[0].gate.shape[0])
    writer.add_head_count(reader.heads)
    writer.add_head_count_kv(reader.heads)
    writer.add_layer_norm_rms_eps(reader.epsilon)
    writer.add_rope_dimension_count(reader.head_dim)
    writer.add_rope_freq_base(spec.base)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("no_vocab")
    for name, value in scaling_keys(spec).items():
        getattr(writer, name)(gguf.RopeScalingType(value) if name.endswith("type") else value)
    writer.add_tensor("token_embd.weight", reader.embedding)
    writer.add_tensor("output_norm.weight", reader.norm)
    for index, layer in enumerate(reader.layers):
        for field, name in NAMES.items():
            weight: Floats = getattr(layer, field)
            if field in ("q", "k"):
                weight = neighbours(weight, reader.heads)
            writer.add_tensor(f"blk.{index}.{name}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def scaling_keys(spec: RopeSpec) -> Mapping[str, Any]:
    """{method of the writer: value} for a scaling method."""
    scaling = spec.scaling
    if scaling.name == "none":
        return {}
    if isinstance(scaling, Linear):
        return {"add_rope_scaling_type": "linear", "add_rope_scaling_factor": scaling.factor}
    if isinstance(scaling, Yarn):
        return {
            "add_rope_scaling_type": "yarn",
            "add_rope_scaling_factor": scaling.factor,
            "add_rope_scaling_orig_ctx_len": spec.context,
        }
    raise ValueError(f"a GGUF file has no keys for '{scaling.name}': set it by flags")


def neighbours(weight: Floats, heads: int) -> Floats:
    """Rows of q or k from pairs (i, i + d/2) to pairs (2i, 2i + 1) in every head."""
    half = weight.reshape(heads, 2, -1, weight.shape[1])
    return np.ascontiguousarray(half.swapaxes(1, 2).reshape(weight.shape))
