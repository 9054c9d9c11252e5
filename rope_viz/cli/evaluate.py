"""The command `evaluate`: ask a real model for a key hidden in filler text, by depth, length and method."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz.advice.export import TARGETS, export, find_target
from rope_viz.cli.spec import read_config, read_model, tokens
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models.model_config import ModelConfig
from rope_viz.tiny_lm.completion_clients import Counted, Engine, Local, Server, is_unencrypted
from rope_viz.tiny_lm.evaluation_plan import MOST, Evaluation, read_evaluation
from rope_viz.tiny_lm.passkey import WORDINGS
from rope_viz.tiny_lm.run_evaluation import Plan, evaluate

USUAL = "none,linear,ntk,yarn"
OFFERED = tuple(name for name in METHODS if name not in ("longrope", "proportional"))


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "evaluate",
        help="test whether a real model finds what it read, by depth, length and method",
        description="Hide a key in filler text and ask for it. (a) `evaluate FOLDER`: a transformers model on this "
        "machine, once with every scaling method. (b) `evaluate --server yarn=http://localhost:8000/v1 …`: one server "
        "per method, with the OpenAI protocol (vLLM, SGLang, llama.cpp, transformers serve). Start the servers with "
        "the flags that `rope-viz export` prints. An interrupted run continues where it stopped.",
    )
    asked.add_argument(
        "model", nargs="?", metavar="MODEL", help="a folder with a transformers model; for --flags a config"
    )
    asked.add_argument("-o", "--output", metavar="FILE", help="recall.json")
    asked.add_argument("--lengths", default="1k,2k,4k,8k", metavar="LIST", help="in tokens; default: 1k,2k,4k,8k")
    asked.add_argument(
        "--depths", type=tokens, default=11, metavar="N", help="number of depths, from beginning to end; default: 11"
    )
    asked.add_argument(
        "--repeats", type=tokens, default=1, metavar="N", help="questions at each length and depth; default: 1"
    )
    asked.add_argument(
        "--words", choices=WORDINGS, default="english", help="the language: english, or that of the tiny demo model"
    )
    asked.add_argument("--dry-run", action="store_true", help="print the number of questions and tokens, and stop")
    asked.add_argument("--show", metavar="FILE", help="only print the results of an earlier run")
    local = asked.add_argument_group("a model on this machine")
    local.add_argument("--methods", default=USUAL, metavar="LIST", help=f"from {', '.join(OFFERED)}; default: {USUAL}")
    local.add_argument("--factor", type=float, metavar="S", help="default: longest length ÷ trained length")
    local.add_argument("--device", default="cpu", help="where the model runs, such as cuda")
    served = asked.add_argument_group("servers")
    served.add_argument("--server", action="append", default=[], metavar="METHOD=URL", help="repeat for every method")
    served.add_argument("--served-model", metavar="NAME", help="default: the first model that the server lists")
    served.add_argument("--chat", action="store_true", help="ask with chat messages, for instruction-tuned models")
    served.add_argument("--concurrency", type=tokens, default=4, metavar="N", help="parallel requests; default: 4")
    served.add_argument("--retries", type=int, default=5, metavar="N", help="retries of a failed request; default: 5")
    served.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="seconds for one answer; default: 600"
    )
    served.add_argument(
        "--key-env", default="OPENAI_API_KEY", metavar="NAME", help="environment variable with the server's key"
    )
    served.add_argument(
        "--key-over-http", action="store_true", help="send the key to another machine even by http, unencrypted"
    )
    served.add_argument("--tokenizer", metavar="FOLDER", help="to count tokens if the server does not report them")
    served.add_argument(
        "--flags", type=find_target, choices=TARGETS, help="with MODEL: print what to start each server with, and stop"
    )
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if parsed.show:
        print_recall(read_evaluation(parsed.show))
        return 0
    lengths = tuple(tokens_of(part) for part in parsed.lengths.split(","))
    if parsed.flags:
        return print_flags(parsed, max(lengths))
    if bool(parsed.server) == bool(parsed.model):
        raise ValueError("name either a folder with a model or servers (--server METHOD=URL)")
    about, makers = server_engines(parsed) if parsed.server else local_engines(parsed, max(lengths))
    if parsed.depths > MOST:
        raise ValueError(f"an evaluation has at most {MOST:,} questions, so --depths must not be larger")
    places = np.linspace(0.0, 1.0, parsed.depths) if parsed.depths > 1 else np.array([0.5])
    depths = tuple(float(depth) for depth in places.round(4))
    plan = Plan(
        methods=tuple(about),
        lengths=lengths,
        depths=depths,
        repeats=parsed.repeats,
        wording=parsed.words,
        model=parsed.served_model or (Path(parsed.model).resolve().name if parsed.model else ""),
        about=about,
    )
    sizes = f"{len(plan.methods)} methods, {len(plan.lengths)} lengths, {len(plan.depths)} depths, {plan.repeats} times"
    print(f"{plan.size:,} questions ({sizes}), at most {plan.tokens:,} tokens", file=sys.stderr)
    if parsed.dry_run:
        return 0
    if not parsed.output:
        raise ValueError("name a file for the answers: -o recall.json")
    engines = {method: make() for method, make in makers.items()}
    evaluate(
        plan,
        engines,
        Path(parsed.output),
        concurrency=parsed.concurrency if parsed.server else 1,
        say=lambda line: print(f"rope-viz: {line}", file=sys.stderr, flush=True),
    )
    found = read_evaluation(parsed.output)
    print_recall(found)
    refused = [row for row in found.rows if row.right is None]
    if refused:
        print(
            f"rope-viz: {len(refused):,} questions without an answer, the first: {refused[0].answer}", file=sys.stderr
        )
    return 1 if refused else 0


Found = tuple[dict[str, dict[str, Any]], dict[str, Callable[[], Engine]]]


def server_engines(parsed: argparse.Namespace) -> Found:
    """Return ({method: description}, {method: function that makes its engine}) of the servers."""
    about: dict[str, dict[str, Any]] = {}
    makers: dict[str, Callable[[], Engine]] = {}
    for written in parsed.server:
        method, equals, url = written.partition("=")
        if not equals or not method or method in makers:
            raise ValueError(f"a server must be METHOD=URL, each method once, got {short_repr(written)}")
        Server(url, "")  # reject an invalid address before any request
        about[method] = {"engine": "server", "url": url, "chat": parsed.chat}
        makers[method] = lambda url=url: connect_server(parsed, url)  # type: ignore[misc]
    return about, makers


def connect_server(parsed: argparse.Namespace, url: str) -> Engine:
    """Connect to one server, with a local tokenizer if one is given."""
    key = os.environ.get(parsed.key_env)
    if key and is_unencrypted(url) and not parsed.key_over_http:
        print(
            f"rope-viz: the key in {parsed.key_env} is not sent to {url}, which is not encrypted: "
            "use https, or --key-over-http",
            file=sys.stderr,
        )
        key = None
    options = {"key": key, "timeout": parsed.timeout, "retries": parsed.retries}
    first = Server(url, parsed.served_model or "", chat=parsed.chat, **options)
    if not first.model:
        first.model = first.models()[0]
    return Counted(first, parsed.tokenizer) if parsed.tokenizer else first


def local_engines(parsed: argparse.Namespace, longest: int) -> Found:
    """Return the same as `server_engines` for a local model, with one engine for each method."""
    folder = Path(parsed.model)
    if not (folder / "config.json").is_file():
        raise ValueError(f"{parsed.model} is not a folder with a config.json")
    config = read_config(str(folder / "config.json"))
    about: dict[str, dict[str, Any]] = {}
    makers: dict[str, Callable[[], Engine]] = {}
    read = ModelConfig.read(config)
    for method, spec in scale_by_methods(read, parsed.methods, parsed.factor, longest).items():
        exported = export(spec, to="transformers", config=config, layer_type=read.main_layer)
        if not exported.faithful:
            raise ValueError(f"transformers cannot run {method} on this model: {exported.reason}")
        about[method] = {"engine": "transformers", "config": exported.text}
        makers[method] = lambda config=exported.config: Local(folder, config, device=parsed.device)  # type: ignore[misc]
    return about, makers


def scale_by_methods(config: ModelConfig, methods: str, factor: float | None, longest: int) -> dict[str, RopeSpec]:
    """Return {method: the model's spec under it}, all with the same factor."""
    spec = config.start_specs[config.main_layer]
    factor = factor or max(longest / spec.context, 1.0)
    found = {}
    for method in methods.split(","):
        if method not in OFFERED:
            raise ValueError(f"a method must be one of {', '.join(OFFERED)}, got {short_repr(method)}")
        scaling = METHODS[method]() if method == "none" else METHODS[method](factor=factor)  # type: ignore[call-arg]
        target = max(longest, spec.context)
        found[method] = dataclasses.replace(spec, scaling=scaling, target=target)
    return found


def print_flags(parsed: argparse.Namespace, longest: int) -> int:
    """Print how to start the server of each method; return 1 if one cannot do what is intended."""
    if not parsed.model:
        raise ValueError("name the model's config.json, or a model of the list, to print flags for")
    name = parsed.model if not Path(parsed.model).is_dir() else str(Path(parsed.model) / "config.json")
    config = read_config(name)
    faithful, read = True, read_model(name, config)
    for method, spec in scale_by_methods(read, parsed.methods, parsed.factor, longest).items():
        exported = export(spec, to=parsed.flags, config=config, layer_type=read.main_layer)
        print(f"# {method}" + ("" if exported.faithful else f": not as intended, {exported.reason}"))
        print(exported.text)
        faithful = faithful and exported.faithful
    return 0 if faithful else 1


def print_recall(found: Evaluation) -> None:
    """Print recall by length and method."""
    print("  ".join(["length".rjust(9), *(method.rjust(16) for method in found.methods)]))
    columns = [found.over_lengths(method) for method in found.methods]
    for row, length in enumerate(found.lengths):
        cells = [f"{mean[row]:.2f} ({low[row]:.2f}-{high[row]:.2f})" for mean, low, high in columns]
        print("  ".join([f"{length:,}".rjust(9), *(cell.rjust(16) for cell in cells)]))


def tokens_of(text: str) -> int:
    """Read one length of a list. Raise `ValueError` if it is not a number of tokens."""
    try:
        return tokens(text)
    except argparse.ArgumentTypeError as error:
        raise ValueError(str(error)) from None
