"""One layer type of a config as a runtime sees it, the rules that rewrite it, and the frequencies that result.

A runtime is a table of rules. Each rule takes a case and returns it, changed where it applies; the case after the last
rule is computed by `rope_viz.embedding.scaling`, the same code for every runtime.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.scaling import blend
from rope_viz.embedding.spec import FloatArray, RopeSpec, freeze, require_number, short_repr
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.architecture import Architecture
from rope_viz.models.config_reader import Fields, Params
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import RENAMED_TYPES, build_scaling, find_main_layer
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts import Sentence
from rope_viz.texts.texts import join_items, join_list

KINDS = ("default", "linear", "dynamic", "ntk", "yarn", "llama3", "longrope", "proportional")
EXTENDED = ("yarn", "llama3", "longrope")
ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True)
class Case:
    """One layer type of one config as one runtime sees it.

    `rope` is the layer's rope dict without base and rotated share, `base` and `share` those two, `limit`
    max_position_embeddings. The rest is for the rules of runtimes that need it: `plain_share` is the share that rotates
    without scaling, `kept_weight` multiplies YaRN's ramp, `divisors` divide the pairs, `attention` overrides the factor
    on cos and sin. `arguments` are the options of a trainer, `factor_place` is where it applies its factor
    ("cos_sin" or "q_k"), and `pairing` overrides the model's.
    """

    fields: Fields
    model: str
    layer: str
    head_dim: int
    base: float
    share: float
    plain_share: float
    limit: int
    rope: Mapping[str, Any]
    length: int | None = None
    nested: bool = False
    path: str = ""
    context: int = 0
    divisors: tuple[float, ...] = ()
    kept_weight: float = 1.0
    attention: float | None = None
    softmax: float | None = 1.0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    factor_place: str = "cos_sin"
    pairing: str = ""

    @functools.cached_property
    def kind(self) -> str:
        """The type of scaling under today's name, which may be an unknown one."""
        named = self.rope.get("rope_type", self.rope.get("type"))
        kind = RENAMED_TYPES.get(named, named) if isinstance(named, str) else named
        return "default" if kind is None else str(kind)

    @property
    def rotary_dim(self) -> int:
        if self.kind == "proportional":
            return self.head_dim
        return int(self.head_dim * (self.plain_share if self.kind == "default" else self.share))

    @property
    def architecture(self) -> Architecture:
        return self.fields.architecture

    @property
    def mla(self) -> bool:
        """Whether the softmax scale carries YaRN's factor too: DeepSeek V2, V3 and their like."""
        return self.fields.has_latent_attention

    @property
    def has_unrotated(self) -> bool:
        """Whether a part of each head does not rotate, so that only the softmax scale multiplies its scores."""
        return self.mla or self.rotary_dim < self.head_dim

    @property
    def original(self) -> int:
        """The trained length before the extension."""
        value = self.rope.get(ORIGINAL, self.limit)
        require_number(value, ORIGINAL, least=1, integer=True)
        return int(value)

    @property
    def top_original(self) -> int | None:
        """original_max_position_embeddings outside the rope dict."""
        value = self.fields.number(ORIGINAL, least=1, integer=True)
        return None if value is None else int(value)

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number of the rope dict. Raises `ValueError` where it is no finite number."""
        value: Any = self.rope.get(key)
        value = default if value is None else value
        require_number(value, key)
        return float(value)

    def with_rope(self, **knobs: Any) -> Case:
        """Return the case with these entries of the rope dict; None removes one."""
        rope = {**self.rope, **knobs}
        return self.replace(rope={key: value for key, value in rope.items() if value is not None})

    def replace(self, **fields: Any) -> Case:
        # As dataclasses.replace does, in a third of its time: a table of trainers does this a hundred times.
        values = vars(self) | fields
        values.pop("kind", None)
        changed = object.__new__(Case)
        vars(changed).update(values)
        return changed

    def drop_scaling(self) -> Case:
        """Return the case without scaling; the share that rotates stays the same."""
        return self if self.kind == "default" else self.replace(rope={"rope_type": "default"})


class Refused(Exception):  # noqa: N818 - an outcome of the runtime, not an error of ours
    """The runtime raises, or has no such model."""


def build_case(config: ModelConfig, layer_type: str | None, length: int | None) -> Case:
    """Return the case that every runtime starts from. Raises `ValueError` where the config has no such layer."""
    fields, layers = config.fields, config.rope_parameters
    layer = find_layer(layers, layer_type)
    params = dict(layers[layer])
    sizes = fields.layer(layer) if layer else fields
    head_dim = sizes.head_dim()
    share = params.pop("partial_rotary_factor", None)
    share = 1.0 if share is None else share
    require_number(share, "partial_rotary_factor", above=0.0, most=1.0)
    base = params.pop("rope_theta", None)
    require_number(base, "rope_theta", above=1.0, most=1e30)
    return Case(
        fields=fields,
        model=fields.kind,
        layer=layer or (layer_type or "").split(" ")[0],
        # As from_config: a class default with an odd quotient rotates one dimension more than there is.
        head_dim=head_dim + 1 if head_dim % 2 and share == 1.0 and fields.architecture.pads_odd_head else head_dim,
        base=float(base),
        share=float(share),
        plain_share=float(share) if fields.architecture.partial_rotary else 1.0,
        limit=fields.required("max_position_embeddings"),
        rope=params,
        length=length,
        nested=bool(layer),
        path="cpu" if layer_type is not None and "CPU" in layer_type else "",
    )


def find_layer(layers: Mapping[str, Params], layer_type: str | None) -> str:
    """Return the key of a layer type, of the main one for None. Raises `ValueError` for an unknown one."""
    if not layers:
        raise ValueError(CONFIGS("rope_config.no_layer"))
    if layer_type is None or list(layers) == [""]:
        return find_main_layer(layers)
    named = layer_type.split(" ")[0]
    if named not in layers:
        raise ValueError(
            CONFIGS("value.one_of", name="layer_type", options=join_items([*layers]), got=short_repr(layer_type))
        )
    return named


Change: TypeAlias = Callable[[Case], Case]
Test: TypeAlias = Callable[[Case], bool]


def always(_: Case) -> bool:
    """Return True."""
    return True


@dataclass(frozen=True)
class Rule:
    """What a runtime does with a config: `entry` of the texts of rules, and the change where the rule `applies`.

    A change gives the same case back where nothing is to be changed.
    """

    key: str
    entry: str
    change: Change
    applies: Test = always
    values: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> Sentence:
        """What the rule does, in a sentence."""
        return TEXTS(self.entry, **self.values)

    def where(self, *tests: Test) -> Rule:
        """Return the rule for cases only of which all these tests hold too."""
        return dataclasses.replace(self, applies=all_hold(self.applies, *tests))


def rule(key: str, *tests: Test) -> Callable[[Change], Rule]:
    """Make a rule of a change, for cases of which all tests hold. The text is named by module and function."""

    def make(change: Change) -> Rule:
        entry = f"{change.__module__.rpartition('.')[2]}.{change.__name__}"
        return Rule(key, entry, change, all_hold(*tests))

    return make


def apply(rules: Iterable[Rule], case: Case) -> tuple[Case, tuple[Rule, ...]]:
    """Return the case after every rule, and the rules that changed it. Raises `Refused` where a rule ends it."""
    applied: list[Rule] = []
    for one in rules:
        changed = one.change(case) if one.applies(case) else case
        if changed is not case and changed != case:
            applied.append(one)
        case = changed
    return case, tuple(applied)


def all_hold(*tests: Test) -> Test:
    """Return a test whether all of these hold."""
    needed = [test for test in tests if test is not always]
    return (lambda case: all(test(case) for test in needed)) if len(needed) != 1 else needed[0]


def is_not(test: Test) -> Test:
    """Return the opposite of a test."""
    return lambda case: not test(case)


def has_type(*kinds: str) -> Test:
    """Return a test whether the case is scaled by one of these types."""
    return lambda case: case.kind in kinds


def has(runtime: str, *facts: str) -> Test:
    """Return a test whether the record of the model type has one of these facts for a runtime."""
    return lambda case: any(case.architecture.runtime(runtime).get(fact) for fact in facts)


def is_scaled(case: Case) -> bool:
    """Return whether the type of scaling is another than the default."""
    return case.kind != "default"


def ignore(*keys: str) -> Change:
    """Return the change that leaves these keys of the rope dict out."""
    return lambda case: case.with_rope(**dict.fromkeys(keys)) if any(key in case.rope for key in keys) else case


def assume(**knobs: Any) -> Change:
    """Return the change that fills in these keys where they are missing."""
    return lambda case: case.with_rope(**{key: value for key, value in knobs.items() if case.rope.get(key) is None})


def refuse(entry: str, *tests: Test, **values: str) -> Rule:
    """Return the rule that raises `Refused` where all tests hold; {model} and {kind} are filled into the text."""

    def change(case: Case) -> Case:
        raise Refused(TEXTS(entry, model=case.model, kind=case.kind, **values))

    return Rule("refused", entry, change, all_hold(*tests), values)


def require(*keys: str) -> Change:
    """Return the change that raises `Refused` where one of these keys is missing."""

    def change(case: Case) -> Case:
        missing = [key for key in keys if case.rope.get(key) is None]
        if missing:
            raise Refused(TEXTS("rule_engine.needs", kind=case.kind, keys=join_list(missing, more="end")))
        return case

    return change


def require_by_type(**keys: tuple[str, ...]) -> Rule:
    """Return the rule that raises `Refused` where one of the keys is missing that a type of scaling needs."""
    return Rule("required", "rule_engine.required", lambda case: require(*keys.get(case.kind, ()))(case))


def static_base(growth: Callable[[Case], float]) -> Change:
    """Return the change to dynamic NTK whose base is computed once, from this growth, whatever the length."""

    def change(case: Case) -> Case:
        dims, factor = case.rotary_dim, growth(case)
        if dims <= 2 or factor <= 0:
            raise Refused(TEXTS("rule_engine.no_base"))
        return case.replace(
            rope={"rope_type": "default"}, base=case.base * factor ** (dims / (dims - 2)), plain_share=case.share
        )

    return change


def order_bands(case: Case) -> Case:
    """Unswap Llama 3 bounds, where the runtime first asks whether a pair is above high_freq_factor."""
    if case.kind != "llama3" or case.number("high_freq_factor", 4.0) >= case.number("low_freq_factor", 1.0):
        return case
    return case.with_rope(low_freq_factor=case.rope["high_freq_factor"])


def mscale_of(case: Case, key: str, default: float = 0.0) -> float:
    """Return m(s, key) = 0.1·key·ln s + 1, and 1 where nothing is extended."""
    factor = case.number("factor", 1.0)
    return 1.0 if factor <= 1 else 0.1 * case.number(key, default) * math.log(factor) + 1.0


def build_spec(case: Case) -> RopeSpec:
    """Return the spec by the formulas of transformers 5.24.0. Raises `ValueError`, or `Refused` for the type."""
    if case.kind not in KINDS:
        raise Refused(TEXTS("rule_engine.unknown_type", kind=short_repr(case.kind)))
    context = case.context or (case.original if case.kind in EXTENDED else case.limit)
    if case.kind == "longrope":
        for key in ("short_factor", "long_factor"):
            values = case.rope.get(key)
            if isinstance(values, (list, tuple)) and len(values) != (case.rotary_dim + 1) // 2:
                raise Refused(TEXTS("rule_engine.list", key=key, numbers=len(values), pairs=(case.rotary_dim + 1) // 2))
    params = {"partial_rotary_factor": case.share, **case.rope}
    return RopeSpec(
        head_dim=case.head_dim,
        rotary_dim=case.rotary_dim,
        base=case.base,
        context=context,
        target=case.limit,
        scaling=build_scaling(case.fields, "", params, case.kind, case.limit / context, case.rotary_dim),
        pairing=case.architecture.pairing,
    )


def compute_frequencies(case: Case, spec: RopeSpec) -> FloatArray:
    """Return radians per position, shape (pairs,), of the case after its rules, and of its spec."""
    values = spec.inv_freq(case.length)
    if case.kind == "yarn" and case.kept_weight != 1.0:
        values = blend(spec, spec.scaling.factor_for(spec), case.kept_weight * spec.scaling.kept_share(spec))
    return freeze(values / np.asarray(case.divisors)) if case.divisors else values
