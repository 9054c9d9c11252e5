"""The commands `verify` and `conformance`: compare a running model, a file or any engine with what a config means.

Of a GGUF file only the header is read, and its frequencies are computed as llama.cpp does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.advice.verify.conformance import make_kit
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.spec import NAMES, named, read_config, read_model, tokens
from rope_viz.embedding.spec import FloatArray, RopeSpec, require_number
from rope_viz.models.formats.gguf import read_header, summarise_header
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import Effect, divide, find_max_ratio
from rope_viz.runtimes.llamacpp import parse_flags
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.read_file import read_limited
from rope_viz.storage.write_file import write_file
from rope_viz.studies.tensors import open_tensors

LARGEST = 1 << 20


def add_verify(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "verify",
        description="Compare the frequencies of a running model or a file with those that the config means. Exit code "
        "0: they match. 1: they do not. 2: the input is invalid. For every runtime `rope-viz extend` prints a snippet "
        "that writes inv_freq.json.",
    )
    asked.add_argument("config", metavar="CONFIG", help=NAMES)
    asked.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="WHERE",
        help="inv_freq.json of a snippet, gguf:FILE, a model's folder (builds its class of transformers), or "
        "for learned frequencies its .safetensors file",
    )
    asked.add_argument("--flags", help="with gguf:FILE, the flags of llama.cpp's command line")
    asked.add_argument("--layer", help="layer type, such as full_attention")
    asked.add_argument("--length", type=tokens, help="current length, for methods that depend on it")
    asked.add_argument("--json", action="store_true", help="as JSON, with the largest ratio")
    add_hub_flag(asked)
    asked.set_defaults(run=run_verify)


def run_verify(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    config = read_config(parsed.config)
    with named(parsed.config):
        model = read_model(parsed.config, config)
        specs = model.specs
    layer = model.find_layer(parsed.layer)
    if parsed.flags and not parsed.source.startswith("gguf:"):
        raise ValueError("--flags are those of llama.cpp: use them with gguf:FILE")
    with named(parsed.source):
        held = read_source(parsed.source, parsed.flags, layer, model)
    found = verify(specs[layer], held, parsed.length)
    if parsed.json:
        effect = found.effect and {"ratio": found.effect.ratio, "pair": found.effect.pair}
        report = {"took": found.matches, "sentence": found.sentence, "effect": effect}
        print(json.dumps({**report, "attention_ratio": found.attention_ratio}, indent=2))
    else:
        print(found.sentence)
    return 0 if found.matches else 1


def read_source(source: str, flags: str | None, layer: str, model: ModelConfig) -> LoadedFrequencies:
    """Read the frequencies that `--from` names. Raise `ValueError` if that is not possible."""
    kind, _, place = source.partition(":")
    if kind == "gguf" and place:
        return read_gguf(place, flags)
    if kind == "transformers" and place:
        return from_transformers(place, layer)
    if Path(source).is_dir():
        return from_transformers(source, layer)
    if source.endswith(".safetensors"):
        return read_learned(source, model, layer)
    return read_numbers(read_limited(source, LARGEST), Path(source).name)


def from_transformers(folder: str, layer: str) -> LoadedFrequencies:
    """Return the frequencies of the rotary module of a model in a folder, without reading the model's weights.

    Raise `ValueError` without PyTorch and transformers, and for a model without such a module.
    """
    try:
        torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
    except ImportError:
        raise ValueError("this needs PyTorch and transformers: pip install 'rope-viz[transformers]'") from None
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    # A vision tower or an encoder has a rotary module of its own.
    text = type(config.get_text_config(decoder=True))
    names = (f"{layer}_inv_freq", "inv_freq")
    for module in model.modules():
        name = next((name for name in names if hasattr(module, name)), None)
        if name is not None and isinstance(getattr(module, "config", None), text):
            # The model is on the meta device, without data; build only its rotary module again.
            live = type(module)(module.config)
            factor = getattr(live, name.replace("inv_freq", "attention_scaling"), 1.0)
            label = f"{type(module).__name__} of transformers {transformers.__version__}"
            return LoadedFrequencies(np.asarray(getattr(live, name).double().tolist()), float(factor), label)
    raise ValueError("the model has no rotary module built from a config")


def add_conformance(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "conformance",
        description="Write cases.json (configs with frequencies, angles and rotated vectors), check_rope.py, which "
        "compares your function with them and needs only NumPy, and values.bin with values.json: the same numbers as "
        "little-endian float64 for engines in other languages.",
    )
    asked.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write into")
    asked.set_defaults(run=run_conformance)


def run_conformance(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    folder = Path(parsed.output)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in make_kit().items():
        write_file(folder / name, content)
        print(folder / name)
    return 0


COARSE = 1e-4

MOST_TENSORS = 1 << 17

MOST_ALPHA = 50.0
"""A learned logarithm beyond this is no frequency."""


@dataclass(frozen=True, eq=False)
class LoadedFrequencies:
    """What a model or file holds: radians per position, (pairs,), the factor on cos and sin (None: unknown)."""

    inv_freq: FloatArray
    attention_factor: float | None
    source: str


@dataclass(frozen=True)
class Verdict:
    """The comparison: the largest ratio of frequencies, and the factor that is held over the one that is meant."""

    matches: bool
    sentence: str
    effect: Effect | None = None
    attention_ratio: float | None = None


def verify(spec: RopeSpec, held: LoadedFrequencies, length: int | None = None) -> Verdict:
    """Return whether a model or a file holds this embedding, at a length where the method depends on it."""
    meant = spec.inv_freq(length)
    if len(meant) != len(held.inv_freq):
        return Verdict(False, f"Does not match: {len(held.inv_freq)} pairs rotate in {held.source}, not {len(meant)}.")
    effect = find_max_ratio(meant, held.inv_freq)
    wrong = effect is not None and effect.ratio > 1.0 + COARSE
    still = not np.array_equal(meant > 0, held.inv_freq > 0)
    ratio = None if held.attention_factor is None else divide(held.attention_factor, spec.attention_factor(length))
    factor = ratio is not None and not math.isclose(ratio, 1.0, rel_tol=COARSE)
    if not (wrong or still or factor):
        more = "" if held.attention_factor is not None else "; the factor on cos and sin is unknown"
        text = f"Matches: all {len(meant)} frequencies of {held.source} are as intended{more}."
        return Verdict(True, text, None, ratio)
    parts = []
    if wrong and effect is not None:
        plain = find_max_ratio(spec.plain_inv_freq, held.inv_freq)
        unscaled = plain is None or plain.ratio < 1.0 + COARSE
        parts.append(f"frequencies are off by up to ×{effect.ratio:.4g}, at pair {effect.pair}")
        parts += ["they are those of the model without any scaling"] if unscaled else []
    parts += ["other pairs have zero frequency"] if still else []
    parts += [f"the factor on cos and sin is {ratio:.4g} times the intended one"] if factor else []
    return Verdict(False, f"Does not match in {held.source}: {'; '.join(parts)}.", effect if wrong else None, ratio)


def read_numbers(text: str | bytes, source: str) -> LoadedFrequencies:
    """Return what a snippet wrote: {"inv_freq": [...], "attention_factor": ...}. Raises `ValueError` for other text."""
    found = decode_json(text, f"{source} is not JSON as written by the snippets")
    values = found.get("inv_freq") if isinstance(found, Mapping) else None
    if not isinstance(values, list) or not 1 <= len(values) <= 4096:
        raise ValueError(f"{source} has no list of frequencies under inv_freq")
    for value in values:
        require_number(value, "inv_freq entries", least=0.0, most=1e9)
    factor = found.get("attention_factor")
    if factor is not None:
        require_number(factor, "attention_factor")
    return LoadedFrequencies(np.asarray(values, dtype=np.float64), None if factor is None else float(factor), source)


def read_learned(path: str | Path, model: ModelConfig, layer: str) -> LoadedFrequencies:
    """Return the frequencies of a model whose weights multiply them by exp(alpha), from a safetensors file.

    Raises `ValueError` where the model has none, or the file has no such tensor.
    """
    ending, spec = model.architecture.rope.learned, model.specs[layer]
    if not ending:
        raise ValueError(f"the frequencies of {model.model_type} are in its config, not in its weights")
    file = open_tensors(path, most=MOST_TENSORS)
    name = next((name for name in file.entries if name == ending or name.endswith(f".{ending}")), None)
    if name is None:
        raise ValueError(f"it has no tensor {ending}; model.safetensors.index.json names the file that has it")
    alpha = np.asarray(file.read_tensor(name), dtype=np.float64).ravel()
    if len(alpha) != spec.pairs or not np.all(np.abs(alpha) < MOST_ALPHA):
        raise ValueError(f"{name} must have {spec.pairs} finite numbers, one for each pair")
    return LoadedFrequencies(spec.inv_freq() * np.exp(alpha), None, Path(path).name)


def read_gguf(path: str | Path, flags: str | None = None) -> LoadedFrequencies:
    """Return what llama.cpp 0c1e57098 computes from a GGUF file and the flags of its command line.

    Raises `ValueError` where the file is no GGUF, or names no architecture and head size.
    """
    header = read_header(path)
    model = ModelConfig.read(summarise_header(header))
    length = None if "ctx" in parse_flags(flags) else model.limit
    found = emulate(model, "llama.cpp", flags=flags, length=length)
    if found.inv_freq is None:
        raise ValueError(f"llama.cpp refuses the file: {found.reason}")
    return LoadedFrequencies(found.inv_freq, found.attention_factor, f"{Path(path).name} as llama.cpp reads it")
