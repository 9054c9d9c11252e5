"""The rule of the check about names of keys: misspelled ones, camelCase and invisible characters."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from rope_viz.advice.lint.lint_context import Finding, View, inside
from rope_viz.embedding.spec import short_repr
from rope_viz.models.config_reader import SECTION_KEYS, Fields
from rope_viz.models.long_names import LONGEST, describe_long_names
from rope_viz.models.no_rope_types import UNMISTAKABLE, letters_of
from rope_viz.models.rope_config import ORIGINAL

# Keys that this project reads for every model type.
USUAL_KEYS = frozenset(
    (
        *(
            "rope_scaling",
            "rope_parameters",
            "rope_theta",
            "max_position_embeddings",
            ORIGINAL,
            "partial_rotary_factor",
        ),
        *("rope_local_base_freq", "rope_interleave", "rotary_dim", "head_dim", "hidden_size", "num_attention_heads"),
        *("num_key_value_heads", "num_hidden_layers", "qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank"),
        *("sliding_window", "use_sliding_window", "max_window_layers", "attention_chunk_size", "layer_types"),
        *("model_type", "text_config", "vocab_size", "intermediate_size", "tie_word_embeddings"),
    )
)
# Keys of some class of transformers 5.23.0 that look like a misspelling of a usual key.
LOOKALIKES = frozenset(
    (
        *("hidden_sizes", "layer_type", "sliding_windows", "encoder_num_hidden_layers", "encoder_num_key_value_heads"),
        *SECTION_KEYS,
    )
)
# Names of llama.cpp's options, which no config class reads.
FOREIGN = {"rope_freq_base": "rope_theta", "rope_freq_scale": "rope_scaling"}
ALIKE, WORD_ALIKE = 0.88, 0.72
"""Least ratios of difflib for a whole key and for each of its words to be a misspelling."""


def long_names(view: View) -> Iterator[Finding]:
    """A model type, a class, a rope type or a kind of layer of more than 100 characters, which no name has.

    Source: the names in transformers 5.23.0, of at most 63 characters; a longer one is cut before it is read.
    """
    for place, text in describe_long_names(view.model.long_names):
        yield Finding("", "warning", place, text)


def misspelled_keys(view: View) -> Iterator[Finding]:
    """A key that nothing reads, whose name is nearly that of a key that is read.

    Source: the keys that this project and the classes of transformers 5.23.0 read (all classes were searched for keys
    with similar names).
    """
    read = find_read_keys(view.fields)
    for depth in range(len(view.model.path) + 1):
        path = view.model.path[:depth]
        level = inside(view.config, path)
        for key, value in level.items() if isinstance(level, Mapping) else ():
            meant = None if key in read or len(key) > LONGEST else find_meant_key(str(key), read)
            if meant is None:
                continue
            hidden = [letter for letter in key if is_invisible(letter)]
            where = f": it contains the invisible character U+{ord(hidden[0]):04X}" if hidden else ""
            text = f"Unknown key {key[:60]!a}{where}. Did you mean {short_repr(meant)}?"
            repaired = None
            if level.get(meant) is None and FOREIGN.get(key) is None:
                repaired = view.changed(path, **{key: None, meant: value})
            place = ".".join((*path, ascii(key[:60]).strip("'")))
            yield Finding("", "warning" if view.fields.is_listed else "note", place, text, None, repaired)


def find_read_keys(fields: Fields) -> frozenset[str]:
    """Return the keys that are read for a model type, as far as its record and this project name them."""
    record, taken = fields.architecture, fields.architecture.validation
    named = (*taken.whole, *taken.also_whole, *taken.flags, *taken.not_null)
    own = {*record.defaults, *record.aliases, *(key.rstrip("?+") for key in named)}
    own |= {key for key, _ in record.rope.bases.values()}
    if not fields.is_listed:
        own |= {name for names in UNMISTAKABLE.values() for name in names}
    return USUAL_KEYS | LOOKALIKES | own


def find_meant_key(key: str, read: Iterable[str]) -> str | None:
    """Return the key that a misspelled one stands for, None where it resembles none."""
    if key in FOREIGN:
        return FOREIGN[key]
    cleaned = "".join(letter for letter in key if not is_invisible(letter)).strip()
    letters = letters_of(cleaned)
    same = next((one for one in sorted(read) if letters_of(one) == letters), None)
    if same is not None:
        return same
    close = difflib.get_close_matches(cleaned.lower(), sorted(read), 3, ALIKE)
    return next((one for one in close if has_similar_words(cleaned.lower(), one)), None)


def has_similar_words(key: str, other: str) -> bool:
    """Return whether two keys consist of as many words, each like the other's."""
    ours, theirs = key.split("_"), other.split("_")
    return len(ours) == len(theirs) and all(
        difflib.SequenceMatcher(None, one, two).ratio() >= WORD_ALIKE for one, two in zip(ours, theirs, strict=True)
    )


def is_invisible(letter: str) -> bool:
    """Return whether a character shows nothing: format and control characters, and all spaces but the usual one."""
    kind = unicodedata.category(letter)
    return kind in ("Cf", "Cc", "Zl", "Zp") or (kind == "Zs" and letter != " ")
