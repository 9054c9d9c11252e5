"""llama.cpp 0c1e57098, second half: what the flags make of the GGUF, and the operands of the rotary kernel.

Read from `src/llama-context.cpp`, `common/arg.cpp` and `ggml/src/ggml-cpu/ops.cpp`; run end to end from a config to the
operands of the kernel (tests/goldens/runtimes.json, llamacpp_flags.json).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from rope_viz.embedding.scaling import Linear, Yarn, blend, mscale
from rope_viz.embedding.spec import FloatArray, RopeSpec, freeze, require_number, short_repr
from rope_viz.models.formats import FILE
from rope_viz.models.formats.gguf_config import ROPE_KEYS
from rope_viz.models.formats.json_source import source_file
from rope_viz.runtimes.rule_engine import Case
from rope_viz.runtimes.texts import TEXTS
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items

FLAGS: Mapping[str, str] = read_own(__file__, "llamacpp_flags.json")


def parse_flags(flags: str | Mapping[str, object] | None) -> dict[str, str | float]:
    """Return command-line overrides by field name. Remarks in brackets are skipped; "(n_ctx N)" counts as --ctx-size N.

    Raises `ValueError` for an unknown flag or a value that is no number.
    """
    if flags is None:
        return {}
    if isinstance(flags, Mapping):
        words = [str(part) for key, value in flags.items() for part in (format_flag(str(key)), value)]
    else:
        words = shlex.split(re.sub(r"\([^)]*\)", " ", re.sub(r"\(n_ctx (\d+)\)", r" -c \1 ", flags)).replace("=", " "))
    if len(words) % 2:
        raise ValueError(TEXTS("flags.pairs", given=short_repr(" ".join(words))))
    found: dict[str, str | float] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in FLAGS:
            raise ValueError(TEXTS("flags.unknown", name=short_repr(name), flags=join_items([*FLAGS])))
        if name == "--rope-scaling":
            if value not in ("none", "linear", "yarn"):
                raise ValueError(TEXTS("flags.scaling", got=short_repr(value)))
            found["scaling"] = value
            continue
        try:
            found[FLAGS[name]] = float(value)
        except ValueError:
            raise ValueError(TEXTS("flags.number", name=name, got=short_repr(value))) from None
        require_number(found[FLAGS[name]], name)
    return found


def format_flag(key: str) -> str:
    """Return a flag as it is written on the command line, from a key like "rope_scale"."""
    return key if key.startswith("-") else "--" + key.replace("_", "-")


def write_flags(spec: RopeSpec) -> str | None:
    """Return the flags for a method that has some; None for the others."""
    spec = next(iter(spec.scaling.config_forms(spec)), spec)
    scaling, base = spec.scaling, f"--rope-freq-base {spec.base!r}"
    if isinstance(scaling, Yarn):
        yarn = f"--rope-scaling yarn --rope-scale {scaling.factor!r} --yarn-orig-ctx {spec.context}"
        return f"{yarn} --yarn-beta-fast {scaling.beta_fast!r} --yarn-beta-slow {scaling.beta_slow!r} {base}"
    if isinstance(scaling, Linear):
        return f"--rope-scaling linear --rope-scale {scaling.factor!r} {base}"
    return None if spec.is_scaled else f"--rope-scaling none {base}"


def write_lost_flags(spec: RopeSpec) -> str:
    """Return the flags for what a conversion to GGUF loses; empty if it loses nothing."""
    scaling = spec.scaling
    if not isinstance(scaling, Yarn):
        return ""
    return f"--yarn-beta-fast {scaling.beta_fast:g} --yarn-beta-slow {scaling.beta_slow:g}"


def apply_flags(case: Case, flags: Mapping[str, str | float]) -> tuple[FloatArray, float, float]:
    """Return what the rotary kernel computes, radians per position, shape (pairs,), its factor, and the softmax's.

    Names are those of llama.cpp, where they have one.
    """
    scaling = str(flags.get("scaling", "yarn" if case.kind == "yarn" else "linear"))
    freq_scale = 1.0 / case.number("factor") if case.kind in ("linear", "yarn") else 1.0
    if flags.get("scale"):
        freq_scale = 1.0 / float(flags["scale"])
    freq_scale = float(flags.get("freq_scale") or freq_scale)
    freq_scale = 1.0 if scaling == "none" else freq_scale
    if freq_scale <= 0:
        raise ValueError(TEXTS("flags.scale"))
    ext_factor = read_flag(flags, "ext_factor", float(scaling == "yarn"))
    written = case.original if case.kind == "yarn" else case.context or case.limit
    factor = 1.0 / freq_scale
    log_mul = case.number("mscale_all_dim", 0.0) if case.kind == "yarn" else 0.0
    attn_factor = read_flag(flags, "attn_factor", 1.0)
    cancelled = 1.0 + 0.1 * math.log(factor)
    if ext_factor:
        first = log_mul if case.mla and log_mul not in (0.0, 1.0) else 1.0
        attn_factor = mscale(factor, first) / (mscale(factor, log_mul) if log_mul else 1.0) / cancelled
    attn_factor *= 1.0 if case.attention is None else case.attention
    yarn = Yarn(
        1.0 / freq_scale,
        read_flag(flags, "beta_fast", case.number("beta_fast", 32.0)),
        read_flag(flags, "beta_slow", case.number("beta_slow", 1.0)),
    )
    spec = RopeSpec(
        head_dim=case.head_dim,
        rotary_dim=case.rotary_dim,
        base=float(flags.get("freq_base") or case.base),
        context=int(flags.get("orig_ctx") or written),
        scaling=yarn,
    )
    low, high = yarn.correction_range(spec)
    kept = 1.0 - np.clip((np.arange(spec.pairs) - low) / max(0.001, high - low), 0.0, 1.0)
    values = blend(spec, yarn.factor, ext_factor * kept)
    is_scaled = case.mla and not case.architecture.runtime("llama.cpp").get("plain_softmax")
    softmax = (attn_factor * cancelled * (1.0 + 0.1 * log_mul * math.log(factor))) ** 2 if is_scaled else 1.0
    attention = attn_factor * cancelled if ext_factor else attn_factor
    return freeze(values / np.asarray(case.divisors)) if case.divisors else values, attention, softmax


def read_flag(flags: Mapping[str, str | float], name: str, default: float) -> float:
    """Return the value of a flag where it is set: a negative one is not."""
    value = float(flags.get(name, -1.0))
    return value if value >= 0 else default


FLAG = "--override-kv"

PATTERN = re.compile(rf"{FLAG}(?:=|\s+)(\S+)")

TYPE = "rope.scaling.type"

WHOLE = frozenset(
    key for key in ROPE_KEYS if key.endswith(("context_length", "dimension_count", "dimension_count_swa"))
)
"""Keys that the loader reads as whole numbers."""

ENTRY = re.compile(r"([\w.-]+)=(int|float|bool|str):([^\s,]+)")


# --override-kv: read in `src/llama-model-loader.cpp` of ggml-org/llama.cpp@0034764, not run. A value counts where the
# loader reads the key of this name, and only with the type of that key. Any other type is ignored with a warning.
def split_flags(flags: str) -> tuple[dict[str, tuple[str, str]], str]:
    """Return {key: (type, value)} of every --override-kv, and the other flags. Raises `ValueError` for another form."""
    values: dict[str, tuple[str, str]] = {}
    for given in PATTERN.findall(flags):
        for part in given.strip("'\"").split(","):
            entry = ENTRY.fullmatch(part)
            if entry is None:
                form = TEXTS("flags.form")
                raise ValueError(TEXTS("flags.override", flag=FLAG, form=form, got=short_repr(part)))
            values[entry[1]] = (entry[2], entry[3])
    return values, PATTERN.sub(" ", flags)


def override_keys(case: Case, values: Mapping[str, tuple[str, str]]) -> Case:
    """Return the case of a GGUF file with these keys. Raises `ValueError` where one of them changes nothing in RoPE."""
    source = source_file(case.fields.config)
    if source.get("format") != "GGUF":
        raise ValueError(TEXTS("flags.config", flag=FLAG))
    architecture, keys = source["architecture"], dict(source["keys"])
    for name, (kind, text) in values.items():
        short = name.removeprefix(f"{architecture}.")
        if short == name or short not in ROPE_KEYS:
            known = ", ".join(f"{architecture}.{key}" for key in ROPE_KEYS[:4])
            raise ValueError(TEXTS("flags.unread", name=short_repr(name), known=known))
        meant = "int" if short in WHOLE else "str" if short == TYPE else "float"
        if kind != meant:
            raise ValueError(TEXTS("flags.wrong_type", name=name, kind=kind, meant=meant, text=text))
        keys[short] = text if short == TYPE else read_value(name, text, whole=short in WHOLE)
    changed: dict[str, Any] = {FILE: {**source, "keys": keys}, "max_position_embeddings": keys["context_length"]}
    fields = case.fields.with_values(**changed)
    return case.replace(fields=fields, limit=fields.required("max_position_embeddings"))


def read_value(name: str, text: str, *, whole: bool) -> float:
    """Return a number. Raises `ValueError` for anything else."""
    try:
        value: float = int(text) if whole else float(text)
    except ValueError:
        raise ValueError(TEXTS("flags.whole" if whole else "flags.number", name=name, got=short_repr(text))) from None
    require_number(value, name, least=1 if whole else 0, integer=whole)
    return value
