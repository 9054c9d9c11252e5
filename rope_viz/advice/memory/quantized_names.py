"""Names of modules in a quantization: lists of paths, globs and regular expressions, matched with a model's matrices.

Checkpoints call the same module differently (`mlp`, `ffn`, `block_sparse_moe`); all are read as one name.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rope_viz.advice.memory import TEXTS
from rope_viz.embedding.spec import short_repr

# Replaced one after the other in a path from the word layers on.
SPELLINGS = tuple(
    (re.compile(rf"\b(?:{written})(?![\w])"), usual)
    for written, usual in (
        ("attn|attention|self_attention", "self_attn"),
        ("ffn|feed_forward|block_sparse_moe|moe", "mlp"),
        ("shared_experts", "shared_expert"),
        (r"experts\.\d+", "experts"),
        ("w1", "gate_proj"),
        ("w2", "down_proj"),
        ("w3", "up_proj"),
        ("head|output", "lm_head"),
        ("wte|embedding", "embed_tokens"),
    )
)
LAYER = re.compile(r"^.*?\b(?:layers|h)(?=\.)")
# A regular expression from a file may take for ever: repeats are .* and \d+, few of them and none around a group.
SAFE = re.compile(r"(?:[\w\-$^|?:]|\(\?:|\((?!\?)|\)(?![*+?{])|\\[.wd\-_]|\.\*|\.(?![*+?{])|(?:\\d|\[0-9\])\+)*")
MOST_REPEATS = 3
LONGEST_PATTERN = 400
MOST_EXPRESSIONS, MOST_GLOBS = 64, 2000
"""Patterns of one list, each of which is tried on every matrix."""


def spell_usually(path: str) -> str:
    """Return a path from the word layers on, with the usual names of its modules."""
    short = LAYER.sub("layers", path, count=1)
    for pattern, usual in SPELLINGS:
        short = pattern.sub(usual, short)
    return short


@dataclass(frozen=True)
class Names:
    """Patterns of modules: `paths` match any module within them, `globs` and `expressions` the whole path."""

    paths: frozenset[str]
    globs: tuple[str, ...]
    expressions: tuple[str, ...]

    @classmethod
    def from_patterns(cls, patterns: Iterable[object]) -> Names:
        """Return the patterns of a list. Raises `ValueError` for a regular expression that is not read."""
        paths, globs, expressions = set(), [], []
        for pattern in patterns:
            if not isinstance(pattern, str):
                continue
            if pattern.startswith(("re:", "+:", "-:")):
                expressions.append(require_safe(pattern.removeprefix("re:").removeprefix("+:").removeprefix("-:")))
            elif any(mark in pattern for mark in "*?["):
                globs.append(spell_usually(pattern))
            else:
                paths.add(spell_usually(pattern))
        if len(expressions) > MOST_EXPRESSIONS or len(globs) > MOST_GLOBS:
            raise ValueError(TEXTS("reason.long_patterns"))
        return cls(frozenset(paths), tuple(dict.fromkeys(globs)), tuple(dict.fromkeys(expressions)))

    @functools.cached_property
    def glob(self) -> re.Pattern[str] | None:
        """All globs as one expression."""
        return re.compile("|".join(fnmatch.translate(each) for each in self.globs)) if self.globs else None

    def match(self, name: str) -> bool:
        """Return whether a pattern matches a matrix that is named from the word layers on."""
        if any(part in self.paths for part in list_parts(name)):
            return True
        full = tuple(spell_in_full(name))
        if self.glob and any(self.glob.match(each) for each in (name, *full)):
            return True
        return any(re.match(each, one) for each in self.expressions for one in full)


def list_parts(name: str) -> Iterator[str]:
    """Yield each run of words of a path: "mlp" and "layers.3.mlp" are two of "layers.3.mlp.up_proj"."""
    words = name.split(".")
    for start in range(len(words)):
        for stop in range(start + 1, len(words) + 1):
            yield ".".join(words[start:stop])
    if "layers" in words[:1] and len(words) > 2 and words[2] in ("self_attn", "mlp", "linear_attn"):
        # A hybrid model may call each of its parts a mixer.
        rest = [word for word in words[3:]]
        yield ".".join([*words[:2], "mixer", *rest])
        yield ".".join([*words[:2], "mixer", *rest[:1]])


def spell_in_full(name: str) -> Iterator[str]:
    """Yield a matrix's path as checkpoints have it: with a prefix, its first expert, and the shared experts' names."""
    first = name.replace(".experts.", ".experts.0.")
    for each in dict.fromkeys((first, first.replace(".shared_expert.", ".shared_experts."))):
        yield each if each.startswith("lm_head") else f"model.{each}"


def require_safe(pattern: str) -> str:
    """Return a regular expression that is read. Raises `ValueError` for others."""
    repeats = pattern.count("*") + pattern.count("+")
    if len(pattern) > LONGEST_PATTERN or repeats > MOST_REPEATS or not SAFE.fullmatch(pattern):
        raise ValueError(TEXTS("reason.pattern", pattern=short_repr(pattern)))
    try:
        re.compile(pattern)
    except re.error:
        raise ValueError(TEXTS("reason.no_pattern", pattern=short_repr(pattern))) from None
    return pattern
