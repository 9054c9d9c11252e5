"""Helpers shared by the sentences of several pages."""

from __future__ import annotations

import re

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import KEPT, STILL
from rope_viz.texts.numbers import format_number, format_tokens


def is_scaled(spec: RopeSpec) -> bool:
    """Return True if any pair with a nonzero frequency changes it between training and the target length."""
    found = spectrum.bands(spec, length=spec.target)
    return found.count(KEPT) + found.count(STILL) < spec.pairs


def ends(inv_freq: FloatArray, verb: str) -> str:
    """Give the wavelengths of the first and the last pair; `verb` is what they do once per wavelength."""
    if not inv_freq.any():
        return "no pair turns"
    if len(inv_freq) == 1:
        return f"the only pair {verb} every {lap(inv_freq[0])} tokens"
    if not inv_freq[0]:
        # On one axis of several, leading pairs have zero frequency if they belong to another axis.
        turning = inv_freq[inv_freq != 0.0]
        return f"the fastest {verb} every {lap(turning[0])} tokens, the slowest every {lap(turning[-1])}"
    last = f"the last every {lap(inv_freq[-1])}" if inv_freq[-1] else "the last stands still"
    return f"the first pair {verb} every {lap(inv_freq[0])} tokens, {last}"


def lap(inv_freq: float) -> str:
    """Format a wavelength in tokens: 6.28, 50.3, 54,410, 62.8 million."""
    length = spectrum.TAU / float(inv_freq)
    return (
        format_tokens(round(length)) if length >= 100 else f"{length:.3g}" if length >= 0.01 else format_number(length)
    )


def unturned(spec: RopeSpec, never: str) -> str:
    """Count the pairs that `never` did that in training, before scaling; zero frequencies are counted separately."""
    turning = spectrum.trained_inv_freq(spec) * spec.context / spectrum.TAU
    still, slow = int(np.count_nonzero(turning == 0.0)), int(np.count_nonzero((turning > 0.0) & (turning < 1.0)))
    rest, pairs = spec.pairs - still, counted(spec.pairs, "pair")
    if not still:
        return f"**{slow} of {pairs}** never {never}"
    text = f"**{still} of {pairs}** {'stands' if still == 1 else 'stand'} still"
    return f"{text}, {slow} of the other {rest} never {never}" if rest else f"{text} and never {never}"


def training(spec: RopeSpec) -> str:
    """Name the trained length."""
    return (
        f"the {spec.length_name} length of {format_tokens(spec.context)} {'token' if spec.context == 1 else 'tokens'}"
    )


def counted(count: int, what: str) -> str:
    """Join a number and its noun, plural unless 1."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def plain(text: str) -> str:
    """Escape any text for Markdown, so that it is shown literally.

    Bare addresses become links even when escaped, so a zero-width joiner breaks them.
    """
    return ADDRESS.sub("\u2060", POWERFUL.sub(r"\\\g<0>", " ".join(text.split())))


# Characters with a meaning anywhere, a colon before a word (":red["), and list markers at the start.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
