"""The commands `verify` and `conformance`: compare a running model, a file or any engine with what a config means."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.advice.verify.conformance import make_kit
from rope_viz.advice.verify.verify import LoadedFrequencies, read_gguf, read_learned, read_numbers, verify
from rope_viz.cli.spec import NAMES, named, read_config, read_model, tokens
from rope_viz.models.model_config import ModelConfig
from rope_viz.storage.write_file import write_file

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
    if Path(source).stat().st_size > LARGEST:
        raise ValueError("it is larger than 1 MiB, so it is not an inv_freq.json")
    return read_numbers(Path(source).read_bytes(), Path(source).name)


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
