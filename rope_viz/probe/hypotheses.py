"""What an engine may compute from a config: what it means, typical mistakes, and what is known of every runtime."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rope_viz.advice.verify.conformance import find_factor_mistakes, list_mistakes
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import FloatArray, Pairing, RopeSpec, Scaling
from rope_viz.models.layer_patterns import raw_window
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate_case, read_case, resolve_release
from rope_viz.runtimes.releases import RELEASES, format_release

INTENDED = "as the config means it"
PREDICTED = "what our rules predict of "
"""The beginning of the name of what the rules of a release give."""
PLAIN = "no scaling"
TRIED_FACTORS = (2.0, 4.0, 8.0)
"""Factors of methods that are tried on a config without scaling."""
OTHER_PAIRING: Mapping[Pairing, Pairing] = {"half": "interleaved", "interleaved": "half"}


@dataclass(frozen=True, eq=False)
class Rotation:
    """How the layers of one type rotate: radians per position, shape (pairs,), factor on cos and sin, and pairing."""

    inv_freq: FloatArray
    attention_factor: float
    pairing: Pairing


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """What an engine computes: the rotation by layer type ("" where all are alike), and what else may differ.

    `softmax_multiplier` multiplies the scores of every layer, `shift` is added to every position, and `has_windows`
    is False where windows are ignored, and `has_temperature` where the factor on queries by position is left out.
    Windows are `wider` by so many tokens. `rounds_angles`: the angles are rounded to bfloat16.
    """

    layers: Mapping[str, Rotation]
    softmax_multiplier: float = 1.0
    shift: int = 0
    has_windows: bool = True
    wider: int = 0
    has_temperature: bool = True
    rounds_angles: bool = False


@dataclass(frozen=True)
class ProbedPrompt:
    """What hypotheses depend on: the probe, the length of the prompt and the longest one that the engine serves.

    `runtime` and `version` are those of the engine, where the user names them.
    """

    model: ModelConfig
    length: int
    served: int
    runtime: str = ""
    version: str = ""


def list_hypotheses(asked: ProbedPrompt) -> dict[str, Hypothesis]:
    """Return {name: hypothesis} for a prompt of one length; the first is what the config means."""
    right = find_intended(asked)
    found = {INTENDED: right}
    for name, hypothesis in list_others(asked, right):
        # Two mistakes of one name, such as two ways to lose the base, are numbered.
        number = 2
        label = name
        while label in found:
            label, number = f"{name} ({number})", number + 1
        found[label] = hypothesis
    return found


def find_intended(asked: ProbedPrompt) -> Hypothesis:
    """Return what the config means: the frequencies that the newest transformers computes for this length."""
    layers, softmax = {}, 1.0
    for layer, spec in asked.model.specs.items():
        length = asked.length if spec.scaling.depends_on_length else None
        known = emulate_case(*resolve_release("transformers"), read_case(asked.model, length=length, layer_type=layer))
        if known.inv_freq is None:
            raise ValueError(f"transformers refuses this config: {known.reason}")
        softmax = known.softmax_multiplier or 1.0
        layers[layer] = Rotation(known.inv_freq, known.attention_factor or 1.0, spec.pairing)
    return Hypothesis(layers, softmax)


def list_others(asked: ProbedPrompt, right: Hypothesis) -> Iterator[tuple[str, Hypothesis]]:
    """Yield (name, hypothesis) of everything that an engine may compute in place of what the config means."""
    specs = asked.model.specs
    plain = {layer: Rotation(spec.plain_inv_freq, 1.0, spec.pairing) for layer, spec in specs.items()}
    if any(spec.is_scaled for spec in specs.values()):
        yield PLAIN, Hypothesis(plain)
    for layer, spec in specs.items():
        place = f" in {layer} layers" if layer else ""
        for name, rotation in list_rotations(asked, spec, right.layers[layer]):
            yield name + place, dataclasses.replace(right, layers={**right.layers, layer: rotation})
        if spec.is_scaled and layer:
            yield PLAIN + place, dataclasses.replace(right, layers={**right.layers, layer: plain[layer]})
        if spec.is_scaled and spec.scaling.divides_from_length:
            held = right.layers[layer] if asked.length > spec.context else plain[layer]
            mistaken = dataclasses.replace(right, layers={**right.layers, layer: held})
            yield f"scaling only beyond the original length{place}", mistaken
    yield from list_layer_mistakes(right)
    flipped = {
        layer: dataclasses.replace(one, pairing=OTHER_PAIRING[one.pairing]) for layer, one in right.layers.items()
    }
    yield "the other pairing", dataclasses.replace(right, layers=flipped)
    if right.softmax_multiplier != 1.0:
        for name, value in (("ignored", 1.0), ("squared", right.softmax_multiplier**2)):
            yield f"softmax multiplier {name}", dataclasses.replace(right, softmax_multiplier=value)
        half = right.softmax_multiplier**0.5
        yield "softmax multiplier not squared", dataclasses.replace(right, softmax_multiplier=half)
    if raw_window(asked.model.fields) is not None:
        yield "windows ignored", dataclasses.replace(right, has_windows=False)
        yield "windows wider by one token", dataclasses.replace(right, wider=1)
    if asked.model.architecture.query_temperature is not None:
        yield "attention temperature left out", dataclasses.replace(right, has_temperature=False)
    yield "positions shifted by one", dataclasses.replace(right, shift=1)
    yield "angles in bfloat16", dataclasses.replace(right, rounds_angles=True)
    yield from list_runtimes(asked, right)


def list_rotations(asked: ProbedPrompt, spec: RopeSpec, right: Rotation) -> Iterator[tuple[str, Rotation]]:
    """Yield (mistake, rotation) of one layer type."""
    for name, values in list_mistakes(spec, right.inv_freq):
        label = "scaling ignored, attention factor kept" if name == "scaling ignored" else name
        if name != "scaling ignored" or right.attention_factor != 1.0:
            yield label, dataclasses.replace(right, inv_freq=values)
    for name, factor in find_factor_mistakes(spec, right.attention_factor).items():
        yield name, dataclasses.replace(right, attention_factor=factor)
    for name, other in list_methods(spec):
        length = asked.length if other.scaling.depends_on_length else None
        yield name, Rotation(other.inv_freq(length), other.attention_factor(length), spec.pairing)


def list_methods(spec: RopeSpec) -> Iterator[tuple[str, RopeSpec]]:
    """Yield (name, spec) of every other method, by the factor of the config, or by a few where it has none."""
    own = spec.scaling.factor_for(spec)
    factors = (own,) if spec.is_scaled and own > 1.0 else TRIED_FACTORS
    for method in METHODS.values():
        made = method()
        # LongRoPE without lists of its own, and Llama 3, are not what an engine takes by mistake.
        if (
            method in (Scaling, type(spec.scaling))
            or not made.shares_factor
            or not made.extends
            or made.is_trained_with
        ):
            continue
        for factor in factors:
            with contextlib.suppress(ValueError):
                scaling = made.with_factor(factor)
                yield f"{made.short_label} by {factor:g}", dataclasses.replace(spec, scaling=scaling)


def list_layer_mistakes(right: Hypothesis) -> Iterator[tuple[str, Hypothesis]]:
    """Yield hypotheses where layers of one type rotate as those of another do."""
    names = [name for name in right.layers if name]
    for name in names:
        same = {
            other: right.layers[name] if is_same_shape(right.layers[name], one) else one
            for other, one in right.layers.items()
        }
        yield f"the embedding of {name} in every layer", dataclasses.replace(right, layers=same)
    if len(names) == 2 and is_same_shape(right.layers[names[0]], right.layers[names[1]]):
        exchanged = {**right.layers, names[0]: right.layers[names[1]], names[1]: right.layers[names[0]]}
        yield f"the embeddings of {' and '.join(names)} exchanged", dataclasses.replace(right, layers=exchanged)


def is_same_shape(one: Rotation, other: Rotation) -> bool:
    """Return whether two rotations have as many pairs."""
    return one.inv_freq.shape == other.inv_freq.shape


def list_runtimes(asked: ProbedPrompt, right: Hypothesis) -> Iterator[tuple[str, Hypothesis]]:
    """Yield what the rules of every runtime and release predict, the user's engine first."""
    releases = [(name, release) for name, one in RELEASES.items() for release in one.releases]
    for name, release in sorted(releases, key=lambda one: one[0] != asked.runtime):
        predicted = predict(asked, right, name, release)
        if predicted is not None:
            yield PREDICTED + format_release(name, release), predicted


def predict(asked: ProbedPrompt, right: Hypothesis, name: str, release: str) -> Hypothesis | None:
    """Return what the rules of one release predict; None where it refuses the config or is not known."""
    layers, softmax = {}, 1.0
    for layer, spec in asked.model.specs.items():
        length = asked.served if name in ("vllm", "llama.cpp", "tensorrt-llm") else asked.length
        known = emulate_case(name, release, read_case(asked.model, length=length, layer_type=layer))
        if known.inv_freq is None or known.attention_factor is None or known.softmax_multiplier is None:
            return None
        softmax = known.softmax_multiplier
        layers[layer] = Rotation(np.asarray(known.inv_freq), known.attention_factor, spec.pairing)
    return dataclasses.replace(right, layers=layers, softmax_multiplier=softmax)


def is_same(one: Hypothesis, other: Hypothesis) -> bool:
    """Return whether two hypotheses have the same numbers, up to the rounding of float32."""
    others = [{key: value for key, value in vars(part).items() if key != "layers"} for part in (one, other)]
    if others[0] != others[1]:
        return False
    return one.layers.keys() == other.layers.keys() and all(
        is_same_rotation(rotation, other.layers[layer]) for layer, rotation in one.layers.items()
    )


def is_same_rotation(one: Rotation, other: Rotation) -> bool:
    """Return whether two rotations have the same numbers, up to the rounding of float32."""
    return (
        one.pairing == other.pairing
        and one.inv_freq.shape == other.inv_freq.shape
        and np.allclose(one.inv_freq, other.inv_freq, rtol=1e-7, atol=0.0)
        and bool(np.isclose(one.attention_factor, other.attention_factor, rtol=1e-7))
    )
