"""The rows of a table of band changes: the loss of a text by position, and the answers to needles in it by depth.

A key of a row is MEASURE/SET/TEXT/CONDITION: "loss" or "needle", a set of texts, a text of it, and "none" for the model
as it is, else PAIRS/HOW/HEADS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from rope_viz.real_models.band_change import BandChange, How, name_heads
from rope_viz.tiny_lm.tasks import Tokens

BLOCK = 512
"""Tokens over which losses are averaged."""
DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Depths of the text at which a needle is hidden, one text each."""
UNCHANGED = "none"


def name_condition(pairs: str, how: How, heads: str, divisor: float = 1.0) -> str:
    """Return the name of a condition, as keys of rows have it."""
    return f"{pairs}/{f'divide by {divisor:g}' if how == 'divide' else how}/{heads}"


def describe_change(change: BandChange) -> dict[str, Any]:
    """Return a change as JSON data; no `heads` are all heads."""
    return {
        "pairs": list(change.pairs),
        "how": change.how,
        "divisor": change.divisor,
        "heads": name_heads(change.heads),
    }


def average_losses(losses: ArrayLike, block: int = BLOCK) -> list[float]:
    """Return the mean of every `block` tokens; the first block lacks the first token, which has no loss."""
    whole = np.concatenate([[np.nan], np.asarray(losses, dtype=np.float64)])
    return [round(float(each), 4) for each in np.nanmean(whole.reshape(-1, block), axis=1)]


def judge_answers(logits: Sequence[Tensor], texts: Sequence[Tokens]) -> dict[str, list[float]]:
    """Return, per text, how many tokens of its answer are the first choice, and the answer's loss in nats.

    `logits` are those of the answer, the last tokens of the text: (answer tokens, vocabulary).
    """
    right, nats = [], []
    for each, ids in zip(logits, texts, strict=True):
        wanted = torch.as_tensor(ids[-len(each) :], dtype=torch.long, device=each.device)
        right.append(int((each.argmax(dim=1) == wanted).sum()))
        nats.append(round(float(torch.nn.functional.cross_entropy(each, wanted, reduction="sum")), 3))
    return {"right": right, "nats": nats}
