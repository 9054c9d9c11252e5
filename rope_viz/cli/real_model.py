"""The commands `capture` and `measure`: run a local model on a text, and write what its heads do to a file."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.cli.spec import tokens
from rope_viz.embedding.spec import short_repr
from rope_viz.real_models.capture import WHOLE, capture_folder, capture_gguf, find_gguf
from rope_viz.real_models.measured_file import LEAST
from rope_viz.storage.write_file import write_file
from rope_viz.studies.sums_file import SummedLayer, add_files, write_sums


def add_measure(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "measure",
        description="Run a model on a text. Write the jobs of its heads, what every pair adds to them, and its loss "
        "by position without scaling and with linear interpolation, NTK and YaRN, to a JSON file for the pages Heads "
        "and Recall. The memory that this takes is estimated first. A GGUF file needs PyTorch and the tokenizers "
        "package, a folder PyTorch and transformers. Nothing is downloaded, and no code from the folder runs.",
    )
    asked.add_argument(
        "model", metavar="MODEL", help="a GGUF file, its folder, or a folder with config.json, weights and tokenizer"
    )
    asked.add_argument("--text", required=True, metavar="FILE", help=f"UTF-8 text of at least {LEAST} tokens, or -")
    asked.add_argument("-o", "--output", required=True, metavar="FILE", help="measured.json")
    asked.add_argument(
        "--tokens", type=tokens, default=2048, metavar="N", help="tokens whose losses are measured; default: 2048"
    )
    asked.add_argument("--factor", type=float, default=2.0, metavar="S", help="factor of the methods; default: 2")
    asked.add_argument(
        "--sequences", type=int, default=6, metavar="N", help="pieces of 512 tokens for the heads; default: 6"
    )
    asked.add_argument("--device", default="cpu", help="where the model runs, such as cuda")
    asked.set_defaults(run=run_measure)


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
    taken = commands.add_parser(
        "capture",
        description="Run a model on a text. Write q and k of the chosen layers and heads, before rotation, to a "
        "safetensors file for the Heads page. A GGUF file needs the tokenizers package, another model transformers "
        "and PyTorch. Nothing is downloaded, and no code from the model's folder runs.",
    )
    taken.add_argument(
        "model",
        nargs="+",
        metavar="MODEL",
        help="a GGUF file, its folder, or a folder with config.json, weights and tokenizer; with --add, files of sums",
    )
    taken.add_argument("--text", metavar="FILE", help="UTF-8 text, or - for stdin")
    taken.add_argument(
        "--tokens",
        type=tokens,
        default=4096,
        metavar="N",
        help="number of tokens of the text, with --sums of each piece of it; default: 4096",
    )
    taken.add_argument(
        "--sums",
        action="store_true",
        help="sums over all tokens of the text by head and pair, in place of whole q and k: about 100 kB a layer",
    )
    taken.add_argument(
        "--shard",
        type=read_shard,
        metavar="I/N",
        help="with --sums, every N-th piece of the text from the I-th, from 0",
    )
    taken.add_argument("--add", action="store_true", help="add files of --sums, of other texts or other layers")
    taken.add_argument("-o", "--output", required=True, metavar="FILE", help="qk.safetensors")
    taken.add_argument("--layers", type=read_numbers, metavar="LIST", help="such as 0,5,10-12; default: all")
    taken.add_argument("--heads", type=read_numbers, metavar="LIST", help="query heads; default: all")
    taken.add_argument("--dtype", choices=("float16", "float32"), default="float16", help="data type in the file")
    taken.add_argument("--device", default="cpu", help="where the model runs, such as cuda")
    taken.set_defaults(run=run_capture)


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


def read_shard(written: str) -> tuple[int, int]:
    """Read a shard such as 0/4, for argparse."""
    number, _, of = written.partition("/")
    if not all(word.isascii() and word.isdecimal() and len(word) < 6 for word in (number, of)) or int(number) >= int(
        of
    ):
        raise argparse.ArgumentTypeError(f"{short_repr(written)} is not a shard such as 0/4: 0, 1, 2 or 3 of 4")
    return int(number), int(of)


def add_sums(parsed: argparse.Namespace) -> int:
    """Write the sum of files of sums and return the exit code."""
    found = add_files(parsed.model)
    write_sums(parsed.output, found.summed, config=found.config, name=found.name)
    print(f"{parsed.output}: {describe_sums(found.summed)}")
    return 0


def describe_sums(layers: Mapping[int, SummedLayer]) -> str:
    """Return the sizes of sums in words."""
    first = next(iter(layers.values())).sums
    return (
        f"{len(layers)} layers, {first.q.shape[1]} heads, sums over {first.tokens:,} tokens, {first.q.shape[2]} pairs"
    )


def run_capture(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if parsed.add:
        return add_sums(parsed)
    if len(parsed.model) > 1 or parsed.text is None:
        raise ValueError("capture needs one model and --text FILE; --add adds several files of --sums")
    if parsed.shard is not None and not parsed.sums:
        raise ValueError("--shard needs --sums: only sums of several files add up")
    (parsed.model,) = parsed.model
    text = read_text(parsed.text)
    options: dict[str, Any] = {
        "tokens": parsed.tokens,
        "layers": parsed.layers,
        "heads": parsed.heads,
        "sums": parsed.sums,
        "shard": parsed.shard or WHOLE,
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
    if parsed.sums:
        print(f"{parsed.output}: {describe_sums(taken.summed)}")
        return 0
    first = next(iter(taken.layers.values()))
    if first.q.shape[1] < parsed.tokens:
        print(f"rope-viz: the text has only {first.q.shape[1]:,} tokens", file=sys.stderr)
    heads, count, dim = first.q.shape
    print(f"{parsed.output}: {len(taken.layers)} layers, {heads} heads, {count:,} tokens, {dim} dimensions")
    return 0


def read_text(source: str) -> str:
    """Return the text of a file, or of the standard input for -."""
    return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
