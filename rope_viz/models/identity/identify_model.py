"""Which model a config is of, by its numbers, how long it was trained for, and what its length keys get wrong.

A config often names no model, or that of a fine-tune. Its sizes and its base tell which model of the list it comes
from; the list then knows the trained length, which many configs do not say.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, require_number
from rope_viz.models import TEXTS
from rope_viz.models.catalog import Model, catalog, main_layer, model_specs
from rope_viz.models.config_reader import Fields, name_config
from rope_viz.models.identity.shipped_scaling import (
    family_name,
    find_departures,
    find_shipped_spec,
    is_added_later,
)
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, find_main_layer
from rope_viz.models.text_config import find_text_part, read_text_fields
from rope_viz.texts import cached_text_property, join
from rope_viz.texts.texts import join_clauses

# Lengths, which people change, and the base under its many names, which is compared as what it comes out as.
PASSED_OVER = re.compile(
    r"max_position|original_max|n_positions|seq_length|window|theta|rope_|freq|emb_base|rotary_pct"
)
# Sizes under the names of GPT-2 and GPT-J, where a record does not name them.
OLD_NAMES = {"n_layer": "num_hidden_layers", "n_inner": "intermediate_size"}
# Heads that a model is published with; ForMaskedLM is that of an encoder such as ModernBERT.
PRETRAINING_HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForMaskedLM")
# A fine-tune may change this, and it counts all the same.
VOCABULARY = "vocab_size"
# Without these it is any model of this type.
NEEDED = ("hidden_size", "num_attention_heads")
# Keys that a tool for fine-tuning writes begin so.
FINE_TUNE_PREFIX = "unsloth"
ENOUGH = 6
"""So many numbers must agree if no name is given; one less if the list has at most one more."""


@dataclass(frozen=True)
class TrainedLength:
    """The length that a new method starts from, in tokens, and where it is known from.

    `is_documented` is False where it is the original length, which the scaling divides from (`divides`), or the limit.
    """

    length: int
    source: str
    is_documented: bool = False
    divides: bool = False
    is_own: bool = False

    @property
    def name(self) -> str:
        """What the length is called where it is shown."""
        return TEXTS(f"length.{'trained' if self.is_known else 'original' if self.divides else 'limit'}")

    @property
    def is_known(self) -> bool:
        """Whether somebody says that the model was trained on this length: its maker, or the user."""
        return self.is_documented or self.is_own


@dataclass(frozen=True)
class Identity:
    """What a config is.

    `name` is what to call it, `model` the model of the list whose numbers it has (None: none of them). `how` is
    "model" (it is that model), "numbers" (it names none and has the numbers), "fine-tune", "no config" (made from the
    numbers of an embedding), or "" (not of the list).
    `signs` say what makes it a fine-tune. `says` is max_position_embeddings, `room` how much of that is room beyond the
    trained length by its maker's own word. `mistakes` are sentences on length keys that cannot be meant. `agree` are
    how many numbers are those of the model, and how many the list knows; (0, 0) where it was chosen. `near` says which
    model of the list it is not, and why.
    """

    name: str
    model: Model | None
    how: str
    signs: tuple[str, ...]
    layer: str
    spec: RopeSpec
    trained: TrainedLength
    says: int
    room: int
    mistakes: tuple[str, ...]
    agree: tuple[int, int] = (0, 0)
    near: str = ""

    @functools.cached_property
    def shipped(self) -> RopeSpec | None:
        """The scaled embedding that the maker trained the model with; None where that is not known.

        None, too, where the user gave another trained length.
        """
        if self.model is None or self.trained.is_own or is_added_later(self.model):
            return None
        found = find_shipped_spec(self.model, self.layer)
        return None if found is None or not found.is_scaled else found

    @cached_text_property
    def departs(self) -> Mapping[str, str]:
        """{key: in words} of what the config's scaling has otherwise than what the model ships with."""
        return {} if self.shipped is None else find_departures(self.spec, self.shipped)

    @property
    def exact(self) -> bool:
        """Whether the config scales as the model of the list was trained; its length may be another."""
        return self.shipped is not None and not self.departs

    @property
    def reach(self) -> int:
        """How far the config goes by its own method: the trained length where nothing scales.

        What has a factor over a trained length goes no further than that. What ships so goes as far as that does, and
        be max_position_embeddings smaller.
        """
        spec = self.spec
        if not spec.is_scaled:
            return self.trained.length
        reach = max(spec.target, self.shipped.target) if self.exact and self.shipped is not None else spec.target
        if spec.scaling.ends_at_factor:
            start = spec.context if spec.scaling.divides_from_length else self.trained.length
            reach = min(reach, round(spec.scaling.factor_for(spec) * start))
        return max(reach, self.trained.length)

    @property
    def sentence(self) -> str:
        """Which model the config is of, and its lengths, in sentences."""
        count, known = self.agree
        found = "fields" if known else "chosen" if self.how == "model" else ""
        match = TEXTS(f"identity.match.{found}", agree=count, known=known) if found else ""
        parts = [TEXTS(f"identity.{self.how.replace(' ', '-') or 'unknown'}", name=self.name, match=match), self.near]
        if self.signs:
            parts.append(TEXTS("identity.signs", signs=join_clauses(self.signs)))
        length = self.trained.length
        parts.append(TEXTS("identity.trained" if self.trained.is_known else "identity.assumed", length=length))
        if self.exact and self.says < self.reach:
            parts.append(TEXTS("identity.below", limit=self.says, reach=self.reach))
        elif self.room:
            parts.append(TEXTS("identity.room", limit=self.says, length=length, room=self.room))
        elif self.says != length:
            parts.append(TEXTS("identity.limit", limit=self.says))
        return join(*parts)


def identify_model(
    config: Mapping[str, Any],
    fields: Fields,
    specs: Mapping[str, RopeSpec],
    *,
    known: Model | None = None,
    trained: int | None = None,
    layer: str | None = None,
    numbers_only: bool = False,
) -> Identity:
    """Return which model a config is of: `known` where it was picked from the list, else by its name and its numbers.

    `fields` and `specs` are what was read of the config, `trained` is the user's own word on the trained length,
    `layer` the layer type in question. `numbers_only`: there is no config, so it is no model of the list. Raises
    `ValueError` where the config cannot be read.
    """
    wanted = layer if layer in specs else (known.layer if known is not None and known.layer in specs else None)
    layer = wanted if wanted is not None else find_main_layer(specs)
    spec, close = (
        specs[layer],
        [] if known is not None or numbers_only else find_similar_models(config, fields, specs[find_main_layer(specs)]),
    )
    found = max((one for one in close if one.enough), key=lambda one: one.order, default=None)
    model = known if found is None else found.model
    signs = () if found is None else find_fine_tune_signs(config, fields, found.model)
    how = "no config" if numbers_only else "" if model is None else "model"
    if found is not None:
        how = "fine-tune" if signs else "model" if read_own_name(config) else "numbers"
    limit = fields.required("max_position_embeddings")
    length = find_trained_length(fields, model, spec, limit, trained)
    room = model_room(model, spec, limit, length)
    name = family_name(model) if model is not None else name_config(config)
    mistakes = (
        ()
        if trained is not None
        else tuple(find_length_mistakes(spec, model, limit, length, room, find_original(fields)))
    )
    missing = "" if model is None or spec.is_scaled else find_missing_scaling(close, model, limit)
    mistakes = tuple(join(text, missing) for text in mistakes)
    agree = (0, 0) if found is None else (found.agree, found.known)
    near = "" if model is not None else explain_nearest(close)
    return Identity(name, model, how, signs, layer, spec, length, limit, room, mistakes, agree, near)


@dataclass(frozen=True)
class Likeness:
    """How a config compares with one model of the list, none of whose sizes it contradicts.

    `agree` of the `known` numbers of the list stand in the config and are the same, `based` says whether its base is,
    `named` whether its name is the model's, `order` which of several it is rather.
    """

    model: Model
    agree: int
    known: int
    based: bool
    named: bool
    order: tuple[float, ...]

    @property
    def enough(self) -> bool:
        """Whether so much agrees that it is this model, or a fine-tune of it."""
        few = 3 if self.named else min(ENOUGH, max(self.known - 1, ENOUGH - 1))
        return self.based and self.agree >= few


def find_similar_models(config: Mapping[str, Any], fields: Fields, spec: RopeSpec) -> list[Likeness]:
    """Return the catalog entries of this type that contradict none of the config's sizes."""
    if any(fields.raw(key) is None for key in NEEDED):
        return []
    kind = fields.architecture.twin or fields.kind
    found = (
        compare_with_model(config, fields, spec, model)
        for model in catalog().values()
        if entry_numbers(model.id)[0] == kind
    )
    return [one for one in found if one is not None]


def find_same_sizes(config: Mapping[str, Any], fields: Fields, spec: RopeSpec) -> list[Model]:
    """Return the entries whose sizes a config has while its base is another one, the nearest first."""
    close = [one for one in find_similar_models(config, fields, spec) if not one.based and one.agree >= ENOUGH - 1]
    return [one.model for one in sorted(close, key=lambda one: (one.agree, one.order), reverse=True)]


def compare_with_model(config: Mapping[str, Any], fields: Fields, spec: RopeSpec, model: Model) -> Likeness | None:
    """Return how a config relates to an entry of its type; None where one of its sizes differs."""
    _, head_dim, listed = entry_numbers(model.id)
    ours = read_sizes(fields)
    shared = {key for key in listed if key in ours}
    if head_dim != fields.head_dim() or any(ours[key] != listed[key] for key in shared - {VOCABULARY}):
        return None
    specs = model_specs(model.id)
    based = any(abs(one.base / spec.base - 1.0) < 1e-6 for one in specs.values())
    main = specs[main_layer(model, specs)]
    name, own = simplify_name(read_own_name(config)), simplify_name(model.name)
    words = len(own) if own and own in name else 0
    vocabulary = ours.get(VOCABULARY) == listed.get(VOCABULARY)
    scaled, plain = main.scaling == spec.scaling, not main.is_scaled
    native = main.scaling.name == spec.scaling.name and main.scaling.is_trained_with
    nearest = -len(find_departures(spec, main))
    order = (words, scaled, native, plain, nearest, main.target == spec.target, vocabulary, model.verified)
    agree = based + sum(ours[key] == listed[key] for key in shared)
    return Likeness(model, agree, len(listed) + 1, based, words > 0, order)


@functools.cache
def entry_numbers(id: str) -> tuple[str, int, Mapping[str, float]]:
    """Return the model type, the head size and the sizes of an entry."""
    model = catalog()[id]
    fields = read_text_fields(find_text_part(model.whole))
    return fields.kind, fields.head_dim(), read_sizes(fields)


def read_sizes(fields: Fields) -> dict[str, float]:
    """Return {key: number} of a config's sizes under the usual names, without lengths and bases."""
    usual = {**OLD_NAMES, **fields.architecture.aliases}
    return {
        usual.get(key, key): value
        for key, value in fields.config.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not PASSED_OVER.search(key)
    }


def explain_nearest(close: list[Likeness]) -> str:
    """Return a sentence on the nearest entry and why it is not this model; empty where none is near."""
    best = max(close, key=lambda one: (one.agree, one.based, one.order), default=None)
    if best is None or best.agree < 3:
        return ""
    values = {"name": family_name(best.model), "agree": best.agree, "known": best.known}
    if not best.based and best.agree >= ENOUGH - 1:
        return TEXTS("identity.nearest.base", **values)
    return TEXTS("identity.nearest.few", **values) if best.based else ""


def find_missing_scaling(close: list[Likeness], model: Model, says: int) -> str:
    """Return a sentence where another entry of the same sizes reaches this length by its own scaling; else empty."""
    for one in close:
        spec = model_specs(one.model.id)[main_layer(one.model, model_specs(one.model.id))]
        other = one.enough and family_name(one.model) != family_name(model)
        if other and spec.is_scaled and one.model.config.get("max_position_embeddings") == says:
            return TEXTS("mistake.missing_scaling", name=family_name(one.model))
    return ""


def find_fine_tune_signs(config: Mapping[str, Any], fields: Fields, model: Model) -> tuple[str, ...]:
    """Return what tells a fine-tune from the model itself."""
    found, named = [], read_own_name(config)
    name = simplify_name(named)
    if name and not (name.startswith(simplify_name(model.name)) and len(name) - len(simplify_name(model.name)) < 3):
        found.append(TEXTS("sign.name", named=named[:60]))
    ours, theirs = fields.config.get("vocab_size"), model.sizes.get("vocab_size")
    if isinstance(ours, int) and theirs and ours != theirs:
        found.append(TEXTS("sign.more_words" if ours > theirs else "sign.fewer_words", entries=abs(ours - theirs)))
    if any(str(key).startswith(FINE_TUNE_PREFIX) for key in config):
        found.append(TEXTS("sign.unsloth"))
    named_classes = config.get("architectures")
    kinds = [kind for kind in named_classes if isinstance(kind, str)] if isinstance(named_classes, list) else []
    if kinds and not any(kind.endswith(PRETRAINING_HEADS) for kind in kinds):
        found.append(TEXTS("sign.head", kind=kinds[0][:60]))
    return tuple(found)


def read_own_name(config: Mapping[str, Any]) -> str:
    """Return the name that a config has for itself, empty where it has none."""
    value = config.get("_name_or_path")
    return "" if not isinstance(value, str) else re.split(r"[/\\]", value.rstrip("/\\"))[-1]


def simplify_name(name: str) -> str:
    """Return letters and digits of a name, without what the catalog adds in brackets."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)|, YaRN.*", "", name).lower())


def find_original(fields: Fields) -> int | None:
    """Return original_max_position_embeddings as it is written, at the top or in a rope dict; None where it is not."""
    dicts = [fields.config, *(fields.config.get(key) for key in ("rope_scaling", "rope_parameters"))]
    values = [one.get(ORIGINAL) for one in dicts if isinstance(one, Mapping)]
    return next((int(value) for value in values if isinstance(value, (int, float)) and value >= 1), None)


def find_trained_length(
    fields: Fields, model: Model | None, spec: RopeSpec, limit: int, given: int | None
) -> TrainedLength:
    """Return the trained length: the user's own word, else documented, else the original length, else the limit."""
    if given is not None:
        require_number(given, TEXTS("name.trained_length"), least=1, most=MAX_LENGTH, integer=True)
        return TrainedLength(int(given), TEXTS("length.own"), is_own=True)
    if model is not None and model.trained_length is not None:
        return TrainedLength(model.trained_length, model.trained_source, True)
    length, source = fields.architecture.documented_lengths.get(str(limit), (None, ""))
    if length is not None:
        return TrainedLength(length, source, True)
    if model is not None:
        source, divides = (
            TEXTS("length.source.list", source=model.source),
            METHODS[model.scaled_by].divides_from_length,
        )
        return TrainedLength(model.original_length, source, divides=divides)
    if spec.scaling.name in PRETRAINED_TYPES and spec.context != limit:
        return TrainedLength(spec.context, TEXTS("length.source.original"), divides=True)
    chunks = fields.config.get("dual_chunk_attention_config")
    original = chunks.get(ORIGINAL) if isinstance(chunks, Mapping) else None
    if isinstance(original, int) and not isinstance(original, bool) and 0 < original <= limit:
        return TrainedLength(original, TEXTS("length.source.chunks"), divides=True)
    return TrainedLength(spec.context, TEXTS("length.source.limit"))


def model_room(model: Model | None, spec: RopeSpec, limit: int, trained: TrainedLength) -> int:
    """Return how much of max_position_embeddings its maker left beyond the trained length."""
    if spec.is_scaled or limit <= trained.length or not trained.is_documented:
        return 0
    own = limit if model is None else model.config.get("max_position_embeddings")
    return limit - trained.length if own == limit and limit < 2 * trained.length else 0


def find_length_mistakes(
    spec: RopeSpec, model: Model | None, says: int, trained: TrainedLength, room: int, given: int | None
) -> list[str]:
    """Return sentences on length keys that cannot be meant."""
    out: list[str] = []
    if model is None:
        return out
    own = model.config.get("max_position_embeddings")
    is_based = any(abs(one.base / spec.base - 1.0) < 1e-6 for one in model_specs(model.id).values())
    if not spec.is_scaled and is_based and says > trained.length and not room and own != says:
        key = "mistake.limit_known" if trained.is_known else "mistake.limit"
        out.append(TEXTS(key, says=says, model=describe_length(model, trained), length=trained.length))
    theirs = find_original(read_text_fields(find_text_part(model.config)))
    if spec.scaling.name in PRETRAINED_TYPES and given is not None and given not in (trained.length, theirs):
        out.append(TEXTS("mistake.original", given=given, model=describe_length(model, trained)))
    return out


def describe_length(model: Model, trained: TrainedLength) -> str:
    """Return the documented trained length of a model, or the length of its config where none is documented."""
    key = "mistake.model_known" if trained.is_known else "mistake.model"
    return TEXTS(key, name=family_name(model), length=trained.length)
