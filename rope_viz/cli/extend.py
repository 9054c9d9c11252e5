"""The command `extend`: from a config to a longer context, as text, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from rope_viz.advice.lint import COMMON_NOTES
from rope_viz.advice.memory.kv_cache import DTYPES, GPU
from rope_viz.advice.plan.export import find_target
from rope_viz.advice.plan.extension_plan import ExtensionPlan, find_usual_runtime, make_plan
from rope_viz.advice.plan.runtime_instructions import NAMES, format_diff
from rope_viz.advice.plan.verdict import decide_certainty, make_verdict
from rope_viz.advice.plan.ways import SUPPORT, Way
from rope_viz.cli.find_configs import find_listed
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import STDOUT, write_output
from rope_viz.cli.override_flags import add_override_flags, read_override
from rope_viz.cli.spec import NAMES as CONFIGS
from rope_viz.cli.spec import named, read_config, refuse_diffusion, tokens
from rope_viz.embedding.spec import short_repr
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.commands import write_probe_commands

NO_FILE = "A GGUF file holds its config: llama.cpp's flags override it, and no config.json is written without -o."


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "extend",
        description="Show how to reach a longer context, and check it with the rules of every requested runtime. If it "
        "is unknown how a runtime reads this model, its general rules are used, and the output tells so. Exit code 0: "
        "all of them compute the intended frequencies. 1: some do not, or the check finds an error in the config.json "
        "to write, or no method is recommended: then nothing is written without --way. 2: the input is invalid.",
    )
    asked.add_argument("config", metavar="CONFIG", help=CONFIGS)
    asked.add_argument("--to", required=True, type=tokens, metavar="LENGTH", help="tokens, such as 128k")
    asked.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME",
        help=f"one of {', '.join(NAMES)}; may be repeated; default: transformers, llama.cpp for a GGUF file",
    )
    asked.add_argument("--trained", type=tokens, metavar="LENGTH", help="the trained length, if you know it better")
    asked.add_argument("--layer", help="layer type, such as full_attention")
    asked.add_argument("--way", default="", metavar="WAY", help="another of the listed methods, such as yarn or linear")
    asked.add_argument("--dtype", choices=DTYPES, help="data type of the KV cache; default: the file's, else bfloat16")
    asked.add_argument("--sequences", type=tokens, default=1, metavar="N", help="parallel requests; default: 1")
    asked.add_argument("--format", choices=FORMATS, default="text", help="text, markdown or json")
    asked.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    asked.add_argument("-o", "--output", metavar="FILE", help="write the whole config.json to this file; - is stdout")
    add_override_flags(asked)
    add_hub_flag(asked)
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    config = read_config(parsed.config)
    asked = parsed.runtime or [find_usual_runtime(config, "transformers")]
    runtimes = [find_target(name.strip()) for names in asked for name in names.split(",")]
    for name in runtimes:
        if name not in NAMES:
            raise ValueError(f"--runtime must be one of {', '.join(NAMES)}, got {short_repr(name)}")
    known = find_listed(parsed.config)
    with named(parsed.config):
        refuse_diffusion(config)
        override = read_override(parsed)
        if override is not None:
            config = override.apply(ModelConfig.read(config), runtimes)
        made = make_plan(
            config,
            parsed.to,
            list(dict.fromkeys(runtimes)),
            known=known,
            trained=parsed.trained,
            layer=parsed.layer,
            way=parsed.way,
            dtype=parsed.dtype,
            sequences=parsed.sequences,
        )
    ways = [way.id for way in made.advice.ways]
    if parsed.way and parsed.way not in ways:
        raise ValueError(f"--way must be one of {', '.join(ways)}, got {short_repr(parsed.way)}")
    # With `-o -` standard output is the config alone.
    told = sys.stderr if parsed.output == STDOUT else sys.stdout
    print(FORMATS[parsed.format](made), end="" if parsed.format != "json" else "\n", file=told)
    if made.refused:
        print(f"rope-viz: {' '.join(made.refusals)} Choose one with --way if you know better.", file=sys.stderr)
        return 1
    if made.warning:
        print(f"rope-viz: warning: {made.warning}", file=sys.stderr)
    if not made.file.fit:
        worst, done = made.file.findings[0], "not written" if parsed.output else "this config.json is not usable"
        print(f"rope-viz: {done}, because the check finds an {worst.severity}: {worst.message}", file=sys.stderr)
        return 1
    if parsed.output:
        write_output(parsed.output, (json.dumps(dict(made.file.config), indent=2) + "\n").encode())
    return 0 if all(one.made.faithful for one in made.instructions) else 1


def as_dict(plan: ExtensionPlan) -> dict[str, Any]:
    """Return everything in a plan as plain data."""
    held, known = plan.memory, plan.recognised
    return {
        "have": {
            "name": known.name,
            "model": known.model.id if known.model else None,
            "how": known.how,
            "sentence": known.sentence,
            "trained": pick(known.trained, "length", "source", "is_documented"),
            "max_position_embeddings": known.says,
            "reaches": known.reach,
            "mistakes": list(known.mistakes),
            "findings": [pick(one, "rule", "severity", "message") for one in plan.found],
        },
        "need": plan.target,
        "verdict": pick(make_verdict(plan), "headline", "certainty", "words", "reason", "measured", "wrong"),
        "ways": [way_dict(way, plan) for way in plan.advice.ways],
        "chosen": None if plan.refused else plan.way.id,
        "refused": dict(plan.refused),
        "short_texts": list(plan.advice.short),
        "memory": {
            "cache_bytes": held.cached if held.cache else None,
            "bytes_per_token": held.cache.per_token if held.cache else None,
            "weight_bytes": held.weights if held.cache else None,
            "longest_on_80_GB": held.longest,
            "gpus_of_80_GB": held.count_gpus(GPU) if held.cache else None,
            "sequences": held.sequences,
            "sentences": list(held.sentences(plan.target)),
        },
        "config": dict(plan.file.config),
        "config_keys": plan.file.generation,
        "read_by": list(plan.file.runtimes),
        "not_read_by": list(plan.file.others),
        "not_verified": list(plan.file.unverified),
        "runtimes": {
            one.runtime: {
                "name": one.name,
                "faithful": one.is_checked,
                "known": one.made.known.how,
                **pick(one, "proof", "text", "command", "notes", "log", "check"),
            }
            for one in plan.instructions
        },
    }


def way_dict(way: Way, plan: ExtensionPlan) -> dict[str, Any]:
    """Return one way as plain data."""
    return {
        "way": way.id,
        **pick(way, "method", "rank", "title"),
        "certainty": decide_certainty(way),
        "factor": way.option.factor,
        **pick(way, "source", "reasons"),
        "measured": [pick(one, "text", "source") for one in way.evidence],
        "unseen_pairs": way.option.unseen,
        **pick(way.option, "first_negative", "attention_factor"),
        "chosen": not plan.refused and way.id == plan.way.id,
    }


def pick(one: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object, tuples as lists."""
    values = {name: getattr(one, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def format_markdown(plan: ExtensionPlan) -> str:
    """Return the plan as a document: five headings, and blocks to copy."""
    return "\n".join(lines(plan)) + "\n"


def format_text(plan: ExtensionPlan) -> str:
    """Return the plan for a terminal: the same without the marks of Markdown."""
    out, copied = [], False
    for line in lines(plan):
        if line.startswith("```"):
            copied = not copied
        elif copied:
            out.append(line)
        elif line.startswith("#"):
            title = line.lstrip("# ")
            out += [title, "-" * len(title)]
        else:
            out.append(line.replace("**", ""))
    return "\n".join(out) + "\n"


def lines(plan: ExtensionPlan) -> Iterator[str]:
    """Yield the document, line by line."""
    known = plan.recognised
    length = "the trained length" if known.trained.is_known else "this length"
    yield from ("## What you have", "", known.sentence, f"Source of {length}: {known.trained.source}.")
    yield from (f"**Probably a mistake:** {mistake}" for mistake in known.mistakes)
    common = [one.rule for one in plan.found if one.severity == "note" and one.rule in COMMON_NOTES]
    yield from (f"- {one.severity}: {one.message}" for one in plan.found if one.rule not in common)
    if common:
        yield f"- common notes, shown by rope-viz check --all-notes: {', '.join(common)}"
    yield from ("", f"## What you need: {plan.target:,} tokens", "")
    yield from ("## What to do, and why", "")
    verdict = make_verdict(plan)
    yield f"**{verdict.headline}.**{f' {verdict.mark}.' if verdict.mark else ''}"
    yield from filter(None, (verdict.reason, verdict.measured))
    yield ""
    for number, way in enumerate(plan.advice.ways, start=1):
        is_chosen = not plan.refused and way.id == plan.way.id
        mark = "**" if is_chosen else ""
        yield f"{number}. {mark}{way.title}{mark} ({SUPPORT[way.rank]})"
        if way.source:
            yield f"   Source: {way.source}"
        if plan.refused:
            yield f"   - {plan.refused[way.id]}"
        elif way.because and not is_chosen:
            yield f"   - {way.because}"
        if is_chosen:
            yield from (f"   - {reason}" for reason in way.reasons)
            yield from (f"   - Measured: {one.text} ({one.source})" for one in way.evidence)
    yield ""
    if not plan.refused:
        yield from (f"On short texts: {sentence}" for sentence in plan.advice.short)
    yield from plan.memory.sentences(plan.target)
    if plan.refused:
        return
    yield from ("", "## What to write", "")
    if plan.is_gguf:
        yield from (NO_FILE, *runtime_lines(plan))
    elif plan.is_file_read:
        yield from (*file_lines(plan), *runtime_lines(plan))
    else:
        # What a requested runtime accepts comes first, and the file for others after it.
        yield from (*runtime_lines(plan), "", "### config.json", "", *file_lines(plan))
    yield from ("", "## Verify it worked", "")
    for one in plan.instructions:
        yield from (f"### {one.name}: the frequencies of the running model", "")
        yield from (f"```{'bash' if one.runtime == 'llama.cpp' else 'python'}", one.check, "```", "")
        if one.runtime != "llama.cpp":
            yield from ("```bash", plan.verify_command, "```", "")
        if one.log:
            yield from (f"In its log: {one.log}", "")
        commands = write_probe_commands(plan.config, one)
        if commands:
            yield from ("Or ask it with a probe (docs/probe.md):", "", "```bash", commands, "```", "")
    yield "Does it find what it read? rope-viz evaluate --server extended=http://localhost:8000/v1 -o recall.json"


def file_lines(plan: ExtensionPlan) -> Iterator[str]:
    """Yield the config.json to write, and who reads it."""
    yield plan.file.generation
    if plan.file.fragment:
        yield from ("", "```diff", format_diff(plan.config, plan.file.config), "```", "")
    yield from plan.file.proof


def runtime_lines(plan: ExtensionPlan) -> Iterator[str]:
    """Yield what to give each runtime."""
    for one in plan.instructions:
        yield from ("", f"### {one.name}", "", one.proof)
        if one.text:
            yield from ("", f"```{one.language}", one.text, "```")
        yield from ("", "Start it:", "", "```bash", one.command, "```")
        yield from one.notes


def format_json(plan: ExtensionPlan) -> str:
    """Return the plan as JSON."""
    return json.dumps(as_dict(plan), indent=2)


FORMATS = {"text": format_text, "markdown": format_markdown, "json": format_json}
