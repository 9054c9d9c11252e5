"""What a real model loses when some pairs of some heads do not rotate, or have no part in the logits.

python benchmarks/real_model/bands.py MODEL.gguf --texts TEXTS --prepare tokens.npz
python benchmarks/real_model/bands.py MODEL.gguf --tokens tokens.npz -o bands.json [--device cuda] [--workers 2]

The first command tokenises the novels; the second needs PyTorch, NumPy and this repository only, and may run on another
machine. Each of the 8 groups of four pairs has zero frequency or is removed in all heads, in the heads with the job
induction, or in as many random heads of the same layers without a job, and the model runs again. `loss` rows have the
mean loss in nats of every 512 of 8,192 tokens of a novel. `needle` rows have, for each depth in a reading of 4,096
tokens, what share of five digits is the first choice, and the loss of the five. One reading has five keys, each of
another city at another depth. Every question follows the reading alone, without the tokens of the other keys in its
keys and values: an approximation of a text with one key; `--exact FILE` asks after such texts, without a change. The
second set of texts is read with zero frequency in all heads only. Layers below the first changed head are computed once
per text.

An interrupted run repeats no row. The rows that matter most come first, so that a part of the table is of use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import NOVELS, TEXT_SOURCE, Results, describe, find_commit, sha256

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models.band_change import BandChange, How, find_heads, name_heads
from rope_viz.real_models.band_table import DEPTHS, FIRST, SECOND, UNCHANGED, Condition
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.real_models.measure_bands import (
    CITIES,
    Needles,
    average_losses,
    count_answer,
    hide_needles,
    judge_answers,
)
from rope_viz.real_models.torch_forward import TorchLm
from rope_viz.studies.real_model import load_results

SEED = 43
LOSS_TOKENS, NEEDLE_TOKENS, BLOCK = 8192, 4096, 512
SETS = {
    FIRST: [(novel, 0) for novel in NOVELS[:4]],
    SECOND: [(NOVELS[4], 0), (NOVELS[5], 0), (NOVELS[0], 40_000), (NOVELS[1], 40_000)],
}
"""{set of texts: (novel, first token)}."""
GROUPS = {f"{first}-{first + 3}": tuple(range(first, first + 4)) for first in (28, 24, 20, 0, 4, 8, 12, 16)}
"""Groups of pairs, in the order in which they are measured."""
HOWS: tuple[How, ...] = ("zero", "remove")
DIGITS = 5
HEADS = {"all": "all", "induction": "induction", "random": "random:induction"}


def prepare(parsed: argparse.Namespace) -> None:
    """Write the tokens of all texts and questions to a file."""
    tokenizer = make_tokenizer(read_header(parsed.model, long_arrays=True))

    def encode(text: str) -> np.ndarray:
        return np.asarray(tokenizer.encode(text, add_special_tokens=False).ids)

    raw = {novel: (parsed.texts / f"{novel}.txt").read_bytes() for novel in NOVELS}
    novels = {novel: encode(text.decode("utf-8")) for novel, text in raw.items()}
    arrays = {}
    for name, texts in SETS.items():
        for novel, first in texts:
            arrays[f"loss/{name}/{name_text(novel, first)}"] = novels[novel][first : first + LOSS_TOKENS]
    if any(count_answer(encode, city) != DIGITS for city in CITIES):
        raise SystemExit("this model does not read digits one by one")
    rng = np.random.default_rng(SEED)
    for novel, first in SETS[FIRST]:
        needles = hide_needles(encode, novels[novel][first : first + NEEDLE_TOKENS], rng)
        name = f"needle/{FIRST}/{name_text(novel, first)}"
        arrays |= {name: needles.reading, f"{name}/spans": np.array(needles.spans)}
        arrays |= {f"{name}/{number}": ids for number, ids in enumerate(needles.questions)}
    about = {
        "texts": TEXT_SOURCE,
        "text_sha256": {novel: sha256(text) for novel, text in raw.items()},
        "model": sha256(Path(parsed.model).read_bytes()),
        "commit": find_commit(),
    }
    content = {name: each.astype(np.int32) for name, each in arrays.items()}
    with open(parsed.prepare, "wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), **content)
    print(f"{parsed.prepare}: {', '.join(f'{name} {each.shape}' for name, each in content.items())}")


def name_text(novel: str, first: int) -> str:
    """Return the name of a text by its novel and first token."""
    return f"{novel}+{first}" if first else novel


def list_conditions() -> dict[str, BandChange]:
    """Return {name of a condition: change}, the groups of pairs in turn."""
    rows = load_results("heads")["rows"]
    heads = {name: find_heads(written, rows, SEED) for name, written in HEADS.items()}
    return {
        str(Condition(group, how, name)): BandChange(pairs, how, chosen)
        for group, pairs in GROUPS.items()
        for how in HOWS
        for name, chosen in heads.items()
    }


def list_keys() -> list[str]:
    """Return the keys of all rows, in the order in which they are measured."""
    first = [f"{measure}/{FIRST}/{name_text(*text)}" for measure in ("loss", "needle") for text in SETS[FIRST]]
    second = [f"loss/{SECOND}/{name_text(*text)}" for text in SETS[SECOND]]

    def select(*endings: str) -> list[str]:
        return [condition for condition in list_conditions() if condition.endswith(endings)]

    zero_all = select("/zero/all")
    stages = [
        (first, [UNCHANGED, *zero_all]),
        (second, [UNCHANGED, *zero_all]),
        (first, select("/zero/induction", "/zero/random")),
        (first, select("/remove/all", "/remove/induction", "/remove/random")),
    ]
    return [f"{text}/{condition}" for texts, conditions in stages for condition in conditions for text in texts]


class Measurement:
    """The model on one device, the tokens, and the states that enter the first changed layers of the last text."""

    def __init__(self, model: str, tokens: Path, device: str, dtype: str) -> None:
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("highest")
        # The other kernel for float32 multiplies in parts of TF32.
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        self.model = TorchLm(load_gguf(model), device, getattr(torch, dtype))
        with np.load(tokens) as file:
            self.tokens = {name: file[name] for name in file.files if name != "about"}
        self.conditions = list_conditions()
        self.states: dict[tuple[str, int], list[torch.Tensor]] = {}

    def measure(self, key: str) -> dict[str, Any]:
        """Return the row of a key."""
        started = time.process_time()
        kind, group, text, condition = key.split("/", 3)
        name = f"{kind}/{group}/{text}"
        change = self.conditions.get(condition)
        ids = self.tokens[name].astype(np.int64)
        layer = 0 if change is None else change.first_layer
        below: list[Any] | None = self.states.get((name, layer))
        if kind == "loss":
            if layer and below is None:
                below = self.states[name, layer] = [self.model.enter_layer(ids, layer)]
            losses = self.model.losses(ids, change=change, below=None if below is None else below[0])
            row: dict[str, Any] = {"loss": average_losses(losses, BLOCK)}
        else:
            needles = self.read_needles(name)
            asked = needles.reading, needles.spans, needles.questions
            if layer and below is None:
                below = self.states[name, layer] = self.model.enter_questions(*asked, layer)
            row = judge_answers(self.model.answer(*asked, DIGITS, change, below or ()), needles.questions)
        return row | {"cpu_s": round(time.process_time() - started, 1)}

    def read_needles(self, name: str) -> Needles:
        """Return the reading and the questions of a text."""
        spans = [(int(first), int(last)) for first, last in self.tokens[f"{name}/spans"]]
        questions = [self.tokens[f"{name}/{number}"].astype(np.int64) for number in range(len(CITIES))]
        return Needles(self.tokens[name].astype(np.int64), spans, questions)

    def ask_alone(self, text: str) -> dict[str, Any]:
        """Return the row of the unchanged model for a needle text, each question after a text with its key only."""
        needles = self.read_needles(text)
        texts = [needles.ask_alone(number) for number in range(len(CITIES))]
        return judge_answers([self.model.last_logits(ids, DIGITS) for ids in texts], texts)


worker: Measurement | None = None


def start_worker(*arguments: Any) -> None:
    """Load the model in a worker process."""
    global worker
    worker = Measurement(*arguments)


def measure_row(key: str) -> dict[str, Any]:
    """Return the row of a key, in a worker process."""
    assert worker is not None
    return worker.measure(key)


def main() -> None:
    """Prepare the tokens, or measure what the results file does not have yet."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("model", help="a GGUF file, such as `rope-viz get-model smollm2` takes out")
    flags.add_argument("--texts", type=Path, help="folder of NAME.txt, as write_texts.R makes it; with --prepare")
    flags.add_argument("--prepare", type=Path, metavar="FILE", help="write the tokens to this file, and stop")
    flags.add_argument("--tokens", type=Path, metavar="FILE", help="what --prepare wrote")
    flags.add_argument("-o", "--output", type=Path, help="results file; its rows are not repeated")
    flags.add_argument("--device", default="cpu")
    flags.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of weights and states")
    flags.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    flags.add_argument(
        "--exact", type=Path, metavar="FILE", help="write the needles of texts with one key each, and stop"
    )
    flags.add_argument("--only", default="", metavar="TEXT", help="rows whose key contains this")
    parsed = flags.parse_args()
    if parsed.prepare:
        if parsed.texts is None:
            flags.error("--prepare needs --texts")
        prepare(parsed)
        return
    if parsed.exact and parsed.tokens:
        measurement = Measurement(parsed.model, parsed.tokens, parsed.device, parsed.dtype)
        names = [f"needle/{FIRST}/{name_text(*text)}" for text in SETS[FIRST]]
        rows = {name: measurement.ask_alone(name) for name in names if parsed.only in name}
        parsed.exact.write_text(json.dumps(rows))
        return
    if parsed.tokens is None or parsed.output is None:
        flags.error("give --tokens and -o, or --texts and --prepare")
    with np.load(parsed.tokens) as file:
        prepared = json.loads(str(file["about"]))
    results = open_results(parsed, prepared)
    wanted = [key for key in list_keys() if parsed.only in key and key not in results.rows]
    arguments = (parsed.model, parsed.tokens, parsed.device, parsed.dtype)
    if parsed.workers == 1:
        start_worker(*arguments)
        for key in wanted:
            results.add(key, measure_row(key))
        return
    pool = concurrent.futures.ProcessPoolExecutor(
        parsed.workers, multiprocessing.get_context("spawn"), start_worker, arguments
    )
    with pool:
        for key, row in zip(wanted, pool.map(measure_row, wanted), strict=True):
            results.add(key, row)


def open_results(parsed: argparse.Namespace, prepared: dict[str, Any]) -> Results:
    """Return the results file with the rows that it has. Raises `SystemExit` for one that was made differently."""
    about = describe(parsed.model, versions=("numpy", "torch"), commit=prepared["commit"])
    if about["model"]["sha256"] != prepared["model"]:
        raise SystemExit(f"{parsed.tokens} was prepared for another model")
    cuda = parsed.device.startswith("cuda")
    device = torch.cuda.get_device_name(parsed.device) if cuda else parsed.device
    measured = load_results("heads")["rows"]
    heads = {name: name_heads(find_heads(written, measured, SEED)) for name, written in HEADS.items() if name != "all"}
    about |= {
        "texts": prepared["texts"],
        "text_sha256": prepared["text_sha256"],
        "dtype": parsed.dtype,
        "device": device,
        "seed": SEED,
        "block": BLOCK,
        "tokens": {"loss": LOSS_TOKENS, "needle": NEEDLE_TOKENS},
        "depths": list(DEPTHS),
        "digits": DIGITS,
        "heads": heads,
        "planned": list(list_conditions()),
    }
    rows = {}
    if parsed.output.is_file():
        old = json.loads(parsed.output.read_text(encoding="utf-8"))
        if any(old["about"].get(name) != about[name] for name in about if name != "commit"):
            raise SystemExit(f"{parsed.output} was made with other settings: choose another file")
        commit, rows, about = about["commit"], old["rows"], old["about"]
        if commit not in (about["commit"], *about.get("continued_at", ())):
            about["continued_at"] = [*about.get("continued_at", ()), commit]
    return Results(parsed.output, about, rows)


if __name__ == "__main__":
    main()
