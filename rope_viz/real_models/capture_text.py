"""Capture q and k of a GGUF model on a user's text, in a process: `python -m rope_viz.real_models.capture_text`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz.kernels.measurement_process import Run
from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models import TEXTS
from rope_viz.real_models.capture import capture_gguf
from rope_viz.real_models.gguf_model import make_tokenizer
from rope_viz.real_models.worker_process import ONE_THREAD, Write, run_worker
from rope_viz.studies.capture_file import encode_capture

LEAST, MOST = 32, 256
"""Tokens of a text that are read. q and k of SmolLM2 135M on 256 tokens take 11.8 MB in float16."""
LOADED = 0.4
"""Share of the progress after which the model is loaded."""
FILE_NAME = b"text.safetensors"


@dataclass
class CaptureReport:
    """The content of a capture's file, empty before the end."""

    content: bytes = b""

    def add_line(self, line: dict[str, Any]) -> None:
        if "capture" in line:
            self.content = FILE_NAME + b"\0" + base64.b64decode(line["capture"])

    def pack(self) -> bytes:
        return self.content


class CaptureRun(Run):
    """A capture in a process of its own; no other measurement runs at the same time."""

    module = __name__
    environment = ONE_THREAD

    def __init__(self, model: Path, text: str) -> None:
        super().__init__({"model": str(model), "text": text})

    def make_report(self, workload: dict[str, Any]) -> CaptureReport:
        return CaptureReport()

    @property
    def first_step(self) -> str:
        return str(TEXTS("live.loading"))


def capture_text(arguments: dict[str, Any], write: Write) -> None:
    """Write progress and at the end the capture, or a line with `problem`, a sentence for the user."""
    path, text = Path(arguments["model"]), arguments["text"]
    tokens = len(make_tokenizer(read_header(path, long_arrays=True)).encode(text).ids)
    if tokens < LEAST:
        write({"problem": TEXTS("capture.too_short", tokens=tokens, least=LEAST)})
        return
    step = {"name": TEXTS("live.reading", tokens=min(tokens, MOST))}
    taken = capture_gguf(
        path,
        text,
        tokens=MOST,
        progress=lambda done, layers: write(step | {"fraction": LOADED + (1 - LOADED) * done / layers}),
    )
    name = TEXTS("capture.name", model=taken.name)
    content = b"".join(encode_capture(taken.layers, config=taken.config, name=name))
    write(step | {"fraction": 1.0, "capture": base64.b64encode(content).decode()})


if __name__ == "__main__":
    run_worker(capture_text, TEXTS, "live")
