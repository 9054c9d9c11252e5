"""What measured frequencies or a measured rotation are, in sentences."""

from __future__ import annotations

from rope_viz.advice.diagnose_frequencies import FrequencyList, Rotation, diagnose_frequencies, diagnose_rotation
from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.texts import Texts, join

TEXTS = Texts("sidebar")


def describe_measured(measured: FloatArray | Rotation, spec: RopeSpec, model: str) -> str:
    """Return what the layout, base and method are, and whether a model or a typical mistake gives them."""
    if not isinstance(measured, Rotation):
        found = diagnose_frequencies(measured, spec)
        key = "same" if found.same else "mistake" if found.mistake else "other"
        verdict = TEXTS(f"measured.{key}", model=model, mistake=found.mistake)
        return join(TEXTS(f"measured.{found.layout}", pairs=found.pairs), describe_base(found), verdict)
    turn = diagnose_rotation(measured, spec)
    if not turn.pairing:
        return TEXTS("measured.unturned")
    key = "turns_same" if turn.same else "turns_mistake" if turn.mistake else "turns_other"
    return join(
        TEXTS(f"measured.turned_{turn.pairing}"),
        "" if abs(turn.factor - 1.0) < 1e-3 else TEXTS("measured.grown", factor=turn.factor),
        "" if turn.frequencies is None else describe_base(turn.frequencies),
        TEXTS(f"measured.{key}", model=model, mistake=turn.mistake),
    )


def describe_base(found: FrequencyList) -> str:
    """Return the base and the divisor of frequencies, "" where they are unknown."""
    if found.base is None or found.divisor is None:
        return ""
    key = "scaled" if not found.is_plain else "plain" if found.divisor == 1 else "divided"
    return TEXTS(f"measured.{key}", base=found.base, divisor=found.divisor)
