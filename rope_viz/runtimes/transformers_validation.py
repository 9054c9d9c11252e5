"""What the configuration and rotary classes of transformers 5.23.0 refuse.

Each class was built with every rope type (tests/goldens/make_composites.py) and with wrong values of its keys
(refused.json, refused_types.json); what raised is a rule here. vLLM and SGLang load a config through the same classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import MAX_LENGTH, require_number, short_repr
from rope_viz.models.config_reader import Fields
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Test,
    has_type,
    is_not,
    is_scaled,
    refuse,
    rule,
)
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts.sentences import describe_error

# Sizes that must be above 0, and those that may be 0: then the model has no such part.
POSITIVE = ("hidden_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "vocab_size")
OPTIONAL_PARTS = ("intermediate_size", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "v_head_dim")


@dataclass(frozen=True)
class Refusal:
    """A key that the configuration class refuses, what it expects, and a value that is meant (None: leave it out).

    `is_repairable` says whether `meant` is right for every model.
    """

    key: str
    message: str
    meant: Any = None
    is_repairable: bool = False


def find_refusal(fields: Fields) -> Refusal | None:
    """Return the first key whose value the configuration class of the model type refuses, None where it takes all."""
    if not fields.is_listed or fields.architecture.remote_code:
        return None
    return next((one for check in CHECKS for one in check(fields)), None)


def check_whole_numbers(fields: Fields) -> Iterator[Refusal]:
    """Yield sizes of a wrong type: "4096", 4096.0 and true raise, and so does null for most of them."""
    validation = fields.architecture.validation
    for word in (*validation.whole, *validation.also_whole):
        key, value = word.rstrip("?+"), fields.config.get(word.rstrip("?+"))
        if isinstance(value, list) and word.endswith("+"):
            continue
        if value is None:
            if key in fields.config and not word.endswith("?"):
                yield Refusal(key, TEXTS("transformers_validation.null_leave_out", key=key), None, True)
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            meant = parse_whole_number(value)
            yield Refusal(
                key,
                TEXTS("transformers_validation.must_whole", key=key, value=short_repr(value)),
                meant,
                meant is not None,
            )
        elif key in (*POSITIVE, *OPTIONAL_PARTS):
            yield from check_number(key, value, least=0 if key in OPTIONAL_PARTS else 1)
    for key in ("num_attention_heads", "num_hidden_layers"):
        yield from check_number(key, fields.raw(key), least=1)


def parse_whole_number(value: Any) -> int | None:
    """Return the whole number that a text or a float means, None where it means none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    is_whole = not isinstance(value, bool) and number == number // 1 and 0 < number <= MAX_LENGTH
    return int(number) if is_whole else None


def check_number(key: str, value: Any, **bounds: float) -> Iterator[Refusal]:
    """Yield a refusal where a value is there and is no whole number within the bounds."""
    try:
        if value is not None:
            require_number(value, key, **bounds, most=MAX_LENGTH, integer=True)
    except ValueError as error:
        yield Refusal(key, describe_error(error))


def check_own_keys(fields: Fields) -> Iterator[Refusal]:
    """Yield what single classes refuse: widths, flags, nulls that are read all the same, keys that they derive."""
    config, validation = fields.config, fields.architecture.validation
    if validation.heads_divide_width:
        width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        if width and heads and width % heads:
            yield Refusal(
                "hidden_size", TEXTS("transformers_validation.hidden_size_multiple", width=width, heads=heads)
            )
    for key in validation.flags:
        if config.get(key) is not None and not isinstance(config[key], bool):
            yield Refusal(key, TEXTS("transformers_validation.must_true", key=key, config=short_repr(config[key])))
    for key in validation.not_null:
        if key in config and config[key] is None:
            yield Refusal(key, TEXTS("transformers_validation.null_leave", key=key), None, True)
    if config.get("rope_scaling") == {} and "rope_scaling" in validation.not_null:
        yield Refusal("rope_scaling", TEXTS("transformers_validation.rope_scaling_empty"), None, True)
    if validation.derives_head_dim and "head_dim" in config:
        yield Refusal("head_dim", TEXTS("transformers_validation.head_dim_cannot"), None, True)


def check_layer_patterns(fields: Fields) -> Iterator[Refusal]:
    """Yield what makes a class fail where it counts out which layers are of another kind."""
    config, validation = fields.config, fields.architecture.validation
    unlisted = config.get("layer_types") is None
    if validation.window_needs_layer_types and unlisted:
        if "sliding_window" in config and config["sliding_window"] is None:
            yield Refusal("sliding_window", TEXTS("transformers_validation.sliding_window_null"))
        if "sliding_window_pattern" in config and config["sliding_window_pattern"] is None:
            yield Refusal("sliding_window_pattern", TEXTS("transformers_validation.sliding_window_pattern_null"))
        yield from check_number("sliding_window_pattern", config.get("sliding_window_pattern"), least=1)
    key = validation.every_nth_key
    if key in config and unlisted:
        value = config[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value == 0:
            what = "null" if value is None else short_repr(value)
            yield Refusal(key, TEXTS("transformers_validation.layer_types_class", key=key, what=what))
    if validation.lists_no_rope_layers:
        yield from check_no_rope_layers(fields)
    rotated = fields.size("rotary_dim") if validation.even_rotary_dim else None
    if rotated is not None and rotated % 2:
        yield Refusal("rotary_dim", TEXTS("transformers_validation.rotary_dim_must", rotated=rotated))
    try:
        fields.layer_types()
    except ValueError as error:
        yield Refusal("layer_types", describe_error(error))


def check_no_rope_layers(fields: Fields) -> Iterator[Refusal]:
    """Yield what is wrong with a list of layers that rotate: it has an entry per layer, and its interval divides."""
    config, exact = fields.config, fields.architecture.layers.chunk is not None
    rotating, count = config.get("no_rope_layers"), fields.size("num_hidden_layers")
    if rotating is not None and not (isinstance(rotating, list) and all(type(one) is int for one in rotating)):
        yield Refusal(
            "no_rope_layers", TEXTS("transformers_validation.no_rope_layers_must", rotating=short_repr(rotating))
        )
    elif rotating is not None and count is not None and config.get("layer_types") is None:
        wrong = rotating and len(rotating) != count if exact else len(rotating) < count
        if wrong:
            yield Refusal(
                "no_rope_layers",
                TEXTS("transformers_validation.no_rope_layers_entries", count=len(rotating), count_2=count),
            )
    if config.get("no_rope_layer_interval") == 0 and (exact or not rotating):
        yield Refusal(
            "no_rope_layer_interval", TEXTS("transformers_validation.no_rope_layer_interval_class"), None, True
        )


def check_su(fields: Fields) -> Iterator[Refusal]:
    """Yield the type su without a length: Phi3Config fills that in for new names only, and renames su later."""
    rope = fields.mapping("rope_scaling") or fields.mapping("rope_parameters") or {}
    known = "su" in fields.architecture.validation.old_rope_types
    if known and rope.get("rope_type", rope.get("type")) == "su" and rope.get(ORIGINAL) is None:
        yield Refusal(ORIGINAL, TEXTS("transformers_validation.old_type"))


CHECKS = (check_whole_numbers, check_own_keys, check_layer_patterns, check_su)


@rule("refused-value")
def refuse_values(case: Case) -> Case:
    """The configuration class checks the type of each key, and raises."""
    try:
        refusal = find_refusal(case.fields)
    except ValueError as error:
        raise Refused(describe_error(error)) from None
    if refusal is not None:
        raise Refused(refusal.message)
    return case


# Types under names of older code, which some classes replace by today's (`old_rope_types` of a record).
OLD_NAMES = ("mrope", "su", "xdrope", "none")


@rule("old-name", lambda case: case.architecture.listed and not case.architecture.remote_code)
def refuse_old_name(case: Case) -> Case:
    """Only single classes know old names of types."""
    named = case.rope.get("rope_type", case.rope.get("type"))
    if named in OLD_NAMES and named not in case.architecture.validation.old_rope_types:
        raise Refused(TEXTS("transformers_validation.keyerror_table", named=short_repr(named)))
    return case


def asks_for(check: str) -> Test:
    """Return a test whether the configuration class has this check of its own."""
    return lambda case: bool(getattr(case.architecture.validation, check))


@rule("phimoe-mscales", asks_for("needs_mscales"), is_scaled)
def need_mscales(case: Case) -> Case:
    """PhimoeConfig needs short_mscale and long_mscale if RoPE is scaled."""
    for key in ("short_mscale", "long_mscale"):
        value = case.rope.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Refused(TEXTS("transformers_validation.typeerror_phimoeconfig", key=key))
    return case


@rule("phi3-lists", asks_for("phi3_longrope"), has_type("longrope"))
def count_list(case: Case) -> Case:
    """Phi3Config needs one number per pair of hidden_size / num_attention_heads dimensions."""
    heads = case.fields.required("num_attention_heads")
    pairs = int(case.fields.required("hidden_size") // heads * case.share) // 2
    for key in ("short_factor", "long_factor"):
        values = case.rope.get(key)
        if isinstance(values, (list, tuple)) and len(values) != pairs:
            raise Refused(TEXTS("transformers_validation.valueerror_phi3config", pairs=pairs, key=key))
    return case


def has_several_heads(case: Case) -> bool:
    """Return whether the head size differs between the layer types."""
    sizes = case.architecture.rope.layer_sizes
    if sizes == "sliding_heads":
        return True
    layers = ("full_attention", "sliding_attention")
    return bool(sizes) and len({case.fields.layer(layer).head_dim() for layer in layers}) > 1


STRICT_CLASSES = (
    refuse_old_name,
    refuse(
        "transformers_validation.accepts_default",
        asks_for("default_type_only"),
        is_scaled,
    ),
    refuse(
        "transformers_validation.phi3config_accepts",
        asks_for("phi3_longrope"),
        is_not(has_type("default", "longrope")),
    ),
    count_list,
    need_mscales,
    # The lists are checked against one head_dim.
    refuse(
        "transformers_validation.class_head",
        has_type("longrope"),
        has_several_heads,
    ),
)
