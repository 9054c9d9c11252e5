"""Sentences about frequencies, bands and scaling, and the helpers shared by all sentences."""

from __future__ import annotations

import re

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import LABELS, LongRope, Proportional, critical_dimension
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL
from rope_viz.figures.scaling import compare_factor
from rope_viz.models.user_config import join_words
from rope_viz.texts.numbers import format_number, format_tokens


def frequencies(spec: RopeSpec) -> str:
    """Give the wavelengths before scaling, the pairs without a full turn in training, and the effect of scaling."""
    wavelengths = ends(spectrum.trained_inv_freq(spec), "turns")
    text = f"{wavelengths}: {unturned(spec, 'completed a turn')} in {training(spec)}."
    if not is_scaled(spec):
        return text[0].upper() + text[1:]
    return f"Before scaling {text} Scaled, {ends(spec.inv_freq(spec.target), 'turns')}: {join_words(changes(spec))}."


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


def changes(spec: RopeSpec) -> list[str]:
    """Count the pairs of each band at the target length, with the smallest and largest change of frequency."""
    share, kind = spectrum.ratio(spec, length=spec.target), spectrum.bands(spec, length=spec.target).kind
    kept = int(np.count_nonzero(kind == KEPT))
    out = [f"{kept} {'keeps its' if kept == 1 else 'keep their'} speed" if kept else "no pair keeps its speed"]
    for each, what in ((BLENDED, "blended"), (DIVIDED, "slowed by "), (SPED, "sped up by ")):
        found = share[kind == each]
        if found.size:
            by = "" if each == BLENDED else between(1.0 / found if each == DIVIDED else found)
            out.append(f"{found.size} {'is' if found.size == 1 else 'are'} {what}{by}")
    still = int(np.count_nonzero(kind == STILL))
    return [*out, f"{still} {'stands' if still == 1 else 'stand'} still"] if still else out


def between(values: FloatArray) -> str:
    """Format the range of the values, or the single value if all are equal."""
    low, high = format_number(float(values.min())), format_number(float(values.max()))
    return low if low == high else f"{low} to {high}"


def counted(count: int, what: str) -> str:
    """Join a number and its noun, plural unless 1."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def scaling(spec: RopeSpec) -> str:
    """Describe in one sentence what the current method does to this model."""
    if spec.scaling.name == "none":
        factor = format_number(compare_factor(spec))
        return (
            f"This model is **not scaled**: every pair keeps its speed. Beside it, what other methods would do with "
            f"s = {factor}. Choose a method in the sidebar to make it the model's own."
        )
    kept, *rest = changes(spec)
    first = kept.replace(" ", f" of {counted(spec.pairs, 'pair')} ", 1) if kept[0].isdigit() else kept
    logits = spec.attention_factor(spec.target) ** 2
    attention = f"logits × {more_digits(logits)}" if abs(logits - 1.0) > 1e-9 else "logits are left as they are"
    return f"{method(spec)}: {', '.join([f'**{first}**', *rest])}; {attention}."


def method(spec: RopeSpec) -> str:
    """Name the method and its factor, plus the factor at the target length if it differs."""
    name, own = LABELS[spec.scaling.name].split(" (")[0], spec.scaling.factor_for(spec)
    if isinstance(spec.scaling, LongRope):
        return f"{name} with a divisor for each pair"
    share = f"p = {format_number(spec.scaling.share)}, " if isinstance(spec.scaling, Proportional) else ""
    there = spectrum.whole_factor(spec, length=spec.target)
    grown = (
        f", which is {format_number(there)} at {format_tokens(spec.target)} tokens"
        if format_number(there) != format_number(own)
        else ""
    )
    return f"{name} with {share}s = {format_number(own)}{grown}"


def more_digits(value: float) -> str:
    """Format a number with four digits, or with ten if four would round it to 1."""
    return format_number(value) if format_number(value) != "1" else f"{value:.10g}"


def attention(spec: RopeSpec) -> str:
    """Describe the attention factor and its square."""
    value = spec.attention_factor(spec.target)
    root = format_number(value) if value >= 0 and "·" not in format_number(value) else f"({format_number(value)})"
    return (
        f"The attention factor multiplies cos and sin, so it multiplies both q and k, and the logits by its square: "
        f"here {root}² = **{format_number(value**2)}**."
    )


def ranges(spec: RopeSpec) -> str:
    """Name the critical dimension, and YaRN's correction range if the method has one."""
    critical = critical_dimension(spec)
    text = f"Critical dimension **{critical}** of {spec.rotary_dim}: "
    if critical >= spec.rotary_dim:
        text += "before scaling every pair completed a turn in training."
    else:
        text += "from there on no pair completed a turn in training."
    still = np.flatnonzero(spec.inv_freq(spec.target) == 0.0)
    if still.size:
        text += f" Pairs from **{still[0]}** on stand still."
    return text if spectrum.correction_range(spec) is None else f"{text} {ramp(spec)}"


def ramp(spec: RopeSpec) -> str:
    """Name the pairs between which YaRN's ramp leads from the unchanged frequency to the full factor."""
    low, high = spectrum.correction_range(spec) or (0.0, 0.0)
    share, last = spec.scaling.kept_share(spec), spec.pairs - 1  # type: ignore[attr-defined]
    name = "(the correction range)"
    if np.all(share == share[0]):
        what = "keeps" if share[0] == 1.0 else "divides"
        return f"From pair **{format_number(low)}** to pair **{format_number(high)}** {name}, the ramp {what} every pair alike."
    if low == high:
        return f"The ramp drops right after pair **{format_number(low)}** {name}."
    start, end = min(low, high), max(low, high)
    way = "falls" if low < high else "rises, for β fast is below β slow,"
    past = f", past the last pair, {last}" if end > last else ""
    return f"The ramp {way} from pair **{format_number(start)}** to pair **{format_number(end)}**{past} {name}."


def plain(text: str) -> str:
    """Escape any text for Markdown, so that it is shown literally.

    Bare addresses become links even when escaped, so a zero-width joiner breaks them.
    """
    return ADDRESS.sub("\u2060", POWERFUL.sub(r"\\\g<0>", " ".join(text.split())))


# Characters with a meaning anywhere, a colon before a word (":red["), and list markers at the start.
POWERFUL = re.compile(r"[\\`*_\[\]<>$~|#&]|:(?=\S)|^[-+]|(?<=^\d)[.)]")
ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
