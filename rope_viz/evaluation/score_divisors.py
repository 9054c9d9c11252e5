"""How well models answer recall questions with given frequencies: the share of right answers, and their loss.

The loss is that of the answers alone, as in LongRoPE2's search (https://arxiv.org/abs/2502.20082, section 3.3): other
tokens hardly depend on far text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.evaluation import TEXTS
from rope_viz.evaluation.completion_clients import Local
from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.numpy_model import MAX_TOKENS, TinyLm, logits
from rope_viz.tiny_lm.passkey import WORDINGS, Wording, pieces_for
from rope_viz.tiny_lm.recall import LONGEST, text

DEPTH_STEP = 0.618
"""Depths of successive texts differ by this share, so that any number of texts is spread over all depths."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Per model and text: the share of right answers and the mean loss of the answers in nats, (models, texts) each."""

    right: FloatArray
    loss: FloatArray


class Scorer(Protocol):
    """Models whose frequencies can be set."""

    spec: RopeSpec

    def score(self, turn: Turning, length: int, seeds: Sequence[int]) -> Scores:
        """Return the scores with these frequencies on one text per seed."""


class TinyScorer:
    """The demo models in NumPy. Each text asks for 16 facts at different depths."""

    def __init__(self, models: Sequence[TinyLm]) -> None:
        self.models, self.spec = models, models[0].spec

    def score(self, turn: Turning, length: int, seeds: Sequence[int]) -> Scores:
        """Score as in `Scorer`, on all cores. Raises `ValueError` for a length that takes too long."""
        if length > LONGEST:
            raise ValueError(TEXTS("search.demo_length", longest=LONGEST, length=length))
        jobs = [(model, turn, length, seed) for model in self.models for seed in seeds]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = np.array(list(pool.map(lambda job: score_text(*job), jobs)))
        right, loss = found.reshape(len(self.models), len(seeds), 2).transpose(2, 0, 1)
        return Scores(right, loss)


def score_text(model: TinyLm, turn: Turning, length: int, seed: int) -> tuple[float, float]:
    """Return the share of right answers and their mean loss on one text."""
    questions = text(length, seed)
    found = logits(model, questions.tokens[0], turn, rows=questions.rows).astype(np.float64)
    return rate_answers(found, questions.answers[0])


def rate_answers(found: FloatArray, answers: Any) -> tuple[float, float]:
    """Return (share of right answers, mean loss) from logits (answers, vocabulary)."""
    top = found.max(axis=1)
    total = top + np.log(np.exp(found - top[:, None]).sum(axis=1))
    loss = total - found[np.arange(len(answers)), answers]
    return float((found.argmax(axis=1) == answers).mean()), float(loss.mean())


class TransformersScorer:
    """A transformers model in a folder, on any device of PyTorch. Each text asks for one key.

    An answer is right if all its tokens are the most likely ones, as with greedy decoding. The frequencies are set in
    the rotary module. Raises `ValueError` for a model that has several of them, or another number of pairs.
    """

    def __init__(self, folder: str | Path, spec: RopeSpec, *, words: str = "english", device: str = "cpu") -> None:
        self.spec, self.device, self.wording = spec, device, WORDINGS[words]
        self.local = Local(folder, device=device)
        self.model, self.tokenizer = self.local.load()
        found = [module for module in self.model.modules() if "inv_freq" in module._buffers]
        if len(found) != 1 or len(found[0].inv_freq) != spec.pairs:
            raise ValueError(TEXTS("search.one_table"))
        self.rotary = found[0]
        self.rotary.rope_type = "default"  # no update by length
        self.pieces: dict[int, int] = {}

    def score(self, turn: Turning, length: int, seeds: Sequence[int]) -> Scores:
        """Score as in `Scorer`, one text after the other."""
        import torch

        values = torch.tensor(np.asarray(turn.inv_freq), dtype=torch.float32, device=self.device)
        self.rotary.inv_freq, self.rotary.attention_scaling = values, turn.attention_factor
        if length not in self.pieces:
            self.pieces[length] = pieces_for(self.wording, length, self.local.count)
        found = np.array([self.score_text(length, seed) for seed in seeds])
        return Scores(found[None, :, 0], found[None, :, 1])

    def score_text(self, length: int, seed: int) -> tuple[float, float]:
        """Return whether the answer is right, 1 or 0, and its loss."""
        import torch

        ids, answers = ask_key(self.wording, self.encode, self.pieces[length], seed)
        with torch.inference_mode():
            # The last token predicts nothing that is asked for.
            output = self.model(
                input_ids=torch.tensor([ids], device=self.device), logits_to_keep=len(answers) + 1, use_cache=False
            ).logits[0, :-1]
        return rate_key(output.double().cpu().numpy(), answers)

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])


class GgufScorer:
    """A model in a GGUF file, in NumPy. Each text asks for one key, as with `TransformersScorer`."""

    def __init__(self, path: str | Path, *, words: str = "english") -> None:
        """Load it. Raises `ValueError` for a model or a tokenizer that is not built in."""
        self.tokenizer = make_tokenizer(read_header(path, long_arrays=True))
        self.model, self.wording = load_gguf(path), WORDINGS[words]
        self.spec = self.model.spec

    def score(self, turn: Turning, length: int, seeds: Sequence[int]) -> Scores:
        """Score as in `Scorer`, a text per core at once. Raises `ValueError` for a length that takes too long."""
        if length > MAX_TOKENS:
            raise ValueError(TEXTS("search.model_length", longest=MAX_TOKENS, length=length))
        pieces = pieces_for(self.wording, length, lambda text: len(self.encode(text)))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = np.array(list(pool.map(lambda seed: self.score_text(turn, pieces, seed), seeds)))
        return Scores(found[None, :, 0], found[None, :, 1])

    def score_text(self, turn: Turning, pieces: int, seed: int) -> tuple[float, float]:
        ids, answers = ask_key(self.wording, self.encode, pieces, seed)
        rows = np.arange(len(ids) - len(answers) - 1, len(ids) - 1)
        return rate_key(logits(self.model, ids, turn, rows=rows).astype(np.float64), answers)

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)


def ask_key(
    wording: Wording, encode: Callable[[str], list[int]], pieces: int, seed: int
) -> tuple[list[int], NDArray[np.int64]]:
    """Return the tokens of a question with its answer, and those of the answer; seeds are spread over all depths.

    Raises `ValueError` for a tokenizer that joins the two.
    """
    question = wording.make(pieces, seed * DEPTH_STEP % 1.0, seed)
    prompt, whole = encode(question.text), encode(f"{question.text} {question.answer}")
    answers = np.array(whole[len(prompt) :], dtype=np.int64)
    if whole[: len(prompt)] != prompt or not len(answers):
        raise ValueError(TEXTS("search.tokenizer"))
    return whole, answers


def rate_key(found: FloatArray, answers: NDArray[np.int64]) -> tuple[float, float]:
    """Return whether all tokens of an answer are the most likely ones, 1 or 0, and their mean loss."""
    right, loss = rate_answers(found, answers)
    return float(right == 1.0), loss
