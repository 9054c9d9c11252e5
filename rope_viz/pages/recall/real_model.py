"""Pictures of the page Recall that show a real model: as measured, and on your own text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.figures import theme
from rope_viz.figures.compared import short_label
from rope_viz.figures.line_styles import METHODS, take_slots
from rope_viz.pages.recall import figures, words
from rope_viz.pages.recall.choices import KEYS, MEASURED, PAGE, REPORT
from rope_viz.pages.recall.figures import TEXTS, RecallCurve
from rope_viz.picture.outputs import ROW, Figure, Table
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.text_results import BLOCK, DEPTHS, FACTOR, FoundKeys, average_blocks
from rope_viz.studies.real_model import (
    BIN,
    compare_losses,
    load_first_keys,
    load_first_losses,
    load_losses,
    load_pass_keys,
    load_short_losses,
    real_spec,
)
from rope_viz.tiny_lm import checkpoints

SHORT_LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
"""Lengths of texts, in tokens; the real model was trained on the last one."""


@PAGE.picture()
def real_loss(request: PictureRequest) -> Figure:
    """Loss of a real model by position, without scaling and under each method, as measured."""
    losses, trained = load_losses(), real_spec().context
    fig = figures.loss_by_position(losses, trained)
    return Figure(fig, TEXTS("real_loss_title"), words.describe_losses(losses, trained))


@PAGE.picture(REPORT, MEASURED, query="recall.tab=own")
def live_loss(request: PictureRequest) -> Figure:
    """Loss of a real model by position on your own text; without one, on the first tokens of a novel, as measured."""
    found = own_losses(request)
    fig = figures.loss_by_position(found.losses, found.trained, found.block)
    sentence = words.describe_text(found.losses, found.tokens, found.block, found.factor, own=bool(found.name))
    title = TEXTS("own_loss_title", model=found.model) if found.model else TEXTS("live_loss_title")
    return Figure(fig, title, sentence, variant=found.name)


@PAGE.picture(KEYS, height=7 * ROW, query="recall.tab=own")
def live_keys(request: PictureRequest) -> Table:
    """A pass key of yours in your text, by depth and method; without one, five-digit keys in novels, as measured."""
    held = request[KEYS]
    # Each measured question has a key of its own, of five digits.
    found = FoundKeys("", 1024, FACTOR, "", dict(load_first_keys(1024, DEPTHS))) if held is None else held.value
    rows = words.list_text_keys(found.right, DEPTHS, len(found.key) or 5)
    sentence = words.describe_text_keys(found.right, found.tokens, found.factor, found.key)
    return Table(rows, TEXTS("live_keys_title"), sentence, words=True, variant="" if held is None else held.name)


@PAGE.picture(height=7 * ROW)
def real_cost(request: PictureRequest) -> Table:
    """The loss of a real model under each method within and beyond its trained length, against no scaling."""
    losses, trained = load_losses(), real_spec().context
    rows = words.list_costs(losses, trained)
    half = losses["none"][:, : trained // BIN]
    factor = losses["none"].shape[1] * BIN / trained
    sentence = TEXTS("real.cost", bins=half.size, size=BIN, factor=factor)
    return Table(rows, TEXTS("real_cost_title"), sentence, words=True)


@PAGE.picture(height=7 * ROW)
def real_keys(request: PictureRequest) -> Table:
    """The pass keys that a real model finds by text length and method, as measured."""
    found = load_pass_keys()
    asked = max(count for rows in found.values() for _, count in rows.values())
    sentence = words.describe_pass_keys(found, asked)
    return Table(words.list_pass_keys(found, checkpoints.MAIN_METHODS), TEXTS("real_keys_title"), sentence, words=True)


@PAGE.picture(height=theme.SIDE_HEIGHT)
def short_cost(request: PictureRequest) -> Figure:
    """The loss that static YaRN adds to texts within the trained length, by their length, with intervals."""
    block, losses = load_short_losses()
    plain = losses["none", 1.0]
    looks = [*take_slots(1, [METHODS["yarn"]]), METHODS["yarn"]]
    lines = []
    for (method, factor), look in zip(sorted(key for key in losses if key[0] == "yarn"), looks, strict=True):
        cut = [tokens // block for tokens in SHORT_LENGTHS]
        means = [
            [values[:, :count].mean(axis=1, keepdims=True) for values in (losses[method, factor], plain)]
            for count in cut
        ]
        found = np.array([compare_losses(*each) for each in means])
        value, error = found[:, 0], found[:, 1]
        label = TEXTS("real.by", method=short_label(method), factor=factor)
        lines.append(
            RecallCurve(label, *look, np.array(SHORT_LENGTHS, dtype=float), value, value - error, value + error)
        )
    unscaled = np.array([plain[:, : tokens // block].mean() for tokens in SHORT_LENGTHS])
    sentence = words.describe_short_cost(lines, float(unscaled[SHORT_LENGTHS.index(1024)]), 1024, plain.shape[0])
    return Figure(figures.cost_of_short_texts(lines, unscaled), TEXTS("short_cost_title"), sentence)


@dataclass(frozen=True, eq=False)
class OwnLosses:
    """{method: (1, blocks of `block` tokens)} in nats, and what was read.

    `name` is that of the stored content, "" for the shipped losses; `model` is the name of a user's model.
    """

    losses: Mapping[str, FloatArray]
    block: int
    tokens: int
    factor: float
    trained: int
    name: str = ""
    model: str = ""


def own_losses(request: PictureRequest) -> OwnLosses:
    """Return the losses to show: of a measured file before those of a text that was read live."""
    if (held := request[MEASURED]) is not None:
        own = held.value
        return OwnLosses(own.losses, own.block, own.tokens, own.factor, own.spec().context, held.name, own.name)
    trained, live = real_spec().context, request[REPORT]
    if live is None:
        block, losses = load_first_losses()
        return OwnLosses(losses, block, block * losses["none"].shape[1], FACTOR, trained)
    found = live.value
    averaged = {method: average_blocks(values, BLOCK) for method, values in found.losses.items()}
    return OwnLosses(averaged, BLOCK, found.tokens, found.factor, trained, live.name)
