"""The command `evaluate`: ask a real model for a key hidden in filler text, by depth, length and method."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rope_viz.advice.plan.export import TARGETS, Export, export, find_target
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.spec import read_config, read_model, read_model_folder, seconds, tokens
from rope_viz.embedding.scaling import METHODS, build_method
from rope_viz.embedding.spec import RopeSpec, lists, short_repr
from rope_viz.evaluation.completion_clients import Counted, Local, Server, choose_key
from rope_viz.evaluation.dispatch import Worker
from rope_viz.evaluation.evaluation_plan import MOST, WHOLE, Evaluation, describe_shard, read_evaluation
from rope_viz.evaluation.ray_workers import join_cluster, start_workers
from rope_viz.evaluation.run_evaluation import EvaluationPlan, evaluate, merge_shards
from rope_viz.models.model_config import ModelConfig
from rope_viz.storage.read_file import read_limited_text
from rope_viz.tiny_lm.passkey import WORDINGS

ADDRESS = re.compile(r"https?://", re.IGNORECASE)

HOW = "a server must be METHOD=URL"


def read_servers(given: Sequence[str], file: str | None) -> dict[str, list[str]]:
    """Return {method: addresses} of --server flags and of the lines of a file. Raises `ValueError`."""
    servers: dict[str, list[str]] = {}
    for written in [*given, *(read_lines(Path(file)) if file else ())]:
        method, equals, urls = written.partition("=")
        if ADDRESS.match(written):
            raise ValueError(f"{HOW}, and {short_repr(written)} names no method: such as none={written}")
        if not equals or not method.strip():
            raise ValueError(f"{HOW}, or METHOD=URL1,URL2, got {short_repr(written)}")
        for url in re.split(r",(?=\s*https?://)", urls.strip(), flags=re.IGNORECASE):
            Server(url.strip(), "")  # reject an invalid address before any request
            servers.setdefault(method.strip(), []).append(url.strip().rstrip("/"))
    for method, urls_of_method in servers.items():
        if double := [url for url in urls_of_method if urls_of_method.count(url) > 1]:
            raise ValueError(f"each server of a method must be named once, got {double[0]} twice for {method}")
    return servers


def read_lines(path: Path) -> list[str]:
    """Return the lines METHOD=URL of a file; empty lines and comments (#) are left out."""
    lines = [line.strip() for line in read_limited_text(path).splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise ValueError(f"{path} names no server: write one METHOD=URL in each line")
    return found


def describe_servers(servers: Mapping[str, Sequence[str]], *, chat: bool) -> dict[str, dict[str, object]]:
    """Return {method: description} for the file of the results."""
    return {
        method: {"engine": "server", "url": urls[0] if len(urls) == 1 else list(urls), "chat": chat}
        for method, urls in servers.items()
    }


def connect_servers(
    parsed: argparse.Namespace, servers: Mapping[str, Sequence[str]]
) -> tuple[list[Worker], dict[str, str]]:
    """Return a worker for every server of every method, and {method: name of its model}.

    A server that is down gets the model of the method's others. Raises `ValueError` if all are down, or if servers of
    one method have different models.
    """
    workers, models = [], {}
    for method, urls in servers.items():
        engines = [connect_server(parsed, url) for url in urls]
        if not parsed.served_model:
            name_models(method, engines)
        models[method] = engines[0].model
        for engine in engines:
            counted = Counted(engine, parsed.tokenizer) if parsed.tokenizer else engine
            workers.append(Worker(f"{method} at {engine.url}", {method: counted}, slots=parsed.concurrency))
    return workers, models


def name_models(method: str, engines: Sequence[Server]) -> None:
    """Give each server of a method the model that it lists first. Raises `ValueError`."""
    names: dict[str, str] = {}
    problem: ValueError | None = None
    for engine in engines:
        try:
            names.setdefault(engine.models()[0], engine.url)
        except ValueError as error:
            problem = error
            if len(engines) > 1:
                print(f"rope-viz: {error}; the other servers of {method} go on", file=sys.stderr)
    if not names:
        raise problem or ValueError(f"{method} has no server")
    if len(names) > 1:
        listed = " and ".join(f"{name} at {url}" for name, url in names.items())
        raise ValueError(f"the servers of {method} have different models ({listed}): name one (--served-model)")
    for engine in engines:
        engine.model = next(iter(names))


def connect_server(parsed: argparse.Namespace, url: str) -> Server:
    """Return one server, with the key only where it may be sent."""
    remedy = "use https, or --key-over-http"
    key = choose_key(url, parsed.key_env, over_http=parsed.key_over_http, remedy=remedy)
    return Server(url, parsed.served_model or "", chat=parsed.chat, key=key, timeout=parsed.timeout)


INTERRUPTED = 130
"""The exit code that shells use after Ctrl-C."""
USUAL = "none,linear,ntk,yarn"
OFFERED = tuple(name for name, kind in METHODS.items() if kind.extends and kind.shares_factor and not lists(kind))


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "evaluate",
        description="Hide a key in filler text and ask for it. (a) `evaluate FOLDER`: a transformers model on this "
        "machine, once with every scaling method. (b) `evaluate --server yarn=http://localhost:8000/v1 …`: one or "
        "several servers per method, with the OpenAI protocol (vLLM, SGLang, llama.cpp, transformers serve). Start "
        "the servers with the flags that `rope-viz export` prints. (c) `evaluate merge SHARD… -o recall.json`: join "
        "the files of a job array (--shard). An interrupted run continues where it stopped.",
    )
    asked.add_argument(
        "model",
        nargs="*",
        metavar="MODEL",
        help="a folder with a transformers model; for --flags a config; or merge and the files of shards",
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
    asked.add_argument(
        "--shard", type=read_shard_flag, default=WHOLE, metavar="I/N", help="ask one of N parts, I from 0 to N − 1"
    )
    asked.add_argument("--dry-run", action="store_true", help="print the number of questions and tokens, and stop")
    asked.add_argument(
        "--tokens-per-second", type=tokens, metavar="N", help="with --dry-run: also print the hours at this speed"
    )
    asked.add_argument("--show", metavar="FILE", help="only print the results of an earlier run")
    local = asked.add_argument_group("a model on this machine")
    local.add_argument("--methods", default=USUAL, metavar="LIST", help=f"from {', '.join(OFFERED)}; default: {USUAL}")
    local.add_argument("--factor", type=float, metavar="S", help="default: longest length ÷ trained length")
    local.add_argument(
        "--ray",
        metavar="auto|ADDRESS",
        help="run it on a Ray cluster: an actor with vLLM per GPU, or with transformers per CPU if there is no GPU; "
        "auto is the cluster of this machine, or a new one",
    )
    local.add_argument("--ray-workers", type=tokens, metavar="N", help="actors; default: one per GPU, or per CPU")
    local.add_argument("--device", default="cpu", help="where the model runs, such as cuda")
    served = asked.add_argument_group("servers")
    served.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="METHOD=URL[,URL…]",
        help="repeat for every method; a method may have several servers",
    )
    served.add_argument("--servers", metavar="FILE", help="the same as lines of a file")
    served.add_argument("--served-model", metavar="NAME", help="default: the first model that the server lists")
    served.add_argument("--chat", action="store_true", help="ask with chat messages, for instruction-tuned models")
    served.add_argument(
        "--concurrency", type=tokens, default=4, metavar="N", help="parallel requests of each server; default: 4"
    )
    served.add_argument("--retries", type=int, default=5, metavar="N", help="retries of a failed request; default: 5")
    served.add_argument(
        "--timeout", type=seconds, default=600.0, metavar="S", help="seconds for one whole request; default: 600"
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
    add_hub_flag(asked)
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if parsed.show:
        print_recall(read_evaluation(parsed.show))
        return 0
    if parsed.model[:1] == ["merge"]:
        return merge(parsed)
    lengths = tuple(tokens_of(part) for part in parsed.lengths.split(","))
    servers = read_servers(parsed.server, parsed.servers)
    if bare := [name for name in parsed.model if ADDRESS.match(name)]:
        raise ValueError(f"a server must be METHOD=URL, and {bare[0]!r} names no method: --server none={bare[0]}")
    if len(parsed.model) > 1:
        raise ValueError(f"name one model, got {len(parsed.model)}: {', '.join(parsed.model)}")
    parsed.model = next(iter(parsed.model), None)
    if parsed.flags:
        return print_flags(parsed, max(lengths))
    if servers and parsed.ray:
        raise ValueError("--ray runs a model in a folder; servers run theirs")
    if bool(servers) == bool(parsed.model):
        raise ValueError("name either a folder with a model or servers (--server METHOD=URL)")
    # Which runtime a cluster uses is known only when it is joined.
    on_gpu = bool(parsed.ray) and bool(parsed.output) and not parsed.dry_run and join_cluster(parsed.ray)
    exported = {} if servers else export_methods(parsed, max(lengths), on_gpu=on_gpu)
    about = describe_servers(servers, chat=parsed.chat) if servers else describe_exports(exported)
    if parsed.depths > MOST:
        raise ValueError(f"an evaluation has at most {MOST:,} questions, so --depths must not be larger")
    places = np.linspace(0.0, 1.0, parsed.depths) if parsed.depths > 1 else np.array([0.5])
    depths = tuple(float(depth) for depth in places.round(4))
    plan = EvaluationPlan(
        methods=tuple(about),
        lengths=lengths,
        depths=depths,
        repeats=parsed.repeats,
        wording=parsed.words,
        model=parsed.served_model or (Path(parsed.model).resolve().name if parsed.model else ""),
        about=about,
        shard=parsed.shard,
    )
    sizes = f"{len(plan.methods)} methods, {len(plan.lengths)} lengths, {len(plan.depths)} depths, {plan.repeats} times"
    part = "" if plan.shard == WHOLE else f"{describe_shard(plan.shard)}: "
    print(f"{part}{plan.size:,} questions ({sizes}), at most {plan.tokens:,} tokens", file=sys.stderr)
    if parsed.dry_run:
        if parsed.tokens_per_second:
            print(f"{plan.tokens / parsed.tokens_per_second / 3600:.1f} hours of one machine", file=sys.stderr)
        return 0
    if not parsed.output:
        raise ValueError("name a file for the answers: -o recall.json")
    if parsed.ray:
        configs = {method: find_overrides(Path(parsed.model), each) for method, each in exported.items()}
        workers = start_workers(
            parsed.model, configs, parsed.ray_workers, on_gpu=on_gpu, retries=max(parsed.retries, 0)
        )
    elif servers:
        workers, models = connect_servers(parsed, servers)
        about = {method: {**about[method], "served": name} for method, name in models.items()}
    else:
        local = {method: Local(parsed.model, each.config, device=parsed.device) for method, each in exported.items()}
        workers = [Worker("this machine", local)]
    try:
        plan, output = dataclasses.replace(plan, about=about), Path(parsed.output)
        evaluate(plan, workers, output, retries=parsed.retries, by_method=bool(parsed.ray), say=say)
    except KeyboardInterrupt:
        end_interrupted()
    return print_results(parsed.output)


def say(line: str) -> None:
    """Print a line about progress to standard error."""
    print(f"rope-viz: {line}", file=sys.stderr, flush=True)


def end_interrupted() -> NoReturn:
    """End the process after Ctrl-C, without the threads that still wait for an answer. The others' are on disk."""
    say("interrupted: the same command continues with the questions that have no answer")
    os._exit(INTERRUPTED)


def merge(parsed: argparse.Namespace) -> int:
    """Join the files of shards, print the results and return the exit code."""
    if not parsed.output:
        raise ValueError("name a file for the answers: -o recall.json")
    merge_shards(parsed.model[1:], Path(parsed.output))
    return print_results(parsed.output)


def print_results(output: str) -> int:
    """Print recall and, as an error, how many questions have no answer; return the exit code."""
    found = read_evaluation(output)
    print_recall(found)
    refused = [row for row in found.rows if row.right is None]
    if refused:
        print(
            f"rope-viz: {len(refused):,} questions without an answer, the first: {refused[0].answer}", file=sys.stderr
        )
    return 1 if refused else 0


def export_methods(parsed: argparse.Namespace, longest: int, *, on_gpu: bool) -> dict[str, Export]:
    """Return {method: what transformers takes, or vLLM on GPUs} for a folder's model. Raises `ValueError`."""
    config = read_model_folder(parsed.model)
    read, runtime = ModelConfig.read(config), "vllm" if on_gpu else "transformers"
    found = {}
    for method, spec in scale_by_methods(read, parsed.methods, parsed.factor, longest).items():
        found[method] = export(spec, to=runtime, config=config, layer_type=read.main_layer)
        if not found[method].faithful:
            raise ValueError(f"{runtime} cannot run {method} on this model: {found[method].reason}")
    return found


def describe_exports(exported: Mapping[str, Export]) -> dict[str, dict[str, object]]:
    """Return {method: description} for the file of the results."""
    return {method: {"engine": each.runtime, "config": each.text} for method, each in exported.items()}


def find_overrides(folder: Path, exported: Export) -> Mapping[str, Any]:
    """Return the config for transformers, or for vLLM only the keys that differ from the folder's config."""
    if exported.runtime != "vllm":
        return exported.config
    config = dict(read_config(str(folder / "config.json")))
    return {key: value for key, value in exported.config.items() if config.get(key) != value}


def scale_by_methods(config: ModelConfig, methods: str, factor: float | None, longest: int) -> dict[str, RopeSpec]:
    """Return {method: the model's spec under it}, all with the same factor."""
    spec = config.start_specs[config.main_layer]
    factor = factor or max(longest / spec.context, 1.0)
    found = {}
    for method in methods.split(","):
        if method not in OFFERED:
            raise ValueError(f"a method must be one of {', '.join(OFFERED)}, got {short_repr(method)}")
        target = max(longest, spec.context)
        found[method] = dataclasses.replace(spec, scaling=build_method(method, factor), target=target)
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


def read_shard_flag(text: str) -> tuple[int, int]:
    """Read a shard such as 0/3. The plan checks its limits."""
    number, slash, count = text.partition("/")
    if not slash or not (number.isdecimal() and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"a shard must be I/N such as 0/3, got {short_repr(text)}")
    return int(number), int(count)


def tokens_of(text: str) -> int:
    """Read one length of a list. Raise `ValueError` if it is not a number of tokens."""
    try:
        return tokens(text)
    except argparse.ArgumentTypeError as error:
        raise ValueError(str(error)) from None
