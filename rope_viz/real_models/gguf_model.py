"""Load a language model from a GGUF file: its config with the keys of transformers, and its weights as float32.

The header is read by our own code, the blocks of quantized tensors by the package gguf.

The names of tensors and keys: https://github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py. llama.cpp rotates
neighbouring dimensions of the architecture `llama`; its rows of q and k return to transformers' order here.
"""

from __future__ import annotations

import enum
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

LARGEST = 1 << 33
"""Values of one tensor at most."""

PART = 1 << 20
"""Values that are decoded at once, unless a single row has more."""


class StoredType(enum.IntEnum):
    """The types of tensors that are read, with ggml's numbers (https://github.com/ggml-org/ggml, include/ggml.h)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    BF16 = 30


FORMATS = {each.value: each for each in StoredType}
"""{ggml's number: the type}."""

FLOATS = {StoredType.F32: "<f4", StoredType.F16: "<f2", StoredType.BF16: "<u2"}
"""{type without blocks: its values in NumPy}. NumPy has no bfloat16, which is the upper half of a float32."""


def read_tensor(header: GgufHeader, name: str) -> Floats:
    """Return a tensor of the file as float32 in NumPy's order (out, in).

    Raises `ValueError` for an unknown tensor, a type that is not supported, a file that is cut off, and for a quantized
    tensor without the package gguf.
    """
    if name not in header.tensors:
        raise ValueError(TEXTS("gguf.no_tensor", name=short_repr(name)))
    place = header.tensors[name]
    stored = FORMATS.get(place.kind)
    if stored is None:
        raise ValueError(TEXTS("gguf.storage", name=name, kind=name_type(place.kind)))

    if stored in FLOATS:
        values, size = 1, np.dtype(FLOATS[stored]).itemsize
    else:
        values, size = import_gguf().GGML_QUANT_SIZES[stored]
    count = math.prod(place.shape)
    if not 0 < count <= LARGEST or place.shape[-1] % values:
        raise ValueError(TEXTS("gguf.tensor_shape", name=name, kind=stored.name, shape=place.shape))
    raw = read_bytes(header, name, count // values * size)
    rows = np.frombuffer(raw, dtype=np.uint8).reshape(-1, place.shape[-1] // values * size)

    # Few rows at once, because decoding needs twice the memory of its result. PyTorch shares memory only with arrays
    # that it may write to.
    found = np.empty((len(rows), place.shape[-1]), dtype=np.float32)
    step = max(PART // place.shape[-1], 1)
    for first in range(0, len(rows), step):
        found[first : first + step] = decode_rows(rows[first : first + step], stored)
    return found.reshape(place.shape)


def decode_rows(rows: NDArray[np.uint8], stored: StoredType) -> NDArray[Any]:
    """Return the values of a tensor's rows of bytes."""
    if stored not in FLOATS:
        decoded: Floats = import_gguf().dequantize(rows, stored)
        return decoded
    numbers = rows.view(FLOATS[stored])
    if stored == StoredType.BF16:
        return (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return numbers


def name_type(kind: int) -> str:
    """Return the name of ggml's type, or its number where that has no name in the package gguf, or there is none."""
    try:
        return str(import_gguf().GGMLQuantizationType(kind).name)
    except ValueError:
        return TEXTS("gguf.type", kind=kind)


def import_gguf() -> Any:
    """Return the package gguf. Raises `ValueError` that tells how to install it."""
    try:
        import gguf
    except ImportError:
        raise ValueError(TEXTS("gguf.package")) from None
    return gguf


NAMES: dict[str, dict[str, str]] = read_own(__file__, "ggml_names.json")


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
