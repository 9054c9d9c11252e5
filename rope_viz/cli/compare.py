"""The command `compare`: the scaling methods for one config, or what differs between two configs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rope_viz.advice.plan.compare_models import ModelComparison, Side, compare_models
from rope_viz.advice.plan.extend import measure_methods
from rope_viz.cli.find_pictures import describe_formats
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.list_commands import print_rows
from rope_viz.cli.output import STDOUT, named, write_output
from rope_viz.cli.spec import (
    LISTS,
    NAMES,
    add_spec_flags,
    flag,
    read_config,
    read_model,
    read_spec,
    refuse_diffusion,
)
from rope_viz.embedding.spec import RopeSpec, knobs
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.read_upload import single_axis_upload
from rope_viz.models.spec_url import Subject, method_knobs


def add(commands: Any) -> None:
    """Add the command and its flags."""
    command = commands.add_parser(
        "compare",
        description="With one config: compare every scaling method at the target length. With two: show what differs "
        "in RoPE, lengths, layers that rotate and memory, and write the ratio of their frequencies to a file.",
    )
    add_spec_flags(command)
    command.add_argument("other", nargs="?", metavar="CONFIG2", help=NAMES)
    command.add_argument(
        "-o", "--output", metavar="FILE", help="with two configs: the ratio of their frequencies, as .svg, .pdf, …"
    )
    command.add_argument("--json", action="store_true", help="as JSON: the config of each method, or both memories")
    add_hub_flag(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    return run_models(parsed) if parsed.other is not None else run_methods(parsed)


def run_methods(parsed: argparse.Namespace) -> int:
    """Compare the methods for one config and return the exit code."""
    if parsed.output is not None:
        raise ValueError(
            "-o needs two configs; for a picture of the methods: rope-viz figure scaling/comparison CONFIG -o plot.svg"
        )
    spec, config, layer = read_spec(parsed)
    found = measure_methods(spec, parsed.length or spec.target, config=config, layer=layer)
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


def run_models(parsed: argparse.Namespace) -> int:
    """Compare two configs and return the exit code."""
    keys = ("layer", "scaling", *knobs(RopeSpec), *method_knobs(), "truncate", *LISTS)
    for key in keys:
        if getattr(parsed, key) is not None:
            raise ValueError(f"{flag(key)} works with one config: two are compared as they are")
    found = compare_models(read_side(parsed.model), read_side(parsed.other), length=parsed.length)
    if parsed.output is not None:
        write_output(parsed.output, draw(parsed, found.length))
    if parsed.json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        print_comparison(found)
    return 0


def read_side(name: str) -> Side:
    """Return a model by the name of its config on the command line. Raise `ValueError` with one sentence."""
    config = read_config(name)
    with named(name):
        refuse_diffusion(config)
        if name in catalog() and not Path(name).exists():
            return Side(catalog()[name].name, read_model(name, config))
        return Side(single_axis_upload(config).name, read_model(name, config))


def draw(parsed: argparse.Namespace, length: int) -> bytes:
    """Return the picture of the ratio as a file. Raise `ValueError` with one sentence for an unknown format."""
    from rope_viz.own_files import config_link
    from rope_viz.pages import compare
    from rope_viz.picture import export
    from rope_viz.picture.picture_request import PictureRequest

    if parsed.output == STDOUT:
        raise ValueError("-o needs the name of a file, as in -o ratio.svg")
    form = Path(parsed.output).suffix.lower().removeprefix(".")
    if form not in export.FORMS or form == "packed":
        raise ValueError(describe_formats(parsed.output, None, [*export.FORMS]))

    def named_model(name: str) -> str:
        """Return the id of a catalog model, "custom" for a file."""
        return name if name in catalog() and not Path(name).exists() else spec_url.CUSTOM

    first, second = named_model(parsed.model), named_model(parsed.other)
    own = single_axis_upload(read_config(parsed.model)) if first == spec_url.CUSTOM else None
    other = compare.Second(second)
    if second == spec_url.CUSTOM:
        upload = single_axis_upload(read_config(parsed.other))
        other = compare.Second(config_link.write_config(upload), upload)
        if not other.name:
            raise ValueError(f"{parsed.other}: this config is too long for a picture's address; name it first")
    given = {compare.WITH.key: other, compare.LENGTH.key: length}
    subject = Subject(RopeSpec(), first, "" if own is None else own.layer, own)
    request = PictureRequest(subject.unchanged, given=given)
    return export.render(compare.ratio, request, form)


def print_comparison(found: ModelComparison) -> None:
    """Print what differs in columns, and what does not in one line."""
    first, second = (side.name for side in found.sides)
    rows = [(fact.label, *fact.words) for fact in found.facts if fact.differs]
    print_rows(("", first, second), rows)
    if same := [fact.label for fact in found.facts if not fact.differs]:
        print(f"same in both: {', '.join(same)}")
