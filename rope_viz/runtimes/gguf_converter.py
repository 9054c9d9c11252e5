"""llama.cpp 0c1e57098, first half, as rules: what conversion writes to the GGUF and what the loader reads of it.

Read from `conversion/*.py`, `src/llama-model.cpp` and `src/llama-context.cpp`; the conversion classes were run one by
one (tests/goldens/converted.json).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.scaling import mscale
from rope_viz.embedding.spec import require_number
from rope_viz.models.formats.gguf_config import TENTHS
from rope_viz.models.formats.gguf_keys import LOADER
from rope_viz.models.formats.gguf_layers import find_window_rules
from rope_viz.models.formats.json_source import source_file
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    all_hold,
    assume,
    build_spec,
    compute_frequencies,
    has,
    has_type,
    ignore,
    is_not,
    order_bands,
    refuse,
    require,
    rule,
    static_base,
)
from rope_viz.runtimes.texts import TEXTS

FACTS = "llama.cpp"
FAR = math.inf
"""The divisor of a pair with zero frequency: 1e30 in the GGUF, so the angle is 0."""


def find_rope_dict(case: Case) -> dict[str, Any]:
    """Return the rope dict that conversion reads, {} where there is none."""
    return case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}


def pad_context(length: int) -> int:
    """Return n_ctx, which is rounded up to a multiple of 256."""
    return -(-length // 256) * 256


@rule("partial", is_not(has_type("proportional")))
def write_share(case: Case) -> Case:
    """Some conversion classes write fewer rotated dimensions; the others rotate the whole head."""
    if not has(FACTS, "partial")(case):
        return shared.set_share(case, 1.0)
    is_given = any("partial_rotary_factor" in place for place in (case.fields.config, find_rope_dict(case)))
    share = case.share if is_given else case.architecture.runtime(FACTS).get("share", case.share)
    if int(case.head_dim * share) % 2:
        raise Refused(TEXTS("gguf_converter.ggml_assert_dimensions", head_dim=int(case.head_dim * share)))
    return shared.set_share(case, share)


@rule("as-written", has(FACTS, "as_written"))
def write_as_given(case: Case) -> Case:
    """Conversion writes the base and the scaling of the config, which the model's own code does not read."""
    rope = find_rope_dict(case)
    base = rope.pop("rope_theta", case.fields.config.get("rope_theta"))
    return write_base(case.replace(rope=rope or case.rope), base or case.base)


def write_base(case: Case, base: Any) -> Case:
    """Return the case with this base. Raises `ValueError` where it is no base."""
    require_number(base, "rope_theta", above=1.0, most=1e30)
    return case.replace(base=float(base))


@rule("dbrx-base", has(FACTS, "dbrx_base"))
def write_inner_base(case: Case) -> Case:
    """Conversion writes only the base in attn_config."""
    base = (case.fields.mapping("attn_config") or {}).get("rope_theta")
    if base is None:
        raise Refused(TEXTS("gguf_converter.keyerror_rope_theta"))
    return write_base(case, base)


@rule("nemotron-linear", has(FACTS, "nemotron_linear"))
def write_linear(case: Case) -> Case:
    """Conversion writes any scaling with a factor as linear."""
    return case.with_rope(rope_type="linear", type=None) if case.rope.get("factor") is not None else case.drop_scaling()


@rule("phi3-tensors", has(FACTS, "phi3_tensors"))
def write_lists(case: Case) -> Case:
    """Phi-3's lists become tensors; attention_factor and factor are ignored, and n_ctx selects one list."""
    length = assume(**{ORIGINAL: case.top_original or case.limit})(case).original
    case = case.replace(context=length)
    if case.kind not in ("longrope", "yarn") or not case.rope.get("long_factor"):
        return case.drop_scaling()
    require("short_factor")(case)
    ratio = case.limit / length
    attention = math.sqrt(1 + math.log(ratio) / math.log(length)) if ratio > 1 and length > 1 else 1.0
    longer = case.length is not None and pad_context(case.length) > length
    values = case.rope["long_factor" if longer else "short_factor"]
    if not isinstance(values, (list, tuple)) or len(values) != case.rotary_dim / 2:
        raise Refused(TEXTS("gguf_converter.factor_lists", rotary_dim=case.rotary_dim // 2))
    for value in values:
        require_number(value, "factors", above=0.0)
    return case.drop_scaling().replace(divisors=tuple(float(value) for value in values), attention=attention)


@rule("yarn-original", has_type("yarn"))
def need_original(case: Case) -> Case:
    """yarn without original_max_position_embeddings in the dict raises KeyError at conversion."""
    # A length at the top is written into a flat dict before.
    if not case.nested and case.top_original is not None:
        case = assume(**{ORIGINAL: case.top_original})(case)
    return require(ORIGINAL)(case) if case.rope.get("factor") is not None else case


@rule("llama3-tensor", has_type("llama3"), has(FACTS, "llama3_tensor"))
def write_llama3_tensor(case: Case) -> Case:
    """llama3 becomes a tensor of divisors."""
    defaults: Mapping[str, Any] = {ORIGINAL: case.top_original or 8192}
    case = order_bands(assume(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **defaults)(case))
    scaled, plain = (compute_frequencies(one, build_spec(one)) for one in (case, case.drop_scaling()))
    return case.drop_scaling().replace(divisors=tuple(float(value) for value in plain / scaled))


@rule("gemma4-tensor", has_type("proportional"), has(FACTS, "proportional_tensor"))
def write_proportional_tensor(case: Case) -> Case:
    """proportional becomes a tensor of divisors; factor is ignored."""
    rotated = int(case.share * case.head_dim // 2)
    divisors = tuple(1.0 if i < rotated else FAR for i in range(case.head_dim // 2))
    return shared.set_share(case.drop_scaling().replace(divisors=divisors), 1.0)


@rule("hunyuan-alpha", has_type("dynamic"), has(FACTS, "hunyuan_alpha"))
def write_alpha_base(case: Case) -> Case:
    """Conversion writes the base with Hunyuan's alpha applied."""
    default = float(case.architecture.runtime(FACTS)["hunyuan_alpha"])
    alpha = case.number("alpha", default)
    expected = case.base == 10_000.0 and case.limit in (1 << 15, 1 << 18)
    # Only the class of the mixture-of-experts model asserts these two.
    if not expected or (default == 1000.0 and (alpha != 1000.0 or case.head_dim != 128)):
        raise Refused(TEXTS("gguf_converter.assertionerror_hunyuan"))
    return static_base(lambda _: alpha)(case)


def writes_no_scaling(case: Case) -> bool:
    """Return whether no scaling is written, nor a tensor for it."""
    return has(FACTS, "unscaled")(case) and not (case.kind == "llama3" and has(FACTS, "llama3_tensor")(case))


CANCEL_FACTOR = Rule(
    "deepseek-v4",
    "gguf_converter.deepseek_v4",
    lambda case: case.replace(attention=1.0 / mscale(case.number("factor"))),
    all_hold(has(FACTS, "deepseek_v4_yarn"), has_type("yarn")),
)

IGNORE_TRUNCATE = Rule("truncate-ignored", "gguf_converter.truncate_ignored", ignore("truncate"))

IGNORE_BETAS = Rule(
    "betas-ignored",
    "gguf_converter.betas_ignored",
    ignore("beta_fast", "beta_slow"),
    is_not(has(FACTS, "reads_betas")),
)

RULES = (
    refuse("gguf_converter.converter_class", shared.is_absent(FACTS)),
    shared.rename_su,
    shared.share_base,
    write_share,
    Rule(
        "base-not-written",
        "gguf_converter.base_not_written",
        lambda case: case.drop_scaling().replace(base=10_000.0),
        has(FACTS, "bare"),
    ),
    write_as_given,
    write_inner_base,
    write_linear,
    Rule(
        "scaling-not-written",
        "gguf_converter.scaling_not_written",
        Case.drop_scaling,
        writes_no_scaling,
    ),
    write_lists,
    Rule(
        "sliding-plain",
        "gguf_converter.sliding_plain",
        Case.drop_scaling,
        all_hold(has(FACTS, "plain_sliding"), lambda case: case.layer == "sliding_attention"),
    ),
    need_original,
    # The conversion of Ministral 3 asserts yarn and reads mscale_all_dim.
    refuse("gguf_converter.assertionerror_ministral3", has(FACTS, "ministral3_yarn"), is_not(has_type("yarn"))),
    refuse(
        "gguf_converter.keyerror_mscale_all_dim",
        has(FACTS, "ministral3_yarn"),
        lambda case: case.rope.get("mscale_all_dim") is None,
    ),
    refuse(
        "gguf_converter.valueerror_rope_freqs",
        has_type("llama3"),
        has(FACTS, "no_llama3_tensor"),
    ),
    write_llama3_tensor,
    Rule("llama3-dropped", "gguf_converter.llama3_dropped", Case.drop_scaling, has_type("llama3")),
    refuse(
        "gguf_converter.assertionerror_full",
        has(FACTS, "proportional_tensor"),
        is_not(has_type("proportional")),
        lambda case: case.layer != "sliding_attention",
    ),
    write_proportional_tensor,
    write_alpha_base,
    Rule("dynamic-dropped", "gguf_converter.dynamic_dropped", Case.drop_scaling, has_type("dynamic")),
    Rule("longrope-dropped", "gguf_converter.longrope_dropped", Case.drop_scaling, has_type("longrope")),
    Rule(
        "no-factor",
        "gguf_converter.no_factor",
        Case.drop_scaling,
        all_hold(has_type("linear", "yarn"), lambda case: case.rope.get("factor") is None),
    ),
    Rule(
        "unknown-type",
        "gguf_converter.unknown_type",
        Case.drop_scaling,
        is_not(has_type("default", "linear", "yarn")),
    ),
    IGNORE_TRUNCATE,
    Rule(
        "attention-ignored",
        "gguf_converter.attention_ignored",
        ignore("attention_factor", "attn_factor"),
    ),
    IGNORE_BETAS,
    CANCEL_FACTOR,
    Rule(
        "mscale-ignored",
        "gguf_converter.mscale_ignored",
        ignore("mscale", "mscale_all_dim"),
        lambda case: not case.mla and not has(FACTS, "reads_log_mul")(case),
    ),
)
"""What conversion, the loader and the context leave, before any flag."""


def is_gguf_file(case: Case) -> bool:
    """Return whether the config was read from a GGUF file, so that nothing is converted."""
    return source_file(case.fields.config).get("format") == "GGUF"


def is_unknown_architecture(case: Case) -> bool:
    """Return whether llama.cpp has no such architecture as the GGUF file names."""
    return source_file(case.fields.config)["architecture"] not in LOADER["architectures"]


@rule("read-from-gguf")
def read_gguf_keys(case: Case) -> Case:
    """The loader takes base, scaling and divisors from the keys and tensors of the GGUF file."""
    source = source_file(case.fields.config)
    keys, divisors, rotary = source["keys"], source["divisors"], source["rotary_dim"]
    windows = find_window_rules(source["architecture"])
    is_compressed, is_plain = case.layer == "compress", case.layer == "main"
    base = keys.get("rope.freq_base", 10_000.0)
    # Where the layers without a window do not rotate, the only embedding is that of the others.
    is_local = case.layer == "sliding_attention" or case.architecture.layers.rotating.startswith("sliding")
    if windows is not None and is_local:
        default = base if windows.base else 10_000.0
        base = base if windows.main_only else keys.get("rope.freq_base_swa", default)
        rotary = keys.get("rope.dimension_count_swa", keys.get("rope.dimension_count", rotary))
        is_plain = not windows.scaled
    elif is_compressed:
        base = keys.get("attention.compress_rope_freq_base", base)
    case = write_base(shared.set_share(case.replace(head_dim=int(rotary)), 1.0), base)
    original = keys.get("rope.scaling.original_context_length", keys["context_length"])
    kind = "default" if is_plain else keys.get("rope.scaling.type", "linear")
    factor = keys.get("rope.scaling.factor", keys.get("rope.scale_linear")) or 1.0
    rope = {"rope_type": kind, "factor": factor, ORIGINAL: original} if kind in ("linear", "yarn") else {}
    if kind == "yarn":
        rope |= {name: keys[key] for name, key in BETAS.items() if key in keys}
        # No key of the file says it, but the class of the model may.
        rope |= {"truncate": False} if case.rope.get("truncate") is False else {}
    log_mul = keys.get("rope.scaling.yarn_log_multiplier")
    if log_mul is not None:
        rope["mscale_all_dim"] = log_mul * (10.0 if source["architecture"] in TENTHS else 1.0)
    longer = case.length is not None and pad_context(case.length) > original
    names = ("rope_freqs.weight", f"rope_factors_{'long' if longer else 'short'}.weight")
    used = next((divisors[name] for name in names if name in divisors), None)
    attention = keys.get("rope.scaling.attn_factor")
    return case.replace(
        rope=rope,
        context=int(keys["context_length"]),
        divisors=() if used is None or is_plain else tuple(used),
        attention=None if attention is None or is_plain else float(attention),
    )


BETAS = {"beta_fast": "rope.scaling.yarn_beta_fast", "beta_slow": "rope.scaling.yarn_beta_slow"}
FILE_RULES = (
    refuse("gguf_converter.unknown_model", is_unknown_architecture),
    read_gguf_keys,
    IGNORE_TRUNCATE,
    IGNORE_BETAS,
    CANCEL_FACTOR,
)
"""What the loader takes from a GGUF file that the user has, in place of `RULES`."""
