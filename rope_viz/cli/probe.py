"""The command `probe`: make a small model with the RoPE of a config, and ask an engine what it computes with it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.spec import NAMES, named, read_config, read_model, refuse_diffusion, seconds, tokens
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.ask_probe import ENGINES, Asked, ask_engine, ask_server
from rope_viz.probe.clients import NoAnswerError, NoLogProbsError
from rope_viz.probe.hypotheses import INTENDED, PREDICTED
from rope_viz.probe.make_probe import make_probe, read_overrides
from rope_viz.probe.prompts import LONGEST, ROOM
from rope_viz.runtimes.asked_engines import AS_INTENDED
from rope_viz.runtimes.releases import RELEASES
from rope_viz.storage.decode_json import decode_json

NO_ANSWER, CANNOT_TELL = 3, 4
COLUMNS = 100
KEY = "ROPE_VIZ_API_KEY"


def add(commands: Any) -> None:
    """Add `probe` with its two commands."""
    parser = commands.add_parser(
        "probe",
        description="Ask a running engine which rotary embedding it computes. A probe is a tiny model with random "
        "weights and the RoPE parameters of your config. Your engine, with your flags, loads it in the place of your "
        "weights.",
    )
    tasks = parser.add_subparsers(required=True, metavar="make|ask")
    add_make(tasks)
    add_ask(tasks)


def add_make(tasks: Any) -> None:
    """Add `probe make` and its flags."""
    maker = tasks.add_parser("make", help="write the probe of a config into a folder")
    maker.add_argument("config", metavar="CONFIG", help=NAMES)
    maker.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to write")
    maker.add_argument(
        "--overrides", metavar="JSON", help="the overrides that the engine is started with; `ask --engine` passes them"
    )
    maker.add_argument("--gguf", action="store_true", help="write probe.gguf for llama.cpp, too")
    add_hub_flag(maker)
    maker.set_defaults(run=run_make)


def add_ask(tasks: Any) -> None:
    """Add `probe ask` and its flags."""
    asker = tasks.add_parser(
        "ask",
        help="ask a server, or a package in a process of its own, what it computes",
        description="Exit code 0: it computes what the config means. 1: it computes something else. 2: the input is "
        "invalid. 3: there is no answer. 4: the answers cannot tell.",
    )
    asker.add_argument("where", metavar="URL|DIR", help="a server's address; with --engine the folder of the probe")
    asker.add_argument("--config", metavar="CONFIG", help="what is intended: " + NAMES)
    asker.add_argument("--engine", choices=ENGINES, help="load the probe by this package instead of asking a server")
    asker.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python that has the package")
    asker.add_argument("--runtime", choices=RELEASES, default="", help="which engine the server is, if you know it")
    asker.add_argument("--longest", type=tokens, default=LONGEST, help=f"longest prompt; default: {LONGEST} tokens")
    asker.add_argument("--timeout", type=seconds, default=120.0, help="seconds for one whole request; default: 120")
    asker.add_argument("--json", action="store_true", help="as JSON, with the distance of every hypothesis")
    add_hub_flag(asker)
    asker.set_defaults(run=run_ask)


def read_probed(name: str) -> ModelConfig:
    """Return the config of a name. Raise `ValueError` for one that is of no language model."""
    config = read_config(name)
    with named(name):
        refuse_diffusion(config)
        return read_model(name, config)


def run_make(parsed: argparse.Namespace) -> int:
    """Run `probe make` and return its exit code."""
    overrides = None
    if parsed.overrides is not None:
        overrides = decode_json(parsed.overrides, "--overrides must be a JSON object")
        if not isinstance(overrides, dict):
            raise ValueError("--overrides must be a JSON object")
    model = read_probed(parsed.config)
    with named(parsed.config):
        made = make_probe(model, parsed.output, overrides, gguf=parsed.gguf)
    layers = made["num_hidden_layers"]
    print(f"{parsed.output}: a probe of {made['model_type']} with {layers} {'layer' if layers == 1 else 'layers'}")
    if model.part.wrappers:
        print(f"it is the language model of {model.part.wrappers[0]} alone")
    return 0


def run_ask(parsed: argparse.Namespace) -> int:
    """Run `probe ask` and return its exit code."""
    if parsed.config is None and parsed.engine is None:
        raise ValueError("--config is missing: name the config that the engine shall compute")
    model = read_probed(parsed.config or parsed.where)
    asked = Asked(parsed.longest, parsed.runtime)
    try:
        if parsed.engine is not None:
            overrides = read_overrides(Path(parsed.where))
            found = ask_engine(parsed.engine, parsed.where, model, asked, python=parsed.python, overrides=overrides)
        else:
            found = ask_server(parsed.where, model, asked, timeout=parsed.timeout, key=os.environ.get(KEY))
    except (NoAnswerError, NoLogProbsError) as error:
        code = NO_ANSWER if isinstance(error, NoAnswerError) else CANNOT_TELL
        return report_failure(str(error), code, parsed.json)
    if parsed.json:
        print(json.dumps(found, indent=2))
    else:
        print_verdict(found, model.limit)
    return int(found["code"])


def report_failure(sentence: str, code: int, as_json: bool) -> int:
    """Print why there is no verdict, and return the exit code."""
    if as_json:
        verdict = "no answer" if code == NO_ANSWER else "cannot tell"
        print(json.dumps({"verdict": verdict, "code": code, "sentence": sentence}, indent=2))
    else:
        print(f"rope-viz: {sentence}", file=sys.stderr)
    return code


def group_releases(names: Sequence[str]) -> list[str]:
    """Return names such as "vLLM 0.33.0", of a runtime with more than three their number: "24 releases of vLLM"."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.rpartition(" ")[0], []).append(name)
    groups = ([f"{len(group)} releases of {runtime}"] if len(group) > 3 else group for runtime, group in found.items())
    return [name for group in groups for name in group]


def print_verdict(found: Mapping[str, Any], limit: int) -> None:
    """Print what an engine computes, by how much better than the next hypothesis, and what cannot be told."""
    others = [name for name in found["names"] if name != INTENDED]
    named = [name for name in others if not name.startswith(PREDICTED)]
    predicted = [name.removeprefix(PREDICTED) for name in others if name.startswith(PREDICTED)]
    about = "" if found["verdict"] == AS_INTENDED or not named else f": {'; '.join(named)}"
    print(found["verdict"] + about)
    if found["verdict"] == AS_INTENDED and named:
        print(f"gives the same answers: {'; '.join(named)}")
    if predicted:
        text = f"our rules predict this of {', '.join(group_releases(predicted))}"
        print(textwrap.fill(text, COLUMNS, subsequent_indent="  ", break_on_hyphens=False))
    if found["sentence"]:
        print(found["sentence"])
    if found["distance"] is not None:
        print(
            f"log-probabilities differ by {found['distance']:.2g} on average, noise of the engine {found['noise']:.2g}"
        )
    if found["next_distance"] is not None:
        place = "" if found["next_first"] is None else f", different from position {found['next_first']:,} on"
        print(f"next: {found['next_name']}, {found['next_distance']:.2g}{place}")
    if found["first"] is not None:
        print(f"differs from what the config means from position {found['first']:,} on")
    lengths = ", ".join(f"{length:,}" for length in found["lengths"])
    print(f"asked with {lengths} tokens" + (f" by {found['interface']}" if "interface" in found else ""))
    if 0 < found["asked"] < limit - ROOM:
        print(f"not asked: positions from {found['asked']:,} to {limit:,} (--longest)")
    for problem in found["problems"]:
        print(problem)
