"""The commands `capture` and `measure`: run a local model on a text, and write what its heads do to a file."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rope_viz.cli.spec import tokens
from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.real_models.band_table import FIRST, BandTable, Condition, Estimate, read_band_table
from rope_viz.real_models.capture import WHOLE, capture_folder, capture_gguf, find_gguf
from rope_viz.real_models.measured_file import KIND, LEAST
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.limits import MEASURED_FILE_BYTES, TEXT_FILE_BYTES
from rope_viz.storage.read_file import read_limited, read_limited_text, read_standard_input
from rope_viz.storage.write_file import write_file
from rope_viz.studies.real_model import find_head
from rope_viz.studies.sums_file import SummedLayer, add_files, write_sums

if TYPE_CHECKING:
    from rope_viz.real_models.measure_bands import BandRequest


def add_measure(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "measure",
        description="Run a model on a text. Write the jobs of its heads, what every pair adds to them, and its loss "
        "by position without scaling and with linear interpolation, NTK and YaRN, to a JSON file for the pages Heads "
        "and Recall. The memory that this takes is estimated first. A GGUF file needs PyTorch and rope-viz[gguf], a "
        "folder PyTorch and transformers. Nothing is downloaded, and no code from the folder runs. With "
        "--bands, also what the model loses when some pairs of some heads change: loss by position and needles found "
        "by depth, over several texts, with intervals. The same command continues an interrupted file, and another "
        "change is added to it.",
    )
    asked.add_argument(
        "model", metavar="MODEL", help="a GGUF file, its folder, or a folder with config.json, weights and tokenizer"
    )
    asked.add_argument(
        "--text",
        required=True,
        action="append",
        metavar="FILE",
        help=f"UTF-8 text of at least {LEAST} tokens, or -; give several for --bands",
    )
    asked.add_argument("-o", "--output", required=True, metavar="FILE", help="measured.json")
    asked.add_argument(
        "--tokens", type=tokens, default=2048, metavar="N", help="tokens whose losses are measured; default: 2048"
    )
    asked.add_argument("--factor", type=float, default=2.0, metavar="S", help="factor of the methods; default: 2")
    asked.add_argument(
        "--sequences", type=int, default=6, metavar="N", help="pieces of 512 tokens for the heads; default: 6"
    )
    asked.add_argument("--device", default="cpu", help="where the model runs, such as cuda")
    asked.add_argument(
        "--bands",
        metavar="PAIRS",
        help="pairs to change: numbers such as 20-31, turns within the trained length such as turns:0-1, fast or slow "
        "(the four highest or lowest frequencies), kept, blended or divided (by YaRN), or all",
    )
    asked.add_argument(
        "--change",
        choices=("zero", "divide", "remove"),
        default="zero",
        help="with --bands: zero frequency, a divided one, or no part of q and k; default: zero",
    )
    asked.add_argument("--divisor", type=float, default=2.0, metavar="S", help="with --change divide; default: 2")
    asked.add_argument(
        "--heads",
        default="all",
        metavar="HEADS",
        help="with --bands: all, a job such as induction, random:induction for as many other heads, random:N, or names "
        "such as L16H0,L18H6; default: all",
    )
    asked.add_argument("--layers", type=read_numbers, metavar="LIST", help="with --bands: only heads of these layers")
    asked.add_argument("--seed", type=int, default=0, help="with --heads random:…; default: 0")
    asked.add_argument(
        "--texts",
        type=int,
        default=4,
        metavar="N",
        help="with --bands: pieces of --tokens tokens, at least 4; default: 4",
    )
    asked.add_argument(
        "--needle-tokens", type=tokens, metavar="N", help="tokens of a text with a needle; default: half of --tokens"
    )
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
    text, *more_texts = (read_text(name) for name in parsed.text)
    if more_texts and parsed.bands is None:
        raise ValueError("several --text need --bands: other measurements read one")
    from rope_viz.real_models.measure_model import measure_model

    def save(measured: Mapping[str, Any]) -> None:
        write_file(parsed.output, json.dumps(measured, default=str, allow_nan=False).encode())

    measured = measure_model(
        path,
        text,
        tokens=parsed.tokens,
        sequences=parsed.sequences,
        factor=parsed.factor,
        device=parsed.device,
        bands=None if parsed.bands is None else functools.partial(plan_bands, parsed),
        more_texts=more_texts,
        before={} if parsed.bands is None else read_before(Path(parsed.output)),
        save=save,
        tell=lambda sentence: print(f"rope-viz: {sentence}", file=sys.stderr),
        progress=show_progress,
    )
    save(measured)
    about, loss = measured["about"], measured["loss"]
    if len(loss["methods"]) == 1:
        print("rope-viz: the model is scaled already, so other methods were left out", file=sys.stderr)
    if loss["tokens"] < parsed.tokens // 32 * 32:
        print(f"rope-viz: the text has only {about['text_tokens']:,} tokens", file=sys.stderr)
    print(
        f"{parsed.output}: {len(measured['rows'])} heads on {about['sequences']} pieces of {about['tokens']} tokens, "
        f"losses of {loss['tokens']:,} tokens under {', '.join(loss['methods'])}"
    )
    if parsed.bands is not None:
        print(*list_effects(read_band_table(measured["bands"])), sep="\n")
    return 0


def plan_bands(parsed: argparse.Namespace, spec: RopeSpec, rows: Mapping[str, Any]) -> BandRequest:
    """Return the change that the flags mean for a model with this embedding and these measured heads."""
    from rope_viz.real_models.band_change import BandChange, find_heads, find_pairs
    from rope_viz.real_models.measure_bands import BandRequest

    heads, name = find_heads(parsed.heads, rows, parsed.seed), parsed.heads
    if parsed.heads.startswith("random:"):
        name = f"{name} seed {parsed.seed}"
    if parsed.layers is not None:
        every = frozenset(find_head(each) for each in rows)
        heads = frozenset(place for place in heads or every if place[0] in parsed.layers)
        name = f"{name} of layers {','.join(map(str, parsed.layers))}"
    change = BandChange(find_pairs(parsed.bands, spec), parsed.change, heads, parsed.divisor)
    how = f"divide by {parsed.divisor:g}" if parsed.change == "divide" else parsed.change
    needle_tokens = parsed.needle_tokens or parsed.tokens // 2
    condition = str(Condition(parsed.bands.replace("/", " "), how, name))
    return BandRequest(change, condition, parsed.tokens, needle_tokens, parsed.texts)


def read_before(path: Path) -> Mapping[str, Any]:
    """Return the measurements of an earlier run, {} without a file. Raise `ValueError` for another kind of file."""
    if not path.is_file():
        return {}
    found = decode_json(read_limited(path, MEASURED_FILE_BYTES), f"{path} is not whole JSON: name another file")
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} is not a measurement: name another file")
    return found


def list_effects(table: BandTable) -> Iterator[str]:
    """Yield a line for the model as it is and for each change of a table."""
    plain = table.losses[FIRST, None].mean()
    yield (
        f"{table.texts} texts: loss of {table.tokens:,} tokens, needles found in {table.needle_tokens:,} tokens, "
        "with 95 % intervals"
    )
    yield f"as it is: loss {plain:.3f}, found {format_estimate(table.found(None), '.2f')}"
    for each in table.conditions:
        added, found = table.added_loss(each), table.found(each)
        yield f"{each}: loss {format_estimate(added, '+.3f')}, found {format_estimate(found, '.2f')}"
        yield f"  loss by position: {format_row(table.added_by_position(each), '+.3f')}"
        yield f"  found by depth: {format_row(table.found_by_depth(each), '.2f')}"


def format_estimate(found: Estimate, digits: str, index: int = 0) -> str:
    """Return a mean with its interval."""
    mean, low, high = (format(float(part[index]), digits) for part in (found.mean, found.low, found.high))
    return f"{mean} ({low} to {high})"


def format_row(found: Estimate, digits: str) -> str:
    """Return all means with their intervals."""
    return ", ".join(format_estimate(found, digits, index) for index in range(len(found.mean)))


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
        "safetensors file for the Heads page. A GGUF file needs rope-viz[gguf], another model transformers "
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
    if source == "-":
        return read_standard_input(TEXT_FILE_BYTES).decode("utf-8")
    return read_limited_text(source, TEXT_FILE_BYTES)
