"""A plan as text for a terminal, as Markdown for an issue or a wiki, and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rope_viz.advice.lint import COMMON_NOTES
from rope_viz.advice.plan.extension_plan import Plan
from rope_viz.advice.plan.runtime_instructions import format_diff
from rope_viz.advice.plan.ways import SUPPORT, Way


def as_dict(plan: Plan) -> dict[str, Any]:
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
        "ways": [way_dict(way, plan) for way in plan.advice.ways],
        "chosen": plan.way.id,
        "short_texts": list(plan.advice.short),
        "memory": {
            "cache_bytes": held.cached if held.cache else None,
            "bytes_per_token": held.cache.per_token if held.cache else None,
            "weight_bytes": held.weights if held.cache else None,
            "longest_on_80_GB": held.longest,
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


def way_dict(way: Way, plan: Plan) -> dict[str, Any]:
    """Return one way as plain data."""
    return {
        "way": way.id,
        **pick(way, "method", "rank", "title"),
        "factor": way.option.factor,
        **pick(way, "source", "reasons"),
        "measured": [pick(one, "text", "source") for one in way.evidence],
        "unseen_pairs": way.option.unseen,
        **pick(way.option, "first_negative", "attention_factor"),
        "chosen": way.id == plan.way.id,
    }


def pick(one: object, *names: str) -> dict[str, Any]:
    """Return these attributes of an object, tuples as lists."""
    values = {name: getattr(one, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def markdown(plan: Plan) -> str:
    """Return the plan as a document: five headings, and blocks to copy."""
    return "\n".join(lines(plan)) + "\n"


def text(plan: Plan) -> str:
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


def lines(plan: Plan) -> Iterator[str]:
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
    for number, way in enumerate(plan.advice.ways, start=1):
        mark = "**" if way.id == plan.way.id else ""
        yield f"{number}. {mark}{way.title}{mark} ({SUPPORT[way.rank]})"
        if way.source:
            yield f"   Source: {way.source}"
        if way.id == plan.way.id:
            yield from (f"   - {reason}" for reason in way.reasons)
            yield from (f"   - Measured: {one.text} ({one.source})" for one in way.evidence)
    yield ""
    yield from (f"On short texts: {sentence}" for sentence in plan.advice.short)
    yield from plan.memory.sentences(plan.target)
    yield from ("", "## What to write", "")
    if plan.is_file_read:
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
    yield "Does it find what it read? rope-viz evaluate --server extended=http://localhost:8000/v1 -o recall.json"


def file_lines(plan: Plan) -> Iterator[str]:
    """Yield the config.json to write, and who reads it."""
    yield plan.file.generation
    if plan.file.fragment:
        yield from ("", "```diff", format_diff(plan.config, plan.file.config), "```", "")
    yield from plan.file.proof


def runtime_lines(plan: Plan) -> Iterator[str]:
    """Yield what to give each runtime."""
    for one in plan.instructions:
        yield from ("", f"### {one.name}", "", one.proof)
        if one.text:
            yield from ("", f"```{one.language}", one.text, "```")
        yield from ("", "Start it:", "", "```bash", one.command, "```")
        yield from one.notes


def data(plan: Plan) -> str:
    """Return the plan as JSON."""
    return json.dumps(as_dict(plan), indent=2)


FORMATS = {"text": text, "markdown": markdown, "json": data}
