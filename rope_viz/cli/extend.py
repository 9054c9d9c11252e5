"""The command `extend`: from a config to a longer context, as text, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rope_viz.advice.memory.kv_cache import DTYPES
from rope_viz.advice.plan.export import find_target
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.advice.plan.report import FORMATS
from rope_viz.advice.plan.runtime_instructions import NAMES
from rope_viz.cli.find_configs import find_listed
from rope_viz.cli.output import STDOUT, write_output
from rope_viz.cli.override_flags import add_override_flags, read_override
from rope_viz.cli.spec import NAMES as CONFIGS
from rope_viz.cli.spec import named, read_config, refuse_diffusion, tokens
from rope_viz.embedding.spec import short_repr
from rope_viz.models.model_config import ModelConfig


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "extend",
        description="Show how to reach a longer context, and check it with the rules of every requested runtime. If it "
        "is unknown how a runtime reads this model, its general rules are used, and the output tells so. Exit code 0: "
        "all of them compute the intended frequencies. 1: some do not, or the check finds an error in the config.json "
        "to write. 2: the input is invalid.",
    )
    asked.add_argument("config", metavar="CONFIG", help=CONFIGS)
    asked.add_argument("--to", required=True, type=tokens, metavar="LENGTH", help="tokens, such as 128k")
    asked.add_argument(
        "--runtime", action="append", default=[], metavar="NAME", help=f"one of {', '.join(NAMES)}; may be repeated"
    )
    asked.add_argument("--trained", type=tokens, metavar="LENGTH", help="the trained length, if you know it better")
    asked.add_argument("--layer", help="layer type, such as full_attention")
    asked.add_argument("--way", default="", metavar="WAY", help="another of the listed methods, such as yarn or linear")
    asked.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="data type of the KV cache")
    asked.add_argument("--sequences", type=tokens, default=1, metavar="N", help="parallel requests; default: 1")
    asked.add_argument("--format", choices=FORMATS, default="text", help="text, markdown or json")
    asked.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    asked.add_argument("-o", "--output", metavar="FILE", help="write the whole config.json to this file; - is stdout")
    add_override_flags(asked)
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    given = [name for names in parsed.runtime or ["transformers"] for name in names.split(",")]
    runtimes = [find_target(name.strip()) for name in given]
    for name in runtimes:
        if name not in NAMES:
            raise ValueError(f"--runtime must be one of {', '.join(NAMES)}, got {short_repr(name)}")
    config = read_config(parsed.config)
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
    if not made.file.fit:
        worst, done = made.file.findings[0], "not written" if parsed.output else "this config.json is not usable"
        print(f"rope-viz: {done}, because the check finds an {worst.severity}: {worst.message}", file=sys.stderr)
        return 1
    if parsed.output:
        write_output(parsed.output, (json.dumps(dict(made.file.config), indent=2) + "\n").encode())
    return 0 if all(one.made.faithful for one in made.instructions) else 1
