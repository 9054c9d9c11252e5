"""The sentence over each figure: what to look for, with the current numbers in it."""

from __future__ import annotations

import re

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import LABELS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.scaling import compare_factor
from rope_viz.figures.theme import digits, tokens


def frequencies(spec: RopeSpec) -> str:
    """How many pairs completed a turn in training, and what scaling does to them."""
    turns = spec.context * spec.plain_inv_freq / spectrum.TAU
    partial = int(np.count_nonzero(turns < 1))
    slowest = float(spectrum.wavelength(spec.plain_inv_freq)[-1])
    first = (
        f"The first pair turns every 6.28 tokens, the last every {tokens(round(slowest))}: "
        f"**{partial} of {spec.pairs} pairs** never completed a turn in {tokens(spec.context)} tokens of training."
    )
    return f"{first} {bands(spec)}".strip()


def bands(spec: RopeSpec) -> str:
    """Kept, blended and divided pairs in words; empty where nothing is scaled."""
    found = spectrum.bands(spec, length=spec.target)
    kept, blended, divided = (found.count(kind) for kind in range(3))
    if kept == spec.pairs:
        return ""
    factor = digits(spec.scaling.factor_for(spec))
    middle = f", {blended} are blended" if blended else ""
    slowed = f" and {divided} are slowed by {factor}" if divided else ""
    return f"{kept} keep their speed{middle}{slowed}."


def scaling(spec: RopeSpec) -> str:
    """What the current method does to this model, in one sentence."""
    if spec.scaling.name == "none":
        factor = digits(compare_factor(spec))
        return (
            f"This model is **not scaled**: every pair keeps its speed. Beside it, what other methods would do with "
            f"s = {factor}. Choose a method in the sidebar to make it the model's own."
        )
    found = spectrum.bands(spec, length=spec.target)
    kept, blended, divided = (found.count(kind) for kind in range(3))
    method, factor = LABELS[spec.scaling.name].split(" (")[0], digits(spec.scaling.factor_for(spec))
    logits = digits(spec.attention_factor(spec.target) ** 2)
    attention = f"logits × {logits}" if logits != "1" else "logits are left as they are"
    return (
        f"{method} with s = {factor}: **{kept} of {spec.pairs} pairs keep their speed**, {blended} are blended, "
        f"{divided} are slowed by {factor}; {attention}."
    )


def attention(spec: RopeSpec) -> str:
    """The attention factor and its square with the current number."""
    value = spec.attention_factor(spec.target)
    return (
        f"The attention factor multiplies cos and sin, so it multiplies both q and k, and the logits by its square: "
        f"here {digits(value)}² = **{digits(value**2)}**."
    )


def ranges(spec: RopeSpec) -> str:
    """The critical dimension, and YaRN's correction range where the method has one."""
    text = (
        f"Critical dimension **{spectrum.critical_dimension(spec)}** of {spec.rotary_dim}: from there on no pair "
        f"completed a turn in training."
    )
    found = spectrum.correction_range(spec)
    if found is None:
        return text
    low, high = (digits(end) for end in found)
    return f"{text} The ramp falls from pair **{low}** to pair **{high}** (the correction range)."


def plain(text: str) -> str:
    """A text that may hold anything, such that Markdown shows it as it stands.

    Bare addresses become links even where every sign of them is escaped, so they are broken by a joiner without width.
    """
    return ADDRESS.sub("\u2060", POWERFUL.sub(r"\\\g<0>", " ".join(text.split())))


# What has a meaning anywhere, a colon before a word (":red["), and what begins a list.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
