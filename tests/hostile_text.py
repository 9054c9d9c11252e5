"""Texts from outside that no output can hold, in every key and value: configs, addresses, and what answers must be."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import struct
import xml.etree.ElementTree
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from rope_viz.figures.files.style import PARAMETERS
from rope_viz.pages import registry
from rope_viz.picture.choices import StoredChoice
from rope_viz.picture.read_address import CHOICE_KEYS, OTHER_KEYS
from rope_viz.texts.outside_text import BROKEN, HIDDEN
from tests.configs import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_3_1_8B, LONGROPE, QWEN3_8B

NO_TEXT = ("\ud800", "\udcff", "\udfff\ud800", "\ud83d", "\0")
"""What UTF-8 or C cannot hold."""
LETTERS = (
    *("\x01", "\x08", "\x1b[31m", "\x1b]0;title\x07", "\r", "\x7f"),
    *("\x80", "\x85", "\x9b31m", "\u202e", "\u202a", "\u2066", "\u2069", "\ufffe", "\uffff"),
    *("\t", "\n", "θ", "😀", "<b>", '"', "\\", "\\u0000", "\\ud800"),
)
"""Letters that are not shown, and some that must be left alone."""

GGUF_KEYS = {
    "general.architecture": "llama",
    "general.name": "Some Name",
    "llama.context_length": 4096,
    "llama.embedding_length": 4096,
    "llama.attention.head_count": 32,
    "llama.rope.freq_base": 10000.0,
    "llama.rope.scaling.type": "yarn",
    "llama.rope.scaling.factor": 4.0,
}
CONFIGS: tuple[Mapping[str, Any], ...] = (
    QWEN3_8B,
    LLAMA_3_1_8B,
    DEEPSEEK_V3,
    GPT_OSS_20B,
    LONGROPE,
    {"gguf": {"keys": GGUF_KEYS, "tensors": {}}},
    {"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128, "axes_dims_rope": [16, 56, 56]},
    {"_class_name": "FluxTransformer2DModel"},
    {"gguf": {"keys": {"general.architecture": "llama"}}},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
    {
        **QWEN3_8B,
        "architectures": ["Qwen3ForCausalLM"],
        "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["lm_head"]},
        "layer_types": ["full_attention"] * 36,
        "_name_or_path": "Some/Model",
        "transformers_version": "4.51.0",
    },
    {
        **QWEN3_8B,
        "model_type": "gemma3_text",
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
        "sliding_window": 1024,
    },
    {"dim": 4096, "n_layers": 32, "n_heads": 32, "head_dim": 128, "rope_theta": 1e6, "max_seq_len": 32768},
)


def soil(text: str, chance: random.Random) -> str:
    """Return a text with some of the letters in it, or nothing but these."""
    letters = [chance.choice(chance.choice((NO_TEXT, LETTERS))) for _ in range(chance.choice((1, 1, 2, 3)))]
    if chance.random() < 0.3:
        return "".join(letters)
    for letter in letters:
        place = chance.randint(0, len(text))
        text = text[:place] + letter + text[place:]
    return text


def soil_values(value: Any, chance: random.Random, share: float) -> Any:
    """Return a value of JSON with letters in about this share of its keys and texts, and texts for some numbers."""
    if isinstance(value, Mapping):
        pairs = {
            soil(key, chance) if chance.random() < share / 3 else key: soil_values(inner, chance, share)
            for key, inner in value.items()
        }
        return pairs | ({soil("rope_new", chance): soil("x", chance)} if chance.random() < share / 3 else {})
    if isinstance(value, list):
        return [soil_values(inner, chance, share) for inner in value[:8]] + value[8:]
    if isinstance(value, str):
        return soil(value, chance) if chance.random() < share else value
    return soil(str(value), chance) if chance.random() < share / 8 else value


def make_config(chance: random.Random) -> dict[str, Any]:
    """Return a hostile config."""
    config: dict[str, Any] = soil_values(dict(chance.choice(CONFIGS)), chance, chance.choice((0.1, 0.3, 1.0)))
    return config


def write_json(value: Any, chance: random.Random) -> bytes:
    """Return a value as JSON, with escapes or with the letters themselves, which UTF-8 does not allow."""
    if chance.random() < 0.7:
        return json.dumps(value).encode()
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def write_link(config: Mapping[str, Any]) -> str:
    """Return a config as the value of a link, with every key and text."""
    packed = zlib.compress(json.dumps(config).encode(), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def quote_hostile(text: str) -> str:
    """Return a text percent-encoded as it is, surrogates included."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


STYLES = (*PARAMETERS, "label.plain", "colour.plain", "hide.plain")


def make_query(page: str, chance: random.Random) -> dict[str, str]:
    """Return a hostile query of a page's picture or of the page."""
    query: dict[str, str] = {}
    if chance.random() < 0.4:
        query |= {"model": "custom", "config": write_link(make_config(chance))[:3900]}
    keys = [
        *(choice.key for choice in registry.page(page).choices),
        *(key for key in (*CHOICE_KEYS, *OTHER_KEYS) if key not in ("config", "own", "spec", "coarse")),
        *STYLES,
        "preview",
    ]
    words = ("llama-3.1-8b", "1", "4096", "yarn", "the cat sat", "no", "#112233", "", "zh")
    for key in chance.sample(keys, chance.choice((1, 1, 2))):
        if chance.random() < 0.2 and key.startswith(("label.", "colour.", "hide.")):
            key = soil(key, chance)
        query.setdefault(key, soil(chance.choice(words), chance))
    if chance.random() < 0.1:
        query[soil("key", chance)] = "1"
    return query


def write_query(query: Mapping[str, str]) -> str:
    """Return a query as it is in an address."""
    return "&".join(f"{quote_hostile(key)}={quote_hostile(value)}" for key, value in query.items())


def make_address(chance: random.Random) -> tuple[str, str]:
    """Return path and query of a hostile address below the app's own prefix."""
    kind = chance.random()
    if kind < 0.05:
        return f"badge/{quote_hostile(soil('llama-3.1-8b', chance))}", write_query({"lang": soil("zh", chance)})
    picture = chance.choice(registry.pictures())
    name, form = picture.name, chance.choice(("packed", "svg", "json", "csv", "html"))
    if kind < 0.1:
        name, form = quote_hostile(soil(name, chance)), quote_hostile(soil(form, chance))
    return f"picture/{picture.page}/{name}.{form}", write_query(make_query(picture.page, chance))


def make_content(chance: random.Random) -> tuple[str, str, bytes]:
    """Return page and key of a choice with a stored content, "own" or "spec", and a hostile content for it."""
    stored = [(page, each) for page in registry.PAGES for each in registry.page(page).choices]
    files = [(page, each.key) for page, each in stored if isinstance(each, StoredChoice)]
    page, key = chance.choice(files) if chance.random() < 0.25 else (chance.choice([*registry.PAGES]), "own")
    content = write_json(make_config(chance), chance)
    if key != "own" and chance.random() < 0.7:
        name = soil("file", chance) + chance.choice((".json", ".csv", ".npz", ".safetensors", ""))
        content = name.encode("utf-8", "surrogatepass") + b"\0" + content
    return page, key, content


def check_answer(status: int, headers: Mapping[str, str], body: bytes) -> list[str]:
    """Return what is wrong with an answer of the server: a failure, or text that hides something."""
    problems = [f"status {status}"] if status >= 500 and status != 503 else []
    for name, value in headers.items():
        if HIDDEN.search(value):
            problems.append(f"header {name}: {value!r}")
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    kind = headers.get("content-type", "").partition(";")[0]
    if kind == "application/octet-stream" and status == 200:
        (size,) = struct.unpack_from("<I", body)
        return problems + check_values(json.loads(body[4 : 4 + size]))
    if kind not in ("text/plain", "image/svg+xml", "application/json", "text/csv", "text/html"):
        return problems
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return [*problems, f"{kind} is not UTF-8: {error}"]
    if found := HIDDEN.search(text):
        problems.append(f"{kind} holds {found[0]!r}: {text[max(found.start() - 40, 0) : found.end() + 20]!r}")
    if status == 200 and kind == "image/svg+xml":
        try:
            xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as error:
            problems.append(f"{kind}: {error}")
    if status == 200 and kind == "application/json":
        # A file of numbers is data: what it must not hide is written as escapes.
        problems += check_values(json.loads(text), BROKEN)
    return problems


def check_values(value: Any, bad: re.Pattern[str] = HIDDEN) -> list[str]:
    """Return the texts and keys in a value of JSON that hold a bad character."""
    if isinstance(value, str):
        return [f"the text {value[:200]!r}"] if bad.search(value) else []
    if isinstance(value, Mapping):
        parts = [part for pair in value.items() for part in pair]
    else:
        parts = value if isinstance(value, list) else []
    return [problem for part in parts for problem in check_values(part, bad)]
