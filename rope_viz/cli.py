"""The commands: table, check, compare, runtimes, export, models. Flags are made from the knobs of specs and methods.

Results go to standard output, one-line errors to standard error. The exit code is 0, and 2 where the input is bad;
`check` answers by severity: 0 for nothing worse than a note, 1 for a warning, 2 for an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz import __version__
from rope_viz.catalog import catalog, main_layer, model_specs
from rope_viz.export import TARGETS, Export, export
from rope_viz.extend import options
from rope_viz.link import fitted, method_knobs, number, with_method
from rope_viz.lint import Finding, check, repair
from rope_viz.models import from_config
from rope_viz.runtimes.compare import Comparison, compare
from rope_viz.scaling import LABELS, METHODS, parse_factors
from rope_viz.spec import Knob, RopeSpec, knobs, shorten
from rope_viz.spectrum import wavelength

LARGEST_FILE = 4 << 20
"""A config.json is a few kilobytes; anything beyond this is another file."""
EXIT = {"error": 2, "warning": 1, "note": 0}
LISTS = ("short_factor", "long_factor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parsed = parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return run(parsed)
    except BrokenPipeError:
        # The reader, such as head, has seen enough; what is left in the buffer must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        print(f"rope-viz: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """All commands and their flags."""
    top = argparse.ArgumentParser(prog="rope-viz", description="What position does to attention, in numbers.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    table = commands.add_parser("table", help="frequency, wavelength and turns of every pair")
    add_spec_flags(table)
    table.add_argument("--csv", action="store_true", help="comma-separated, full precision")
    table.set_defaults(run=run_table)

    linted = commands.add_parser(
        "check",
        help="what is wrong with config.json files",
        description="Exit code 0: nothing worse than a note. 1: a warning. 2: an error, or a file that is no config. "
        "Fit for pre-commit and CI: name the files, nothing else is needed.",
    )
    linted.add_argument("files", nargs="+", metavar="CONFIG", help="config.json, a model of the list, or - for stdin")
    linted.add_argument("--json", action="store_true", help="the findings as JSON")
    linted.add_argument("--repair", action="store_true", help="print the repaired config instead (one file)")
    linted.set_defaults(run=run_check)

    weighed = commands.add_parser("compare", help="every scaling method at the target length")
    add_spec_flags(weighed)
    weighed.add_argument("--json", action="store_true", help="with the config to write for each method")
    weighed.set_defaults(run=run_compare)

    served = commands.add_parser("runtimes", help="what each runtime makes of a config")
    served.add_argument("config", metavar="CONFIG", help="config.json, a model of the list, or - for stdin")
    served.add_argument("--length", type=tokens, help="current length, max_model_len or n_ctx")
    served.add_argument("--layer", help="layer type, such as full_attention")
    served.add_argument("--json", action="store_true", help="with the frequencies")
    served.set_defaults(run=run_runtimes)

    given = commands.add_parser("export", help="this embedding as the keys or flags of a runtime")
    add_spec_flags(given)
    given.add_argument("--to", required=True, choices=TARGETS, help="the runtime")
    given.set_defaults(run=run_export)

    listed = commands.add_parser("models", help="the models of the list")
    listed.add_argument("--json", action="store_true", help="with source and status")
    listed.set_defaults(run=run_models)
    return top


def add_spec_flags(command: argparse.ArgumentParser) -> None:
    """A model, and a flag for every knob that changes it."""
    command.add_argument("model", nargs="?", metavar="CONFIG", help="config.json, a model of the list, or - for stdin")
    command.add_argument("--layer", help="layer type, such as full_attention")
    command.add_argument("--length", type=tokens, help="current length, for methods that depend on it")
    sizes = command.add_argument_group("sizes")
    for name, knob in knobs(RopeSpec).items():
        add_knob(sizes, name, knob)
    scaling = command.add_argument_group("scaling")
    scaling.add_argument("--scaling", choices=METHODS, help="the method: " + ", ".join(LABELS.values()))
    for name, knob in method_knobs().items():
        add_knob(scaling, name, knob)
    scaling.add_argument("--no-truncate", dest="truncate", action="store_false", default=None, help="do not round β")
    for name in LISTS:
        scaling.add_argument(flag(name), metavar="LIST", help="LongRoPE divisors, comma-separated")


def add_knob(group: Any, name: str, knob: Knob) -> None:
    """One flag."""
    group.add_argument(
        flag(name), dest=name, type=amount, metavar="N", help=f"{knob.label}. {knob.help}".replace("%", "%%")
    )


def flag(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


def amount(written: str) -> float:
    """A number for argparse, as people write it: 128k, 1e6."""
    try:
        return number(written)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def tokens(written: str) -> int:
    """A whole number of tokens for argparse."""
    value = amount(written)
    if value != int(value) or value < 1:
        raise argparse.ArgumentTypeError(f"{shorten(written)} is not a whole number of tokens")
    return int(value)


def read_config(name: str) -> Mapping[str, Any]:
    """A config from a file, from standard input, or of a model of the list. Raises `ValueError` in one sentence."""
    if name != "-" and not Path(name).exists() and name in catalog():
        return catalog()[name].config
    try:
        if name != "-" and Path(name).stat().st_size > LARGEST_FILE:
            raise ValueError(f"{name}: larger than {LARGEST_FILE >> 20} MiB, so no config.json")
        text = sys.stdin.read(LARGEST_FILE) if name == "-" else Path(name).read_text(encoding="utf-8")
        config = json.loads(text)
    except FileNotFoundError:
        raise ValueError(f"{name}: no such file, and no such model in the list") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{name}: a config must be an object, got {shorten(config)}")
    return config


def read_spec(parsed: argparse.Namespace) -> tuple[RopeSpec, Mapping[str, Any] | None, str | None]:
    """The spec that the model and the flags describe, the config it came from, and the layer type."""
    spec, config, layer = RopeSpec(), None, parsed.layer
    if parsed.model is not None:
        config = read_config(parsed.model)
        specs = from_config(config)
        layer = layer or usual_layer(parsed.model, specs)
        if layer not in specs:
            raise ValueError(f"layer must be one of {', '.join(specs) or 'none'}, got {shorten(layer)}")
        spec = specs[layer]
    changes = {name: getattr(parsed, name) for name in knobs(RopeSpec) if getattr(parsed, name) is not None}
    if "head_dim" in changes and "rotary_dim" not in changes:
        changes["rotary_dim"] = 0
    if "context" in changes and "target" not in changes:
        changes["target"] = max(spec.target, int(changes["context"])) if parsed.model else 0
    spec = fitted(spec, **changes)
    if parsed.scaling is not None:
        spec = with_method(spec, parsed.scaling)
    return with_knobs(spec, parsed), config, layer or None


def usual_layer(name: str, specs: Mapping[str, RopeSpec]) -> str:
    """The layer type a config is about."""
    if name in catalog() and not Path(name).exists():
        return main_layer(catalog()[name], model_specs(name))
    return next((layer for layer in ("", "full_attention") if layer in specs), next(iter(specs)))


def with_knobs(spec: RopeSpec, parsed: argparse.Namespace) -> RopeSpec:
    """The spec with the method's knobs that are on the command line. Raises `ValueError` for one it does not have."""
    fields = {field.name for field in dataclasses.fields(spec.scaling)}
    changes: dict[str, Any] = {}
    for name in (*method_knobs(), "truncate", *LISTS):
        value = getattr(parsed, name)
        if value is None:
            continue
        if name not in fields:
            raise ValueError(f"{flag(name)} is no knob of the method {spec.scaling.name}")
        changes[name] = parse_factors(value) if name in LISTS else value
    return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **changes)) if changes else spec


def run_table(parsed: argparse.Namespace) -> int:
    """`table`."""
    spec, _, _ = read_spec(parsed)
    inv_freq = spec.inv_freq(parsed.length)
    columns = (inv_freq, wavelength(inv_freq), spec.context * inv_freq / (2 * np.pi), inv_freq / spec.plain_inv_freq)
    names = ("pair", "inv_freq", "wavelength", "turns", "over_plain")
    if parsed.csv:
        print(",".join(names))
        for pair, values in enumerate(zip(*columns, strict=True)):
            print(",".join((str(pair), *(repr(float(value)) for value in values))))
        return 0
    rows = [
        (str(pair), *(f"{value:.6g}" for value in values)) for pair, values in enumerate(zip(*columns, strict=True))
    ]
    print_rows(names, rows)
    print(f"factor on cos and sin: {spec.attention_factor(parsed.length):.8g}")
    return 0


def run_check(parsed: argparse.Namespace) -> int:
    """`check`."""
    if parsed.repair:
        if len(parsed.files) != 1:
            raise ValueError("--repair takes one file")
        print(json.dumps(repair(read_config(parsed.files[0])), indent=2))
        return 0
    code, report = 0, []
    for name in parsed.files:
        try:
            found = check(read_config(name))
        except (ValueError, OSError) as error:
            found = [Finding("unreadable", "error", "", str(error))]
        code = max([code, *(EXIT[finding.severity] for finding in found)])
        report.append({"file": name, "findings": [as_dict(finding) for finding in found]})
        if not parsed.json:
            print_findings(name, found)
    if parsed.json:
        print(json.dumps(report if len(report) > 1 else report[0], indent=2))
    return code


def as_dict(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    effect = finding.effect
    return {**dataclasses.asdict(finding), "effect": effect and {"ratio": effect.ratio, "pair": effect.pair}}


def print_findings(name: str, found: list[Finding]) -> None:
    """The findings of one file, one line each."""
    for finding in found:
        effect = finding.effect
        size = f" [frequencies up to x{effect.ratio:.4g}, pair {effect.pair}]" if effect else ""
        place = f" {finding.key}:" if finding.key else ""
        print(f"{name}: {finding.severity}:{place} {finding.message}{size} ({finding.rule})")
    if not found:
        print(f"{name}: nothing to say")


def run_compare(parsed: argparse.Namespace) -> int:
    """`compare`."""
    spec, _, _ = read_spec(parsed)
    found = options(spec, parsed.length or spec.target)
    if parsed.json:
        kept = [{**vars(option), "spec": None} for option in found]
        print(json.dumps([{key: value for key, value in row.items() if key != "spec"} for row in kept], indent=2))
        return 0
    names = ("method", "kept", "blended", "divided", "unseen", "cos_sin", "logits", "first_negative")
    rows = [
        (
            option.method,
            *(str(count) for count in (option.kept, option.blended, option.divided, option.unseen)),
            f"{option.attention_factor:.6g}",
            f"{option.logit_factor:.6g}",
            "-" if option.first_negative is None else str(option.first_negative),
        )
        for option in found
    ]
    print(f"from {spec.context:,} to {parsed.length or spec.target:,} tokens, {spec.pairs} pairs")
    print_rows(names, rows)
    return 0


def run_runtimes(parsed: argparse.Namespace) -> int:
    """`runtimes`."""
    found = compare(read_config(parsed.config), length=parsed.length, layer_type=parsed.layer)
    if parsed.json:
        print(json.dumps([comparison_dict(one) for one in found], indent=2))
        return 0
    rows = [(one.emulation.runtime, one.emulation.version.split(" ")[0], verdict(one), because(one)) for one in found]
    print_rows(("runtime", "version", "against transformers", "rules"), rows)
    return 0


def verdict(one: Comparison) -> str:
    """A cell of the matrix."""
    if not one.emulation.supported:
        return "refuses"
    if one.agrees:
        return "agrees"
    parts = [f"x{one.effect.ratio:.4g} pair {one.effect.pair}"] if one.effect else []
    parts += ["other pairs rotate"] if one.pairs_differ else []
    for name, ratio in (("cos, sin", one.attention_ratio), ("softmax", one.softmax_ratio)):
        parts += [f"{name} x{ratio:.4g}"] if ratio is not None and abs(ratio - 1.0) > 2e-6 else []
    return ", ".join(parts) or "no reference"


def because(one: Comparison) -> str:
    """Why: the reason of a refusal, else the rules that applied where it differs."""
    if not one.emulation.supported:
        return one.emulation.reason
    return "" if one.agrees else ", ".join(rule.key for rule in one.emulation.rules)


def comparison_dict(one: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    emulation = one.emulation
    return {
        "runtime": emulation.runtime,
        "version": emulation.version,
        "supported": emulation.supported,
        "reason": emulation.reason,
        "agrees": one.agrees,
        "effect": one.effect and {"ratio": one.effect.ratio, "pair": one.effect.pair},
        "attention_factor": emulation.attention_factor,
        "softmax_multiplier": emulation.softmax_multiplier,
        "rules": {rule.key: rule.text for rule in emulation.rules},
        "inv_freq": None if emulation.inv_freq is None else emulation.inv_freq.tolist(),
    }


def run_export(parsed: argparse.Namespace) -> int:
    """`export`; exit code 1 where the runtime cannot do what is asked."""
    spec, config, layer = read_spec(parsed)
    result: Export = export(spec, to=parsed.to, config=config, layer_type=layer)
    print(result.text)
    if not result.faithful:
        off = f" (frequencies up to x{result.effect.ratio:.4g}, pair {result.effect.pair})" if result.effect else ""
        print(f"rope-viz: {result.runtime} will not give the intended embedding{off}: {result.reason}", file=sys.stderr)
    return 0 if result.faithful else 1


def run_models(parsed: argparse.Namespace) -> int:
    """`models`."""
    if parsed.json:
        print(json.dumps([{**vars(model), "config": dict(model.config)} for model in catalog().values()], indent=2))
        return 0
    rows = []
    for model in catalog().values():
        specs = model_specs(model.id)
        spec = specs[main_layer(model, specs)]
        rows.append((model.id, model.name, f"{spec.base:g}", str(spec.rotary_dim), str(spec.target), spec.scaling.name))
    print_rows(("id", "name", "base", "rotary_dim", "length", "scaling"), rows)
    return 0


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns."""
    widths = [max(len(row[i]) for row in (names, *rows)) for i in range(len(names))]
    for row in (names, *rows):
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
