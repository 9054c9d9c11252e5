"""The rules of the check about a GGUF file, which only llama.cpp reads and which has no keys of a config.json."""

from __future__ import annotations

from collections.abc import Iterator

from rope_viz.advice.lint.lint_context import TEXTS, Finding
from rope_viz.advice.lint.runtime_rules import describe_size, is_off
from rope_viz.models.formats.gguf_config import UNREAD_PARTS, describe_ignored, describe_unread, list_unread
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes.compare import compare


def unread_gguf_keys(model: ModelConfig) -> Iterator[Finding]:
    """A key under rope or attention of a GGUF file that is not read, or that llama.cpp does not use.

    Source: the loader of llama.cpp 0c1e57098, read (rope_viz/models/formats/gguf_loader.json).
    """
    source = source_file(model.mapping)
    for part in UNREAD_PARTS:
        names = list_unread(source, part)
        if names:
            yield Finding("", "warning", names[0], describe_unread(part, names))
    ignored = source.get("ignored", ())
    if ignored:
        yield Finding("", "note", ignored[0], describe_ignored(ignored))


def gguf_differs(model: ModelConfig) -> Iterator[Finding]:
    """llama.cpp computes something else than the keys of a GGUF file mean, by more than 5 %.

    Source: the loader and the context of llama.cpp 0c1e57098, read and compared with its converter
    (tests/goldens/converted.json).
    """
    source = source_file(model.mapping)
    for layer in model.specs if source else ():
        found = compare(model, layer_type=layer or None)
        for one in found:
            if one.emulation.runtime == "llama.cpp" and is_off(one):
                key = "gguf-differs.layers" if layer else "gguf-differs.all"
                size = describe_size(one, found[0], without=("read-from-gguf",))
                text = TEXTS(key, name=one.emulation.name, layer=layer, size=size)
                yield Finding("", "note", f"{source['architecture']}.rope", text, one.effect)
