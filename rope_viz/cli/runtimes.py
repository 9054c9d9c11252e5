"""The commands `runtimes` and `export`: how each runtime reads a config, and how to configure a runtime."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.advice.plan.config_file import IN_VAIN, find_new_findings
from rope_viz.advice.plan.export import TARGETS, Export, export, find_target
from rope_viz.advice.training.trainer_export import WRITERS, TrainerExport, export_training
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.list_commands import print_rows, remarks
from rope_viz.cli.override_flags import Override, add_override_flags, read_override
from rope_viz.cli.spec import (
    NAMES,
    add_spec_flags,
    describe_lengths,
    named,
    read_config,
    read_model,
    read_spec,
    refuse_diffusion,
    tokens,
)
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, lists, short_repr
from rope_viz.models.architecture import find_architecture
from rope_viz.models.edit_config import merge_dicts
from rope_viz.models.formats import without_source
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.runtimes import emulate
from rope_viz.runtimes.asked_engines import describe_asked
from rope_viz.runtimes.axes import axes_answers
from rope_viz.runtimes.compare import Comparison, compare, compare_with, describe_temperature
from rope_viz.runtimes.history import History, find_changes, format_releases, histories, trace_releases
from rope_viz.runtimes.longest_length import LongestLength, describe_derived_lengths, find_derived_lengths
from rope_viz.runtimes.provenance import Known
from rope_viz.runtimes.releases import REFERENCE, RELEASES, find_patch, match_name
from rope_viz.texts import Texts
from rope_viz.texts.texts import join_list


def add_runtimes(commands: Any) -> None:
    """Add `runtimes` and its flags."""
    served = commands.add_parser("runtimes")
    served.add_argument("config", metavar="CONFIG", help=NAMES)
    served.add_argument("--length", type=tokens, help="current length, max_model_len or n_ctx")
    served.add_argument("--layer", help="layer type, such as full_attention")
    served.add_argument(
        "--release",
        action="append",
        default=[],
        metavar="RUNTIME=VERSION",
        help="an older release instead of the newest, such as vllm=0.8.5 or transformers=5.10; may be repeated",
    )
    served.add_argument(
        "--history", action="store_true", help="what every known release of each runtime computes, oldest first"
    )
    add_override_flags(served)
    served.add_argument("--json", action="store_true", help="as JSON, with the frequencies")
    add_hub_flag(served)
    served.set_defaults(run=run_runtimes)


def add_export(commands: Any) -> None:
    """Add `export` and its flags."""
    given = commands.add_parser(
        "export",
        description="Print this embedding as the keys or flags of a runtime or a trainer. For a runtime that reads "
        "config.json: your whole config with the changes (null: remove this key). Exit code 1: it cannot do this, or "
        "with the new scaling the check finds an error or a warning.",
    )
    add_spec_flags(given)
    given.add_argument(
        "--to", required=True, type=find_target, choices=(*TARGETS, *WRITERS), help="the runtime or trainer"
    )
    given.add_argument("--changes", action="store_true", help="print only the keys of config.json that change")
    given.add_argument("--json", action="store_true", help="as JSON, with what the runtime computes from it")
    add_hub_flag(given)
    given.set_defaults(run=run_export)


def run_runtimes(parsed: argparse.Namespace) -> int:
    """Run `runtimes` and return its exit code."""
    config = read_config(parsed.config)
    with named(parsed.config):
        refuse_diffusion(config)
        read_model(parsed.config, config).find_layer(parsed.layer)
        override = read_override(parsed)
        if parsed.history:
            if override is not None or parsed.release:
                raise ValueError("--history shows every release of the file alone: omit --release and overrides")
            return print_history(
                trace_releases(config, length=parsed.length, layer_type=parsed.layer, ratio="x{:.4g}".format),
                parsed.json,
            )
        if override is not None:
            return run_overridden(parsed, config, override)
        found = compare(config, length=parsed.length, layer_type=parsed.layer, releases=read_releases(parsed.release))
    if parsed.json:
        lengths = find_derived_lengths(read_model(parsed.config, config))
        listed = [comparison_dict(one) | longest_length_dict(one, lengths) for one in found]
        print(json.dumps(merge_axes(listed, config), indent=2))
        return 0
    for text in remarks(config):
        print(text)
    rows = [
        (
            one.emulation.runtime,
            one.emulation.version.split(" ")[0],
            format_verdict(one),
            describe_known(one),
            explain(one),
        )
        for one in found
    ]
    print_rows(("runtime", "version", "against transformers", "known", "rules"), rows)
    for history in histories(config, length=parsed.length, layer_type=parsed.layer, ratio="x{:.4g}".format):
        print(history.sentence(history.runtime))
    print_changes(parsed, config)
    lengths_text = describe_derived_lengths(read_model(parsed.config, config))
    if lengths_text:
        print(lengths_text)
    print_temperatures(found, read_model(parsed.config, config))
    several = list_axis_rows(config)
    if several:
        print("\nthe axes of its positions; the video has six grids of 2 x 2 tokens and begins at 3")
        print_rows(AXIS_COLUMNS, several)
    return 0


def print_changes(parsed: argparse.Namespace, config: Mapping[str, Any]) -> None:
    """Print what changed since the minor release of transformers 5 that was asked for; nothing for other releases."""
    asked = {match_name(name, RELEASES): version for name, version in read_releases(parsed.release).items()}
    written = asked.get("transformers", "")
    release = find_patch(written)
    if release is None:
        return
    if release != written:
        print(f"transformers {written}: {release} was executed, the last patch release of this minor release.")
    found = find_changes(config, release, length=parsed.length, layer_type=parsed.layer, ratio="x{:.4g}".format)
    for one in found:
        name = f"transformers, {one.layer}" if one.layer else "transformers"
        print(f"{one.history.sentence(name)}. {' '.join(text.rstrip('.') + '.' for text in one.reasons)}".rstrip())
    if not found:
        print(f"transformers {release} to {RELEASES['transformers'].today[0]}: no change for this config.")


def print_history(found: Sequence[History], as_json: bool) -> int:
    """Print from which release to which each runtime computes what, and how that is known. Return the exit code."""
    if as_json:
        print(json.dumps([history_dict(history) for history in found], indent=2))
        return 0
    rows: list[tuple[str, ...]] = []
    for history in found:
        for span in history.spans:
            rows.append(
                (
                    history.runtime,
                    format_releases(history.runtime, span.releases),
                    span.words,
                    span.how,
                    explain(span.last),
                )
            )
        for asked in history.asked_spans:
            rows.append(
                (
                    history.runtime,
                    format_releases(history.runtime, asked.releases),
                    asked.verdict,
                    "asked",
                    f"about {asked.config}",
                )
            )
    print_rows(("runtime", "releases", f"against {REFERENCE}", "known", "rules"), rows)
    for history in found:
        if history.gaps:
            between = join_list([f"between {older} and {newer}" for older, newer in history.gaps])
            print(f"{history.runtime}: not known {between}")
    return 0


def history_dict(history: History) -> dict[str, Any]:
    """Return what the releases of a runtime compute as JSON data; between neighbours in "gaps" nothing is known."""
    spans = [
        {"releases": span.releases, "from": span.releases[0], "to": span.releases[-1], "verdict": span.words}
        | {
            "known": span.how,
            "source": span.last.emulation.known.source,
            "agrees": comparison_dict(span.last)["agrees"],
        }
        | {"why": explain(span.last)}
        for span in history.spans
    ]
    asked = [
        {"config": each.config, "releases": each.releases, "verdict": each.verdict} for each in history.asked_spans
    ]
    return {"runtime": history.runtime, "spans": spans, "asked": asked, "gaps": history.gaps}


def print_temperatures(found: Sequence[Comparison], config: ModelConfig) -> None:
    """Print what each runtime does with the attention temperature by position; nothing for a model without it."""
    texts = Texts("runtimes")
    kinds = [(one, describe_temperature(config, one.emulation.runtime, one.emulation.version)) for one in found]
    # An older release, and a runtime that has no such model, answer nothing here.
    answers = [(one, kind) for one, kind in kinds if one.emulation.supported and kind not in ("", "not_known", "paper")]
    if answers:
        print(f"\n{texts('temperature.column')}")
        print_rows(
            ("runtime", "version", "what it does"),
            [(one.emulation.runtime, one.emulation.version, texts(f"temperature.{kind}")) for one, kind in answers],
        )


def run_overridden(parsed: argparse.Namespace, config: Mapping[str, Any], override: Override) -> int:
    """Print what each loader of an override computes, against transformers with the file alone. Return 1 for errors."""
    rows, data = [], []
    base = emulate(config, "transformers", length=parsed.length, layer_type=parsed.layer)
    for merged in override.merge_all(read_model(parsed.config, config)):
        one = None
        if not merged.refusal:
            found = emulate(merged.config, merged.loader, length=parsed.length, layer_type=parsed.layer)
            one = compare_with(base, found)
        row = {"runtime": merged.loader, "refusal": merged.refusal, "notes": list(merged.notes)}
        data.append(row if one is None else comparison_dict(one) | row)
        verdict = "refuses" if one is None else format_verdict(one).replace("agrees", "no difference")
        rows.append((merged.loader, verdict, "; ".join([merged.refusal] if merged.refusal else merged.notes)))
    if parsed.json:
        print(json.dumps(data, indent=2))
    else:
        print_rows(("runtime", f"with {override.flag}, against the file alone", "remarks"), rows)
    return 1 if any(row["refusal"] for row in data) else 0


def read_releases(written: Sequence[str]) -> dict[str, str]:
    """Read RUNTIME=VERSION arguments. Raise `ValueError` for anything else."""
    pairs = [word.partition("=") for word in written]
    for name, sign, version in pairs:
        if not (name and sign and version):
            raise ValueError(f"--release must be RUNTIME=VERSION, such as vllm=0.8.5, got {short_repr(name)}")
    return {name: version for name, _, version in pairs}


def format_verdict(one: Comparison) -> str:
    """Return a cell of the runtime matrix."""
    return one.verdict("x{:.4g}".format).replace(" at pair ", " pair ").replace("cos and sin", "cos, sin")


def describe_known(one: Comparison) -> str:
    """Return how an answer is known, and in which releases the whole engine was asked."""
    return ", ".join(filter(None, [one.how, describe_asked(one.emulation.known.asked)]))


def explain(one: Comparison) -> str:
    """Return the reason of a refusal, of a difference (the rules that applied), or of a missing answer."""
    if one.how == "not known":
        return one.emulation.known.source
    if not one.emulation.supported:
        return one.emulation.reason
    return "" if one.agrees else ", ".join(rule.key for rule in one.emulation.rules)


def longest_length_dict(one: Comparison, lengths: Mapping[str, LongestLength]) -> dict[str, Any]:
    """Return the longest length that today's release of a runtime derives, as JSON data; {} where none is known."""
    name = one.emulation.runtime
    longest = lengths.get(name) if one.emulation.version == RELEASES[name].today[0] else None
    if longest is None:
        return {}
    return {"longest_length": {"tokens": int(longest.length), "key": longest.key, "factor": longest.factor}}


def comparison_dict(one: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON data."""
    emulation = one.emulation
    return {
        "runtime": emulation.runtime,
        "version": emulation.version,
        "supported": emulation.supported,
        "reason": emulation.reason,
        "known": emulation.known.how,
        "source": emulation.known.source,
        "asked": [
            {"release": asked.release, "date": asked.date, "config": asked.config, "verdict": asked.verdict}
            for asked in emulation.known.asked
        ],
        "verdict": format_verdict(one),
        "agrees": None if one.how == "not known" else one.agrees,
        "effect": one.effect and {"ratio": one.effect.ratio, "pair": one.effect.pair},
        "attention_factor": emulation.attention_factor,
        "softmax_multiplier": emulation.softmax_multiplier,
        "rules": {rule.key: rule.text for rule in emulation.rules},
        "inv_freq": None if emulation.inv_freq is None else emulation.inv_freq.tolist(),
    }


def run_export(parsed: argparse.Namespace) -> int:
    """Run `export` and return its exit code, 1 if the runtime cannot do what is intended."""
    spec, config, layer = read_export_spec(parsed)
    if parsed.to in WRITERS:
        return print_training(export_training(spec, to=parsed.to, config=config, layer_type=layer), parsed.json)
    result: Export = export(spec, to=parsed.to, config=config, layer_type=layer)
    basis, softmax = read_back(result, layer)
    if parsed.json:
        effect = result.effect and {"ratio": result.effect.ratio, "pair": result.effect.pair}
        known = {"known": basis.how, "source": basis.source, "softmax_multiplier": softmax}
        lengths = {} if config is None else describe_lengths(read_model(parsed.model, config))
        made = {**vars(result), "config": without_source(result.config)}
        print(json.dumps({**made, "effect": effect, **known, **lengths}, indent=2))
    elif config is not None and result.text.startswith("{") and not parsed.changes:
        fragment = find_removals(result.fragment, ModelConfig.read(config).part.kind)
        print(json.dumps(merge_dicts(fragment, without_source(result.config)), indent=2))
    else:
        print(result.text)
    for text in (*remarks(config), *rotation_remarks(config, layer, spec), *layer_remarks(result)):
        print(f"rope-viz: {text}", file=sys.stderr)
    if config is not None and basis.how != "executed":
        how = "is not known" if basis.how == "not known" else "is known by rule, not by execution"
        print(f"rope-viz: how {result.runtime} reads this {how}: {basis.source}", file=sys.stderr)
    if not result.faithful:
        off = f" (frequencies up to x{result.effect.ratio:.4g}, pair {result.effect.pair})" if result.effect else ""
        verb = "will not give" if basis.how != "not known" else "by its general rules does not give"
        print(f"rope-viz: {result.runtime} {verb} the intended embedding{off}: {result.reason}", file=sys.stderr)
        return 1
    mistakes = [] if config is None or parsed.scaling is None else find_new_mistakes(config, result, parsed.layer)
    for text in mistakes:
        print(f"rope-viz: with this the check finds what it did not find before: {text}", file=sys.stderr)
    return 1 if mistakes else 0


def find_new_mistakes(config: Mapping[str, Any], result: Export, layer: str | None) -> list[str]:
    """Return the errors and warnings of the check that a new scaling brings into a config.

    An explicit layer type is scaled, even where that extends nothing.
    """
    before, after = (ModelConfig.read(without_source(one)) for one in (config, result.config))
    found = find_new_findings(before, after, without=("base-too-small", *(IN_VAIN if layer else ())))
    return [f"{one.severity}: {one.message}" for one in found if one.severity != "note"]


def read_export_spec(parsed: argparse.Namespace) -> tuple[RopeSpec, Mapping[str, Any] | None, str | None]:
    """Return what `read_spec` does. A factor alone says the length to write, too: the original one times the factor."""
    spec, config, layer = read_spec(parsed)
    by_length = spec.scaling.depends_on_length and not lists(spec.scaling)  # the file says its original length
    if parsed.factor is None or parsed.target is not None or by_length:
        return spec, config, layer
    reached = min(max(round(spec.context * parsed.factor), 1), MAX_LENGTH)
    return dataclasses.replace(spec, target=reached), config, layer


def print_training(result: TrainerExport, as_json: bool) -> int:
    """Print the options of a trainer and what they cannot say. Return the exit code, 1 if they do not say all."""
    if as_json:
        training = result.training
        values = None if training is None or training.inv_freq is None else training.inv_freq.tolist()
        factors = {} if training is None else {"attention_factor": training.attention_factor}
        more = {**factors, "softmax_multiplier": training and training.softmax_multiplier, "inv_freq": values}
        print(json.dumps({**vars(result), "training": None, **more}, indent=2))
    elif result.text:
        print(result.text)
    if not result.faithful:
        print(f"rope-viz: {result.trainer} will not train the intended embedding: {result.reason}", file=sys.stderr)
    print(f"rope-viz: {result.loses}", file=sys.stderr)
    return 0 if result.faithful else 1


def read_back(result: Export, layer: str | None) -> tuple[Known, float | None]:
    """Return how well the runtime's reading of the exported config is known, and its factor on the softmax scale."""
    try:
        found = emulate(result.config, runtime=result.runtime, version=result.version, layer_type=layer)
    except ValueError as error:
        return Known("not known", str(error)), None
    return found.known, found.softmax_multiplier


def rotation_remarks(config: Mapping[str, Any] | None, layer: str | None, spec: RopeSpec) -> list[str]:
    """Warn that pairs with zero frequency in the model would rotate: only the proportional method has such pairs."""
    before = None if config is None else from_config(config).get(layer or "")
    if before is None or not before.scaling.rotates_whole_head or spec.scaling.rotates_whole_head:
        return []
    still = int((before.inv_freq() == 0).sum())
    return [f"{still} of {before.pairs} pairs have zero frequency in this model; with {spec.scaling.name} all rotate"]


def layer_remarks(result: Export) -> list[str]:
    """Return which layers the export changes, if layer types differ."""
    if not result.changed:
        return []
    stays = f"; those of type {join_list(list(result.kept))} do not change" if result.kept else ""
    return [f"changes the layers of type {join_list(list(result.changed))}{stays}"]


def find_removals(fragment: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return only the keys to remove, as null, so that merging the result over the old config removes them.

    Keys that the model type's class does not accept as null are left out.
    """
    inner = {
        key: find_removals(part, kind) if isinstance(part, Mapping) else part
        for key, part in fragment.items()
        if key not in ("rope_parameters", "rope_scaling") or part is None
    }
    record = find_architecture(kind)
    refused = () if record is None else record.validation.not_null
    return {
        key: part
        for key, part in inner.items()
        if (part is None and key not in refused) or (isinstance(part, dict) and part)
    }


AXIS_COLUMNS = ("runtime", "version", "pairs of each axis", "against transformers", "text after a video", "YaRN")


def list_axis_rows(config: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per runtime, [] for a model with one axis; its video has 6 grids of 2 × 2 from position 3."""
    return [
        (
            answer.runtime.split("-4")[0],
            answer.version,
            answer.sections,
            answer.against,
            "-" if answer.behind is None else f"at {answer.behind:g}",
            answer.extension or "-",
        )
        for answer in axes_answers(config)
    ]


def as_dicts(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runtimes' answers as JSON data."""
    return [
        {
            "runtime": answer.runtime.split("-4")[0],
            "version": answer.version,
            "reason": answer.reason,
            "pairs": dict(answer.counts),
            "rotation": None if answer.spec is None else answer.spec.is_rotation,
            "axis": None if answer.spec is None else answer.spec.owner.tolist(),
            "moved": list(answer.moved),
            "still": list(answer.still),
            "text_behind_a_film": answer.behind,
            "times": None if answer.times is None else list(answer.times),
            "yarn": answer.extension,
        }
        for answer in axes_answers(config)
    ]


def merge_axes(listed: list[dict[str, Any]], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Merge the axes' answers into those of the same runtime and version, and append the remaining ones."""
    answers = {(one.pop("runtime"), one.pop("version")): one for one in as_dicts(config)}
    for one in listed:
        found = answers.pop((one["runtime"], one["version"].split(" ")[0]), None)
        if found is not None:
            one["axes"] = found
    return [*listed, *({"runtime": name, "version": version, "axes": one} for (name, version), one in answers.items())]
