"""Write small GGUF files of float32 tensors without a package (ggml's docs/gguf.md), with the names of llama.cpp.

The conversion follows `conversion/llama.py`, `qwen.py` and `gemma.py` of llama.cpp 0c1e57098.
"""

import numpy as np

from rope_viz.probe.write_gguf import NAMES, pack_gguf, reorder_rows


def write(path, keys, tensors):
    """Write a file of version 3 with float32 tensors."""
    path.write_bytes(b"".join(pack_gguf(keys, tensors)))


def convert(model):
    """(keys, tensors) of a transformers model of type llama, qwen2, qwen3 or gemma."""
    config, kind = model.config, model.config.model_type
    sizes = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(config.rope_parameters["rope_theta"]),
    }
    keys = {"general.architecture": kind} | {f"{kind}.{name}": value for name, value in sizes.items()}
    tensors = {}
    for name, weight in model.state_dict().items():
        array, parts = weight.numpy(), name.split(".")
        if kind == "gemma" and name.endswith("norm.weight"):
            array = array + 1
        if name.endswith("o_proj.bias"):
            continue
        if name.startswith("model.layers."):
            part, suffix = ".".join(parts[3:-1]), parts[-1]
            if kind == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
                heads = config.num_attention_heads if part[-6] == "q" else config.num_key_value_heads
                array = reorder_rows(array, heads)
            tensors[f"blk.{parts[2]}.{NAMES[part]}.{suffix}"] = array
        elif name == "model.embed_tokens.weight":
            tensors["token_embd.weight"] = array
        elif name == "model.norm.weight":
            tensors["output_norm.weight"] = array
        elif not config.tie_word_embeddings:
            tensors["output.weight"] = array
    return keys, tensors


# The bytes of GPT-2's alphabet, and a few merges.
LETTERS = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]
MERGES = ["t h", "th e", "Ġ the", "Ġ a", "i n", "Ġ Ġ"]


def vocabulary(pre="smollm", **more):
    """Keys of a small byte-level BPE."""
    tokens = ["<|end|>", *LETTERS, *(merge.replace(" ", "") for merge in MERGES)]
    keys = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "merges": MERGES,
        "token_type": [3] + [1] * (len(tokens) - 1),
        "bos_token_id": 0,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in (keys | more).items()}


SIZES = {
    "context_length": 64, "embedding_length": 24, "block_count": 2, "feed_forward_length": 40,
    "attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10_000.0,
}  # fmt: skip
SHAPES = {
    "attn_q": (24, 24), "attn_k": (12, 24), "attn_v": (12, 24), "attn_output": (24, 24), "ffn_gate": (40, 24),
    "ffn_up": (40, 24), "ffn_down": (24, 40), "attn_norm": (24,), "ffn_norm": (24,),
}  # fmt: skip


def write_small_model(path):
    """Write a random Llama of two layers with the small vocabulary."""
    rng, words = np.random.default_rng(2), vocabulary()
    tensors = {
        f"blk.{index}.{name}.weight": rng.normal(size=shape).astype(np.float32)
        for index in range(2)
        for name, shape in SHAPES.items()
    }
    tensors["token_embd.weight"] = rng.normal(size=(len(words["tokenizer.ggml.tokens"]), 24)).astype(np.float32)
    tensors["output_norm.weight"] = np.ones(24, np.float32)
    keys = {"general.architecture": "llama"} | {f"llama.{name}": value for name, value in SIZES.items()} | words
    write(path, keys, tensors)
