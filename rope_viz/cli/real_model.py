"""The commands `capture` and `measure`: run a local model on a text, and write what its heads do to a file."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path
from typing import Any

from rope_viz.cli.flags import add_command
from rope_viz.cli.spec import tokens
from rope_viz.embedding.spec import short_repr
from rope_viz.real_models.capture import capture_folder, capture_gguf, find_gguf
from rope_viz.real_models.measured_file import LEAST
from rope_viz.storage.write_file import write_file


def add_measure(commands: Any) -> None:
    """Add the command and its flags."""
    add_command(commands, "measure", run_measure, LEAST=LEAST, tokens=tokens)


def run_measure(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    path = Path(parsed.model)
    if not (path / "config.json").is_file():
        found = find_gguf(path)
        if found is None:
            raise ValueError(f"{path} is neither a GGUF file nor a folder with a config.json or a GGUF file")
        path = found
    if parsed.tokens < LEAST:
        raise ValueError(f"--tokens must be at least {LEAST}, got {parsed.tokens}")
    if not 1.0 <= parsed.factor <= 1e6:
        raise ValueError(f"--factor must be at least 1, got {parsed.factor:g}")
    if not 1 <= parsed.sequences <= 1000:
        raise ValueError(f"--sequences must be from 1 to 1000, got {parsed.sequences}")
    text = read_text(parsed.text)
    from rope_viz.real_models.measure_model import measure_model

    measured = measure_model(
        path,
        text,
        tokens=parsed.tokens,
        sequences=parsed.sequences,
        factor=parsed.factor,
        device=parsed.device,
        tell=lambda sentence: print(f"rope-viz: {sentence}", file=sys.stderr),
        progress=show_progress,
    )
    write_file(parsed.output, json.dumps(measured, default=str, allow_nan=False).encode())
    about, loss = measured["about"], measured["loss"]
    if len(loss["methods"]) == 1:
        print("rope-viz: the model is scaled already, so other methods were left out", file=sys.stderr)
    if loss["tokens"] < parsed.tokens // 32 * 32:
        print(f"rope-viz: the text has only {about['text_tokens']:,} tokens", file=sys.stderr)
    print(
        f"{parsed.output}: {len(measured['rows'])} heads on {about['sequences']} pieces of {about['tokens']} tokens, "
        f"losses of {loss['tokens']:,} tokens under {', '.join(loss['methods'])}"
    )
    return 0


def show_progress(step: str, done: int, of: int) -> None:
    """Show a progress bar of a step, on a terminal only."""
    if sys.stderr.isatty() and of:
        filled = WIDTH * done // of
        end = "\n" if done == of else ""
        print(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {step} {done} of {of}", end=end, file=sys.stderr, flush=True)


MOST = 1000  # layers or heads in a list

WIDTH = 30


def add_capture(commands: Any) -> None:
    """Add the command and its flags."""
    add_command(commands, "capture", run_capture, tokens=tokens, read_numbers=read_numbers)


def read_numbers(written: str) -> list[int]:
    """Read a list such as 0,5,10-12, for argparse."""
    found: list[int] = []
    for part in written.split(","):
        first, dash, last = part.strip().partition("-")
        if not all(word.isascii() and word.isdecimal() and len(word) < 6 for word in (first, last if dash else first)):
            raise argparse.ArgumentTypeError(f"{short_repr(written)} is not a list of numbers such as 0,5,10-12")
        ends = int(first), int(last if dash else first)
        if ends[1] < ends[0] or len(found) + ends[1] - ends[0] >= MOST:
            raise argparse.ArgumentTypeError(f"{short_repr(written)} must be ascending and have at most {MOST} numbers")
        found += [number for number in range(ends[0], ends[1] + 1) if number not in found]
    return found


def run_capture(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    text = read_text(parsed.text)
    options: dict[str, Any] = {
        "tokens": parsed.tokens,
        "layers": parsed.layers,
        "heads": parsed.heads,
        "progress": functools.partial(show_progress, "layer"),
    }
    if Path(parsed.model, "config.json").is_file():
        taken = capture_folder(parsed.model, text, device=parsed.device, **options)
    elif (file := find_gguf(parsed.model)) is None:
        raise ValueError(f"{parsed.model} is neither a GGUF file nor a folder with a config.json or a GGUF file")
    elif parsed.device != "cpu":
        raise ValueError("a GGUF file runs on the CPU only: leave out --device")
    else:
        taken = capture_gguf(file, text, **options)
    if taken.skipped:
        print(f"rope-viz: layers without rotation were left out: {', '.join(map(str, taken.skipped))}", file=sys.stderr)
    taken.save(parsed.output, dtype=parsed.dtype)
    first = next(iter(taken.layers.values()))
    if first.q.shape[1] < parsed.tokens:
        print(f"rope-viz: the text has only {first.q.shape[1]:,} tokens", file=sys.stderr)
    heads, count, dim = first.q.shape
    print(f"{parsed.output}: {len(taken.layers)} layers, {heads} heads, {count:,} tokens, {dim} dimensions")
    return 0


def read_text(source: str) -> str:
    """Return the text of a file, or of the standard input for -."""
    return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
