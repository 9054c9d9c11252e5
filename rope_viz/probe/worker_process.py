"""Run `transformers_worker` in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rope_viz.evaluation.completion_clients import INSTALL
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.processes import EndedError, Job, Process, ProcessError

FUNCTION = "rope_viz.probe.transformers_worker:answer"


class TransformersProcess:
    """A running `transformers_worker`.

    Tasks and results are JSON, and the function is named as a text: another Python, with another
    NumPy, can run it, and this one does not load torch.
    """

    def __init__(self, process: Process, errors: IO[bytes]) -> None:
        self.process = process
        self.errors = errors

    def ask(self, task: Mapping[str, Any]) -> Any:
        """Return the result of a task. Raises `ValueError` with the sentence of the worker."""
        try:
            reply: str = self.process.do(Job(FUNCTION, (json.dumps(task),)))
            return decode_json(reply, "the answer is not JSON")
        except (ProcessError, OSError) as error:
            reason = str(error)
            if isinstance(error, EndedError):
                self.errors.seek(0)
                printed = self.errors.read().decode(errors="replace").strip().splitlines()
                reason = printed[-1] if printed else reason
            raise ValueError(f"transformers could not run this probe: {reason[:300]}") from None


@contextlib.contextmanager
def start_worker() -> Iterator[TransformersProcess]:
    """Yield a running worker, which ends with the block.

    Raises `ValueError` where transformers is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise ValueError(f"a probe of this model needs PyTorch and transformers: {INSTALL}")
    with tempfile.TemporaryFile() as errors:
        process = Process(name="transformers", errors=errors)
        with contextlib.closing(process):
            yield TransformersProcess(process, errors)
