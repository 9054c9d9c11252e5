"""Command-line flags for a spec: a model or config file, and one flag for every knob."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.cli.find_configs import find_configs, find_listed
from rope_viz.cli.output import named as named
from rope_viz.cli.override_flags import read_override
from rope_viz.embedding.scaling import LABELS, METHODS, parse_factors
from rope_viz.embedding.spec import Knob, RopeSpec, knobs, short_repr
from rope_viz.models.formats.side_files import add_side_files, read_side_files
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.spec_url import method_knobs, parse_number, with_method, with_sizes
from rope_viz.models.user_config import parse_config

LONGEST_TIMEOUT = 7 * 86400.0
"""Seconds. The system's timers do not take arbitrarily large numbers."""
NAMES = "a config.json, its folder, a GGUF file, an id of the list, of the local cache or with --hub, or - for stdin"
LISTS = ("short_factor", "long_factor")


def add_spec_flags(command: argparse.ArgumentParser, *, length: bool = True) -> None:
    """Add a model, a flag for every knob and, with `length`, one for the current length."""
    command.add_argument("model", nargs="?", metavar="CONFIG", help=NAMES)
    command.add_argument("--layer", help="layer type, such as full_attention")
    if length:
        command.add_argument("--length", type=tokens, help="current length, for methods that depend on it")
    sizes = command.add_argument_group("sizes")
    for name, knob in knobs(RopeSpec).items():
        add_knob(sizes, name, knob)
    scaling = command.add_argument_group("scaling")
    scaling.add_argument("--scaling", choices=METHODS, help="the method: " + ", ".join(LABELS.values()))
    for name, knob in method_knobs().items():
        add_knob(scaling, name, knob)
    scaling.add_argument(
        "--no-truncate",
        dest="truncate",
        action="store_false",
        default=None,
        help="do not round the bounds of YaRN's ramp",
    )
    for name in LISTS:
        scaling.add_argument(flag(name), metavar="LIST", help="LongRoPE divisors, comma-separated")


def add_knob(group: Any, name: str, knob: Knob) -> None:
    """Add one flag."""
    group.add_argument(
        flag(name),
        dest=name,
        type=functools.partial(amount, unit=knob.unit),
        metavar="N",
        help=f"{knob.label}. {knob.help}".replace("%", "%%"),
    )


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def amount(written: str, unit: str = "") -> float:
    """Read a number such as 128k or 1e6, for argparse."""
    try:
        return parse_number(written, unit)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def tokens(written: str) -> int:
    """Read a whole number of tokens, for argparse."""
    value = amount(written, "tokens")
    if not math.isfinite(value) or value != int(value) or value < 1:
        raise argparse.ArgumentTypeError(f"{short_repr(written)} is not a whole number of tokens")
    return int(value)


def seconds(written: str) -> float:
    """Read the time for one request, for argparse."""
    try:
        value = float(written)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"{short_repr(written)} is not a number of seconds above 0 and up to a week")
    return value


def read_config(name: str) -> Mapping[str, Any]:
    """Return the single config of a name. Raise `ValueError` with one sentence that names it."""
    with named(name):
        sources = find_configs(name)
        if len(sources) > 1:
            raise ValueError(f"this folder contains {len(sources)} configs: name one of them")
        label, read = sources[0]
        config = parse_config(read())
        return add_side_files(config, read_side_files(Path(label).parent)) if Path(name).is_dir() else config


def read_model_folder(folder: str) -> Mapping[str, Any]:
    """Return the config.json of a folder with a model. Raise `ValueError` with one sentence if there is none."""
    file = Path(folder) / "config.json"
    if not file.is_file():
        raise ValueError(f"{folder} is not a folder with a config.json")
    return read_config(str(file))


def refuse_diffusion(config: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a part of a diffusion pipeline, which language model runtimes do not serve."""
    name = config.get("_class_name")
    if isinstance(name, str):
        raise ValueError(f"{name[:60]} belongs to a diffusion pipeline, but these runtimes serve language models")


def read_spec(parsed: argparse.Namespace) -> tuple[RopeSpec, Mapping[str, Any] | None, str | None]:
    """Return the spec that the model and the flags describe, its config (or None) and its layer type (or None)."""
    spec, config, layer = RopeSpec(), None, parsed.layer
    if parsed.model is not None:
        config = read_config(parsed.model)
        with named(parsed.model):
            refuse_diffusion(config)
            override = read_override(parsed)
            if override is not None:
                config = override.apply(ModelConfig.read(config))
            read = read_model(parsed.model, config)
            specs = read.start_specs
        layer = read.find_layer(layer)
        spec = specs[layer]
    changes = {name: getattr(parsed, name) for name in knobs(RopeSpec) if getattr(parsed, name) is not None}
    if "head_dim" in changes and "rotary_dim" not in changes:
        changes["rotary_dim"] = 0
    if "context" in changes and "target" not in changes:
        changes["target"] = max(spec.target, int(changes["context"])) if parsed.model else 0
    spec = with_sizes(spec, **changes)
    if parsed.scaling is not None:
        spec = with_method(spec, parsed.scaling)
    return with_knobs(spec, parsed), config, layer or None


def read_model(name: str, config: Mapping[str, Any]) -> ModelConfig:
    """Return the config of a name on the command line, as the model of the catalog if it is one."""
    return ModelConfig.read(config, known=find_listed(name))


def describe_lengths(config: ModelConfig) -> dict[str, Any]:
    """Return the three lengths of a config for JSON, {} where RoPE cannot be computed from it."""
    if config.problems:
        return {}
    trained, original = config.trained_length, config.original_length if config.has_original_length else None
    found: dict[str, Any] = {"trained_length": trained.length, "trained_length_source": trained.source}
    return {**found, "original_length": original, "limit": config.limit}


def lengths_line(config: ModelConfig) -> str:
    """Return the lengths of a config in one line."""
    trained = config.trained_length
    original = f", original length {config.original_length:,}" if config.has_original_length else ""
    length = f"{trained.length:,}"
    known = f"trained length {length}" if trained.is_known else f"no trained length documented, {length} assumed"
    return f"{known} ({trained.source}){original}, limit {config.limit:,}"


def with_knobs(spec: RopeSpec, parsed: argparse.Namespace) -> RopeSpec:
    """Apply the given flags of the method. Raise `ValueError` for one that the method does not have."""
    fields = {field.name for field in dataclasses.fields(spec.scaling)}
    changes: dict[str, Any] = {}
    for name in (*method_knobs(), "truncate", *LISTS):
        value = getattr(parsed, name)
        if value is None:
            continue
        if name not in fields:
            raise ValueError(f"the method {spec.scaling.name} has no {flag(name)}")
        changes[name] = parse_factors(value) if name in LISTS else value
    return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **changes)) if changes else spec
