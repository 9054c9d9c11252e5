"""Run `transformers_worker` in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rope_viz.evaluation.completion_clients import INSTALL
from rope_viz.storage.decode_json import decode_json


class TransformersProcess:
    """A running `transformers_worker`."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.process, self.errors = process, errors

    def ask(self, task: Mapping[str, Any]) -> Any:
        """Return the result of a task. Raises `ValueError` with the sentence of the worker."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(task).encode() + b"\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            last = self.errors.read().decode(errors="replace").strip().splitlines() or ["it printed nothing"]
            raise ValueError(f"transformers could not run this probe: {last[-1][:300]}")
        reply = decode_json(line, "the answer is not JSON")
        if "problem" in reply:
            raise ValueError(str(reply["problem"]))
        return reply["result"]


@contextlib.contextmanager
def start_worker() -> Iterator[TransformersProcess]:
    """Yield a running worker, which ends with the block. Raises `ValueError` where transformers is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise ValueError(f"a probe of this model needs PyTorch and transformers: {INSTALL}")
    here = str(Path(__file__).parents[2])
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "rope_viz.probe.transformers_worker"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": paths},
        )
        try:
            yield TransformersProcess(process, errors)
        finally:
            process.kill()
            process.communicate()
