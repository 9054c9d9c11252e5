"""The commands `table` and `models`: a spec and the catalog as rows of text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.advice.plan.export import export
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.override_flags import add_override_flags
from rope_viz.cli.spec import (
    add_spec_flags,
    describe_lengths,
    lengths_line,
    named,
    read_config,
    read_model,
    read_spec,
)
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import wavelength
from rope_viz.models.catalog import Model, catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import has_several_axes
from rope_viz.models.several_axes.model_axes import from_model
from rope_viz.runtimes import emulate


def add_table(commands: Any) -> None:
    """Add `table` and its flags."""
    table = commands.add_parser("table")
    add_spec_flags(table)
    add_override_flags(table)
    form = table.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="comma-separated, full precision")
    form.add_argument("--json", action="store_true", help="the same as JSON columns, with the factor and remarks")
    add_hub_flag(table)
    table.set_defaults(run=run_table)


def add_models(commands: Any) -> None:
    """Add `models` and its flags."""
    listed = commands.add_parser("models")
    listed.add_argument("--family", type=str.lower, metavar="NAME", help="only this family, such as Qwen")
    listed.add_argument("--scaled-by", choices=(*METHODS,), help="only models scaled by this method")
    listed.add_argument("--name", type=str.lower, default="", metavar="TEXT", help="only names or ids with this text")
    listed.add_argument("--json", action="store_true", help="as JSON, with source and status")
    listed.set_defaults(run=run_models)


def run_table(parsed: argparse.Namespace) -> int:
    """Run `table` and return its exit code."""
    config = None if parsed.model is None else read_config(parsed.model)
    if config is not None and has_several_axes(config):
        return print_axes(parsed, config)
    spec, config, layer = read_spec(parsed)
    softmax = find_softmax_multiplier(spec, config, layer, parsed.length)
    inv_freq = spec.inv_freq(parsed.length)
    columns = (inv_freq, wavelength(inv_freq), spec.context * inv_freq / (2 * np.pi), inv_freq / spec.plain_inv_freq)
    names = ("pair", "inv_freq", "wavelength", "turns", "over_plain")
    if parsed.json:
        # A pair with zero frequency has no wavelength.
        lists = ([float(value) if np.isfinite(value) else None for value in column] for column in columns)
        found: dict[str, Any] = {"rope": True, **dict(zip(names[1:], lists, strict=True))}
        factor = float(spec.attention_factor(parsed.length))
        found |= {} if config is None else describe_lengths(read_model(parsed.model, config))
        factors = {"attention_factor": factor, "softmax_multiplier": softmax}
        print(json.dumps({**found, **factors, "remarks": remarks(config)}, indent=2))
        return 0
    if parsed.csv:
        print(",".join(names))
        for pair, values in enumerate(zip(*columns, strict=True)):
            print(",".join((str(pair), *(repr(float(value)) for value in values))))
        for text in remarks(config):
            print(f"rope-viz: {text}", file=sys.stderr)
        return 0
    rows = [
        (str(pair), *(f"{value:.6g}" for value in values)) for pair, values in enumerate(zip(*columns, strict=True))
    ]
    if config is not None:
        print(lengths_line(read_model(parsed.model, config)))
    print_rows(names, rows)
    print(f"factor on cos and sin: {spec.attention_factor(parsed.length):.8g}")
    print(f"factor on the softmax scale: {'not known' if softmax is None else format(softmax, '.8g')}")
    for text in remarks(config):
        print(text)
    return 0


def print_axes(parsed: argparse.Namespace, config: Mapping[str, Any]) -> int:
    """Print how fast each pair turns along each axis, for a model with positions on several axes."""
    with named(parsed.model):
        parts = from_model(config)
    if parsed.json:
        found = {
            part: {
                "axes": spec.axes,
                "dims": spec.dims.tolist(),
                "inv_freq": spec.weights.tolist(),
                "factor": spec.factor,
            }
            for part, spec in parts.items()
        }
        print(json.dumps({"rope": True, "parts": found}, indent=2))
        return 0
    for part, spec in parts.items():
        names = ("part", "pair", *(f"inv_freq {axis}" for axis in spec.axes))
        rows = [(part, str(pair), *(f"{value:.6g}" for value in values)) for pair, values in enumerate(spec.weights)]
        if parsed.csv:
            print("\n".join(",".join(row) for row in (names, *rows)))
        else:
            print_rows(names, rows)
    return 0


def find_softmax_multiplier(
    spec: RopeSpec, config: Mapping[str, Any] | None, layer: str | None, length: int | None
) -> float | None:
    """Return what the model's class multiplies its softmax scale by for this embedding, None where it is not known."""
    if config is None:
        return 1.0
    try:
        model = ModelConfig.read(config)
        if model.specs.get(layer or model.main_layer) != spec:
            model = ModelConfig.read(export(spec, to="transformers", config=config, layer_type=layer).config)
        return emulate(model, "transformers", length=length, layer_type=layer).softmax_multiplier
    except ValueError:
        return None


def run_models(parsed: argparse.Namespace) -> int:
    """Run `models` and return its exit code."""
    found = [
        model
        for model in catalog().values()
        if parsed.family in (None, model.family.lower())
        and parsed.scaled_by in (None, model.scaled_by)
        and parsed.name in f"{model.id} {model.name}".lower()
    ]
    if not found:
        print("rope-viz: no model of the list has all of these; rope-viz models lists them all", file=sys.stderr)
        return 1
    if parsed.json:
        derived = ("source", "trained_source", "scaled_by")
        rows = [
            {**vars(model), **{name: getattr(model, name) for name in derived}, "config": dict(model.config)}
            for model in found
        ]
        print(json.dumps(rows, indent=2))
        return 0
    print_rows(
        ("id", "name", "family", "size", "base", "rotary_dim", "length", "scaling"), [list_model(one) for one in found]
    )
    return 0


def list_model(model: Model) -> tuple[str, ...]:
    """Return the row of a model: its id, name, family, size, base, rotated dimensions, length and scaling method."""
    specs = model_specs(model.id)
    spec = specs[main_layer(model, specs)]
    numbers = (f"{spec.base:g}", str(spec.rotary_dim), str(spec.target))
    return (model.id, model.name, model.family, model.size, *numbers, spec.scaling.name)


def remarks(config: Mapping[str, Any] | None) -> list[str]:
    """Return remarks that apply to all numbers of a config: an unlisted type, layers without rotation."""
    if config is None:
        return []
    return list(ModelConfig.read(config).notes)


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns."""
    widths = [max(len(row[i]) for row in (names, *rows)) for i in range(len(names))]
    for row in (names, *rows):
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
