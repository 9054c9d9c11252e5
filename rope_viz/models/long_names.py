"""Names in a config that are longer than any name is: each is cut once, so that nothing compares or repeats the whole.

A config of 200,000 letters of model type would otherwise be compared with each known type. What is cut stays unknown
to every reader, as the whole was. Names of models and paths are not among these: they are cut where they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rope_viz.models import TEXTS
from rope_viz.storage.limits import NAME_CHARACTERS

NAMES = frozenset(
    """
        model_type architectures _class_name rope_type type layer_types layers_block_type attn_type_list
        position_embedding_type position_embeddings_type hidden_act quant_method quant_algo kv_cache_scheme
        torch_dtype dtype scoring_func architecture method rope.scaling.type general.architecture
    """.split()
)
"""Keys whose values are names of types: texts, or lists of texts."""
ROPE_DICTS = ("rope_scaling", "rope_parameters")
"""Keys of objects whose own keys are names, too: those of layer types."""
Path: TypeAlias = tuple[str, ...]


def cut_long_names(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[Path, int]]:
    """Return a config with its names cut to `NAME_CHARACTERS`, and {place: characters} of those that were longer.

    It is the object itself where nothing is cut.
    """
    changes: dict[str, Any] = {}
    found: dict[Path, int] = {}
    for key, value in config.items():
        kind = type(value)
        if key in NAMES and (kind is str or kind is list):
            cut, longest = cut_name(value)
            inner: dict[Path, int] = {(): longest} if longest else {}
        elif kind is dict or isinstance(value, Mapping):
            cut, inner = cut_long_names(value)
            if key in ROPE_DICTS:
                cut, longest = cut_keys(cut)
                inner = {**inner, ("",): longest} if longest else inner
        else:
            continue
        if inner:
            changes[key] = cut
            found |= {(key[:NAME_CHARACTERS], *path): count for path, count in inner.items()}
    return ({**config, **changes}, found) if changes else (config, {})


def cut_name(value: str | Sequence[Any]) -> tuple[Any, int]:
    """Return a name or a list of names cut, and the characters of the longest one that was; 0 where none was."""
    if isinstance(value, str):
        return (value[:NAME_CHARACTERS], len(value)) if len(value) > NAME_CHARACTERS else (value, 0)
    longest = max((len(name) for name in value if isinstance(name, str)), default=0)
    if longest <= NAME_CHARACTERS:
        return value, 0
    return [name[:NAME_CHARACTERS] if isinstance(name, str) else name for name in value], longest


def cut_keys(part: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return an object with its keys cut, and the characters of the longest one that was; 0 where none was."""
    longest = max(map(len, part), default=0)
    return (
        ({key[:NAME_CHARACTERS]: value for key, value in part.items()}, longest)
        if longest > NAME_CHARACTERS
        else (part, 0)
    )


def describe_long_names(found: Mapping[Path, int]) -> list[tuple[str, str]]:
    """Return (place, sentence) for each place with a name that was cut."""
    return [(".".join(path).rstrip("."), describe_long_name(path, count)) for path, count in found.items()]


def describe_long_name(path: Path, count: int) -> str:
    """Return the sentence about one place; "" at the end of a path stands for the keys of the object."""
    values = {"characters": count, "longest": NAME_CHARACTERS}
    if path[-1] == "":
        return TEXTS("long_name.key", object=path[-2], **values)
    return TEXTS("long_name.value", key=path[-1], **values)
