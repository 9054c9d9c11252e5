"""The rules of the check about sizes, layers and the base, one function each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rope_viz.advice.lint.lint_context import (
    TEXTS,
    Config,
    Finding,
    Severity,
    find_dict,
    measure_effect,
    place_of,
    write_keys,
)
from rope_viz.models.identity.shipped_scaling import family_name, is_factor_for_length
from rope_viz.models.layer_patterns import describe_rotated_shares, describe_rotating_layers
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import describe_doubt, describe_other_code
from rope_viz.models.rope_config import FIXED_NTK, ORIGINAL, read_optional
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import find_max_ratio
from rope_viz.texts import join
from rope_viz.texts.sentences import is_made_from
from rope_viz.texts.texts import join_list

NULL_KEYS = (
    "transformers.null_head",
    *(
        f"transformers_validation.{name}"
        for name in ("null_leave", "null_leave_out", "sliding_window_null", "sliding_window_pattern_null")
    ),
)
"""Texts of runtimes about a key that is null."""


def trained_length(model: ModelConfig) -> Iterator[Finding]:
    """A length that the model was not trained for; only for models of the list, recognised by their numbers.

    max_position_embeddings was raised without scaling, or the factor counts from another than the trained length.

    Source: the trained length and the documented extensions of rope_viz.models.catalog, each with its source.
    """
    if all(spec.is_scaled and not spec.scaling.reaches_factor for spec in model.specs.values()):
        return
    found = model.identity
    window = model.find_layer_window(found.layer)
    for text in found.mistakes:
        site = find_dict(model, found.layer)
        if not found.spec.is_scaled:
            if window is not None and window <= found.trained.length:
                continue  # a longer limit alone is right: no distance exceeds the window, so no angle is new
            repaired = as_documented(model, found.model.documented if found.model else (), found.says)
            effect = None if repaired is None else measure_effect(model, repaired, found.layer)
            yield Finding("", "warning", place_of(model, "max_position_embeddings"), text, effect, repaired)
        elif site is not None and site.rope.get(ORIGINAL) is not None:
            changes: dict[str, Any] = {ORIGINAL: found.trained.length}
            if site.kind == "yarn" and site.rope.get("factor") is not None:
                changes["factor"] = site.number("factor") * found.spec.context / found.trained.length
            repaired = write_keys(model, site.path, **changes)
            effect = measure_effect(model, repaired, found.layer)
            yield Finding("", "warning", f"{site.key}.{ORIGINAL}", text, effect, repaired)


def not_as_shipped(model: ModelConfig) -> Iterator[Finding]:
    """Another scaling than the one that the model was trained with; only for models of the list.

    A note if it is a factor for another length, or if the config is of a fine-tune, which may have trained with it.
    A warning for any other key, and if the scaling is missing in a config of the full length.

    Source: the model's own config.json in rope_viz.models.catalog, each with its source.
    """
    found = model.identity
    theirs, ours = found.shipped, found.spec
    # A wrong trained length has its own rule.
    departs = {key: text for key, text in found.departs.items() if key != ORIGINAL or not found.mistakes}
    if found.model is None or theirs is None or not departs:
        return
    if not ours.is_scaled and ours.target <= found.trained.length:
        return
    fine_tune = found.how == "fine-tune" and ours.is_scaled
    severity: Severity = "note" if fine_tune or is_factor_for_length(ours, theirs, found.departs) else "warning"
    site = find_dict(model, found.layer)
    # Where there is no scaling, no single key is at fault.
    keys = site.rope if site is not None and ours.is_scaled else ()
    key = next((key for key in departs if key in keys), "")
    place = ".".join(part for part in (place_of(model, "rope_scaling") if site is None else site.key, key) if part)
    text = TEXTS(
        "not-as-shipped.message",
        differences=join_list([*departs.values()], more="end"),
        model=family_name(found.model),
    )
    if severity == "note":
        text = join(text, TEXTS("not-as-shipped.further"))
    length = min(ours.target, theirs.target)
    yield Finding("", severity, place, text, find_max_ratio(ours.inv_freq(length), theirs.inv_freq(length)))


def as_documented(model: ModelConfig, documented: Sequence[Mapping[str, Any]], length: int) -> Config | None:
    """Return the config with the extension that its maker documented for this length; None where there is none."""
    rope = next((one["rope_scaling"] for one in documented if one["to"] == length), None)
    if rope is None:
        return None
    if model.text.get("rope_scaling") or not model.text.get("rope_parameters"):
        return write_keys(model, model.path, rope_scaling=dict(rope))
    return None if model.rope_parameters.keys() - {""} else write_keys(model, (*model.path, "rope_parameters"), **rope)


def unlisted_type(model: ModelConfig) -> Iterator[Finding]:
    """A model type, or a wrapper's, whose code was not read: the general rules may not apply to it.

    Source: the types of transformers 5.23.0 and those of records with remote_code.
    """
    text = describe_doubt(model.fields)
    if text:
        yield Finding("", "note", "model_type", text)


def two_codes(model: ModelConfig) -> Iterator[Finding]:
    """A model type that two published codes share, which compute different frequencies.

    Source: the codes that travel with the models, executed or read; the record of the type names them.
    """
    text = describe_other_code(model.fields)
    if text:
        yield Finding("", "warning", place_of(model, "model_type"), text)


def remote_dynamic_ntk(model: ModelConfig) -> Iterator[Finding]:
    """use_dynamic_ntk of Qwen 1 is read only by the model's own code, for lengths beyond the trained one.

    Source: public copies of modeling_qwen.py (get_ntk_alpha, update_rotary_pos_emb_cache), read, not executed: for a
    prompt of n tokens α = 2^⌈log2(n / seq_length) + 1⌉ − 1, at least 1, and the base times α^(d / (d − 2)).
    models/qwen.py of vLLM and of mlx-lm, read at one commit each, do not read the key.
    """
    if model.fields.architecture.rope.rule != "qwen1" or model.text.get("use_dynamic_ntk") is not True:
        return
    spec = model.specs[model.main_layer]
    length, dim = model.fields.size("seq_length") or spec.context, spec.rotary_dim
    grown = replace(spec, base=spec.base * 3.0 ** (dim / (dim - 2))) if dim > 2 else spec
    text = join(
        TEXTS("remote-dynamic-ntk.message", length=length, doubled=2 * length, fourfold=4 * length),
        TEXTS("remote-dynamic-ntk.logn") if model.text.get("use_logn_attn") else "",
    )
    effect = find_max_ratio(spec.inv_freq(), grown.inv_freq())
    yield Finding("", "note", place_of(model, "use_dynamic_ntk"), text, effect)


def fixed_ntk(model: ModelConfig) -> Iterator[Finding]:
    """Type "ntk" is read by vLLM and by the code of the GTE models; transformers has no function for it.

    Source: get_rope of vLLM 0.33.0 and NTKScalingRotaryEmbedding, executed (tests/goldens/fixed_ntk.json).
    """
    for site in model.rope_dicts:
        if site.kind == FIXED_NTK:
            text = TEXTS("fixed-ntk.message")
            yield Finding("", "note", site.key, text)


def dual_chunk_attention(model: ModelConfig) -> Iterator[Finding]:
    """Dual chunk attention, which keeps distances within a chunk; few runtimes have it.

    Source: vLLM 0.33.0, get_rope (its first branch; no attention backend: vllm-project/vllm#49296); transformers
    5.23.0, whose classes do not read the key.
    """
    if isinstance(model.text.get("dual_chunk_attention_config"), Mapping):
        text = TEXTS("dual-chunk-attention.message")
        yield Finding("", "note", place_of(model, "dual_chunk_attention_config"), text)


def base_not_read(model: ModelConfig) -> Iterator[Finding]:
    """The base of DBRX is only in attn_config, where vLLM, SGLang and mlx-lm read it and transformers does not.

    Source: transformers 5.23.0, executed: DbrxConfig uses base 10000 in rope_parameters despite
    attn_config.rope_theta.
    """
    spec = model.specs.get("")
    if spec is None or not model.fields.architecture.runtime("transformers").get("dbrx_base"):
        return
    theirs = emulate(model, runtime="transformers").inv_freq
    effect = None if theirs is None else find_max_ratio(spec.inv_freq(), theirs)
    if effect is None:
        return
    text = TEXTS("base-not-read.message", base=spec.base)
    repaired = write_keys(model, (), rope_theta=spec.base)
    yield Finding("", "warning", place_of(model, "attn_config", "rope_theta"), text, effect, repaired)


def some_layers(model: ModelConfig) -> Iterator[Finding]:
    """Only some layers rotate, or different types of layers rotate different shares of a head.

    Source: the models of transformers 5.23.0, executed with random weights (tests/goldens/turning.json).
    """
    for text in (describe_rotating_layers(model.fields), describe_rotated_shares(model.fields)):
        if text:
            yield Finding("", "note", "", text)


def scaled_sliding(model: ModelConfig) -> Iterator[Finding]:
    """Scaling on sliding-window layers, whose distances never leave the window.

    Source: https://github.com/ggml-org/llama.cpp/issues/14367 (Gemma 3's factor belongs to the global layers only);
    transformers 5.23.0 applies an old rope_scaling of ModernBERT to both layer types.
    """
    spec = model.specs.get("sliding_attention")
    if spec is None or "full_attention" not in model.specs or not spec.is_scaled:
        return
    effect, site = find_max_ratio(spec.inv_freq(), spec.plain_inv_freq), find_dict(model, "sliding_attention")
    if site is None or effect is None:
        return
    plain = {"rope_type": "default", "rope_theta": spec.base}
    if site.path[-1] == "sliding_attention":
        repaired = write_keys(model, site.path[:-1], sliding_attention=plain)
    else:
        nested = {"full_attention": dict(model.rope_parameters["full_attention"]), "sliding_attention": plain}
        repaired = write_keys(model, model.path, rope_scaling=None, rope_parameters=nested)
    text = TEXTS("scaled-sliding.message", name=spec.scaling.name)
    yield Finding("", "warning", site.key, text, effect, repaired)


def scaled_window(model: ModelConfig) -> Iterator[Finding]:
    """Scaling where all rotating layers attend within a window or a chunk, so that no distance exceeds it.

    Source: the attention masks of transformers 5.23.0 (Command R7B, Exaone 4: windows; Llama 4: chunks of 8192).
    """
    size = model.window
    for site in model.rope_dicts:
        spec = model.specs[site.layer]
        if size is None or not spec.is_scaled or size > spec.context:
            continue
        effect = find_max_ratio(spec.inv_freq(), spec.plain_inv_freq)
        text = TEXTS("scaled-window.message", size=size, name=spec.scaling.name)
        yield Finding("", "note", site.key, text, effect)


def head_dim_derived(model: ModelConfig) -> Iterator[Finding]:
    """head_dim is not hidden_size / num_attention_heads: runtimes that derive it compute other frequencies.

    Source: mlx-lm 0.32.2 (qwen2.py, phi3.py and others) and transformers 4.43.4, which do not read head_dim.
    """
    given = model.text.get("head_dim")
    if given is None or model.fields.has_latent_attention:
        return
    derived = derive_head_dim(model)
    if given == derived:
        return
    for layer, spec in model.specs.items():
        if spec.head_dim != given or layer == "sliding_attention":
            continue
        other = from_config(write_keys(model, model.path, head_dim=derived)).get(layer)
        effect = None if other is None else find_max_ratio(spec.inv_freq(), other.inv_freq())
        text = TEXTS("head-dim-derived.message", given=given, derived=derived)
        yield Finding("", "note", place_of(model, "head_dim"), text, effect)
        return


def class_head_dim(model: ModelConfig) -> Iterator[Finding]:
    """No head_dim in the file, and the default of the class is not hidden_size / num_attention_heads.

    Source: the configuration classes of transformers 5.24.0, executed; runtimes with classes of their own derive it.
    """
    fields = model.fields
    default = fields.architecture.defaults.get("head_dim")
    given = all(fields.raw(key) is not None for key in ("hidden_size", "num_attention_heads"))
    if (
        not given
        or default is None
        or fields.raw("head_dim") is not None
        or fields.architecture.head_size != "head_dim"
    ):
        return
    derived = derive_head_dim(model)
    if default == derived:
        return
    for layer, spec in model.specs.items():
        if spec.head_dim != default:
            continue
        other = from_config(write_keys(model, model.path, head_dim=derived)).get(layer)
        effect = None if other is None else find_max_ratio(spec.inv_freq(), other.inv_freq())
        text = TEXTS("class-head-dim.message", kind=fields.kind, default=default, derived=derived)
        yield Finding("", "warning", place_of(model, "head_dim"), text, effect)
        return


def null_head_dim(model: ModelConfig) -> Iterator[Finding]:
    """No head_dim, and the class leaves it null: transformers raises TypeError when RoPE is scaled.

    Source: MixtralConfig and MinistralConfig of transformers 5.23.0, executed.
    """
    for site in model.rope_dicts:
        result = emulate(model, runtime="transformers", layer_type=site.layer or None)
        if not result.supported and is_made_from(result.reason, *NULL_KEYS):
            text = TEXTS("null-head-dim.message", kind=site.kind)
            repaired = write_keys(model, model.path, head_dim=derive_head_dim(model))
            yield Finding("", "error", place_of(model, "head_dim"), text, None, repaired)
            return


def derive_head_dim(model: ModelConfig) -> int:
    """Return hidden_size / num_attention_heads."""
    return model.fields.required("hidden_size") // model.fields.required("num_attention_heads")


def partial_ignored(model: ModelConfig) -> Iterator[Finding]:
    """partial_rotary_factor on an architecture whose plain RoPE does not read it.

    Source: transformers 5.23.0, executed: LlamaConfig(partial_rotary_factor=0.5) rotates the whole head without scaling
    and half of it with linear scaling; vLLM 0.33.0 honours it always where it has a model file of its own.
    """
    if model.fields.architecture.partial_rotary:
        return
    for layer, params in model.rope_parameters.items():
        share, spec = read_optional(params, "partial_rotary_factor"), model.specs[layer]
        if share is None or share >= 1 or spec.is_scaled:
            continue
        theirs = emulate(model, runtime="vllm", layer_type=layer or None).inv_freq
        text = TEXTS(
            f"partial-ignored.{'but_vllm' if theirs is not None and theirs.size != spec.pairs else 'message'}",
            share=share,
        )
        yield Finding("", "warning", place_of(model, "partial_rotary_factor"), text)
        return


def base_too_small(model: ModelConfig) -> Iterator[Finding]:
    """The base is too small for the length: the mean cosine over the head turns negative inside the context.

    Source: Men et al., https://arxiv.org/abs/2405.14591, as a bound on plain RoPE; many models work beyond it.
    """
    if model.fields.has_latent_attention:
        return
    for layer, spec in model.specs.items():
        if layer == "sliding_attention" or spec.is_scaled:
            continue
        # Imported here, because scaled models do not need it.
        from rope_viz.studies.decay import first_negative_distance

        length = min(spec.context, model.window or spec.context)
        distance = first_negative_distance(spec, length)
        if distance is None:
            continue
        still = spec.head_dim - 2 * spec.pairs
        text = TEXTS(
            f"base-too-small.{'context' if length == spec.context else 'window'}",
            base=spec.base,
            counted=TEXTS("base-too-small.counted", still=still) if still else "",
            distance=distance,
            length=length,
        )
        # Always a note: the model was trained with this base.
        yield Finding("", "note", place_of(model, "rope_theta"), text)
