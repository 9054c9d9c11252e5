"""Workers on a Ray cluster: an actor per GPU with an offline vLLM engine, or per CPU with transformers.

Ray places the actors, starts one that was killed again, and asks it again what it had not answered
(https://docs.ray.io/en/latest/ray-core/fault_tolerance/actors.html). Every node needs rope-viz and the model's folder.
"""

from __future__ import annotations

import importlib
import os
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz.evaluation.completion_clients import Answer, Engine, Local, UnavailableError
from rope_viz.evaluation.dispatch import Worker

Configs = Mapping[str, Mapping[str, Any]]
"""{method: the config.json that runs the model with it, and for vLLM the keys to override}."""


class OfflineVllm:
    """A vLLM engine without a server, with `config` over the model's own. Run with vLLM 0.32.0 for CPUs."""

    def __init__(self, folder: str, config: Mapping[str, Any]) -> None:
        vllm: Any = importlib.import_module("vllm")
        limit = {"max_model_len": config["max_position_embeddings"]} if "max_position_embeddings" in config else {}
        self.sampling = vllm.SamplingParams
        self.engine = vllm.LLM(model=folder, hf_overrides=dict(config), **limit)

    def ask(self, text: str, most: int) -> Answer:
        done = self.engine.generate([text], self.sampling(temperature=0.0, max_tokens=most), use_tqdm=False)[0]
        return Answer(done.outputs[0].text, len(done.prompt_token_ids))

    def count(self, text: str) -> int:
        return len(self.engine.get_tokenizer()(text)["input_ids"])

    def close(self) -> None:
        del self.engine


class ModelActor:
    """What runs in a process of Ray: one method at a time, loaded when it is first asked for."""

    def __init__(self, folder: str, configs: Configs, on_gpu: bool) -> None:
        self.folder, self.configs, self.on_gpu = folder, configs, on_gpu
        self.method = ""
        self.engine: OfflineVllm | Local | None = None

    def load(self, method: str) -> OfflineVllm | Local:
        if self.engine is None or method != self.method:
            if self.engine is not None:
                self.engine.close()
            make = OfflineVllm if self.on_gpu else Local
            self.engine, self.method = make(self.folder, self.configs[method]), method
        return self.engine

    def ask(self, method: str, text: str, most: int) -> tuple[Answer | None, str]:
        """Return (answer, ""), or (None, reason)."""
        try:
            return self.load(method).ask(text, most), ""
        except ValueError as error:
            return None, str(error)

    def count(self, method: str, text: str) -> int:
        # All methods have the folder's tokenizer, and loading another one takes a minute with vLLM.
        return (self.engine or self.load(method)).count(text)

    def process(self) -> int:
        return os.getpid()


@dataclass(frozen=True, eq=False)
class RayEngine:
    """An actor as the engine of one method."""

    actor: Any
    method: str

    def ask(self, text: str, most: int) -> Answer:
        answer, reason = wait_for(self.actor.ask.remote(self.method, text, most))
        if answer is None:
            raise ValueError(reason)
        return Answer(answer.text, answer.tokens)

    def count(self, text: str) -> int:
        return int(wait_for(self.actor.count.remote(self.method, text)))


def wait_for(result: Any) -> Any:
    """Return a result of Ray. Raises `UnavailableError` if the cluster lost it for good."""
    ray: Any = importlib.import_module("ray")
    try:
        return ray.get(result)
    except ray.exceptions.RayError as error:
        # A dead actor counts against the question: Ray has used up its restarts.
        died = isinstance(error, ray.exceptions.RayActorError)
        raise UnavailableError(f"Ray: {str(error).strip().splitlines()[0]}", is_reached=died) from None


def reach(address: str) -> None:
    """Connect once: Ray itself ends the process after a minute without an answer. Raises `OSError` or `ValueError`."""
    parts = urllib.parse.urlsplit(address if "://" in address else f"ray://{address}")
    if not parts.hostname or not parts.port:
        raise ValueError("an address is HOST:PORT")
    socket.create_connection((parts.hostname, parts.port), timeout=10).close()


def join_cluster(address: str) -> bool:
    """Connect to a cluster and return whether it has GPUs.

    `address` is that of a cluster, or "auto": the one that runs on this machine, else a new one, which other machines
    cannot reach. Raises `ValueError` if it cannot be reached, and `ModuleNotFoundError` without Ray.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = importlib.import_module("ray")
    quiet = {"logging_level": "error", "log_to_driver": False}
    try:
        if address != "auto":
            reach(address)
        try:
            ray.init(address, **quiet)
        except ConnectionError:
            if address != "auto":
                raise
            ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"the Ray cluster {address} cannot be reached: {reason}") from None
    return bool(ray.cluster_resources().get("GPU", 0) >= 1)


def start_workers(
    folder: str | Path, configs: Configs, count: int | None = None, *, on_gpu: bool = False, retries: int = 5
) -> list[Worker]:
    """Return a worker per actor: `count`, or one per GPU or CPU of the cluster that was joined.

    `configs` are for vLLM on a GPU only the keys to override. Ray repeats a question up to `retries` times if its actor
    died; a question that kills every actor therefore ends. Raises `ValueError` if there are fewer processors.
    """
    ray: Any = importlib.import_module("ray")
    many = int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 0))
    if not many or (count or 1) > many:
        raise ValueError(f"the Ray cluster has {many} {'GPUs' if on_gpu else 'CPUs'}, and {count or 1} are needed")
    # What the model refuses is an answer, not a failure.
    share = {"num_gpus": 1} if on_gpu else {"num_cpus": 1}
    kind = ray.remote(max_restarts=-1, max_task_retries=retries, **share)(ModelActor)
    workers = []
    for number in range(count or many):
        actor = kind.remote(str(Path(folder).resolve()), {name: dict(each) for name, each in configs.items()}, on_gpu)
        engines: dict[str, Engine] = {method: RayEngine(actor, method) for method in configs}
        workers.append(Worker(f"Ray actor {number + 1}", engines))
    return workers
