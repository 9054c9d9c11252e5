"""Surrogates and control characters in every field of everything that a server reads from outside."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.abuse_requests import pack_config, pack_contents
from rope_viz.figures.files.style import OF_LINES, PARAMETERS
from rope_viz.pages import registry

SURROGATES = ("\ud800", "\udfff", "a\udc80b", "\ud800\udc00\ud800")
CONTROLS = (
    *("\0", "llama\0", "\x1b[31m", "\x07\x08", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\uffff"),
    *("\r\nX: y", "\t\n"),
)
CONFIGS: tuple[dict[str, Any], ...] = (
    {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
        "_name_or_path": "a/b",
        "transformers_version": "5.24.0",
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048},
        "quantization_config": {"quant_method": "fp8"},
        "auto_map": {"AutoConfig": "configuration.Config"},
    },
    {
        "model_type": "gemma3_text",
        "head_dim": 256,
        "max_position_embeddings": 32768,
        "layer_types": ["full_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}},
        "text_config": {"model_type": "qwen2", "id2label": {"0": "no"}},
    },
    {"_class_name": "FluxTransformer2DModel"},
    {"gguf": {"keys": {"general.architecture": "llama"}}},
    {"model_type": "llama"},
    {"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [16, 56, 56], "attention_head_dim": 128},
    {
        "gguf": {
            "keys": {"general.architecture": "llama", "llama.rope.scaling.type": "yarn", "general.name": "a"},
            "tensors": {"rope_freqs.weight": "F32"},
        }
    },
)
FORMS = ("packed", "svg", "json", "csv", "html")
"""Forms of pictures that hold texts and are quick to make."""
CONTENTS: dict[str, tuple[str, bytes]] = {
    "decay.show=own&decay.source=typed&decay.typed": ("decay/curves", b'{"q": "1 2 %s", "k": "1 2"}'),
    "decay.show=own&decay.source=file&decay.file": ("decay/curves", b"%s.csv\0" + b"1,2,3,4\n" * 8),
    "decay.packed": ("decay/curves", b'%s.json\0{"q": [[1, 2, 3, 4]], "%s": "%s"}'),
    "rotation.x": ("rotation/rotated", b'{"x": "%s 1"}'),
    "recall.file": (
        "recall/yours",
        b'%s.json\0{"version": 1, "%s": "%s", "answers": [{"method": "%s", "length": 4, "depth": 0.5, '
        b'"repeat": 0, "right": true}]}',
    ),
    "heads.measured": ("heads/across", b'%s.json\0{"%s": "%s", "model": "%s"}'),
    "kernels.report": ("kernels/speeds", b'{"device": "%s", "%s": "%s"}'),
    "spec": ("frequencies/wavelengths", b'{"scaling": {"name": "%s"}, "%s": "%s"}'),
}
"""{end of a query, whose last key names a content: a picture that reads it, a content with places for texts}."""


def choose_text(chance: random.Random) -> str:
    """Return a hostile text, every other time one with a lone surrogate."""
    return chance.choice(chance.choice((SURROGATES, CONTROLS)))


def list_places(config: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a config."""
    items = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from list_places(value, (*path, key))


def change(config: Any, path: tuple[Any, ...], text: str, *, is_key: bool) -> Any:
    """Return a config with a text as one of its values, or as the key of this value if the value has one."""
    key, *rest = path
    copy = dict(config) if isinstance(config, dict) else list(config)
    if rest:
        copy[key] = change(copy[key], tuple(rest), text, is_key=is_key)
    elif is_key and isinstance(copy, dict):
        copy[text] = copy.pop(key)
    else:
        copy[key] = text
    return copy


def make_config(chance: random.Random) -> dict[str, Any]:
    """Return a config with a hostile text in one of its fields."""
    config = chance.choice(CONFIGS)
    path = chance.choice(list(list_places(config)))
    changed: dict[str, Any] = change(config, path, choose_text(chance), is_key=chance.random() < 0.3)
    return changed


def quote_hostile(text: str) -> str:
    """Return a text as a part of an address; a surrogate becomes the three bytes that no valid UTF-8 has."""
    return quote(text, safe="", errors="surrogatepass")


def send_by_link(chance: random.Random) -> tuple[str, str, bytes]:
    """Return method, path and body of a request with a config in its link: a picture, a page or Home's scene."""
    pictures = ["scaling/comparison.svg", "runtimes/curves.packed", "extend/ways.json", "extend/memory.svg"]
    paths = [f"/rope-viz/picture/{picture}" for picture in pictures]
    path = chance.choice([*paths, "/scene/home", "/", *(f"/{page}" for page in registry.ORDER[1:])])
    return "GET", f"{path}?{pack_config(make_config(chance))}", b""


def send_config(chance: random.Random) -> tuple[str, str, bytes]:
    """Return a request that stores a config and asks for a picture of it."""
    (name,), body = pack_contents(json.dumps(make_config(chance)).encode())
    picture = chance.choice(["scaling/comparison.svg", "frequencies/wavelengths.packed", "runtimes/curves.svg"])
    return "POST", f"/rope-viz/picture/{picture}?model=custom&own={name}", body


def send_content(chance: random.Random) -> tuple[str, str, bytes]:
    """Return a request with another content: names of files, typed numbers, results and measurements."""
    query = chance.choice(list(CONTENTS))
    picture, content = CONTENTS[query]
    text = choose_text(chance)
    escaped = json.dumps(text)[1:-1].encode()
    raw = text.encode("utf-8", "surrogatepass")
    filled = content.replace(b"%s", chance.choice([escaped, raw]))
    (name,), body = pack_contents(filled)
    return "POST", f"/rope-viz/picture/{picture}.svg?{query}={name}", body


def send_address(chance: random.Random) -> tuple[str, str, bytes]:
    """Return a request with a hostile text in one part of its address."""
    picture = chance.choice(registry.pictures())
    text = quote_hostile(choose_text(chance))
    keys = [*(choice.key for choice in picture.uses), *PARAMETERS, *(f"{start}1" for start in OF_LINES)]
    keys += ["model", "words", "q", "lang", "layer", "method", "base", "pin", "part", "view", "knob", "own", "spec"]
    key = chance.choice(keys)
    form = chance.choice(FORMS)
    path = f"/rope-viz/picture/{picture.address}.{form}?{key}={text}"
    page = f"/{chance.choice(registry.ORDER[1:])}?{key}={text}"
    others = [f"/rope-viz/badge/{text}", f"/scene/{text}", f"/{text}", f"/?words={text}", f"/scaling?{text}=1"]
    return "GET", chance.choice([path, page, *others]), b""


def make_query(chance: random.Random) -> str:
    """Return a page's query with a hostile text, or with a config that holds one."""
    if chance.random() < 0.5:
        return pack_config(make_config(chance))
    key = chance.choice(["model", "words", "base", "q", "layer", "method", "config", "spec", "own"])
    return urlencode({key: choose_text(chance)}, errors="surrogatepass")


DOORS: tuple[Callable[[random.Random], tuple[str, str, bytes]], ...] = (
    send_by_link,
    send_config,
    send_content,
    send_address,
)
