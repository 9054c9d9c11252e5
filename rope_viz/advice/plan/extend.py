"""What each scaling method would do to one model at a longer length: numbers to compare, and the config to write.

These numbers cannot tell which method a model tolerates without fine-tuning.
The sign of the mean cosine as a bound on the length: Men et al., https://arxiv.org/abs/2405.14591
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import METHODS, turns
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, require_number, short_repr
from rope_viz.embedding.spectrum import BLENDED, DIVIDED, KEPT, SPED, STILL, bands
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.edit_config import write_new_keys
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.rope_config import to_config
from rope_viz.studies.decay import first_negative_distance
from rope_viz.texts.texts import join_items


@dataclass(frozen=True)
class Option:
    """One method at the target length.

    `kept`, `blended`, `divided`, `sped` and `still` count the pairs by what happens to them; `unseen` those whose
    largest angle at the target length lies outside what training showed them (a pair that completed a turn in training
    has seen every angle). `first_negative` is the first distance up to the target at which the mean cosine is negative,
    None where there is none. `config` is the fragment of config.json to write, None where transformers has no such
    method.
    """

    method: str
    spec: RopeSpec
    factor: float
    attention_factor: float
    logit_factor: float
    kept: int
    blended: int
    divided: int
    sped: int
    still: int
    unseen: int
    first_negative: int | None
    config: dict[str, Any] | None


def measure_methods(
    spec: RopeSpec, target: int, *, config: Source | None = None, layer: str | None = None
) -> tuple[Option, ...]:
    """Return every method of `METHODS` with its defaults, set to take this model from its context to `target` tokens.

    With the model's own `config`, what each has to write there for the layers of this type. A method that cannot rotate
    this model (NTK needs two pairs) or extends none is left out. Raises `ValueError` where the target is no length.
    """
    require_number(target, "target", least=1, most=MAX_LENGTH, integer=True)
    model, factor = None if config is None else ModelConfig.read(config), max(target / spec.context, 1.0)
    extended = [extend(spec, name, int(target)) for name in METHODS if fits(spec, name, int(target))]
    return tuple(measure(one, int(target), factor=factor, config=model, layer=layer) for one in extended)


def fits(spec: RopeSpec, method: str, target: int) -> bool:
    """Return whether the method can extend a model of these sizes."""
    if not METHODS[method].extends:
        return False
    try:
        extend(spec, method, target)
    except ValueError:
        return False
    return True


def measure(
    spec: RopeSpec, target: int, *, factor: float, config: ModelConfig | None = None, layer: str | None = None
) -> Option:
    """Return an embedding in numbers at the target length."""
    attention, found = spec.attention_factor(target), bands(spec, length=target)
    return Option(
        method=spec.scaling.name,
        spec=spec,
        factor=factor,
        attention_factor=attention,
        logit_factor=attention**2,
        kept=found.count(KEPT),
        blended=found.count(BLENDED),
        divided=found.count(DIVIDED),
        sped=found.count(SPED),
        still=found.count(STILL),
        unseen=unseen_pairs(spec, target),
        first_negative=first_negative_distance(spec, target),
        config=config_fragment(spec, config, layer),
    )


def extend(spec: RopeSpec, method: str, target: int) -> RopeSpec:
    """Return the model with this method in place of its own, reaching from its context to the target.

    If it is its own method, the rest of it stays: bands, attention factor, lists. Dynamic NTK's factor is the one that
    its own formula needs to divide the last pair by target / context.
    """
    if method not in METHODS:
        raise ValueError(CONFIGS("value.one_of", name="method", options=join_items([*METHODS]), got=short_repr(method)))
    scaling = spec.scaling if spec.scaling.name == method else METHODS[method]()
    scaling = scaling.reaching(max(target / spec.context, 1.0))
    rotary_dim = spec.head_dim if scaling.rotates_whole_head else spec.rotary_dim
    return dataclasses.replace(spec, scaling=scaling, target=max(target, spec.context), rotary_dim=rotary_dim)


def unseen_pairs(spec: RopeSpec, target: int) -> int:
    """Return how many pairs reach angles at the target length that they never had in training."""
    trained = np.minimum(turns(spec), 1.0)
    reached = np.minimum(target * spec.inv_freq(target) / (2.0 * math.pi), 1.0)
    return int(np.sum(reached > trained * (1.0 + 1e-9)))


def config_fragment(spec: RopeSpec, config: ModelConfig | None, layer: str | None) -> dict[str, Any] | None:
    """Return the config fragment, None where transformers cannot express the method."""
    try:
        return to_config(spec) if config is None else write_new_keys(config, spec, layer).fragment
    except ValueError:
        return None
