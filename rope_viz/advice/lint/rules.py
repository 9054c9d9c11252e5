"""The rules of the check about the scaling method and its keys, one function each; those on sizes are in `shapes`.

A rule takes a `View` and yields what it finds. It may raise `ValueError`, where the config cannot be read far enough.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from rope_viz.advice.lint.contradictions import (
    heads_do_not_divide,
    layer_types_unknown,
    out_of_range,
    part_without_type,
    two_rope_dicts,
    unread_rope_keys,
)
from rope_viz.advice.lint.lengths import not_as_shipped, trained_length
from rope_viz.advice.lint.lint_context import Finding, Severity, Site, View, inside
from rope_viz.advice.lint.multi_axis_rules import (
    interleaving_by_another_key,
    no_rotation,
    pairs_that_stand_still,
    sections_do_not_add_up,
)
from rope_viz.advice.lint.runtime_rules import runtimes_differ, transformers_refuses, type_spelling
from rope_viz.advice.lint.size_rules import (
    base_not_read,
    base_too_small,
    head_dim_derived,
    null_head_dim,
    partial_ignored,
    remote_dynamic_ntk,
    scaled_sliding,
    scaled_window,
    some_layers,
    unlisted_type,
)
from rope_viz.embedding.scaling import DynamicNtk, mscale
from rope_viz.embedding.spec import shorten
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import PRETRAINED_TYPES, number, optional
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import Effect, largest

ORIGINAL = "original_max_position_embeddings"

# {rope type: keys that some reader reads for it}; the first row is read for all.
READ = {
    "": "rope_type type rope_theta partial_rotary_factor mrope_section mrope_interleaved finetuned rope_dim use_fope "
    "interleaved xdrope_section",
    "default": "num_key_value_heads num_inv_freq fope_sep_head fope_init_factor llama_4_scaling_beta factor",
    "linear": "factor",
    "dynamic": f"factor alpha max_trained_positions {ORIGINAL} mscale mscale_all_dim beta_fast beta_slow",
    "yarn": f"factor {ORIGINAL} attention_factor beta_fast beta_slow mscale mscale_all_dim truncate "
    "extrapolation_factor attn_factor apply_yarn_scaling apply_scale llama_4_scaling_beta",
    "llama3": f"factor {ORIGINAL} low_freq_factor high_freq_factor",
    "longrope": f"factor {ORIGINAL} short_factor long_factor attention_factor short_mscale long_mscale",
    "proportional": "factor",
}
EVERY_KEY = sorted({word for words in READ.values() for word in words.split()})


def missing_original(view: View) -> Iterator[Finding]:
    """The trained length is missing, and every runtime puts another number in its place.

    Source: transformers 5.23.0 standardize_rope_params; the documentation of Qwen3, whose 40960 are 32768 and 8192 for
    the prompt; values from executed runtimes (tests/goldens/runtimes.json).
    """
    outer = view.fields.number(ORIGINAL)
    for site in view.sites:
        if site.kind not in PRETRAINED_TYPES or site.rope.get(ORIGINAL) is not None:
            continue
        if outer is not None and site.layers == ("",):
            continue
        qwen3 = view.fields.kind.startswith("qwen3") and view.limit == 40960
        right = 32768 if qwen3 else view.limit
        repaired = view.changed(site.path, **{ORIGINAL: right})
        effect = view.effect(repaired, site.layers[0]) or between_runtimes(view, site)
        assumed = (
            f"transformers, vLLM and SGLang silently take max_position_embeddings = {view.limit}, "
            "mlx-lm 4096, TensorRT-LLM 1024, and llama.cpp's conversion fails"
        )
        meant = " This model was trained on 32768 tokens; the other 8192 are room for the prompt." if qwen3 else ""
        yield Finding("", "error", site.key, f"{ORIGINAL} is missing: {assumed}.{meant}", effect, repaired)


def between_runtimes(view: View, site: Site) -> Effect | None:
    """The largest ratio between transformers and mlx-lm for this config."""
    layer = site.layers[0] or None
    ours, theirs = (
        emulate(view.config, runtime=name, layer_type=layer).inv_freq for name in ("transformers", "mlx-lm")
    )
    return None if ours is None or theirs is None else largest(ours, theirs)


def factor_mismatch(view: View) -> Iterator[Finding]:
    """YaRN's factor is not max_position_embeddings over the trained length.

    Source: https://github.com/huggingface/transformers/issues/38224 (4.52 uses the ratio and ignores the factor) and
    the warning of transformers 5.23.0 validate_rope.
    """
    for site in view.sites:
        if site.kind != "yarn" or site.rope.get("factor") is None:
            continue
        factor, layer = number(dict(site.rope), "factor"), site.layers[0]
        spec = view.specs[layer]
        ratio = view.limit / spec.context
        if ratio == 1.0 or abs(ratio / factor - 1.0) < 1e-6:
            continue
        reached = factor * spec.context
        if view.limit > reached:
            repaired = view.changed(site.path, factor=ratio)
            meant = f"the factor reaches {reached:,.0f} tokens only; for {view.limit:,} it must be {ratio:g}"
        else:
            repaired = view.changed(view.root, max_position_embeddings=int(reached))
            meant = f"with this factor max_position_embeddings must be {reached:,.0f}"
        old = emulate(view.config, runtime="transformers", version="4.52.4", layer_type=layer or None).inv_freq
        effect = view.effect(repaired, layer) or (None if old is None else largest(spec.inv_freq(), old))
        text = f"factor {factor:g} is not max_position_embeddings / {ORIGINAL} = {ratio:g}: {meant}. "
        # A few hundred tokens that are promised and not used change nothing but what 4.52 computes, and hardly that.
        severity: Severity = "note" if 1.0 < factor / ratio < 1.05 else "warning"
        yield Finding("", severity, f"{site.key}.factor", text + "transformers 4.52 uses the ratio.", effect, repaired)


def swapped_betas(view: View) -> Iterator[Finding]:
    """beta_fast below beta_slow, or high_freq_factor below low_freq_factor: the fast pairs are divided, the slow kept.

    Source: the warning of transformers 5.23.0 validate_rope; a published config with beta_fast 1 and beta_slow 32.
    """
    for site in view.sites:
        names = {"yarn": ("beta_fast", "beta_slow"), "llama3": ("high_freq_factor", "low_freq_factor")}.get(site.kind)
        if names is None:
            continue
        defaults = (32.0, 1.0) if site.kind == "yarn" else (4.0, 1.0)
        high, low = (number(dict(site.rope), name, default) for name, default in zip(names, defaults, strict=True))
        if high >= low:
            continue
        repaired = view.changed(site.path, **{names[0]: low, names[1]: high})
        text = f"{names[0]} {high:g} is below {names[1]} {low:g}: they are swapped."
        yield Finding("", "error", f"{site.key}.{names[0]}", text, view.effect(repaired, site.layers[0]), repaired)


def integer_factor(view: View) -> Iterator[Finding]:
    """A linear factor written as a JSON integer: vLLM 0.33.0 and SGLang 0.5.23 raise TypeError.

    Source: both executed with factor 2 in place of 2.0.
    """
    for site in view.sites:
        factor = site.rope.get("factor")
        if site.kind == "linear" and isinstance(factor, int) and not isinstance(factor, bool):
            text = f"factor {factor} is an integer: vLLM and SGLang raise TypeError: 'int' object is not iterable."
            yield Finding("", "error", f"{site.key}.factor", text, None, view.changed(site.path, factor=float(factor)))


def nested_truncate(view: View) -> Iterator[Finding]:
    """truncate: false in parameters that are nested by layer type: transformers reads it from the outer dict.

    Source: transformers 5.23.0 _compute_yarn_parameters, run: the result is that of truncate: true bit for bit.
    """
    for site in view.sites:
        if site.kind != "yarn" or site.rope.get("truncate", True) or site.layers == ("",):
            continue
        layer = site.layers[0]
        ours = view.specs[layer].inv_freq()
        theirs = emulate(view.config, runtime="vllm", layer_type=layer).inv_freq
        effect = None if theirs is None else largest(ours, theirs)
        text = "truncate: false is ignored by transformers where parameters differ by layer type; vLLM honours it."
        yield Finding("", "warning", f"{site.key}.truncate", text, effect)


def type_keys(view: View) -> Iterator[Finding]:
    """The old key "type" against the new one "rope_type".

    Source: vLLM 0.33.0 patch_legacy_rope_type raises where they differ; phi3.py and internlm2.py of mlx-lm 0.32.2 and
    Phi3Config before transformers 5 insist on "type"; Cohere and Granite before 5 on "rope_type".
    """
    for site in view.sites:
        new, old = site.rope.get("rope_type"), site.rope.get("type")
        if old is None or new == old:
            continue
        if new is None:
            text = f'The type stands under the old key "type": {shorten(old)}; some readers know "rope_type" only.'
            renamed = view.changed(site.path, rope_type=old)
            severity, repaired = (
                "note",
                None if view.fields.architecture.runtime("mlx-lm").get("legacy_type") else renamed,
            )
            yield Finding("", "note" if severity == "note" else "error", f"{site.key}.type", text, None, repaired)
            continue
        if [old, new] in (["su", "longrope"], ["mrope", "default"]):
            continue
        text = (
            f"rope_type {shorten(new)} and type {shorten(old)} differ: transformers reads the first, others the second."
        )
        yield Finding("", "error", f"{site.key}.type", text, None, view.changed(site.path, type=None))


def mscale_keys(view: View) -> Iterator[Finding]:
    """mscale and mscale_all_dim on a model that is not of DeepSeek's kind, or one of them alone.

    Source: https://github.com/turboderp-org/exllamav3/issues/259 and executed runtimes: the pair sets the factor on cos
    and sin to their ratio, often 1; llama.cpp ignores it; mscale alone counts in mlx-lm and TensorRT-LLM only.
    """
    for site in view.sites:
        if site.kind != "yarn":
            continue
        pair = [optional(dict(site.rope), key) for key in ("mscale", "mscale_all_dim")]
        explicit, factor = site.rope.get("attention_factor"), number(dict(site.rope), "factor", 1.0)
        usual = view.fields.default("rope_parameters") or {}
        trained = pair == [optional(usual, key) for key in ("mscale", "mscale_all_dim")]
        if explicit is not None or view.mla or pair == [None, None] or trained:
            continue
        if pair[0] and pair[1]:
            ratio = mscale(factor, pair[0]) / mscale(factor, pair[1])
            text = (
                f"mscale {pair[0]:g} and mscale_all_dim {pair[1]:g} make the factor on cos and sin {ratio:.4g} in "
                f"place of {mscale(factor):.4g}, as for DeepSeek, whose softmax scale makes up for it."
            )
            yield Finding("", "warning", f"{site.key}.mscale", text)
        elif pair[0] not in (None, 1.0):
            text = (
                f"mscale {pair[0]:g} without mscale_all_dim is used by mlx-lm and TensorRT-LLM and ignored elsewhere."
            )
            yield Finding("", "warning", f"{site.key}.mscale", text, None, view.changed(site.path, mscale=None))


def attention_factor(view: View) -> Iterator[Finding]:
    """An explicit attention_factor that is not what the method computes: most runtimes ignore it.

    Source: executed runtimes: transformers and vLLM use it for YaRN; SGLang, llama.cpp, mlx-lm and TensorRT-LLM do not;
    for LongRoPE transformers alone does.
    """
    for site in view.sites:
        explicit = optional(dict(site.rope), "attention_factor")
        if explicit is None or site.kind not in ("yarn", "longrope"):
            continue
        without = from_config(view.changed(site.path, attention_factor=None))[site.layers[0]].attention_factor()
        if abs(explicit - without) <= 1e-6 * abs(without):
            continue
        users = "transformers and vLLM only" if site.kind == "yarn" else "transformers only"
        text = f"attention_factor {explicit:g} is used by {users}; the other runtimes compute {without:.6g}."
        yield Finding("", "warning", f"{site.key}.attention_factor", text)


def longrope_lists(view: View) -> Iterator[Finding]:
    """LongRoPE lists that do not have one number per pair.

    Source: transformers 5.23.0 _validate_longrope_rope_parameters warns and then fails on the shapes.
    """
    for site in view.sites:
        if site.kind != "longrope":
            continue
        share = optional(view.layers[site.layers[0]], "partial_rotary_factor")
        pairs = (int(view.fields.head_dim() * (1.0 if share is None else share)) + 1) // 2
        for key in ("short_factor", "long_factor"):
            values = site.rope.get(key)
            if isinstance(values, list) and len(values) != pairs:
                text = f"{key} has {len(values)} numbers and the model {pairs} pairs."
                yield Finding("", "error", f"{site.key}.{key}", text)


def longrope_switch(view: View) -> Iterator[Finding]:
    """The length at which LongRoPE changes its list, inside the context or out of reach.

    Source: https://github.com/ggml-org/llama.cpp/issues/8995, https://github.com/huggingface/transformers/pull/33129;
    vLLM 0.33.0 serves at most the trained length by default.
    """
    for site in view.sites:
        if site.kind != "longrope":
            continue
        spec = view.specs[site.layers[0]]
        effect = largest(spec.inv_freq(spec.context), spec.inv_freq(spec.context + 1))
        if spec.context >= spec.target:
            text = (
                f"The switch at {spec.context:,} tokens is not below max_position_embeddings: no use for long_factor."
            )
            yield Finding("", "warning", f"{site.key}.{ORIGINAL}", text, effect)
        elif effect is not None:
            text = (
                f"Beyond {spec.context:,} tokens the long list takes over: keys cached before keep the short one, "
                f"and vLLM serves at most {spec.context:,} tokens unless max_model_len is set."
            )
            yield Finding("", "note", f"{site.key}.{ORIGINAL}", text, effect)


def two_originals(view: View) -> Iterator[Finding]:
    """Two trained lengths that differ, one in the rope dict and one outside.

    Source: transformers 5.23.0 standardize_rope_params: the outer one wins; releases before 5 read the inner one for
    YaRN and the outer one for LongRoPE.
    """
    for site in view.sites:
        inner, outer = site.rope.get(ORIGINAL), view.text.get(ORIGINAL)
        if site.kind not in PRETRAINED_TYPES or inner is None or outer is None or inner == outer:
            continue
        text = f"{ORIGINAL} is {shorten(outer)} outside the rope dict and {shorten(inner)} inside; the outer one wins."
        repaired = view.changed(site.path, **{ORIGINAL: outer})
        yield Finding("", "error", f"{site.key}.{ORIGINAL}", text, None, repaired)


def dynamic_cache(view: View) -> Iterator[Finding]:
    """Dynamic NTK with a KV cache: cached keys keep the base of the length at which they were computed.

    Source: https://github.com/huggingface/transformers/issues/25104; vLLM and SGLang use one static base
    (https://github.com/vllm-project/vllm/issues/3488), llama.cpp none, all executed.
    """
    for site in view.sites:
        if site.kind != "dynamic":
            continue
        spec = view.specs[site.layers[0]]
        if not isinstance(spec.scaling, DynamicNtk):
            continue  # Hunyuan's alpha makes the base a constant
        longest = int(spec.context * max(number(dict(site.rope), "factor", 1.0), 1.0))
        effect = largest(spec.inv_freq(), spec.inv_freq(longest))
        text = (
            "dynamic changes its base with the length, but keys in the cache keep the old one; vLLM never scales by "
            "default, SGLang always by the largest base, llama.cpp not at all."
        )
        yield Finding("", "note", site.key, text, effect)


def unknown_keys(view: View) -> Iterator[Finding]:
    """A key of the rope dict that nobody reads for this type.

    Source: the keys that the executed runtimes read, and the warning of transformers 5.23.0 _check_received_keys.
    """
    for site in view.sites:
        read = {*READ[""].split(), *READ[site.kind].split()}
        for key in site.rope:
            if key in read or isinstance(site.rope[key], dict):
                continue
            close = [name for name in difflib.get_close_matches(key, sorted(read), 1, 0.75) if name not in site.rope]
            if key in EVERY_KEY:
                text, repaired = f"{key} is not read for rope type {site.kind}.", view.changed(site.path, **{key: None})
            elif close:
                text = f"{shorten(key)} is read by nobody; {close[0]} is meant?"
                repaired = view.changed(site.path, **{key: None, close[0]: inside(view.config, (*site.path, key))})
            else:
                text, repaired = f"{shorten(key)} is read by nobody.", None
            yield Finding("", "warning", f"{site.key}.{shorten(key).strip(chr(39))}", text, None, repaired)


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    missing_original,
    trained_length,
    not_as_shipped,
    factor_mismatch,
    swapped_betas,
    integer_factor,
    out_of_range,
    base_not_read,
    remote_dynamic_ntk,
    nested_truncate,
    type_spelling,
    type_keys,
    scaled_sliding,
    scaled_window,
    head_dim_derived,
    null_head_dim,
    partial_ignored,
    mscale_keys,
    attention_factor,
    longrope_lists,
    longrope_switch,
    two_originals,
    two_rope_dicts,
    unread_rope_keys,
    part_without_type,
    layer_types_unknown,
    heads_do_not_divide,
    dynamic_cache,
    base_too_small,
    unknown_keys,
    unlisted_type,
    some_layers,
    sections_do_not_add_up,
    interleaving_by_another_key,
    pairs_that_stand_still,
    no_rotation,
    transformers_refuses,
    runtimes_differ,
)
