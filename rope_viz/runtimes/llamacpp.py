"""llama.cpp 0c1e57098, second half: what the flags make of the GGUF, and the operands of the rotary kernel.

Read from `src/llama-context.cpp`, `common/arg.cpp` and `ggml/src/ggml-cpu/ops.cpp`; run end to end from a config to the
operands of the kernel (tests/goldens/runtimes.json, llamacpp_flags.json).
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping

import numpy as np

from rope_viz.embedding.scaling import Yarn, blend, mscale
from rope_viz.embedding.spec import FloatArray, RopeSpec, freeze, require_number, short_repr
from rope_viz.runtimes.rule_engine import Case

FLAGS = {
    "--rope-scaling": "scaling",
    "--rope-scale": "scale",
    "--rope-freq-scale": "freq_scale",
    "--rope-freq-base": "freq_base",
    "--yarn-orig-ctx": "orig_ctx",
    "--yarn-ext-factor": "ext_factor",
    "--yarn-attn-factor": "attn_factor",
    "--yarn-beta-fast": "beta_fast",
    "--yarn-beta-slow": "beta_slow",
    "--ctx-size": "ctx",
    "-c": "ctx",
}


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
        raise ValueError(f"every llama.cpp flag needs a value, got {short_repr(' '.join(words))}")
    found: dict[str, str | float] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in FLAGS:
            raise ValueError(f"unknown llama.cpp flag {short_repr(name)}; known are {', '.join(FLAGS)}")
        if name == "--rope-scaling":
            if value not in ("none", "linear", "yarn"):
                raise ValueError(f"--rope-scaling must be none, linear or yarn, got {short_repr(value)}")
            found["scaling"] = value
            continue
        try:
            found[FLAGS[name]] = float(value)
        except ValueError:
            raise ValueError(f"{name} must be a number, got {short_repr(value)}") from None
        require_number(found[FLAGS[name]], name)
    return found


def format_flag(key: str) -> str:
    """Return a flag as it is written on the command line, from a key like "rope_scale"."""
    return key if key.startswith("-") else "--" + key.replace("_", "-")


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
        raise ValueError("the llama.cpp scale must be greater than 0")
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
    softmax = (attn_factor * cancelled * (1.0 + 0.1 * log_mul * math.log(factor))) ** 2 if case.mla else 1.0
    attention = attn_factor * cancelled if ext_factor else attn_factor
    return freeze(values / np.asarray(case.divisors)) if case.divisors else values, attention, softmax


def read_flag(flags: Mapping[str, str | float], name: str, default: float) -> float:
    """Return the value of a flag where it is set: a negative one is not."""
    value = float(flags.get(name, -1.0))
    return value if value >= 0 else default
