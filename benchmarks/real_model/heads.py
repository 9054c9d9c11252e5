"""The job of every head of a real model, and how it uses every pair.

python benchmarks/real_model/heads.py MODEL.gguf --texts FOLDER -o heads.json [--tokens 512]

A job's score is the mean attention on the right tokens, over the rows that have one:

- previous token: the token before, in `--sequences` pieces of novels;
- same token: all earlier copies of the row's token together, in the same pieces;
- first token: the first token of the piece;
- induction: the token after the first copy, in the second half of a random sequence that is read twice.

A head has a job if its mean score is above `THRESHOLDS`. `share` is the share of sequences in which it is.
`strength` of a pair is the mean of |q||k| times the scale. `margin` is what the pair adds to the logit of the attended
token, less what it adds to the mean token: Σⱼ(pⱼ − 1/n)·logitⱼ, mean over rows, in nats. A job's `margin` is the same
with the right tokens in place of the attended ones. `changed` is a job's score if the rotation changes in this head
only, with its q and k as the model computed them.
"""

from __future__ import annotations

import numpy as np
import torch
from common import NOVELS, Bench, parser
from torch import Tensor

from rope_viz.embedding.spec import RopeSpec
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import scaled
from rope_viz.tiny_lm.torch_forward import rotate

THRESHOLDS = {"previous token": 0.4, "same token": 0.25, "first token": 0.5, "induction": 0.3}
SKIPPED = 16
"""Rows at the beginning that have too few tokens to choose from."""


def right_tokens(job: str, ids: Tensor) -> Tensor:
    """Return the right tokens of each row as weights of sum 1, (tokens, tokens); a row of zeros has none."""
    count = len(ids)
    if job == "previous token":
        found = torch.eye(count).roll(-1, 1).tril(-1)
    elif job == "first token":
        found = torch.zeros(count, count)
        found[1:, 0] = 1.0
    elif job == "same token":
        found = (ids[:, None] == ids).float().tril(-1)
    else:
        half, found = count // 2, torch.zeros(count, count)
        rows = torch.arange(half, count)
        found[rows, rows - half + 1] = 1.0
    found[:SKIPPED] = 0.0
    return found


def changed_rotations(spec: RopeSpec, count: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Return {name: cos and sin that turn a rotated q or k into one under another rotation}, each (tokens, pairs)."""
    plain = spec.inv_freq()
    turns = {
        "zero": Turning(0.0 * plain),
        "pairs 0-3 at zero": Turning(np.where(np.arange(len(plain)) < 4, 0.0, plain)),
    }
    for factor in (2, 4):
        for name in ("linear", "ntk", "yarn"):
            turns[f"{name} {factor}"] = Turning.from_spec(scaled(spec, name, factor * spec.context))
    found = {}
    for name, turn in turns.items():
        angle = np.outer(np.arange(count), turn.inv_freq - plain)
        pair = (turn.attention_factor * part for part in (np.cos(angle), np.sin(angle)))
        found[name] = tuple(torch.from_numpy(part.astype(np.float32)) for part in pair)
    return found


class Totals:
    """Sums over sequences by layer and head."""

    def __init__(self, layers: int, heads: int, pairs: int) -> None:
        self.scores: dict[str, list[np.ndarray]] = {job: [] for job in THRESHOLDS}
        self.job_margin = {job: np.zeros((layers, heads, pairs)) for job in THRESHOLDS}
        self.margin, self.strength = np.zeros((layers, heads, pairs)), np.zeros((layers, heads, pairs))
        self.changed: dict[str, dict[tuple[int, int], list[dict[str, float]]]] = {job: {} for job in THRESHOLDS}
        self.pieces = 0

    def holders(self, job: str) -> list[tuple[int, int]]:
        """Return the (layer, head) that have a job."""
        return [(int(a), int(b)) for a, b in np.argwhere(np.mean(self.scores[job], axis=0) > THRESHOLDS[job])]


def add_sequence(bench: Bench, ids: np.ndarray, jobs: tuple[str, ...], totals: Totals, of_text: bool) -> None:
    """Run one sequence and add what its heads do."""
    model, count, tokens = bench.model, len(ids), torch.from_numpy(ids)
    wanted = {job: right_tokens(job, tokens) for job in jobs}
    uniform = torch.ones(count, count).tril() / torch.arange(1, count + 1)[:, None]
    scores = {job: np.zeros((len(model.layers), model.heads)) for job in jobs}
    hidden_keys = torch.full((count, count), -torch.inf).triu(1)
    scale = model.head_dim**-0.5

    def by_pair(difference: Tensor, q: Tensor, k: Tensor, rows: Tensor) -> np.ndarray:
        each = ((difference @ k) * q)[rows].mean(dim=0).unflatten(0, (2, -1)).sum(dim=0)
        return (scale * each).double().numpy()

    def record(index: int, q: Tensor, k: Tensor) -> None:
        every = torch.arange(SKIPPED, count)
        for head in range(len(q)):
            one, key = q[head], k[head * len(k) // len(q)]
            attention = torch.softmax(scale * one @ key.T + hidden_keys, dim=1)
            if of_text:
                totals.margin[index, head] += by_pair(attention - uniform, one, key, every)
                sizes = [part.unflatten(1, (2, -1)).norm(dim=1).mean(dim=0) for part in (one, key)]
                totals.strength[index, head] += (scale * sizes[0] * sizes[1]).double().numpy()
            for job, right in wanted.items():
                rows = right.sum(dim=1).nonzero()[:, 0]
                scores[job][index, head] = (attention * right)[rows].sum(dim=1).mean()
                mean = right / right.sum(dim=1, keepdim=True).clamp(min=1.0)
                totals.job_margin[job][index, head] += by_pair(mean - uniform, one, key, rows)

    bench.torch.hidden(ids, see=record)
    totals.pieces += of_text
    for job in jobs:
        totals.scores[job].append(scores[job])


def add_changes(bench: Bench, ids: np.ndarray, jobs: tuple[str, ...], totals: Totals) -> None:
    """Run one sequence again and add the scores of the heads with a job under other rotations."""
    count, scale = len(ids), bench.model.head_dim**-0.5
    rotations = changed_rotations(bench.model.spec, count)
    hidden_keys = torch.full((count, count), -torch.inf).triu(1)
    wanted = {job: right_tokens(job, torch.from_numpy(ids)) for job in jobs}

    def record(index: int, q: Tensor, k: Tensor) -> None:
        for job, right in wanted.items():
            rows = right.sum(dim=1).nonzero()[:, 0]
            for layer, head in totals.holders(job):
                if layer == index:
                    one, key = q[head], k[head * len(k) // len(q)]
                    scores = {}
                    for name, pair in rotations.items():
                        logits = scale * rotate(one, *pair) @ rotate(key, *pair).T + hidden_keys
                        scores[name] = float((torch.softmax(logits, dim=1) * right)[rows].sum(dim=1).mean())
                    totals.changed[job].setdefault((layer, head), []).append(scores)

    bench.torch.hidden(ids, see=record)


def main() -> None:
    """Measure every head and write the file once, at the end: this takes two minutes of one core."""
    flags = parser(__doc__)
    flags.add_argument("--tokens", type=int, default=512)
    flags.add_argument("--sequences", type=int, default=6)
    parsed = flags.parse_args()
    bench = Bench(parsed, tokens=parsed.tokens, sequences=parsed.sequences, seed=43, thresholds=THRESHOLDS)
    model = bench.model
    totals = Totals(len(model.layers), model.heads, model.head_dim // 2)
    rng, of_text = np.random.default_rng(43), ("previous token", "same token", "first token")
    pieces = [
        bench.tokens(NOVELS[number % len(NOVELS)], parsed.tokens, first=4096) for number in range(parsed.sequences)
    ]
    # The first tokens of the vocabulary are control tokens.
    halves = [rng.integers(100, len(model.embedding), parsed.tokens // 2) for _ in range(parsed.sequences)]
    for piece, half in zip(pieces, halves, strict=True):
        add_sequence(bench, piece, of_text, totals, of_text=True)
        add_sequence(bench, np.tile(half, 2), ("induction",), totals, of_text=False)
        print(f"{totals.pieces} of {parsed.sequences}", flush=True)
    for piece, half in zip(pieces, halves, strict=True):
        add_changes(bench, piece, of_text[:2], totals)
        add_changes(bench, np.tile(half, 2), ("induction",), totals)
    for layer in range(len(model.layers)):
        for head in range(model.heads):
            jobs = {}
            for job, least in THRESHOLDS.items():
                values = np.array([scores[layer, head] for scores in totals.scores[job]])
                entry = {"score": round(float(values.mean()), 3), "share": round(float((values > least).mean()), 2)}
                if values.mean() > least:
                    entry["margin"] = np.round(totals.job_margin[job][layer, head] / len(values), 2).tolist()
                several = totals.changed[job].get((layer, head))
                if several:
                    names = several[0]
                    entry["changed"] = {
                        name: round(float(np.mean([one[name] for one in several])), 3) for name in names
                    }
                jobs[job] = entry
            row = {"jobs": jobs}
            for name, total in (("strength", totals.strength), ("margin", totals.margin)):
                row[name] = np.round(total[layer, head] / totals.pieces, 2).tolist()
            bench.results.rows[f"L{layer}H{head}"] = row
    bench.results.save()


if __name__ == "__main__":
    main()
