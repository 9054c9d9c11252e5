"""Ask an engine what it computes with a probe: a server at an address, or a package in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.probe.answers import Answers
from rope_viz.probe.clients import NoAnswerError, ServerInterface, find_interface, open_server, read_served
from rope_viz.probe.judge import judge
from rope_viz.probe.prompts import LONGEST, ROOM, SHORTEST, list_prompts
from rope_viz.probe.shrink_config import shrink_config
from rope_viz.storage.decode_json import decode_json

ENGINES: Mapping[str, tuple[str, str]] = {
    "transformers": ("run_transformers.py", "transformers"),
    "mlx-lm": ("run_mlx_lm.py", "mlx-lm"),
    "llama-cpp-python": ("run_llama_cpp.py", "llama.cpp"),
    "vllm": ("run_vllm.py", "vllm"),
}
"""{engine: (its script, the runtime whose rules are asked)}."""
LONGEST_RUN = 1800.0  # seconds


@dataclass(frozen=True)
class Asked:
    """What to ask: the longest prompt in tokens, and the engine's name and release where the user says them."""

    longest: int = LONGEST
    runtime: str = ""
    version: str = ""


def ask_server(
    url: str, config: Source, asked: Asked, *, timeout: float = 120.0, key: str | None = None
) -> dict[str, Any]:
    """Return what a server computes with the probe of a config, as JSON data.

    Raises `NoAnswerError`, `NoLogProbsError`, and `ValueError` for an address or a config that is none.
    """
    small = ModelConfig.read(shrink_config(ModelConfig.read(config)))
    server = open_server(url, timeout, key)
    served = read_served(server)
    interface = find_interface(server, served.model)
    longest = asked.longest if served.longest is None else min(asked.longest, served.longest - ROOM)
    prompts = list_prompts(small, longest)
    answers, problems = ask_prompts(interface, prompts)
    # A server that does not say its longest length refuses what is longer.
    while answers[-1] is None and len(prompts[-1]) > 2 * SHORTEST:
        longest = len(prompts[-1]) // 2
        prompts = list_prompts(small, longest)
        answers, more = ask_prompts(interface, prompts)
        problems += more
    if not list_answered(answers):
        raise NoAnswerError(problems[-1])
    found = judge(
        config,
        answers,
        runtime=asked.runtime,
        version=asked.version,
        served=served.longest,
        longest=longest,
    )
    about = {"url": server.url, "model": served.model, "longest": served.longest, "interface": interface.name}
    return {**about, **found, "lengths": list_answered(answers), "problems": problems[:3]}


def ask_prompts(interface: ServerInterface, prompts: Sequence[Sequence[int]]) -> tuple[list[Answers], list[str]]:
    """Return the answers to prompts, None for those that the server refuses, and why it does."""
    answers: list[Answers] = []
    problems = []
    for prompt in prompts:
        try:
            answers.append(interface.ask(prompt))
        except ValueError as error:
            answers.append(None)
            problems.append(f"a prompt of {len(prompt):,} tokens was not answered: {error}")
    return answers, problems


def ask_engine(
    engine: str,
    folder: str | Path,
    config: Source,
    asked: Asked,
    *,
    python: str = sys.executable,
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a package computes with a probe in a folder, as JSON data.

    Raises `NoAnswerError`, and `ValueError` for an unknown engine or a config that no probe can be made of.
    """
    if engine not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {short_repr(engine)}")
    script, runtime = ENGINES[engine]
    small = ModelConfig.read(shrink_config(ModelConfig.read(config)))
    prompts = list_prompts(small, asked.longest)
    served = min(max(map(len, prompts)) + ROOM, small.limit)
    task = {"folder": str(folder), "prompts": prompts, "overrides": dict(overrides or {}), "longest": served}
    reply = run_engine(engine, script, python, task)
    version = asked.version
    found = judge(config, reply["answers"], runtime=runtime, version=version, served=served, longest=asked.longest)
    about = {"engine": engine, "release": reply.get("release"), "longest": served}
    return {**about, **found, "lengths": list_answered(reply["answers"]), "problems": []}


def run_engine(engine: str, script: str, python: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Run an engine's script by a Python that has its package, and return its answers. Raises `NoAnswerError`."""
    command = [python, str(Path(__file__).parent / "engines" / script)]
    try:
        done = subprocess.run(
            command, input=json.dumps(task).encode(), capture_output=True, timeout=LONGEST_RUN, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{engine} did not finish within {LONGEST_RUN:,.0f} seconds") from None
    except OSError as error:
        raise ValueError(f"--python {short_repr(python)} cannot be started: {error.strerror}") from None
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode != 0 or not lines:
        last = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        if "ModuleNotFoundError" in last[-1]:
            raise NoAnswerError(f"{python} has no {engine}: pip install {engine} there, or name another by --python")
        raise NoAnswerError(f"{engine} could not load this probe: {last[-1][:300]}")
    try:
        found = decode_json(lines[-1], "not JSON")
        if len(found["answers"]) == len(task["prompts"]):
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    raise NoAnswerError(f"{engine} printed no answers")


def list_answered(answers: Sequence[Answers]) -> list[int]:
    """Return the lengths of the prompts that were answered, those of two tokens left out."""
    return [len(one) + 1 for one in answers if one is not None and len(one) > 1]
