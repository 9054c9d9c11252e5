"""llama.cpp 0c1e57098 as rules: what conversion writes to the GGUF, what the context makes of it and of the flags.

Read from `conversion/*.py`, `src/llama-model.cpp`, `src/llama-context.cpp`, `common/arg.cpp` and
`ggml/src/ggml-cpu/ops.cpp`; run end to end from a config to the operands of the kernel (tests/goldens/runtimes.json,
llamacpp_flags.json). What single conversion classes write stands in `converter`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rope_viz.embedding.scaling import Yarn, blend
from rope_viz.embedding.spec import FloatArray, RopeSpec, frozen, require_number, shorten
from rope_viz.runtimes.gguf_converter import (
    FACTS,
    as_written,
    dbrx,
    ministral3,
    nemotron,
    shares,
    unscaled,
)
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    frequencies,
    has,
    has_type,
    ignore,
    is_absent,
    plainly,
    refuse,
    require,
    spec_of,
    static_base,
    when,
)
from rope_viz.runtimes.transformers import OLMO3_SLIDING, SU_IS_LONGROPE, top_original

FAR = math.inf
"""The divisor of a pair that shall not rotate: 1e30 in the GGUF, and the angle is 0 either way."""

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


@dataclass(frozen=True)
class Kernel:
    """The operands of the rotary kernel, under the names of llama.cpp."""

    n_rot: int
    freq_base: float
    freq_scale: float
    n_ctx_orig: int
    ext_factor: float
    attn_factor: float
    beta_fast: float
    beta_slow: float


def parse_flags(flags: str | Mapping[str, object] | None) -> dict[str, str | float]:
    """Command-line overrides by field name. Remarks in brackets are skipped; "(n_ctx N)" counts as --ctx-size N.

    Raises `ValueError` for an unknown flag or a value that is no number.
    """
    if flags is None:
        return {}
    if isinstance(flags, Mapping):
        words = [str(part) for key, value in flags.items() for part in (flag_name(str(key)), value)]
    else:
        words = shlex.split(re.sub(r"\([^)]*\)", " ", re.sub(r"\(n_ctx (\d+)\)", r" -c \1 ", flags)).replace("=", " "))
    if len(words) % 2:
        raise ValueError(f"every llama.cpp flag needs a value, got {shorten(' '.join(words))}")
    found: dict[str, str | float] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name not in FLAGS:
            raise ValueError(f"unknown llama.cpp flag {shorten(name)}; known are {', '.join(FLAGS)}")
        if name == "--rope-scaling":
            if value not in ("none", "linear", "yarn"):
                raise ValueError(f"--rope-scaling must be none, linear or yarn, got {shorten(value)}")
            found["scaling"] = value
            continue
        try:
            found[FLAGS[name]] = float(value)
        except ValueError:
            raise ValueError(f"{name} must be a number, got {shorten(value)}") from None
        require_number(found[FLAGS[name]], name)
    return found


def flag_name(key: str) -> str:
    """A flag as written on the command line, from a key like "rope_scale"."""
    return key if key.startswith("-") else "--" + key.replace("_", "-")


def converted_original(case: Case) -> Case:
    """Conversion mirrors a length at the top into a flat dict, and yarn without any raises KeyError."""
    if case.kind == "yarn" and case.rope.get(ORIGINAL) is None and not case.nested and top_original(case) is not None:
        case = case.with_rope(**{ORIGINAL: top_original(case)})
    return require(ORIGINAL)(case) if case.kind == "yarn" and case.rope.get("factor") is not None else case


def phi3(case: Case) -> Case:
    """Phi-3: the lists become tensors, the factor on cos and sin comes from the lengths, nothing else is written."""
    if case.rope.get(ORIGINAL) is None:
        case = case.with_rope(**{ORIGINAL: top_original(case) or case.limit})
    length = case.original
    case = case.replace(context=length)
    long_list = case.rope.get("long_factor")
    if case.kind not in ("longrope", "yarn") or not long_list:
        return case.drop_scaling()
    require("short_factor")(case)
    ratio = case.limit / length
    attention = math.sqrt(1 + math.log(ratio) / math.log(length)) if ratio > 1 and length > 1 else 1.0
    longer = case.length is not None and padded(case.length) > length
    chosen = case.rope["long_factor" if longer else "short_factor"]
    if not isinstance(chosen, (list, tuple)) or len(chosen) != case.rotary_dim / 2:
        raise Refused(f"the factor lists must have {case.rotary_dim // 2} numbers")
    for value in chosen:
        require_number(value, "factors", above=0.0)
    return case.drop_scaling().replace(divisors=tuple(float(value) for value in chosen), attention=attention)


def baked_llama3(case: Case) -> Case:
    """llama3 becomes a tensor of divisors at conversion, with the keys' defaults 8, 1, 4 and 8192."""
    filled = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: top_original(case) or 8192}
    case = case.with_rope(**{key: value for key, value in filled.items() if case.rope.get(key) is None})
    if case.number("high_freq_factor") < case.number("low_freq_factor"):
        case = case.with_rope(low_freq_factor=case.rope["high_freq_factor"])
    scaled, plain = (frequencies(one, spec_of(one)) for one in (case, case.drop_scaling()))
    return case.drop_scaling().replace(divisors=tuple(float(value) for value in plain / scaled))


def proportional(case: Case) -> Case:
    """Gemma 4: a tensor of ones for the pairs that rotate and 1e30 for the rest; factor is not read."""
    rotated = int(case.share * case.head_dim // 2)
    divisors = tuple(1.0 if i < rotated else FAR for i in range(case.head_dim // 2))
    return case.drop_scaling().replace(divisors=divisors, share=1.0, plain_share=1.0)


def hunyuan(case: Case) -> Case:
    """Hunyuan's alpha is baked into the base, with what the class asserts of the other numbers."""
    default = float(case.architecture.runtime(FACTS)["hunyuan_alpha"])
    alpha = case.number("alpha", default)
    expected = case.base == 10_000.0 and case.limit in (1 << 15, 1 << 18)
    # Only the class of the mixture-of-experts model asserts these two.
    if not expected or (default == 1000.0 and (alpha != 1000.0 or case.head_dim != 128)):
        raise Refused("AssertionError: HunYuan dynamic RoPE scaling assumptions changed")
    return static_base(lambda _: alpha)(case)


RULES = (
    Rule(
        "no-converter",
        "There is no conversion class for this architecture.",
        when(is_absent(FACTS), refuse("no converter class for {model}")),
    ),
    SU_IS_LONGROPE,
    OLMO3_SLIDING,
    Rule(
        "partial", "Some conversion classes write fewer rotated dimensions; the others rotate the whole head.", shares
    ),
    Rule(
        "base-not-written",
        "Conversion writes neither base nor scaling: the runtime takes base 10000, unscaled.",
        when(has(FACTS, "bare"), lambda case: case.drop_scaling().replace(base=10_000.0)),
    ),
    Rule(
        "as-written",
        "Conversion writes the base and the scaling of the config, which the model's own code does not read.",
        when(has(FACTS, "as_written"), as_written),
    ),
    Rule("dbrx-base", "Conversion writes the base in attn_config alone.", when(has(FACTS, "dbrx_base"), dbrx)),
    Rule(
        "nemotron-linear",
        "Conversion writes any scaling with a factor as linear.",
        when(has(FACTS, "nemotron_linear"), nemotron),
    ),
    Rule("scaling-not-written", "Conversion writes no scaling for this architecture.", when(unscaled, plainly)),
    Rule(
        "phi3-tensors",
        "Phi-3's lists become tensors; attention_factor and factor are ignored, and n_ctx decides once.",
        when(has(FACTS, "phi3_tensors"), phi3),
    ),
    Rule(
        "sliding-plain",
        "The sliding layers run unscaled.",
        when(lambda case: has(FACTS, "plain_sliding")(case) and case.layer == "sliding_attention", plainly),
    ),
    Rule(
        "yarn-original",
        f"yarn without {ORIGINAL} in the dict raises KeyError at conversion.",
        when(has_type("yarn"), converted_original),
    ),
    Rule(
        "ministral3-yarn",
        "Conversion of Ministral 3 asserts yarn, and reads mscale_all_dim.",
        when(has(FACTS, "ministral3_yarn"), ministral3),
    ),
    Rule(
        "llama3-without-tensor",
        "Conversion raises for llama3: the architecture has no place for the tensor of divisors.",
        when(
            lambda case: has_type("llama3")(case) and has(FACTS, "no_llama3_tensor")(case),
            refuse("ValueError: {model} has no rope_freqs among its tensors, which llama3 is written to"),
        ),
    ),
    Rule(
        "llama3-tensor",
        "llama3 becomes a tensor of divisors.",
        when(lambda case: has_type("llama3")(case) and has(FACTS, "llama3_tensor")(case), baked_llama3),
    ),
    Rule("llama3-dropped", "This conversion class silently drops llama3.", when(has_type("llama3"), plainly)),
    Rule(
        "gemma4-alone",
        "Conversion asserts that the full-attention layers of Gemma 4 are scaled by proportional.",
        when(
            lambda case: (
                has(FACTS, "proportional_tensor")(case)
                and case.layer != "sliding_attention"
                and not has_type("proportional")(case)
            ),
            refuse("AssertionError: the full-attention layers of {model} must be proportional"),
        ),
    ),
    Rule(
        "gemma4-tensor",
        "proportional becomes a tensor of divisors; factor is ignored.",
        when(lambda case: has_type("proportional")(case) and has(FACTS, "proportional_tensor")(case), proportional),
    ),
    Rule(
        "hunyuan-alpha",
        "Conversion bakes Hunyuan's alpha into the base.",
        when(lambda case: has_type("dynamic")(case) and has(FACTS, "hunyuan_alpha")(case), hunyuan),
    ),
    Rule("dynamic-dropped", "dynamic is not written to the GGUF.", when(has_type("dynamic"), plainly)),
    Rule("longrope-dropped", "longrope is written for Phi-3 only.", when(has_type("longrope"), plainly)),
    Rule(
        "no-factor",
        "A missing factor leaves the scaling out.",
        when(lambda case: has_type("linear", "yarn")(case) and case.rope.get("factor") is None, plainly),
    ),
    Rule(
        "unknown-type",
        "A rope type outside its list is left out with a warning.",
        when(lambda case: case.kind not in ("default", "linear", "yarn"), plainly),
    ),
    Rule("truncate-ignored", "truncate is not known: the range is always rounded.", ignore("truncate")),
    Rule(
        "attention-ignored",
        "attention_factor is overwritten when YaRN is on.",
        ignore("attention_factor", "attn_factor"),
    ),
    Rule(
        "betas-ignored",
        "beta_fast and beta_slow are written to the GGUF but not read back: 32 and 1.",
        when(lambda case: not has(FACTS, "reads_betas")(case), ignore("beta_fast", "beta_slow")),
    ),
    Rule(
        "deepseek-v4",
        "DeepSeek V4 cancels the factor on cos and sin.",
        when(
            lambda case: has(FACTS, "deepseek_v4_yarn")(case) and has_type("yarn")(case),
            lambda case: case.replace(attention=1.0 / grown(case.number("factor"), 1.0)),
        ),
    ),
    Rule(
        "mscale-ignored",
        "mscale and mscale_all_dim are not written for this architecture.",
        when(lambda case: not case.mla and not has(FACTS, "reads_log_mul")(case), ignore("mscale", "mscale_all_dim")),
    ),
)


def kernel(case: Case, flags: Mapping[str, str | float]) -> tuple[Kernel, float, float]:
    """The operands after the flags, the factor on cos and sin, and the softmax multiplier."""
    scaling = str(flags.get("scaling", "yarn" if case.kind == "yarn" else "linear"))
    freq_scale = 1.0 / case.number("factor") if case.kind in ("linear", "yarn") else 1.0
    if flags.get("scale"):
        freq_scale = 1.0 / float(flags["scale"])
    freq_scale = float(flags.get("freq_scale") or freq_scale)
    freq_scale = 1.0 if scaling == "none" else freq_scale
    if freq_scale <= 0:
        raise ValueError("the llama.cpp scale must be greater than 0")
    ext = float(flags.get("ext_factor", -1.0))
    ext = ext if ext >= 0 else float(scaling == "yarn")
    written = case.original if case.kind == "yarn" else case.context or case.limit
    factor = 1.0 / freq_scale
    log_mul = case.number("mscale_all_dim", 0.0) if case.kind == "yarn" else 0.0
    attn = float(flags.get("attn_factor", -1.0))
    attn = attn if attn >= 0 else 1.0
    cancelled = 1.0 + 0.1 * math.log(factor)
    if ext:
        first = log_mul if case.mla and log_mul not in (0.0, 1.0) else 1.0
        attn = grown(factor, first) / (grown(factor, log_mul) if log_mul else 1.0) / cancelled
    attn *= 1.0 if case.attention is None else case.attention
    found = Kernel(
        n_rot=case.rotary_dim,
        freq_base=float(flags.get("freq_base") or case.base),
        freq_scale=freq_scale,
        n_ctx_orig=int(flags.get("orig_ctx") or written),
        ext_factor=ext,
        attn_factor=attn,
        beta_fast=positive(flags.get("beta_fast"), case.number("beta_fast", 32.0)),
        beta_slow=positive(flags.get("beta_slow"), case.number("beta_slow", 1.0)),
    )
    softmax = (attn * cancelled * (1.0 + 0.1 * log_mul * math.log(factor))) ** 2 if case.mla else 1.0
    return found, attn * cancelled if ext else attn, softmax


def rotate(case: Case, found: Kernel) -> FloatArray:
    """What the kernel computes, radians per position, shape (pairs,)."""
    yarn = Yarn(1.0 / found.freq_scale, found.beta_fast, found.beta_slow)
    spec = RopeSpec(
        head_dim=case.head_dim, rotary_dim=found.n_rot, base=found.freq_base, context=found.n_ctx_orig, scaling=yarn
    )
    low, high = yarn.correction_range(spec)
    kept = 1.0 - np.clip((np.arange(spec.pairs) - low) / max(0.001, high - low), 0.0, 1.0)
    values = blend(spec, yarn.factor, found.ext_factor * kept)
    return frozen(values / np.asarray(case.divisors)) if case.divisors else values


def grown(factor: float, weight: float) -> float:
    """llama.cpp's get_mscale."""
    return 1.0 if factor <= 1.0 else 0.1 * weight * math.log(factor) + 1.0


def positive(flag: str | float | None, default: float) -> float:
    """A flag where it is set: a negative one means that it is not."""
    return default if flag is None or float(flag) < 0 else float(flag)


def padded(length: int) -> int:
    """n_ctx, which is rounded up to a multiple of 256."""
    return -(-length // 256) * 256
