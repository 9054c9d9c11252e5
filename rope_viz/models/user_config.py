"""A config.json as a user drops or pastes it: any text at all, to a mapping or one sentence.

NaN and Infinity are refused where RoPE reads them, and repeated keys are named; see `json_source`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.formats.json_source import read_raw
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ROPE_TYPES, find_main_layer, normalise_rope_type
from rope_viz.storage.limits import CONFIG_KEYS, CONFIG_LEVELS, CONFIG_VALUES, NAMED_KEYS
from rope_viz.texts.texts import join_items

# Lists of labels and of quantised layers may be as long as they like: nothing here reads them.
LONG = ("id2label", "label2id", "quantization_config", "compression_config")
SIZES = ("head_dim", "hidden_size", "max_position_embeddings", "num_attention_heads", "qk_rope_head_dim")


@dataclass(frozen=True)
class Upload:
    """A user's own config: its name, the embedding of each layer type, and a sentence for all that was assumed.

    `reading` is the config as it was read, if `specs` are computed from `config` alone. `results` caches what was
    computed from it.
    """

    name: str
    config: Mapping[str, Any] = field(hash=False)
    specs: Mapping[str, RopeSpec] = field(hash=False)
    notes: tuple[str, ...] = ()
    reading: ModelConfig | None = field(default=None, repr=False, compare=False)
    results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def layer(self) -> str:
        return find_main_layer(self.specs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model_config"}

    @functools.cached_property
    def model_config(self) -> ModelConfig:
        """The config as it was read."""
        return self.reading or ModelConfig.read(self.config)


def parse_config(text: str | bytes, notes: list[str] | None = None, *, skip_lists: bool = False) -> dict[str, Any]:
    """Return the object of a JSON text, and add what is odd about the text to `notes`. Raises `ValueError`.

    With `skip_lists`, long lists of labels and layers are read as empty.
    """
    raw = read_raw(text, skip_lists=skip_lists)
    if notes is not None and raw.left_out:
        notes += note_emptied(list(dict.fromkeys(raw.left_out)))
    if notes is not None and raw.repeated:
        shown = join_items([short_repr(place[-1]) for place in raw.repeated[:3]])
        notes.append(TEXTS("user_config.repeated", keys=shown))
    if notes is not None and raw.marked and isinstance(text, bytes):
        notes.append(TEXTS("user_config.marked"))
    return dict(raw.config)


def check_shape(config: Mapping[str, Any]) -> None:
    """Raise `ValueError` where objects are nested deeper, or hold more keys, than any config."""
    waiting: list[tuple[Any, int]] = [(config, 1)]
    while waiting:
        part, depth = waiting.pop()
        if depth > CONFIG_LEVELS:
            raise ValueError(TEXTS("user_config.deep", deepest=CONFIG_LEVELS))
        if isinstance(part, dict):
            if len(part) > CONFIG_KEYS:
                raise ValueError(TEXTS("user_config.many_keys", keys=len(part)))
            waiting += [(item, depth + 1) for key, item in part.items() if key not in LONG]
        elif isinstance(part, list):
            waiting += [(item, depth + 1) for item in part if isinstance(item, (dict, list))]


def empty_long_values(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a config in which lists and objects of more than `CONFIG_VALUES` values are empty, and their keys.

    A list within a list counts with it; an object is emptied only where its own values are too many.
    """
    found: list[str] = []

    def count_and_empty(part: Any, key: str) -> tuple[Any, int]:
        if isinstance(part, list) and len(part) > CONFIG_VALUES:
            found.append(key)
            return [], 0
        if isinstance(part, dict) and len(part) > CONFIG_KEYS and key not in LONG:
            return part, 0  # `check_shape` refuses it
        if isinstance(part, dict):
            pairs = {name: count_and_empty(value, str(name)) for name, value in part.items()}
            count = len(pairs) + sum(inner for _, inner in pairs.values())
            rest: Any = {name: value for name, (value, _) in pairs.items()}
        elif isinstance(part, list):
            items = [count_and_empty(value, key) for value in part]
            count, rest = len(items) + sum(inner for _, inner in items), [value for value, _ in items]
        else:
            return part, 0
        if count > CONFIG_VALUES and part is not config:
            found.append(key)
            return type(part)(), 0
        return rest, count

    return count_and_empty(config, "")[0], list(dict.fromkeys(found))


def note_emptied(names: Sequence[str]) -> list[str]:
    """Return the note on lists that were read as empty, none where there are none."""
    listed = join_items([short_repr(name).strip("'\"") for name in names[:NAMED_KEYS]])
    return [TEXTS("user_config.long_lists", names=listed)] if names else []


def complete_config(config: dict[str, Any], current: RopeSpec) -> tuple[dict[str, Any], list[str]]:
    """Return a bare rope_scaling as a whole config with the sizes of `current`, and what was filled in."""
    if is_rope_dict(config) or is_layered(config):
        config = {"rope_parameters" if is_layered(config) or "rope_theta" in config else "rope_scaling": config}
    rope = config.get("rope_scaling") or config.get("rope_parameters")
    whole = config.get("model_type") is not None or any(isinstance(config.get(key), dict) for key in ("text_config",))
    if whole or not isinstance(rope, dict) or all(key in config for key in ("hidden_size", "num_attention_heads")):
        return config, []
    dicts = [part for part in rope.values() if isinstance(part, dict)] if is_layered(rope) else [rope]
    missing: dict[str, Any] = {}
    if "head_dim" not in config:
        missing["head_dim"] = current.head_dim
    if "max_position_embeddings" not in config:
        missing["max_position_embeddings"] = extended_length(dicts[0], current)
    if "rope_theta" not in config and any("rope_theta" not in part for part in dicts):
        missing["rope_theta"] = current.base
    filled = {
        "head_dim": TEXTS("user_config.head_dim", head_dim=current.head_dim),
        "max_position_embeddings": TEXTS("user_config.limit", limit=missing.get("max_position_embeddings", 0)),
        "rope_theta": TEXTS("user_config.base", base=current.base),
    }
    return {**missing, **config}, [filled[key] for key in missing]


def extended_length(rope: Mapping[str, Any], current: RopeSpec) -> int:
    """Return the length that a rope dict extends to: its original length times its factor, else the current one."""
    original, factor = rope.get("original_max_position_embeddings"), rope.get("factor")
    kind = rope.get("rope_type", rope.get("type"))
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (original, factor))
    if numbers and 1 <= original * factor <= 1 << 31:  # type: ignore[operator]
        return int(original * factor)  # type: ignore[operator]
    return current.target if kind in ("yarn", "longrope", "llama3") else current.context


def is_rope_dict(part: Any) -> bool:
    """Return whether this is the content of rope_scaling: a type or a factor, and no key of a model."""
    if not isinstance(part, dict) or any(key in part for key in (*SIZES, "model_type", "rope_scaling")):
        return False
    kind = part.get("rope_type", part.get("type"))
    return normalise_rope_type(kind) in (*ROPE_TYPES, "su", "mrope") if isinstance(kind, str) else "factor" in part


def is_layered(part: Any) -> bool:
    """Return whether this is rope_parameters nested by layer type."""
    return isinstance(part, dict) and bool(part) and all(is_rope_dict(item) for item in part.values())
