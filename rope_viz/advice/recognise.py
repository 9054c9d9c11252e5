"""Which model a config is of, by its numbers, how long it was trained for, and what its length keys get wrong.

A config often names no model, or that of a fine-tune. Its sizes and its base tell which model of the list it comes
from; the list then knows the trained length, which many configs do not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.advice.memory import sized
from rope_viz.configs.architectures import Fields
from rope_viz.configs.catalog import Model, catalog, main_layer, model_specs
from rope_viz.configs.models import PRETRAINED_TYPES, from_config
from rope_viz.configs.parts import text_fields, text_part
from rope_viz.configs.rewrite import ORIGINAL, main_of
from rope_viz.configs.upload import name_of
from rope_viz.embedding.spec import MAX_LENGTH, RopeSpec, require_number

# What a fine-tune leaves as it was; a key that one of the two does not say decides nothing.
SIZES = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "intermediate_size"),
    *("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "n_routed_experts", "moe_intermediate_size"),
)
# Without these it is any model of this type.
NEEDED = ("hidden_size", "num_attention_heads")
QWEN3 = "Qwen's documentation: pretrained on 32,768; 40,960 are 32,768 for the answer and 8,192 for the prompt"


@dataclass(frozen=True)
class Trained:
    """How many tokens a model was trained on, and where that is known from."""

    length: int
    source: str


@dataclass(frozen=True)
class Recognised:
    """What a config is.

    `name` is what to call it, `model` the model of the list whose numbers it has (None: none of them). `how` is
    "model" (it is that model), "numbers" (it names none and has the numbers), "fine-tune", or "" (not of the list).
    `signs` say what makes it a fine-tune. `says` is max_position_embeddings, `room` how much of that is room beside the
    trained length by its maker's own word. `mistakes` are sentences on length keys that cannot be meant.
    """

    name: str
    model: Model | None
    how: str
    signs: tuple[str, ...]
    layer: str
    spec: RopeSpec
    trained: Trained
    says: int
    room: int
    mistakes: tuple[str, ...]

    @property
    def reach(self) -> int:
        """How far the config goes by its own method: the trained length where nothing scales."""
        if self.spec.scaling.name == "none":
            return self.trained.length
        return max(self.spec.target, self.trained.length)

    @property
    def sentence(self) -> str:
        """What you have, in words."""
        said = {
            "model": f"This is {self.name}",
            "numbers": f"It names no model; its numbers are those of {self.name}",
            "fine-tune": f"This is a fine-tune of {self.name}",
            "": f"{self.name} is none of the models of the list",
        }[self.how]
        signs = f" ({'; '.join(self.signs)})" if self.signs else " (matches the list)" if self.how == "model" else ""
        lengths = f"trained on {self.trained.length:,} tokens"
        if self.room:
            lengths += f"; the config says {self.says:,}, of which {self.room:,} are room for the prompt"
        elif self.says != self.trained.length:
            lengths += f"; the config says {self.says:,}"
        return f"{said}{signs}, {lengths}."


def recognise(
    config: Mapping[str, Any], *, known: Model | None = None, trained: int | None = None, layer: str | None = None
) -> Recognised:
    """What a config is: by `known` where it was chosen from the list, else by its name and its numbers.

    `trained` is the reader's own word on the trained length, `layer` the layer type in question. Raises `ValueError`
    where the config cannot be read.
    """
    fields, specs = text_fields(config), from_config(config)
    wanted = layer if layer in specs else (known.layer if known is not None and known.layer in specs else None)
    chosen = wanted if wanted is not None else main_of(specs)
    spec, model = specs[chosen], known or like(fields, config, specs[main_of(specs)])
    signs = () if model is None or known is not None else marks(config, fields, model)
    named = called(config)
    how = "" if model is None else "model"
    if model is not None and known is None:
        how = "fine-tune" if signs else "model" if named else "numbers"
    says = fields.required("max_position_embeddings")
    found = trained_length(fields, model, spec, says, trained)
    room = model_room(model, spec, says, found.length)
    name = family(model) if model is not None else name_of(config)
    mistakes = () if trained is not None else tuple(mistaken(spec, model, says, found, room, original(config)))
    return Recognised(name, model, how, signs, chosen, spec, found, says, room, mistakes)


def like(fields: Fields, config: Mapping[str, Any], spec: RopeSpec) -> Model | None:
    """The model of the list with these numbers, that with the same lengths and the same method where several have."""
    found = [model for model in catalog().values() if same_sizes(fields, spec, model)]
    return max(found, key=lambda model: likeness(fields, config, spec, model), default=None)


def same_sizes(fields: Fields, spec: RopeSpec, model: Model) -> bool:
    """Whether the type, the sizes and the base are those of a model of the list."""
    try:
        theirs = text_fields(sized(model.config, model.sizes))
    except ValueError:
        return False
    if theirs.kind != fields.kind or any(fields.raw(key) is None for key in NEEDED):
        return False
    pairs = [(fields.raw(key), theirs.raw(key)) for key in SIZES]
    if any(ours is not None and other is not None and ours != other for ours, other in pairs):
        return False
    bases = [one.base for one in model_specs(model.id).values()]
    return theirs.head_dim() == fields.head_dim() and any(abs(base / spec.base - 1.0) < 1e-6 for base in bases)


def likeness(fields: Fields, config: Mapping[str, Any], spec: RopeSpec, model: Model) -> tuple[float, ...]:
    """How well a model of the same sizes fits: by name, by method, by length, by vocabulary."""
    theirs = model_specs(model.id)[main_layer(model, model_specs(model.id))]
    name, own = plain_name(called(config)), plain_name(model.name)
    words = len(own) if own and own in name else 0
    scaled = theirs.scaling == spec.scaling
    plain = theirs.scaling.name == "none"
    vocabulary = fields.config.get("vocab_size") == model.sizes.get("vocab_size")
    return (words, scaled, plain, theirs.target == spec.target, vocabulary, model.verified)


def marks(config: Mapping[str, Any], fields: Fields, model: Model) -> tuple[str, ...]:
    """What tells a fine-tune from the model itself."""
    found, named = [], called(config)
    name = plain_name(named)
    if name and not (name.startswith(plain_name(model.name)) and len(name) - len(plain_name(model.name)) < 3):
        found.append(f"it is named {named[:60]}")
    ours, theirs = fields.config.get("vocab_size"), model.sizes.get("vocab_size")
    if isinstance(ours, int) and theirs and ours != theirs:
        more = "more" if ours > theirs else "fewer"
        found.append(f"its vocabulary has {abs(ours - theirs):,} entries {more}")
    if any(str(key).startswith("unsloth") for key in config):
        found.append("it was written by Unsloth")
    kinds = [str(kind) for kind in config.get("architectures") or [] if isinstance(kind, str)]
    if kinds and not any(kind.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")) for kind in kinds):
        found.append(f"its head is another one, {kinds[0][:60]}")
    return tuple(found)


def called(config: Mapping[str, Any]) -> str:
    """The name that a config has for itself, empty where it has none."""
    value = config.get("_name_or_path")
    return "" if not isinstance(value, str) else re.split(r"[/\\]", value.rstrip("/\\"))[-1]


def family(model: Model) -> str:
    """What to call a model of the list: without the method that one of its entries adds."""
    return model.name.partition(", YaRN")[0]


def plain_name(name: str) -> str:
    """Letters and digits of a name, without what the list adds in brackets."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)|, YaRN.*", "", name).lower())


def original(config: Mapping[str, Any]) -> int | None:
    """original_max_position_embeddings as it stands in the config, at the top or in a rope dict."""
    part = text_part(config).config
    dicts = [part, *(part.get(key) for key in ("rope_scaling", "rope_parameters"))]
    values = [one.get(ORIGINAL) for one in dicts if isinstance(one, Mapping)]
    return next((int(value) for value in values if isinstance(value, (int, float)) and value >= 1), None)


def trained_length(fields: Fields, model: Model | None, spec: RopeSpec, says: int, given: int | None) -> Trained:
    """The trained length: the reader's word, the list, original_max_position_embeddings, max_position_embeddings."""
    if given is not None:
        require_number(given, "the trained length", least=1, most=MAX_LENGTH, integer=True)
        return Trained(int(given), "your own word")
    if model is not None:
        return Trained(model.trained_length, f"the list of models ({model.source})")
    if spec.scaling.name in PRETRAINED_TYPES and spec.context != says:
        return Trained(spec.context, f"{ORIGINAL} of the config")
    if fields.kind.startswith("qwen3") and says == 40_960:
        return Trained(32_768, QWEN3)
    return Trained(spec.context, "max_position_embeddings of the config")


def model_room(model: Model | None, spec: RopeSpec, says: int, trained: int) -> int:
    """How much of max_position_embeddings its maker left beside the trained length."""
    if spec.scaling.name != "none" or says <= trained:
        return 0
    own = None if model is None else model.config.get("max_position_embeddings")
    qwen3 = says == 40_960 and trained == 32_768
    return says - trained if qwen3 or (own == says and says < 2 * trained) else 0


def mistaken(
    spec: RopeSpec, model: Model | None, says: int, trained: Trained, room: int, given: int | None
) -> list[str]:
    """What the length keys say that cannot be meant."""
    out: list[str] = []
    if model is None:
        return out
    own = model.config.get("max_position_embeddings")
    if spec.scaling.name == "none" and says > trained.length and not room and own != says:
        out.append(
            f"max_position_embeddings is {says:,} and nothing scales the positions, but {family(model)} was trained on "
            f"{trained.length:,} tokens. Raising this key alone teaches it nothing: beyond {trained.length:,} its slow "
            "pairs reach angles they never had."
        )
    theirs = original(model.config)
    if spec.scaling.name in PRETRAINED_TYPES and given is not None and given not in (trained.length, theirs):
        out.append(
            f"{ORIGINAL} is {given:,}, and {family(model)} was trained on {trained.length:,} tokens: the factor "
            "counts from the trained length."
        )
    return out
