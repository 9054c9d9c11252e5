"""Capture q and k of a GGUF model on a user's text, in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models import TEXTS
from rope_viz.real_models.capture import capture_gguf
from rope_viz.real_models.gguf_model import make_tokenizer
from rope_viz.real_models.model_run import ModelRun
from rope_viz.storage.processes import Tell
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
            self.content = FILE_NAME + b"\0" + line["capture"]

    def pack(self) -> bytes:
        return self.content


class CaptureRun(ModelRun):
    """A capture in a process of its own; no other measurement runs at the same time."""

    function = f"{__name__}:capture_text"

    def __init__(self, model: Path, text: str) -> None:
        super().__init__({"model": str(model), "text": text})

    def make_report(self, workload: dict[str, Any]) -> CaptureReport:
        return CaptureReport()

    @property
    def first_step(self) -> str:
        return str(TEXTS("live.loading"))


def capture_text(arguments: dict[str, Any], tell: Tell) -> None:
    """Tell progress and at the end the capture, or a line with `problem`, a sentence for the user."""
    path, text = Path(arguments["model"]), arguments["text"]
    tokens = len(make_tokenizer(read_header(path, long_arrays=True)).encode(text).ids)
    if tokens < LEAST:
        tell({"problem": TEXTS("capture.too_short", tokens=tokens, least=LEAST)})
        return
    step = {"name": TEXTS("live.reading", tokens=min(tokens, MOST))}
    taken = capture_gguf(
        path,
        text,
        tokens=MOST,
        progress=lambda done, layers: tell(step | {"fraction": LOADED + (1 - LOADED) * done / layers}),
    )
    name = TEXTS("capture.name", model=taken.name)
    content = b"".join(encode_capture(taken.layers, config=taken.config, name=name))
    tell(step | {"fraction": 1.0, "capture": content})
