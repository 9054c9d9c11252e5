"""The rules of the check about runtimes that refuse a config or compute something else from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rope_viz.advice.lint.lint_context import (
    TEXTS,
    Config,
    Finding,
    find_dict,
    place_of,
    write_keys,
)
from rope_viz.embedding.spec import short_repr
from rope_viz.embedding.spectrum import find_peak
from rope_viz.models.edit_config import write_new_keys, write_old_keys
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.rope_config import ROPE_TYPES, normalise_rope_type
from rope_viz.models.text_config import find_inside
from rope_viz.runtimes import Emulation, emulate, emulate_case, read_case, resolve_release
from rope_viz.runtimes.compare import Comparison, compare, compare_with
from rope_viz.runtimes.longest_length import describe_derived_lengths, find_derived_lengths
from rope_viz.runtimes.releases import REFERENCE, RELEASES
from rope_viz.runtimes.transformers_validation import find_refusal
from rope_viz.texts import Sentence, join
from rope_viz.texts.sentences import is_made_from, remove_period
from rope_viz.texts.texts import join_clauses, join_items

LEAST = 1.05
"""A larger deviation of a frequency, or of the factor on cos and sin, is reported: 5 %."""
# Releases that are read for history: what they alone get wrong is worth a note.
OLD = tuple(("transformers", release) for release in RELEASES["transformers"].today[2:])
# Keys that a method can do without.
OPTIONAL_KEYS = frozenset(
    """
        attn_factor extrapolation_factor apply_yarn_scaling apply_scale attention_factor truncate mscale
        mscale_all_dim beta_fast beta_slow short_mscale long_mscale rope_dim
    """.split()
)


def runtimes_differ(model: ModelConfig) -> Iterator[Finding]:
    """A runtime computes other frequencies, or another factor on cos and sin, by more than 5 %.

    A warning if other keys repair it; a note if the runtime does not know the method.

    Source: rope_viz.runtimes, whose rules were read in the runtimes and are compared with the results of executing
    them (tests/goldens/runtimes.json, servers.json, releases.json, mlx.json).
    """
    for layer in model.specs:
        found = compare(model, layer_type=layer or None)
        off = [one for one in found if is_off(one)]
        # A method that only old releases do not know is not a fault of the config.
        past = all((one.emulation.runtime, one.emulation.version) in OLD for one in off)
        if past or not found[0].emulation.supported:
            continue
        repaired = find_better_spelling(model, layer, found)
        parts = [
            TEXTS("runtimes-differ.one", name=one.emulation.name, size=describe_size(one, found[0])) for one in off
        ]
        effects = [one.effect for one in off if one.effect]
        worst = effects[find_peak([math.log(one.ratio) for one in effects])] if effects else None
        text = join(
            TEXTS(f"runtimes-differ.{'layers' if layer else 'all'}", reference=REFERENCE, layer=layer),
            TEXTS("runtimes-differ.parts", parts=join_clauses(parts)),
            describe_repair(model, repaired),
        )
        yield Finding("", "note" if repaired is None else "warning", find_place(model, layer), text, worst, repaired)


def transformers_refuses(model: ModelConfig) -> Iterator[Finding]:
    """The newest transformers raises for this config, so the frequencies computed here do not apply.

    Source: the configuration and rotary classes of transformers 5.23.0, executed (tests/goldens/releases.json,
    refused.json).
    """
    if not model.fields.is_listed or model.fields.architecture.remote_code:
        return
    refusal = find_refusal(model.fields)
    if refusal is not None:
        text = TEXTS("transformers-refuses.values", reference=REFERENCE, message=refusal.message)
        repaired = write_keys(model, model.path, **{refusal.key: refusal.meant}) if refusal.is_repairable else None
        yield Finding("", "error", place_of(model, refusal.key), text, None, repaired)
        return
    for layer in model.specs:
        result = emulate(model, runtime="transformers", layer_type=layer or None)
        # A null size has its own rules.
        if result.supported or is_made_from(result.reason, "transformers.null_head"):
            continue
        site, repaired = find_dict(model, layer), None
        key = "transformers-refuses.layers" if layer else "transformers-refuses.all"
        text = TEXTS(key, reference=REFERENCE, layer=layer, reason=result.reason)
        if site is not None and site.kind == "yarn" and "factor" not in site.rope:
            factor = model.limit / model.specs[layer].context
            repaired = write_keys(model, site.path, factor=factor)
            text = join(text, TEXTS("transformers-refuses.factor", factor=factor))
        yield Finding("", "error", find_place(model, layer), text, None, repaired)
        return


def type_spelling(model: ModelConfig) -> Iterator[Finding]:
    """A rope type in another spelling, such as "YaRN": RoPE Viz reads it, but no runtime does.

    Source: ROPE_INIT_FUNCTIONS of transformers 5.23.0 and get_rope of vLLM 0.33.0, which look up the exact name.
    """
    for site in model.rope_dicts:
        for key in ("rope_type", "type"):
            given = site.rope.get(key)
            if (
                isinstance(given, str)
                and normalise_rope_type(given) != given
                and normalise_rope_type(given) in ROPE_TYPES
            ):
                shown = short_repr(given).strip(chr(39))
                text = TEXTS("type-spelling.message", shown=shown, meant=normalise_rope_type(given))
                repaired = write_keys(model, site.path, **{key: normalise_rope_type(given)})
                yield Finding("", "error", f"{site.key}.{key}", text, None, repaired)


def derived_length(model: ModelConfig) -> Iterator[Finding]:
    """A server that multiplies the length in the file by the factor serves more tokens than the file says.

    Source: vLLM 0.33.0, config/model.py, and SGLang 0.5.23, get_context_length, executed
    (tests/goldens/longest_length.json).
    """
    found = find_derived_lengths(model)
    if any(one.factor != 1.0 and one.length > model.limit for one in found.values()):
        text = describe_derived_lengths(model)
        yield Finding("", "note", place_of(model, "max_position_embeddings"), text)


def describe_repair(model: ModelConfig, repaired: Config | None) -> Sentence:
    """Return a sentence on what the repair is."""
    if repaired is None:
        return TEXTS("runtimes-differ.no_repair")
    for site in model.rope_dicts:
        left = find_inside(repaired, site.path)
        gone = [key for key in site.rope if not isinstance(left, Mapping) or key not in left]
        if isinstance(left, Mapping) and len(gone) == 1:
            return TEXTS("runtimes-differ.one_key", key=gone[0])
    return TEXTS("runtimes-differ.old_keys")


def is_off(one: Comparison) -> bool:
    """Return whether a runtime is off by more than 5 %; a formula on paper is no runtime."""
    if one.emulation.runtime == "paper" or not one.differs:
        return False
    ratio = one.attention_ratio or 1.0
    return one.pairs_differ or (one.effect is not None and one.effect.ratio > LEAST) or abs(ratio - 1.0) > LEAST - 1.0


def describe_size(one: Comparison, base: Comparison, without: Sequence[str] = ()) -> str:
    """Return by how much a runtime is off, as text, and its rules that the reference has not.

    `without` are the keys of rules to leave out.
    """
    ratio = one.attention_ratio
    parts = [TEXTS("size.ratio", ratio=one.effect.ratio, pair=one.effect.pair)] if one.effect else []
    parts += [TEXTS("size.pairs")] if one.pairs_differ else []
    parts += [TEXTS("size.attention", ratio=ratio)] if ratio is not None and abs(ratio - 1.0) > LEAST - 1.0 else []
    known = {*without, *(rule.key for rule in base.emulation.rules)}
    own = [remove_period(rule.text) for rule in one.emulation.rules if rule.key not in known]
    size = join_items(parts)
    return TEXTS("size.rules", size=size, rules=join_clauses(own)) if own else size


def find_place(model: ModelConfig, layer: str) -> str:
    """Return the place of a layer type's rope dict, as text."""
    site = find_dict(model, layer)
    return place_of(model) if site is None else site.key


def find_better_spelling(model: ModelConfig, layer: str, found: list[Comparison]) -> Config | None:
    """Return a config that transformers reads as it did, and fewer runtimes otherwise; None where there is none."""
    off = [one.emulation for one in found if is_off(one)]
    best, fewest = None, len(off) + count_refusals(found)
    for draft in write_spellings(model, layer):
        try:
            other = ModelConfig.read(draft)
            if other.specs != model.specs or not is_repair(other, layer, off):
                continue
            after = compare(other, layer_type=layer or None)
        except ValueError:
            continue
        left = sum(map(is_off, after)) + count_refusals(after)
        if left < fewest:
            best, fewest = draft, left
    return best


def is_repair(draft: ModelConfig, layer: str, off: list[Emulation]) -> bool:
    """Return whether one of the runtimes that were off computes what transformers does from this draft."""
    case = read_case(draft, layer_type=layer or None)
    base = emulate_case(*resolve_release("transformers"), case)
    others = (emulate_case(one.runtime, one.version, case) for one in off)
    return any(other.supported and not is_off(compare_with(base, other)) for other in others)


def count_refusals(found: list[Comparison]) -> int:
    """Return how many runtimes refuse the config."""
    return sum(not one.emulation.supported for one in found)


def write_spellings(model: ModelConfig, layer: str) -> Iterator[Config]:
    """Yield other spellings: without one key, and in both generations of keys."""
    for site in model.rope_dicts:
        for key in site.rope:
            if key in OPTIONAL_KEYS:
                yield write_keys(model, site.path, **{key: None})
    for write in (write_old_keys, write_new_keys):
        try:
            yield write(model, model.specs[layer], layer or None).whole
        except ValueError:
            continue
