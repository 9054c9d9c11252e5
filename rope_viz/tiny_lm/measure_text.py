"""Loss by position of a GGUF model on a user's text, in a process of its own: `python -m rope_viz.tiny_lm.measure_text`.

The process reads one JSON object from its standard input and prints one JSON object per line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rope_viz.embedding.spec import require_number
from rope_viz.kernels.measurement_process import Run
from rope_viz.models.gguf import read_header
from rope_viz.storage.decode_json import decode_json
from rope_viz.studies.heads import Turning
from rope_viz.texts import Texts
from rope_viz.tiny_lm import numpy_model
from rope_viz.tiny_lm.checkpoints import MAIN_METHODS, scaled
from rope_viz.tiny_lm.gguf_model import load_gguf
from rope_viz.tiny_lm.gguf_tokenizer import make_tokenizer
from rope_viz.tiny_lm.numpy_model import Floats, TinyLm

TEXTS = Texts("recall")
MOST = 2048
"""Tokens of a text that are read."""
ROWS = 128
"""Positions whose logits are in memory at once."""
MEMORY = 3 << 30
"""Bytes that the process may allocate (Linux; elsewhere nothing is limited)."""
NICENESS = 10
"""Lower priority of the process, so that the server answers other users first."""


@dataclass
class TextLosses:
    """Losses of a model on one text: {method: nats of every token but the first}, and the factor of the methods."""

    model: str = ""
    tokens: int = 0
    factor: float = 2.0
    losses: dict[str, list[float]] = field(default_factory=dict)

    def add_line(self, line: dict[str, Any]) -> None:
        """Add one output line of the process."""
        self.model, self.tokens = line.get("model", self.model), line.get("tokens", self.tokens)
        if "losses" in line:
            self.losses[line["method"]] = line["losses"]

    def pack(self) -> bytes:
        """Encode the result for the store and for download."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False).encode()


class TextRun(Run):
    """A measurement of a text in a process of its own; it shares the one place for measurements."""

    module = __name__

    def __init__(self, model: Path, text: str, methods: tuple[str, ...]) -> None:
        """Start it. Raises `BusyError` while another measurement runs."""
        super().__init__({"model": str(model), "text": text, "methods": methods})

    def make_report(self, workload: dict[str, Any]) -> TextLosses:
        """Return an empty result."""
        return TextLosses()

    @property
    def first_step(self) -> str:
        """Return the step shown before the first line."""
        return TEXTS("live.loading")


def text_losses(model: TinyLm, ids: ArrayLike, turn: Turning) -> Floats:
    """Return the loss in nats of every token but the first, float32 (tokens − 1,)."""
    tokens = numpy_model.checked_tokens(model, ids)
    state = numpy_model.hidden(model, tokens, turn, np.arange(len(tokens)))
    found = np.empty(len(tokens) - 1, dtype=np.float32)
    for first in range(0, len(found), ROWS):
        rows = slice(first, min(first + ROWS, len(found)))
        logits = state[rows] @ model.unembedding.T
        right = logits[np.arange(len(logits)), tokens[1:][rows]]
        most = logits.max(axis=1, keepdims=True)
        found[rows] = np.log(np.exp(logits - most).sum(axis=1)) + most[:, 0] - right
    return found


def measure_lines(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield progress and the losses of each method, or a line with `problem`, a sentence for the user."""
    path, methods, factor = Path(arguments["model"]), arguments["methods"], TextLosses().factor
    tokenizer = make_tokenizer(read_header(path, long_arrays=True))
    ids = np.asarray(tokenizer.encode(arguments["text"], add_special_tokens=False).ids[:MOST])
    if len(ids) < 2 * ROWS:
        yield {"problem": TEXTS("live.too_short", tokens=len(ids), least=2 * ROWS)}
        return
    model = load_gguf(path)
    yield {"model": model.name, "tokens": len(ids), "fraction": 0.05, "name": TEXTS("live.reading", tokens=len(ids))}
    for number, method in enumerate(methods):
        spec = scaled(model.spec, method, round(factor * model.spec.context))
        losses = text_losses(model, ids, Turning.from_spec(spec, len(ids)))
        done = 0.05 + 0.95 * (number + 1) / len(methods)
        line = {"fraction": done, "name": TEXTS("live.reading", tokens=len(ids)), "method": method}
        yield line | {"losses": np.round(losses.astype(float), 4).tolist()}


def read_text_losses(content: bytes) -> TextLosses:
    """Return the losses in a JSON text. Raises `ValueError` with a sentence for another content."""
    problem = TEXTS("live.no_report")
    found = decode_json(content, problem)
    if not isinstance(found, dict) or set(found) != {each.name for each in dataclasses.fields(TextLosses)}:
        raise ValueError(problem)
    losses = found["losses"]
    if not isinstance(found["model"], str) or len(found["model"]) > 200 or not isinstance(losses, dict):
        raise ValueError(problem)
    require_number(found["tokens"], "tokens", least=2 * ROWS, most=MOST, integer=True)
    require_number(found["factor"], "factor", least=1.0, most=1e6)
    if "none" not in losses or not set(losses) <= set(MAIN_METHODS):
        raise ValueError(problem)
    for values in losses.values():
        if not isinstance(values, list) or len(values) != found["tokens"] - 1:
            raise ValueError(problem)
        for value in values:
            require_number(value, "loss", least=-1.0, most=1e4)
    return TextLosses(**found)


def limit_process() -> None:
    """Lower the priority of this process and limit its memory, where the system can."""
    if sys.platform != "win32":
        os.nice(NICENESS)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def main() -> None:
    """Print the lines; redirect all other output to stderr."""
    limit_process()
    # A broken pipe means that the server has ended: end too.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def write(line: dict[str, Any]) -> None:
            print(json.dumps(line, allow_nan=False), file=out, flush=True)

        try:
            for line in measure_lines(json.load(sys.stdin)):
                write(line)
        except MemoryError:
            write({"problem": TEXTS("live.memory", most=MEMORY >> 30)})
        except (OSError, ValueError) as error:
            write({"problem": TEXTS("live.problem", error=error)})


if __name__ == "__main__":
    main()
