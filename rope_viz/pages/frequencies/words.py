"""Sentences of the Frequencies page, with the current numbers."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import critical_dimension
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words import PAIRS, count_unturned, describe_bands, is_scaled
from rope_viz.pages.frequencies.figures import TEXTS
from rope_viz.texts import Sentence, join


def describe_frequencies(spec: RopeSpec) -> Sentence:
    """Give the wavelengths before scaling, the pairs without a full turn in training, and the effect of scaling."""
    turning = np.flatnonzero(spectrum.trained_inv_freq(spec))
    if not turning.size:
        return PAIRS("wavelengths.zero")
    first, last = int(turning[0]), int(turning[-1])
    single = "" if first < last else "_single"
    ends = {"first": first, "last": last}
    plain, scaled = (spectrum.wavelength(each) for each in (spec.plain_inv_freq, spec.inv_freq(spec.target)))
    before = {"shortest": float(plain[first]), "longest": float(plain[last])}
    if not is_scaled(spec):
        return join(PAIRS(f"wavelengths.plain{single}", **ends, **before), count_unturned(spec))
    after = {"scaled_shortest": float(scaled[first]), "scaled_longest": float(scaled[last])}
    return join(
        PAIRS(f"wavelengths.before{single}", **ends, **before),
        count_unturned(spec),
        PAIRS(f"wavelengths.scaled{single}", **ends, **after),
        describe_bands(spec),
    )


def describe_marks(spec: RopeSpec) -> Sentence:
    """Explain the points and the shading, and the bar above the plot if scaling treats pairs differently."""
    kinds = np.unique(spectrum.bands(spec, length=spec.target).kind)
    return join(TEXTS("legend"), TEXTS("legend_bands") if kinds.size > 1 else "")


def describe_ranges(spec: RopeSpec) -> Sentence:
    """Give the critical dimension, the first pair of zero frequency, and YaRN's correction range."""
    critical, zero = critical_dimension(spec), np.flatnonzero(spec.inv_freq(spec.target) == 0.0)
    numbers = {"critical": critical, "rotary_dim": spec.rotary_dim, "pair": critical // 2}
    return join(
        TEXTS("critical.all" if critical >= spec.rotary_dim else "critical.some", **numbers),
        TEXTS("critical.zero", zero_from=int(zero[0])) if zero.size else "",
        describe_ramp(spec),
    )


def describe_ramp(spec: RopeSpec) -> Sentence:
    """Give YaRN's correction range and its ramp there; empty for a method without one."""
    found = spec.scaling.correction_range(spec)
    if found is None:
        return Sentence()
    low, high = found
    share, last = spec.scaling.kept_share(spec), spec.pairs - 1  # type: ignore[attr-defined]
    ends = {"start": min(low, high), "end": max(low, high)}
    if np.all(share == share[0]):
        ends = {"start": low, "end": high}
        return join(TEXTS("ramp.range", **ends), TEXTS("ramp.kept" if share[0] == 1.0 else "ramp.divided"))
    if low == high:
        return TEXTS("ramp.drop", **ends)
    return join(
        TEXTS("ramp.range", **ends),
        TEXTS("ramp.falls" if low < high else "ramp.rises"),
        TEXTS("ramp.beyond", last=last) if ends["end"] > last else "",
    )
