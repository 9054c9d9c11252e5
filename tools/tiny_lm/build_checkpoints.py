"""Trains every checkpoint: three seeds, the first fine-tuned at four times the length under every main method.

One process per core, each with one thread, because the matrices are too small to share. A stopped run can be resumed.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from rope_viz.embedding.scaling import Llama3, NtkAware, NtkByParts
from rope_viz.embedding.spec import RopeSpec, Scaling
from rope_viz.storage.write_file import write_file
from rope_viz.tiny_lm import passkey, tasks
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS, TUNED_LENGTH, scaled
from rope_viz.tiny_lm.numpy_model import load
from rope_viz.tiny_lm.recall import recall
from tools.tiny_lm.train import (
    CONFIG,
    FINE_TUNING,
    PRE_TRAINING,
    Config,
    Course,
    config_of,
    new_network,
    open_network,
    save,
    train,
)

Row: TypeAlias = dict[str, Any]

TRAINED = RopeSpec(head_dim=CONFIG["head_dim"], base=10_000.0, context=256)


@dataclass(frozen=True)
class CheckpointPlan:
    """The checkpoints to make. The `tuned` seeds are fine-tuned; recall is measured after each step of `measured`.

    For the first seed the checkpoints of the `kept` steps are saved.
    """

    seeds: tuple[int, ...] = (0, 1, 2)
    tuned: tuple[int, ...] = (0,)
    course: Course = PRE_TRAINING
    fine_tuning: Course = FINE_TUNING
    methods: tuple[str, ...] = tuple(MAIN_METHODS)
    measured: tuple[int, ...] = (0, 10, 25, 50, 100, 200, 400)
    kept: tuple[int, ...] = (25, 100, 400)
    sequences: int = 8
    config: Config = dataclasses.field(default_factory=lambda: CONFIG)
    trained: RopeSpec = TRAINED


def make(out: Path, plan: CheckpointPlan | None = None, *, cores: int | None = None) -> dict[str, Any]:
    """Train everything into `out`, one folder per checkpoint, and write and return `measured.json`.

    Unfinished work is in `out/unfinished` until the end, from where a second run resumes.
    """
    plan, begin = plan or CheckpointPlan(), time.perf_counter()
    work = out / "unfinished"
    work.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    done: list[dict[str, Any]] = []
    with concurrent.futures.ProcessPoolExecutor(cores or os.cpu_count(), mp_context=context) as pool:
        running = {pool.submit(pretrain, out, plan, seed): seed for seed in plan.seeds}
        waiting = dict(running)
        while waiting:
            for future in concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED").done:
                done.append(future.result())
                seed = waiting.pop(future)
                if future in running and seed in plan.tuned:
                    waiting |= {pool.submit(fine_tune, out, plan, seed, method): seed for method in plan.methods}
    found = summary(plan, done, time.perf_counter() - begin)
    write_file(out / "measured.json", (json.dumps(found, indent=1) + "\n").encode())
    shutil.rmtree(work)
    return found


def pretrain(out: Path, plan: CheckpointPlan, seed: int) -> dict[str, Any]:
    """Train one seed from scratch."""
    torch.set_num_threads(1)
    begin, name = time.perf_counter(), f"seed-{seed}"
    progress = out / "unfinished" / f"{name}.pt"
    resumed = progress.exists()
    network, config = new_network(seed, plan.config), config_of(plan.trained, plan.config)
    losses = train(network, plan.trained, plan.course, seed=seed, progress=progress, say=progress_printer(name))
    save_tiny_lm(network, out / name, config, {"seed": str(seed), "steps": str(len(losses))})
    return {"seed": seed, "seconds": None if resumed else round(time.perf_counter() - begin), "losses": losses}


def fine_tune(out: Path, plan: CheckpointPlan, seed: int, method: str) -> dict[str, Any]:
    """Fine-tune one seed at four times the length under one method."""
    torch.set_num_threads(1)
    begin, name = time.perf_counter(), f"{method}-{seed}"
    progress, rows_path = out / "unfinished" / f"{name}.pt", out / "unfinished" / f"{name}.json"
    spec = scaled(plan.trained, method, TUNED_LENGTH)
    resumed = progress.exists()
    network, _ = open_network(out / f"seed-{seed}")
    config = config_of(sayable(spec), plan.config)
    rows: list[Row] = json.loads(rows_path.read_text(encoding="utf-8")) if rows_path.exists() else []

    def measure(step: int) -> None:
        keeps = seed == plan.tuned[0] and step in plan.kept
        folder = out / f"{method}-{step}" if keeps else out / "unfinished" / f"{name}-now"
        save_tiny_lm(network, folder, config, {"seed": str(seed), "method": method, "steps": str(step)})
        model = load(folder)
        for label, length in (("target", TUNED_LENGTH), ("trained", plan.trained.context)):
            found = recall([model], spec, length, sequences=plan.sequences * TUNED_LENGTH // length)
            rows.append(
                {"method": method, "seed": seed, "step": step, "at": label, "length": length, "recall": found.share}
            )
        write_file(rows_path, json.dumps(rows).encode())

    if not resumed:
        measure(0)
    train(
        network,
        spec,
        plan.fine_tuning,
        seed=1000 + seed,
        progress=progress,
        at={step: lambda step=step: measure(step) for step in plan.measured if step},  # type: ignore[misc]
        say=progress_printer(name),
    )
    unique = {(row["step"], row["at"]): row for row in rows}
    seconds = None if resumed else round(time.perf_counter() - begin)
    return {"seed": seed, "method": method, "seconds": seconds, "rows": list(unique.values())}


def sayable(spec: RopeSpec) -> RopeSpec:
    """Return the same frequencies by methods that a transformers config can express.

    NTK-aware scaling is a larger base, and the paper's ramp without an attention factor is Llama 3's.
    """
    scaling = spec.scaling
    if isinstance(scaling, NtkAware):
        base = spec.base * scaling.factor ** (spec.rotary_dim / (spec.rotary_dim - 2))
        return dataclasses.replace(spec, base=base, scaling=Scaling())
    if isinstance(scaling, NtkByParts):
        ramp = Llama3(factor=scaling.factor, low_freq_factor=scaling.alpha, high_freq_factor=scaling.beta)
        return dataclasses.replace(spec, scaling=ramp)
    return spec


def save_tiny_lm(network: Any, folder: Path, config: Config, about: dict[str, str]) -> None:
    """Write the weights, the config and the tokenizer."""
    save(network, folder, config, about)
    for name, content in (
        ("tokenizer.json", passkey.tokenizer()),
        ("tokenizer_config.json", passkey.tokenizer_config()),
    ):
        write_file(folder / name, (json.dumps(content) + "\n").encode())


def summary(plan: CheckpointPlan, done: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the content of measured.json. Seconds are None for a resumed training, whose time is unknown."""
    trained = sorted((one for one in done if "losses" in one), key=lambda one: one["seed"])
    tuned = sorted((one for one in done if "rows" in one), key=lambda one: (one["method"], one["seed"]))
    return {
        "made_with": {"torch": torch.__version__, "numpy": np.__version__, "cores": os.cpu_count()},
        "seconds": None if any(one["seconds"] is None for one in done) else round(seconds),
        "course": as_json(plan.course),
        "fine_tuning": as_json(plan.fine_tuning),
        "questions": {"facts": tasks.FACTS, "sequences": plan.sequences},
        "seeds": [
            {
                "seed": one["seed"],
                "seconds": one["seconds"],
                "losses": [round(loss, 4) for loss in one["losses"][49::50]],
            }
            for one in trained
        ],
        "recover": [row | {"recall": round(row["recall"], 4)} for one in tuned for row in one["rows"]],
        "tuning_seconds": {f"{one['method']}-{one['seed']}": one["seconds"] for one in tuned},
    }


def as_json(course: Course) -> Row:
    """Return the fields of a course, tuples as lists."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(course).items()}


class Teller:
    """Prints lines with a name in front."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, line: str) -> None:
        print(f"{self.name}: {line}", flush=True)


def progress_printer(name: str) -> Teller:
    """Return a function that prints the progress of a training."""
    return Teller(name)
