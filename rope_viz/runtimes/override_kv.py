"""--override-kv of llama.cpp: keys of a GGUF file that the loader reads otherwise.

Read in `src/llama-model-loader.cpp` of ggml-org/llama.cpp@0034764, not run: a value counts where the loader reads the
key of this name, and only with the type of that key. Any other type is ignored with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.formats.gguf_config import ROPE_KEYS
from rope_viz.models.formats.other_files import source_file
from rope_viz.models.formats.source_note import FILE
from rope_viz.runtimes.rule_engine import Case

FLAG = "--override-kv"
PATTERN = re.compile(rf"{FLAG}(?:=|\s+)(\S+)")
TYPE = "rope.scaling.type"
WHOLE = frozenset(
    key for key in ROPE_KEYS if key.endswith(("context_length", "dimension_count", "dimension_count_swa"))
)
"""Keys that the loader reads as whole numbers."""
ENTRY = re.compile(r"([\w.-]+)=(int|float|bool|str):([^\s,]+)")


def split_flags(flags: str) -> tuple[dict[str, tuple[str, str]], str]:
    """Return {key: (type, value)} of every --override-kv, and the other flags. Raises `ValueError` for another form."""
    values: dict[str, tuple[str, str]] = {}
    for given in PATTERN.findall(flags):
        for part in given.strip("'\"").split(","):
            entry = ENTRY.fullmatch(part)
            if entry is None:
                form = "KEY=TYPE:VALUE, such as llama.context_length=int:131072"
                raise ValueError(f"{FLAG} must be {form}, got {short_repr(part)}")
            values[entry[1]] = (entry[2], entry[3])
    return values, PATTERN.sub(" ", flags)


def override_keys(case: Case, values: Mapping[str, tuple[str, str]]) -> Case:
    """Return the case of a GGUF file with these keys. Raises `ValueError` where one of them changes nothing in RoPE."""
    source = source_file(case.fields.config)
    if source.get("format") != "GGUF":
        raise ValueError(f"{FLAG} changes keys of a GGUF file: name one, not a config.json")
    architecture, keys = source["architecture"], dict(source["keys"])
    for name, (kind, text) in values.items():
        short = name.removeprefix(f"{architecture}.")
        if short == name or short not in ROPE_KEYS:
            known = ", ".join(f"{architecture}.{key}" for key in ROPE_KEYS[:4])
            raise ValueError(f"{short_repr(name)} changes nothing in the RoPE of this file; keys are {known} …")
        meant = "int" if short in WHOLE else "str" if short == TYPE else "float"
        if kind != meant:
            raise ValueError(f"llama.cpp ignores {name} as {kind}: write {name}={meant}:{text}")
        keys[short] = text if short == TYPE else read_value(name, text, whole=short in WHOLE)
    changed: dict[str, Any] = {FILE: {**source, "keys": keys}, "max_position_embeddings": keys["context_length"]}
    fields = case.fields.with_values(**changed)
    return case.replace(fields=fields, limit=fields.required("max_position_embeddings"))


def read_value(name: str, text: str, *, whole: bool) -> float:
    """Return a number. Raises `ValueError` for anything else."""
    try:
        value: float = int(text) if whole else float(text)
    except ValueError:
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number, got {short_repr(text)}") from None
    require_number(value, name, least=1 if whole else 0, integer=whole)
    return value
