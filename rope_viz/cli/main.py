"""The commands: app, table, figure, check, compare, runtimes, export, models. Flags are made from knobs.

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
from typing import Any

import numpy as np

from rope_viz import __version__
from rope_viz.advice.export import TARGETS, Export, export
from rope_viz.advice.extend import options
from rope_viz.advice.lint import Finding, check, repair
from rope_viz.cli import app as cli_app
from rope_viz.cli import axes as cli_axes
from rope_viz.cli import figure as cli_figure
from rope_viz.cli.spec import add_spec_flags, read_config, read_spec, tokens
from rope_viz.configs.catalog import catalog, main_layer, model_specs
from rope_viz.configs.models import from_config
from rope_viz.configs.partly import partly, shares
from rope_viz.configs.parts import text_fields
from rope_viz.configs.rewrite import laid
from rope_viz.configs.unlisted import doubt
from rope_viz.configs.upload import listed
from rope_viz.configs.without import NoRope
from rope_viz.embedding.scaling import Proportional
from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import wavelength
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import Comparison, compare

EXIT = {"error": 2, "warning": 1, "note": 0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Alone it opens the dashboard.
    given = (sys.argv[1:] if arguments is None else list(arguments)) or ["app"]
    parsed = parser(given).parse_args(given)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return run(parsed)
    except BrokenPipeError:
        # The reader, such as head, has seen enough; what is left in the buffer must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except NoRope as absence:
        return say_absence(str(absence), parsed)
    except (ValueError, OSError) as error:
        print(f"rope-viz: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2


def say_absence(sentence: str, parsed: argparse.Namespace) -> int:
    """A model without rotary embedding: that is the answer, and no error. But no figure was written."""
    if parsed.run is cli_figure.run:
        print(f"rope-viz: {sentence}", file=sys.stderr)
        return 2
    if getattr(parsed, "json", False):
        print(json.dumps({"rope": False, "reason": sentence}, indent=2))
    else:
        print(f"{sentence}.", file=sys.stderr if getattr(parsed, "csv", False) else sys.stdout)
    return 0


def remarks(config: Mapping[str, Any] | None) -> list[str]:
    """What has to be said before any number of a config: an unlisted type, layers that do not rotate."""
    if config is None:
        return []
    fields = text_fields(config)
    return [text for text in (doubt(fields), partly(fields), shares(fields)) if text]


def parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """All commands and their flags; a picture's own are there where `arguments` ask for it."""
    top = argparse.ArgumentParser(prog="rope-viz", description="What position does to attention, in numbers.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    table = commands.add_parser("table", help="frequency, wavelength and turns of every pair")
    add_spec_flags(table)
    table.add_argument("--csv", action="store_true", help="comma-separated, full precision")
    table.set_defaults(run=run_table)

    cli_app.add(commands)
    cli_figure.add(commands, arguments)

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

    given = commands.add_parser(
        "export",
        help="this embedding as the keys or flags of a runtime",
        description="For a runtime that reads config.json: the whole of yours, changed where the language model stands "
        "(null: the key has to go). Exit code 1 where the runtime cannot do what is asked.",
    )
    add_spec_flags(given)
    given.add_argument("--to", required=True, choices=TARGETS, help="the runtime")
    given.add_argument("--changes", action="store_true", help="only the keys of config.json that change")
    given.add_argument("--json", action="store_true", help="with what the runtime makes of it")
    given.set_defaults(run=run_export)

    listed = commands.add_parser("models", help="the models of the list")
    listed.add_argument("--json", action="store_true", help="with source and status")
    listed.set_defaults(run=run_models)
    return top


def run_table(parsed: argparse.Namespace) -> int:
    """`table`."""
    spec, config, _ = read_spec(parsed)
    inv_freq = spec.inv_freq(parsed.length)
    columns = (inv_freq, wavelength(inv_freq), spec.context * inv_freq / (2 * np.pi), inv_freq / spec.plain_inv_freq)
    names = ("pair", "inv_freq", "wavelength", "turns", "over_plain")
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
    print_rows(names, rows)
    print(f"factor on cos and sin: {spec.attention_factor(parsed.length):.8g}")
    for text in remarks(config):
        print(text)
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
    spec, config, layer = read_spec(parsed)
    found = options(spec, parsed.length or spec.target, config=config, layer=layer)
    if parsed.json:
        kept = [{**vars(option), "spec": None} for option in found]
        print(json.dumps([{key: value for key, value in row.items() if key != "spec"} for row in kept], indent=2))
        return 0
    counts = ("kept", "blended", "divided", "sped_up", "still", "unseen")
    names = ("method", *counts, "cos_sin", "logits", "first_negative")
    rows = [
        (
            option.method,
            *(str(count) for count in (option.kept, option.blended, option.divided, option.sped, option.still)),
            str(option.unseen),
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
    config = read_config(parsed.config)
    cli_axes.refuse_diffusion(config)
    found = compare(config, length=parsed.length, layer_type=parsed.layer)
    if parsed.json:
        print(json.dumps(cli_axes.added([comparison_dict(one) for one in found], config), indent=2))
        return 0
    for text in remarks(config):
        print(text)
    rows = [
        (one.emulation.runtime, one.emulation.version.split(" ")[0], verdict(one), one.how, because(one))
        for one in found
    ]
    print_rows(("runtime", "version", "against transformers", "known", "rules"), rows)
    several = cli_axes.rows(config)
    if several:
        print("\nthe axes of its positions; the film has six grids of 2 x 2 tokens and begins at 3")
        print_rows(cli_axes.NAMES, several)
    return 0


def verdict(one: Comparison) -> str:
    """A cell of the matrix."""
    return one.verdict("x{:.4g}".format).replace(" at pair ", " pair ").replace("cos and sin", "cos, sin")


def because(one: Comparison) -> str:
    """Why: the reason of a refusal, else the rules that applied where it differs; why it is not known."""
    if one.how == "not known":
        return one.emulation.known.source
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
        "known": emulation.known.how,
        "source": emulation.known.source,
        "verdict": verdict(one),
        "agrees": None if one.how == "not known" else one.agrees,
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
    told = emulate(result.config, runtime=result.runtime, version=result.version, layer_type=layer).known
    if parsed.json:
        effect = result.effect and {"ratio": result.effect.ratio, "pair": result.effect.pair}
        known = {"known": told.how, "source": told.source}
        print(json.dumps({**vars(result), "effect": effect, **known}, indent=2))
    elif config is not None and result.text.startswith("{") and not parsed.changes:
        print(json.dumps(laid(gone(result.fragment), result.config), indent=2))
    else:
        print(result.text)
    for text in (*remarks(config), *turned(config, layer, spec), *touched(result)):
        print(f"rope-viz: {text}", file=sys.stderr)
    if config is not None and told.how != "executed":
        print(f"rope-viz: what {result.runtime} makes of this is {told.how}: {told.source}", file=sys.stderr)
    if not result.faithful:
        off = f" (frequencies up to x{result.effect.ratio:.4g}, pair {result.effect.pair})" if result.effect else ""
        print(f"rope-viz: {result.runtime} will not give the intended embedding{off}: {result.reason}", file=sys.stderr)
    return 0 if result.faithful else 1


def turned(config: Mapping[str, Any] | None, layer: str | None, spec: RopeSpec) -> list[str]:
    """That pairs which stand still in the model would turn: no other method leaves any of them alone."""
    before = None if config is None else from_config(config).get(layer or "")
    if before is None or not isinstance(before.scaling, Proportional) or isinstance(spec.scaling, Proportional):
        return []
    still = int((before.inv_freq() == 0).sum())
    return [f"{still} of {before.pairs} pairs stand still in this model; with {spec.scaling.name} all of them turn"]


def touched(result: Export) -> list[str]:
    """Which layers the export is for, where layer types differ."""
    if not result.changed:
        return []
    stays = f"; those of type {listed(list(result.kept))} stay as they are" if result.kept else ""
    return [f"changes the layers of type {listed(list(result.changed))}{stays}"]


def gone(fragment: Mapping[str, Any]) -> dict[str, Any]:
    """Only the keys that have to go. Written as null, they go as well where the whole is laid over the old config."""
    inner = {key: gone(part) if isinstance(part, Mapping) else part for key, part in fragment.items()}
    return {key: part for key, part in inner.items() if part is None or (isinstance(part, dict) and part)}


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
