"""Models of an evaluation on a Ray cluster: one actor per GPU with vLLM, or one per CPU with transformers.

Ray places the actors, restarts one that died, and runs its question again. Each actor is a worker of `dispatch`, which
writes every answer to the journal. All machines need this package, and the model's folder under the same path.
"""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.tiny_lm.completion_clients import INSTALL, Answer, Local, UnavailableError
from rope_viz.tiny_lm.dispatch import Worker

AUTO = "auto"
LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT = 10.0  # seconds
START_TIMEOUT = 600.0  # seconds until the first actor must have started


class ModelHost:
    """The class of the actors: it holds the model of one method at a time, on a GPU with vLLM or on a CPU.

    `configs` are the config.json of each method, and for vLLM only the keys that override the folder's.
    """

    def __init__(self, folder: str, configs: Mapping[str, Mapping[str, Any]], *, longest: int, on_gpu: bool) -> None:
        self.folder, self.configs, self.longest, self.on_gpu = folder, configs, longest, on_gpu
        self.method, self.model, self.tokenizer = "", None, None

    def find_problem(self) -> str:
        """Return what this machine lacks as a sentence, or an empty string."""
        if not os.path.isfile(os.path.join(self.folder, "config.json")):
            return f"a machine of the cluster has no folder {self.folder} with the model: copy it to each"
        for name in ("vllm",) if self.on_gpu else ("torch", "transformers"):
            try:
                importlib.import_module(name)
            except ImportError:
                fix = "pip install vllm" if self.on_gpu else INSTALL
                return f"a machine of the cluster has no {name}: {fix} on each"
        return ""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        if self.tokenizer is None:
            transformers: Any = importlib.import_module("transformers")
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
        tokenizer: Any = self.tokenizer
        return len(tokenizer(text)["input_ids"])

    def ask(self, method: str, text: str, most: int) -> Answer:
        """Return the greedy answer of the model with this method. Raises `ValueError` if there is none."""
        if method != self.method:
            self.model = None  # frees its memory for the next one
            self.model, self.method = self.load(method), method
        model: Any = self.model
        if not self.on_gpu:
            answer: Answer = model.ask(text, most)
            return answer
        vllm: Any = importlib.import_module("vllm")
        options = vllm.SamplingParams(temperature=0.0, max_tokens=most)
        (found,) = model.generate([text], options, use_tqdm=False)
        return Answer(found.outputs[0].text, len(found.prompt_token_ids))

    def load(self, method: str) -> Any:
        """Return the model with this method."""
        if not self.on_gpu:
            return Local(self.folder, self.configs[method])
        vllm: Any = importlib.import_module("vllm")
        return vllm.LLM(model=self.folder, hf_overrides=dict(self.configs[method]), max_model_len=self.longest, seed=0)


class ActorEngine:
    """One method on one actor, as an engine of `dispatch`."""

    def __init__(self, actor: Any, method: str, ray: Any) -> None:
        self.actor, self.method, self.ray = actor, method, ray

    def ask(self, text: str, most: int) -> Answer:
        """Answer as in `Engine`."""
        answer: Answer = self.wait(self.actor.ask.remote(self.method, text, most))
        return answer

    def count(self, text: str) -> int:
        """Return the count of the model's own tokenizer."""
        count: int = self.wait(self.actor.count.remote(text))
        return count

    def wait(self, pending: Any) -> Any:
        """Return the result of a call. Raises `UnavailableError` if the actor died more often than it may."""
        try:
            return self.ray.get(pending)
        except self.ray.exceptions.RayTaskError as error:  # the model's own error
            raise ValueError(describe_error(error.cause or error)) from None
        except self.ray.exceptions.RayError as error:
            raise UnavailableError(describe_error(error), is_reached=True) from None


def describe_error(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def check_address(address: str) -> None:
    """Raise `ValueError` if nothing listens at a cluster's address. Ray itself would try for minutes."""
    if address == AUTO:
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"a Ray cluster must be auto or an address such as 10.0.0.1:6379, got {short_repr(address)}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()
    except OSError as error:
        raise ValueError(f"there is no Ray cluster at {address}: {describe_error(error)}") from None


class Cluster:
    """A Ray cluster that is joined, or a local one that was started. Close it to end the actors."""

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Join the cluster; for `auto` without one, start one on this machine alone, with `workers` CPUs.

        Raises `ValueError` if there is none at the address, and `ModuleNotFoundError` without Ray.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self.ray = ray
        check_address(address)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            if address != AUTO or not isinstance(error, ConnectionError):
                raise ValueError(f"there is no Ray cluster at {address}: {describe_error(error)}") from None
            ray.init(num_cpus=workers, include_dashboard=False, _node_ip_address=LOOPBACK, **quiet)
        resources = ray.cluster_resources()
        self.on_gpu = resources.get("GPU", 0) >= 1
        self.count = workers or int(resources.get("GPU" if self.on_gpu else "CPU", 0)) or 1

    def start_workers(
        self, folder: str, configs: Mapping[str, Mapping[str, Any]], *, longest: int, retries: int
    ) -> list[Worker]:
        """Return a worker for each actor. Raises `ValueError` if the first one cannot run the model."""
        needs = {"num_gpus": 1} if self.on_gpu else {"num_cpus": 1}
        make: Callable[..., Any] = self.ray.remote(max_restarts=-1, max_task_retries=retries, **needs)(ModelHost).remote
        actors = [make(folder, dict(configs), longest=longest, on_gpu=self.on_gpu) for _ in range(self.count)]
        checks = [actor.find_problem.remote() for actor in actors]
        ready, _ = self.ray.wait(checks, num_returns=1, timeout=START_TIMEOUT)
        if not ready:
            raise ValueError("no actor could start: the cluster's GPUs or CPUs are all taken")
        if problem := self.ray.get(ready[0]):
            raise ValueError(problem)
        return [
            Worker(f"actor {number}", {name: ActorEngine(actor, name, self.ray) for name in configs}, keeps_method=True)
            for number, actor in enumerate(actors)
        ]

    def close(self) -> None:
        """End the actors, and a cluster that was started here."""
        self.ray.shutdown()
