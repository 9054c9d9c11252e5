"""Load a language model from a GGUF file: its config with the keys of transformers, and its weights as float32.

The names of tensors and keys: https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py. llama.cpp rotates
neighbouring dimensions of the architecture `llama`; its rows of q and k return to transformers' order here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.formats.gguf import GgufHeader, read_bytes, read_frequency_divisors, read_header
from rope_viz.models.formats.gguf_config import recognise_llama3
from rope_viz.models.model_config import from_config
from rope_viz.real_models import TEXTS
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items
from rope_viz.tiny_lm.numpy_model import LayerWeights, TinyLm

Floats: TypeAlias = NDArray[np.float32]

Bytes: TypeAlias = NDArray[np.uint8]

LARGEST = 1 << 33
"""Values of one tensor at most."""


# The block formats: https://github.com/ggml-org/ggml, src/ggml-common.h. tests/tiny_lm/test_gguf_tensors.py compares
# every format bit by bit with the `gguf` package.
@dataclass(frozen=True)
class BlockFormat:
    """A type of tensor: bytes of one block, values of one block, and the function from (blocks, bytes) to values."""

    name: str
    bytes: int
    values: int
    decode: Callable[[Bytes], Floats]


def read_tensor(header: GgufHeader, name: str) -> Floats:
    """Return a tensor of the file as float32 in NumPy's order (out, in).

    Raises `ValueError` for an unknown tensor, a type that is not supported, and a file that is cut off.
    """
    if name not in header.tensors:
        raise ValueError(TEXTS("gguf.no_tensor", name=short_repr(name)))
    place = header.tensors[name]
    found = FORMATS.get(place.kind)
    if found is None:
        kind = OTHER_TYPES.get(str(place.kind), TEXTS("gguf.type", kind=place.kind))
        raise ValueError(TEXTS("gguf.storage", name=name, kind=kind))
    count = math.prod(place.shape)
    if not 0 < count <= LARGEST or place.shape[-1] % found.values:
        raise ValueError(TEXTS("gguf.tensor_shape", name=name, kind=found.name, shape=place.shape))
    raw = read_bytes(header, name, count // found.values * found.bytes)
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, found.bytes)
    # PyTorch shares memory only with arrays that it may write to.
    return np.require(found.decode(blocks).reshape(place.shape), np.float32, ["C", "W"])


def as_half(raw: Bytes) -> Floats:
    """Return the float16 number in two bytes of each block, (blocks, 1)."""
    return as_numbers(raw, "<f2").astype(np.float32)


def as_numbers(raw: Bytes, dtype: str) -> NDArray[Any]:
    """Return the bytes of each block as numbers."""
    return np.ascontiguousarray(raw).view(dtype)


def take_bits(raw: Bytes, rows: int, width: int) -> Bytes:
    """Return the numbers of `width` bits in (blocks, n) bytes, (blocks, rows, 8 // width, n // rows).

    The lowest bits of each row of bytes come first.
    """
    shifts = np.arange(0, 8, width, dtype=np.uint8).reshape(1, 1, -1, 1)
    parts = raw.reshape(len(raw), rows, 1, -1) >> shifts
    return np.asarray(parts & np.uint8((1 << width) - 1))


def decode_f32(blocks: Bytes) -> Floats:
    """Decode float32."""
    return np.asarray(as_numbers(blocks, "<f4"))


def decode_f16(blocks: Bytes) -> Floats:
    """Decode float16."""
    return as_half(blocks)


def decode_bf16(blocks: Bytes) -> Floats:
    """Decode bfloat16, the upper half of a float32."""
    return np.asarray((as_numbers(blocks, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32))


def decode_q4_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 4 bits with one scale."""
    q = take_bits(blocks[:, 2:], 1, 4).reshape(-1, 32).astype(np.float32) - np.float32(8)
    return as_half(blocks[:, :2]) * q


def decode_q4_1(blocks: Bytes) -> Floats:
    """Decode 32 values of 4 bits with one scale and one offset."""
    q = take_bits(blocks[:, 4:], 1, 4).reshape(-1, 32).astype(np.float32)
    return as_half(blocks[:, :2]) * q + as_half(blocks[:, 2:4])


def fifth_bits(raw: Bytes) -> Bytes:
    """Return bit 4 of 32 values from 4 bytes, (blocks, 32)."""
    return np.unpackbits(raw, axis=1, bitorder="little") << np.uint8(4)


def decode_q5_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 5 bits with one scale."""
    q = take_bits(blocks[:, 6:], 1, 4).reshape(-1, 32) | fifth_bits(blocks[:, 2:6])
    return as_half(blocks[:, :2]) * (q.astype(np.float32) - np.float32(16))


def decode_q5_1(blocks: Bytes) -> Floats:
    """Decode 32 values of 5 bits with one scale and one offset."""
    q = take_bits(blocks[:, 8:], 1, 4).reshape(-1, 32) | fifth_bits(blocks[:, 4:8])
    return as_half(blocks[:, :2]) * q.astype(np.float32) + as_half(blocks[:, 2:4])


def decode_q8_0(blocks: Bytes) -> Floats:
    """Decode 32 values of 8 bits with one scale."""
    return as_half(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


def decode_q2_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 2 bits in 16 groups."""
    scales, q = blocks[:, :16], take_bits(blocks[:, 16:80], 2, 2).reshape(-1, 16, 16)
    scale = as_half(blocks[:, 80:82]) * (scales & 15).astype(np.float32)
    least = as_half(blocks[:, 82:84]) * (scales >> 4).astype(np.float32)
    return scale[:, :, None] * q.astype(np.float32) - least[:, :, None]


def decode_q3_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 3 bits in 16 groups."""
    high = take_bits(blocks[:, :32], 1, 1).reshape(-1, 256).astype(np.int8)
    q = take_bits(blocks[:, 32:96], 2, 2).reshape(-1, 256).astype(np.int8) - (1 - high) * np.int8(4)
    low = take_bits(blocks[:, 96:104], 1, 4).reshape(-1, 16)
    scales = low | (take_bits(blocks[:, 104:108], 1, 2).reshape(-1, 16) << np.uint8(4))
    scale = as_half(blocks[:, 108:110]) * (scales.astype(np.int8) - np.int8(32)).astype(np.float32)
    return scale[:, :, None] * q.reshape(-1, 16, 16).astype(np.float32)


def scales_of_6_bits(raw: Bytes) -> tuple[Floats, Floats]:
    """Return the 8 scales and 8 minima in 12 bytes of Q4_K and Q5_K, each (blocks, 8)."""
    scale, least, rest = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([scale & 63, (rest & 15) | ((scale >> 2) & 48)], axis=1)
    minima = np.concatenate([least & 63, (rest >> 4) | ((least >> 2) & 48)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def decode_k_with_minima(blocks: Bytes, q: Bytes) -> Floats:
    """Return 256 values in 8 groups of Q4_K and Q5_K; `q` is (blocks, 8, 32)."""
    scales, minima = scales_of_6_bits(blocks[:, 4:16])
    scale, least = as_half(blocks[:, :2]) * scales, as_half(blocks[:, 2:4]) * minima
    return scale[:, :, None] * q.astype(np.float32) - least[:, :, None]


def decode_q4_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 4 bits in 8 groups."""
    return decode_k_with_minima(blocks, take_bits(blocks[:, 16:], 4, 4).reshape(-1, 8, 32))


def decode_q5_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 5 bits in 8 groups."""
    high = take_bits(blocks[:, 16:48], 1, 1).reshape(-1, 8, 32)
    low = take_bits(blocks[:, 48:], 4, 4).reshape(-1, 8, 32)
    return decode_k_with_minima(blocks, low | (high << np.uint8(4)))


def decode_q6_k(blocks: Bytes) -> Floats:
    """Decode 256 values of 6 bits in 16 groups."""
    low = take_bits(blocks[:, :128], 2, 4).reshape(-1, 256)
    high = take_bits(blocks[:, 128:192], 2, 2).reshape(-1, 256)
    q = (low | (high << np.uint8(4))).astype(np.int8) - np.int8(32)
    scale = as_half(blocks[:, 208:210]) * as_numbers(blocks[:, 192:208], "<i1").astype(np.float32)
    return scale[:, :, None] * q.reshape(-1, 16, 16).astype(np.float32)


FORMATS = {
    0: BlockFormat("F32", 4, 1, decode_f32),
    1: BlockFormat("F16", 2, 1, decode_f16),
    2: BlockFormat("Q4_0", 18, 32, decode_q4_0),
    3: BlockFormat("Q4_1", 20, 32, decode_q4_1),
    6: BlockFormat("Q5_0", 22, 32, decode_q5_0),
    7: BlockFormat("Q5_1", 24, 32, decode_q5_1),
    8: BlockFormat("Q8_0", 34, 32, decode_q8_0),
    10: BlockFormat("Q2_K", 84, 256, decode_q2_k),
    11: BlockFormat("Q3_K", 110, 256, decode_q3_k),
    12: BlockFormat("Q4_K", 144, 256, decode_q4_k),
    13: BlockFormat("Q5_K", 176, 256, decode_q5_k),
    14: BlockFormat("Q6_K", 210, 256, decode_q6_k),
    30: BlockFormat("BF16", 2, 1, decode_bf16),
}
"""{ggml's type: its format}."""

NAMES: dict[str, dict[str, str]] = read_own(__file__, "ggml_names.json")
OTHER_TYPES = NAMES["refused_types"]
"""{ggml's type: its name}, of types that are refused."""


@dataclass(frozen=True)
class GgufArchitecture:
    """What the graph of an architecture does besides Llama's."""

    neighbours: bool = False
    """q and k are stored for a rotation of neighbouring dimensions."""
    normalises_heads: bool = False
    scales_embedding: bool = False
    activation: str = "silu"


ARCHITECTURES = {
    "llama": GgufArchitecture(neighbours=True),
    "qwen2": GgufArchitecture(),
    "qwen3": GgufArchitecture(normalises_heads=True),
    "gemma": GgufArchitecture(scales_embedding=True, activation="gelu"),
}
"""{llama.cpp's name, which is transformers' model type too: what differs}."""

PARTS, BIASES, HEAD_NORMS = NAMES["tensors"], NAMES["biases"], NAMES["head_norms"]
CHANGED_GRAPH = ("expert_count", "attention.scale", "logit_scale", "rope.scaling.yarn_log_multiplier")
"""Keys that change the graph where they are not 0."""


def load_gguf(path: str | Path, progress: Callable[[int, int], None] | None = None) -> TinyLm:
    """Load the model of a GGUF file. `progress` is called with the number of loaded and of all layers.

    Raises `ValueError` for another architecture, for tensors that its graph does not have, and for a broken file.
    """
    header = read_header(path)
    config = make_config(header)
    about = ARCHITECTURES[header.architecture]
    check_tensors(header, config, about)
    count = config["num_hidden_layers"]
    embedding = read_tensor(header, "token_embd.weight")
    layers = []
    for index in range(count):
        layers.append(read_layer(header, index, config, about))
        if progress is not None:
            progress(index + 1, count)
    tied = config["tie_word_embeddings"]
    return TinyLm(
        name=Path(path).stem,
        spec=from_config(config)[""],
        heads=config["num_attention_heads"],
        epsilon=config["rms_norm_eps"],
        embedding=embedding,
        layers=tuple(layers),
        norm=read_tensor(header, "output_norm.weight"),
        unembedding=embedding if tied else read_tensor(header, "output.weight"),
        config=MappingProxyType(config),
        activation=about.activation,
        # transformers rounds the factor to the model's data type, which is float32 here.
        embedding_scale=math.sqrt(config["hidden_size"]) if about.scales_embedding else 1.0,
    )


def make_config(header: GgufHeader) -> dict[str, Any]:
    """Return the config of the model with transformers' keys.

    Raises `ValueError` for an architecture whose graph is not computed here, and for missing or wrong sizes.
    """
    kind = header.architecture
    if kind not in ARCHITECTURES:
        raise ValueError(
            TEXTS("gguf.architecture", name=header.path.name, kind=short_repr(kind), known=join_items(ARCHITECTURES))
        )
    for name in CHANGED_GRAPH:
        if header.find(name):
            raise ValueError(TEXTS("gguf.graph", kind=kind, name=name))
    width, heads = (find_size(header, name) for name in ("embedding_length", "attention.head_count"))
    head_dim = find_size(header, "attention.key_length", width // heads)
    rotary = find_size(header, "rope.dimension_count", head_dim)
    if rotary != head_dim or find_size(header, "attention.value_length", head_dim) != head_dim:
        raise ValueError(TEXTS("gguf.partial"))
    base = header.find("rope.freq_base", 10_000.0)
    epsilon = header.find("attention.layer_norm_rms_epsilon", 1e-6)
    require_number(base, "rope.freq_base", above=0.0)
    require_number(epsilon, "attention.layer_norm_rms_epsilon", least=0.0)
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ValueError(TEXTS("gguf.no_matrix"))
    config = {
        "model_type": kind,
        "hidden_size": width,
        "intermediate_size": find_size(header, "feed_forward_length"),
        "num_hidden_layers": find_size(header, "block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": find_size(header, "attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": embedding.shape[0],
        "max_position_embeddings": find_size(header, "context_length"),
        "rms_norm_eps": float(epsilon),
        "rope_theta": float(base),
        "tie_word_embeddings": "output.weight" not in header.tensors,
    }
    scaling = read_scaling(header, config)
    return config | ({"rope_scaling": scaling} if scaling else {})


def find_size(header: GgufHeader, name: str, default: int | None = None) -> int:
    """Return a size among the keys. Raises `ValueError` if it is missing or no positive whole number."""
    value = header.find(name, default)
    if value is None:
        raise ValueError(TEXTS("gguf.no_key", architecture=header.architecture, name=name))
    if isinstance(value, list) and value and len(set(value)) == 1:
        value = value[0]
    require_number(value, f"{header.architecture}.{name}", least=1, most=1 << 32, integer=True)
    return int(value)


def read_scaling(header: GgufHeader, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the scaling as transformers' `rope_scaling`, or None. Raises `ValueError` for other methods."""
    divisors = read_frequency_divisors(header)
    kind, factor = header.find("rope.scaling.type", "none"), header.find("rope.scaling.factor", 1.0) or 1.0
    if divisors:
        held = divisors.get("rope_freqs.weight")
        found = None if kind != "none" or held is None else recognise_llama3(held.tolist(), config["rope_theta"])
        if found is None:
            raise ValueError(TEXTS("gguf.divisors"))
        return found
    if kind == "none" or factor == 1.0:
        return None
    if kind not in ("linear", "yarn"):
        raise ValueError(TEXTS("gguf.scaling", kind=short_repr(kind)))
    require_number(factor, "rope.scaling.factor", above=0.0)
    original = find_size(header, "rope.scaling.original_context_length", config["max_position_embeddings"])
    scaling = {"rope_type": kind, "factor": float(factor)}
    return scaling if kind == "linear" else scaling | {"original_max_position_embeddings": original}


def check_tensors(header: GgufHeader, config: Mapping[str, Any], about: GgufArchitecture) -> None:
    """Raise `ValueError` for a missing tensor, one of another shape, and one that the graph does not use."""
    width, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, k = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    if q % k:
        raise ValueError(TEXTS("gguf.heads"))
    sizes: dict[str, tuple[int, ...]] = {
        "q": (q, width), "k": (k, width), "v": (k, width), "o": (width, q),
        "gate": (inner, width), "up": (inner, width), "down": (width, inner),
        "before_attention": (width,), "before_mlp": (width,),
        "q_bias": (q,), "k_bias": (k,), "v_bias": (k,), "q_norm": (dim,), "k_norm": (dim,),
    }  # fmt: skip
    needed = {"token_embd.weight": (config["vocab_size"], width), "output_norm.weight": (width,)}
    optional = {"output.weight": (config["vocab_size"], width), "rope_freqs.weight": (dim // 2,)}
    names = PARTS | (HEAD_NORMS if about.normalises_heads else {})
    for index in range(config["num_hidden_layers"]):
        needed |= {f"blk.{index}.{name}": sizes[part] for part, name in names.items()}
        optional |= {f"blk.{index}.{name}": sizes[part] for part, name in BIASES.items()}
        missing = next((name for name in needed if name not in header.tensors), None)
        if missing is not None:
            raise ValueError(TEXTS("gguf.no_tensor", name=missing))
    for name, place in header.tensors.items():
        wanted = needed.get(name, optional.get(name))
        if wanted is None:
            raise ValueError(TEXTS("gguf.unused", model_type=config["model_type"], name=short_repr(name)))
        if place.shape != wanted:
            raise ValueError(TEXTS("gguf.shape", name=name, wanted=wanted, shape=place.shape))


def read_layer(header: GgufHeader, index: int, config: Mapping[str, Any], about: GgufArchitecture) -> LayerWeights:
    """Read the weights of one layer, with rows of q and k in the order of pairs (i, i + d/2)."""
    names = PARTS | BIASES | HEAD_NORMS
    found = {
        part: read_tensor(header, f"blk.{index}.{name}")
        for part, name in names.items()
        if f"blk.{index}.{name}" in header.tensors
    }
    if about.neighbours:
        for part in ("q", "k", "q_bias", "k_bias"):
            if part in found:
                found[part] = to_halves(found[part], config["head_dim"])
    return LayerWeights(**found)


def to_halves(weight: Floats, head_dim: int) -> Floats:
    """Return rows of pairs (2i, 2i + 1) in every head in the order of pairs (i, i + d/2)."""
    rows = weight.reshape(-1, head_dim // 2, 2, weight[0].size)
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(weight.shape))


QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")

# How a text is cut into pieces before the merges: https://github.com/ggml-org/llama.cpp, src/llama-vocab.cpp.
SPLITS = {
    "smollm": None,
    "gpt-2": "",
    "qwen2": QWEN2,
    "deepseek-r1-qwen": QWEN2,
    "llama-bpe": LLAMA3,
    "llama3": LLAMA3,
    "llama-v3": LLAMA3,
}
"""{value of tokenizer.ggml.pre: pattern; "" is GPT-2's own, None is GPT-2's after single digits}."""

BEGINS_WITH_BOS = ("llama-bpe", "llama3", "llama-v3")

CONTROL, USER_DEFINED = 3, 4


def make_tokenizer(header: GgufHeader) -> Any:
    """Return a `tokenizers.Tokenizer` for a header that was read with its long arrays.

    Raises `ValueError` without the package, and for a vocabulary that cannot be built here.
    """
    try:
        import tokenizers
        from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
    except ImportError:
        raise ValueError(TEXTS("gguf.tokenizers")) from None
    keys = {name.removeprefix("tokenizer.ggml."): value for name, value in header.keys.items()}
    kind, pre = keys.get("model"), keys.get("pre")
    if kind != "gpt2" or pre not in SPLITS:
        raise ValueError(TEXTS("gguf.tokenizer", kind=short_repr(kind), pre=short_repr(pre), splits=join_items(SPLITS)))
    tokens, merges, kinds = (keys.get(name) for name in ("tokens", "merges", "token_type"))
    if not is_texts(tokens) or not is_texts(merges) or any(" " not in merge for merge in merges):
        raise ValueError(TEXTS("gguf.no_tokens"))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    try:
        model = models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=pre in BEGINS_WITH_BOS)
    except Exception as error:  # the package raises plain exceptions
        raise ValueError(TEXTS("gguf.merges", error=error)) from None
    tokenizer = tokenizers.Tokenizer(model)
    split = SPLITS[pre]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    if split is None:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    elif split:
        first = pre_tokenizers.Split(tokenizers.Regex(split), behavior="isolated", invert=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, byte_level])
    else:
        tokenizer.pre_tokenizer = byte_level
    if split == QWEN2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    if isinstance(kinds, list) and len(kinds) == len(tokens):
        added = [
            tokenizers.AddedToken(token, special=kind == CONTROL, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind in (CONTROL, USER_DEFINED)
        ]
        tokenizer.add_tokens(added)
    begin = keys.get("bos_token_id")
    if keys.get("add_bos_token", pre in BEGINS_WITH_BOS) and isinstance(begin, int) and begin < len(tokens):
        name = tokens[begin]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{name}:0 $A:0", pair=f"{name}:0 $A:0 $B:1", special_tokens=[(name, begin)]
        )
    return tokenizer


def is_texts(value: Any) -> TypeGuard[list[str]]:
    """True for a list of texts that is not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
