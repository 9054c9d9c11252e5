"""The job of every head of a model, and how it uses every pair.

A job's score is the mean attention on the right tokens, over the rows that have one:

- previous token: the token before, in pieces of text;
- same token: all earlier copies of the row's token together, in the same pieces;
- first token: the first token of the piece;
- induction: the token after the first copy, in the second half of a random sequence that is read twice.

A head has a job if its mean score is above `THRESHOLDS`. `share` is the share of sequences in which it is.
`strength` of a pair is the mean of |q||k| times the scale. `margin` is what the pair adds to the logit of the attended
token, less what it adds to the mean token: Σⱼ(pⱼ − 1/n)·logitⱼ, mean over rows, in nats, before a cap. A job's
`margin` is the same with the right tokens in place of the attended ones. `changed` is a job's score if the rotation
changes in this head only, with its q and k as the model computed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.real_models import TEXTS
from rope_viz.real_models.measured_file import ALL_ZERO, FIRST_ZERO, SCALED
from rope_viz.real_models.torch_forward import rotate
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import scaled
from rope_viz.tiny_lm.tasks import Tokens

THRESHOLDS = {"previous token": 0.4, "same token": 0.25, "first token": 0.5, "induction": 0.3}
OF_TEXT = ("previous token", "same token", "first token")
"""Jobs that are measured on text; induction is measured on random sequences."""
SKIPPED = 16
"""Rows at the beginning that have too few tokens to choose from."""
CONTROL_TOKENS = 100
"""Tokens at the beginning of a vocabulary that random sequences leave out, because many are control tokens."""


@dataclass(frozen=True, eq=False)
class LayerInput:
    """Input of a layer's attention on one sequence.

    `q` is (heads, tokens, d) and `k` (key heads, tokens, d), both rotated by `spec`: the pairs (i, i + pairs) are the
    first dimensions, and the others do not rotate. `scale`, `cap`, `window` and `sinks` are those of `studies.heads`.
    """

    q: Tensor
    k: Tensor
    spec: RopeSpec
    scale: float
    cap: float | None = None
    window: int | None = None
    sinks: Tensor | None = None

    def head(self, number: int) -> tuple[Tensor, Tensor]:
        """Return q and k of a query head, each (tokens, d)."""
        return self.q[number], self.k[number * len(self.k) // len(self.q)]

    def attend(self, number: int, q: Tensor, k: Tensor) -> Tensor:
        """Return the attention of a head with these q and k, (tokens, tokens)."""
        logits = self.scale * q @ k.T
        if self.cap is not None:
            logits = self.cap * torch.tanh(logits / self.cap)
        hidden = torch.ones_like(logits, dtype=torch.bool).triu(1)
        if self.window is not None:
            hidden |= torch.ones_like(hidden).tril(-self.window)
        logits = logits.masked_fill(hidden, -torch.inf)
        if self.sinks is None:
            return torch.softmax(logits, dim=1)
        sink = self.sinks[number].expand(len(logits), 1)
        return torch.softmax(torch.cat([logits, sink], dim=1), dim=1)[:, :-1]


See = Callable[[int, LayerInput], None]


class MeasurableModel(Protocol):
    """A model whose heads can be measured. Its tokenizer puts `prefix` before every text, such as a first token."""

    vocabulary: int
    prefix: tuple[int, ...]

    def see_layers(self, ids: Tokens, see: See) -> None:
        """Read a sequence, and call `see` with the number and the input of every layer, as trained."""
        ...


def right_tokens(job: str, ids: Tensor) -> Tensor:
    """Return the right tokens of each row as weights, (tokens, tokens); a row of zeros has none."""
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


def place_right_tokens(jobs: Sequence[str], ids: Tokens, prefix: int) -> dict[str, Tensor]:
    """Return {job: `right_tokens`} of a sequence that begins with `prefix` tokens which are not text.

    Raises `ValueError` if no row has a right token.
    """
    found = {}
    for job in jobs:
        placed = torch.zeros(len(ids), len(ids))
        placed[prefix:, prefix:] = right_tokens(job, torch.from_numpy(ids[prefix:]))
        if job == "first token":
            placed = placed.sum(dim=1, keepdim=True) * torch.eye(len(ids))[0]
        if not placed.any():
            raise ValueError(TEXTS("measured.no_token", tokens=len(ids), job=job))
        found[job] = placed
    return found


def changed_rotations(spec: RopeSpec, count: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Return {name: cos and sin that turn a rotated q or k into one under another rotation}, each (tokens, pairs).

    A model that is scaled already is compared with no rotation only, because a method would replace its scaling.
    """
    own = Turning.from_spec(spec, count)
    plain = own.inv_freq
    turns = {
        ALL_ZERO: Turning(0.0 * plain, own.attention_factor),
        FIRST_ZERO: Turning(np.where(np.arange(len(plain)) < 4, 0.0, plain), own.attention_factor),
    }
    if not spec.is_scaled:
        for name in SCALED:
            method, factor = name.split()
            turns[name] = Turning.from_spec(scaled(spec, method, int(factor) * spec.context))
    found = {}
    for name, turn in turns.items():
        angle = np.outer(np.arange(count), turn.inv_freq - plain)
        ratio = turn.attention_factor / own.attention_factor
        pair = (ratio * part for part in (np.cos(angle), np.sin(angle)))
        found[name] = tuple(torch.from_numpy(part.astype(np.float32)) for part in pair)
    return found  # type: ignore[return-value]


@dataclass(eq=False)
class HeadSums:
    """Sums over sequences of one head: scores by job, and (pairs,) each of the other quantities."""

    strength: FloatArray
    margin: FloatArray
    scores: dict[str, list[float]] = field(default_factory=dict)
    job_margin: dict[str, FloatArray] = field(default_factory=dict)
    changed: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def has(self, job: str) -> bool:
        return bool(np.mean(self.scores[job]) > THRESHOLDS[job])

    def as_row(self, texts: int) -> dict[str, Any]:
        jobs = {}
        for job, least in THRESHOLDS.items():
            values = np.array(self.scores[job])
            entry: dict[str, Any] = {
                "score": round(float(values.mean()), 3),
                "share": round(float((values > least).mean()), 2),
            }
            if self.has(job):
                entry["margin"] = np.round(self.job_margin[job] / len(values), 2).tolist()
            if several := self.changed.get(job):
                entry["changed"] = {
                    name: round(float(np.mean([one[name] for one in several])), 3) for name in several[0]
                }
            jobs[job] = entry
        row: dict[str, Any] = {"jobs": jobs}
        for name, total in (("strength", self.strength), ("margin", self.margin)):
            row[name] = np.round(total / texts, 2).tolist()
        return row


def measure_heads(
    subject: MeasurableModel,
    pieces: Sequence[Tokens],
    halves: Sequence[Tokens],
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, Any]:
    """Measure every head on pieces of text and on random halves that are read twice; return {"L0H0": its row}.

    `progress` is called with the number of sequences that were read and of all. Raises `ValueError` for no piece.
    """
    if not pieces or not halves:
        raise ValueError(TEXTS("measured.no_pieces"))
    sums: dict[tuple[int, int], HeadSums] = {}
    texts: list[tuple[Tokens, tuple[str, ...]]] = [(piece, OF_TEXT) for piece in pieces]
    copies: list[tuple[Tokens, tuple[str, ...]]] = [(np.tile(half, 2), ("induction",)) for half in halves]
    done, count = 0, 2 * (len(texts) + len(copies))
    for part in (texts, copies):
        for ids, jobs in part:
            add_sequence(subject, ids, jobs, sums)
            done += 1
            progress(done, count)
    for ids, jobs in (*((ids, OF_TEXT[:2]) for ids, _ in texts), *copies):
        add_changes(subject, ids, jobs, sums)
        done += 1
        progress(done, count)
    return {f"L{layer}H{head}": found.as_row(len(pieces)) for (layer, head), found in sorted(sums.items())}


def random_halves(vocabulary: int, tokens: int, count: int, rng: np.random.Generator) -> list[Tokens]:
    """Return random sequences of half so many tokens, without the first tokens of the vocabulary."""
    first = CONTROL_TOKENS if vocabulary > 2 * CONTROL_TOKENS else 0
    return [rng.integers(first, vocabulary, tokens // 2) for _ in range(count)]


def add_sequence(
    subject: MeasurableModel, ids: Tokens, jobs: Sequence[str], sums: dict[tuple[int, int], HeadSums]
) -> None:
    """Read one sequence and add what its heads do, with text also how they use the pairs."""
    ids = np.concatenate([np.array(subject.prefix, dtype=ids.dtype), ids])
    count = len(ids)
    wanted = place_right_tokens(jobs, ids, len(subject.prefix))
    uniform = torch.ones(count, count).tril() / torch.arange(1, count + 1)[:, None]
    every = torch.arange(len(subject.prefix) + SKIPPED, count)

    def see(index: int, layer: LayerInput) -> None:
        device, pairs = layer.q.device, layer.spec.pairs
        mean = uniform.to(device)
        right = {job: each.to(device) for job, each in wanted.items()}

        def by_pair(difference: Tensor, q: Tensor, k: Tensor, rows: Tensor) -> FloatArray:
            each = ((difference @ k) * q)[rows.to(device)].mean(dim=0)[: 2 * pairs].view(2, -1).sum(dim=0)
            found: FloatArray = (layer.scale * each).double().cpu().numpy()
            return found

        for head in range(len(layer.q)):
            q, k = layer.head(head)
            attention = layer.attend(head, q, k)
            total = sums.setdefault((index, head), HeadSums(np.zeros(pairs), np.zeros(pairs)))
            if OF_TEXT[0] in wanted:
                total.margin += by_pair(attention - mean, q, k, every)
                sizes = [part[:, : 2 * pairs].reshape(count, 2, -1).norm(dim=1).mean(dim=0) for part in (q, k)]
                total.strength += (layer.scale * sizes[0] * sizes[1]).double().cpu().numpy()
            for job, weights in right.items():
                rows = weights.sum(dim=1).nonzero()[:, 0]
                total.scores.setdefault(job, []).append(float((attention * weights)[rows].sum(dim=1).mean()))
                shares = weights / weights.sum(dim=1, keepdim=True).clamp(min=1.0)
                margin = total.job_margin.setdefault(job, np.zeros(pairs))
                margin += by_pair(shares - mean, q, k, rows)

    subject.see_layers(ids, see)


def add_changes(
    subject: MeasurableModel, ids: Tokens, jobs: Sequence[str], sums: Mapping[tuple[int, int], HeadSums]
) -> None:
    """Read one sequence again and add the scores of the heads with a job under other rotations."""
    ids = np.concatenate([np.array(subject.prefix, dtype=ids.dtype), ids])
    count = len(ids)
    wanted = place_right_tokens(jobs, ids, len(subject.prefix))
    rotations: dict[RopeSpec, dict[str, tuple[Tensor, Tensor]]] = {}

    def see(index: int, layer: LayerInput) -> None:
        device = layer.q.device
        for head in range(len(layer.q)):
            total = sums[index, head]
            for job, right in wanted.items():
                if not total.has(job):
                    continue
                if layer.spec not in rotations:
                    rotations[layer.spec] = changed_rotations(layer.spec, count)
                weights = right.to(device)
                rows = weights.sum(dim=1).nonzero()[:, 0]
                scores = {}
                for name, (cos, sin) in rotations[layer.spec].items():
                    pair = cos.to(device), sin.to(device)
                    q, k = (turn_pairs(part, layer.spec.pairs, *pair) for part in layer.head(head))
                    attention = layer.attend(head, q, k)
                    scores[name] = float((attention * weights)[rows].sum(dim=1).mean())
                total.changed.setdefault(job, []).append(scores)

    subject.see_layers(ids, see)


def turn_pairs(x: Tensor, pairs: int, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (i, i + pairs) of (tokens, d); the other dimensions stay."""
    return torch.cat([rotate(x[:, : 2 * pairs], cos, sin), x[:, 2 * pairs :]], dim=1)
