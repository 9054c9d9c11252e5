"""What was measured on a real language model: the jobs of its heads and their use of the pairs.

`benchmarks/real_model/` makes the files in `measured/`, which name the model, the texts, the seeds and the versions.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.studies.capture_file import Captured, read_capture
from rope_viz.studies.sums_file import CapturedSums, read_sums
from rope_viz.texts.numbers import format_tokens

FOLDER = Path(__file__).with_name("measured")
JOBS = ("previous token", "induction", "same token", "first token")
"""Jobs of heads as the files name them; the last is drawn as a shade."""


@dataclass(frozen=True, eq=False)
class MeasuredHead:
    """One head: {job: score}, {job: share of the sequences in which it is above the threshold}, and its pairs.

    `strength` and `margin` are (pairs,), in nats; `job_margin` is {job: (pairs,)} and `changed` is {job: {name of
    another rotation: score}}, for the jobs that the head has.
    """

    layer: int
    head: int
    scores: Mapping[str, float]
    shares: Mapping[str, float]
    strength: FloatArray
    margin: FloatArray
    job_margin: Mapping[str, FloatArray]
    changed: Mapping[str, Mapping[str, float]]

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(job for job in JOBS if job in self.job_margin)


@dataclass(frozen=True, eq=False)
class HeadMap:
    """All heads of a model by (layer, head), and what the file says of the measurement."""

    heads: Mapping[tuple[int, int], MeasuredHead]
    about: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and of heads per layer."""
        last = max(self.heads)
        return last[0] + 1, last[1] + 1

    def scores(self, job: str) -> FloatArray:
        """Return the scores of a job, (layers, heads)."""
        found = np.empty(self.shape)
        for place, head in self.heads.items():
            found[place] = head.scores[job]
        return found


@functools.cache
def load_results(name: str) -> Mapping[str, Any]:
    """Load a results file of the real model, such as "heads": {"about": ..., "rows": {...}}."""
    found: dict[str, Any] = json.loads((FOLDER / f"smollm2_{name}.json").read_text(encoding="utf-8"))
    return MappingProxyType(found)


@functools.cache
def load_heads() -> HeadMap:
    """Load the measured heads of the real model."""
    return read_heads(load_results("heads"))


def find_head(name: str) -> tuple[int, int]:
    """Return the layer and the head of a name such as "L16H0"."""
    layer, head = name.removeprefix("L").split("H")
    return int(layer), int(head)


def read_heads(found: Mapping[str, Any]) -> HeadMap:
    """Return the heads of a file that `benchmarks/real_model/heads.py` wrote."""
    heads = {}
    for name, row in found["rows"].items():
        layer, head = find_head(name)
        jobs = row["jobs"]
        heads[layer, head] = MeasuredHead(
            layer,
            head,
            {job: entry["score"] for job, entry in jobs.items()},
            {job: entry["share"] for job, entry in jobs.items()},
            np.array(row["strength"]),
            np.array(row["margin"]),
            {job: np.array(entry["margin"]) for job, entry in jobs.items() if "margin" in entry},
            {job: entry["changed"] for job, entry in jobs.items() if "changed" in entry},
        )
    return HeadMap(MappingProxyType(heads), MappingProxyType(dict(found["about"])))


BIN = 1024
"""Tokens over which losses are averaged; neighbouring tokens are too much alike to be counted one by one."""


@functools.cache
def load_losses(length: int = 16_384) -> Mapping[str, FloatArray]:
    """Return {method: mean losses, (texts, bins of `BIN` tokens)} in nats, of texts that all methods have read."""
    found = load_results("loss_by_position")
    rows = {tuple(name.split("/")): row["loss"] for name, row in found["rows"].items()}
    methods = dict.fromkeys(method for _, tokens, method in rows if tokens == str(length))
    texts = dict.fromkeys(text for text, tokens, _ in rows if tokens == str(length))
    whole = [text for text in texts if all((text, str(length), method) in rows for method in methods)]
    size = BIN // found["about"]["block"]
    return MappingProxyType(
        {
            method: np.array([rows[text, str(length), method] for text in whole]).reshape(len(whole), -1, size).mean(2)
            for method in methods
        }
    )


def load_first_losses(tokens: int = 2048, length: int = 16_384) -> tuple[int, Mapping[str, FloatArray]]:
    """Return (tokens per block, {method: (1, blocks)}) of the first tokens of the first novel."""
    found = load_results("loss_by_position")
    block = found["about"]["block"]
    text = next(iter(found["rows"])).split("/")[0]
    rows = {
        name.split("/")[2]: row["loss"] for name, row in found["rows"].items() if name.startswith(f"{text}/{length}/")
    }
    return block, MappingProxyType({method: np.array([row[: tokens // block]]) for method, row in rows.items()})


@functools.cache
def load_short_losses(trained: int = 8192) -> tuple[int, Mapping[tuple[str, float], FloatArray]]:
    """Return (tokens per block, {(method, factor): (texts, blocks)}) of texts within the trained length, in nats."""
    found = load_results("short_texts")
    rows: dict[tuple[str, float], list[list[float]]] = {}
    for name, row in found["rows"].items():
        _, length, method = name.split("/")
        rows.setdefault((method, int(length) / trained), []).append(row["loss"])
    return found["about"]["block"], MappingProxyType({key: np.array(values) for key, values in rows.items()})


def compare_losses(losses: FloatArray, plain: FloatArray) -> tuple[float, float]:
    """Return the mean difference of two (texts, bins) on the same tokens, and two standard errors, in nats."""
    difference = (losses - plain).ravel()
    return float(difference.mean()), float(2.0 * difference.std(ddof=1) / np.sqrt(len(difference)))


@functools.cache
def load_pass_keys() -> Mapping[int, Mapping[str, tuple[int, int]]]:
    """Return {text length: {method: (pass keys found, questions)}}."""
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for name, row in load_results("passkey")["rows"].items():
        length, _, method = name.split("/")
        right, asked = found.setdefault(int(length), {}).get(method, (0, 0))
        found[int(length)][method] = right + int(row["right"]), asked + 1
    return MappingProxyType(found)


@functools.cache
def load_next_words() -> Mapping[int, Mapping[str, str]]:
    """Return {position in a novel: {method: what the model writes next}}, each as one line."""
    found: dict[int, dict[str, str]] = {}
    for name, row in load_results("next_words")["rows"].items():
        _, position, method = name.split("/")
        found.setdefault(int(position), {})[method] = " ".join(row["words"].split())
    return MappingProxyType(found)


def load_first_keys(length: int = 1024, depths: Sequence[float] = (0.1, 0.5, 0.9)) -> Mapping[str, list[int]]:
    """Return {method: right digits at these depths} of the five-digit pass keys in texts of one length."""
    found: dict[str, list[int]] = {}
    for name, row in load_results("passkey")["rows"].items():
        tokens, depth, method = name.split("/")
        if int(tokens) == length and float(depth) in depths:
            found.setdefault(method, []).append(int(row["digits"]))
    return MappingProxyType(found)


@functools.cache
def load_sentence() -> tuple[Captured, tuple[str, ...]]:
    """Return q and k of all heads on one sentence, before rotation, and the sentence's tokens."""
    return read_capture(FOLDER / "smollm2_sentence.safetensors"), tuple(load_results("sentence")["rows"]["tokens"])


@functools.cache
def load_sums() -> CapturedSums:
    """Return the sums of q and k of all heads of the real model."""
    return read_sums(FOLDER / "smollm2_sums.safetensors")


@functools.cache
def load_mean_logits() -> tuple[NDArray[np.int64], Mapping[int, FloatArray]]:
    """Return some distances, and {layer: exact mean logits of its heads there, (heads, distances)}."""
    found = load_results("sums")
    rows = {int(layer): np.array(values) for layer, values in found["rows"].items()}
    return np.array(found["about"]["distances"], np.int64), MappingProxyType(rows)


def real_spec() -> RopeSpec:
    """Return the embedding of the real model."""
    return load_sentence()[0].spec(0)


FILE = Path(__file__).with_name("smollm2.json")


@functools.cache
def read_measurements() -> dict[str, Any]:
    """Return the measurements with their source.

    `loss.methods` is {scaling method: nats per token, one mean per `loss.bin` tokens}, from `measured/`.
    `passkey.methods` is {scaling method: number of right answers by text length}, out of `passkey.questions`, for the
    methods that were asked at every length. `previous` is {rotation: attention on the token before} of L16H0.
    """
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    losses = load_losses()
    methods = {method: np.round(values.mean(axis=0), 3).tolist() for method, values in losses.items()}
    texts, bins = losses["none"].shape
    keys = load_pass_keys()
    asked = [method for method in methods if all(method in answers for answers in keys.values())]
    head = load_heads().heads[16, 0]
    return found | {
        "loss": {"bin": BIN, "methods": methods},
        "texts": texts,
        "tokens": bins * BIN,
        "passkey": {
            "lengths": [format_tokens(length) for length in keys],
            "questions": [answers["none"][1] for answers in keys.values()],
            "methods": {method: [answers[method][0] for answers in keys.values()] for method in asked},
        },
        "previous": {"as trained": head.scores["previous token"], **head.changed["previous token"]},
    }
