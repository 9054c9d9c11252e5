"""The rules of the check about who reads a config: a runtime that computes something else, a type spelled otherwise."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from rope_viz.advice.lint.lint_context import Config, Finding, Severity, View, inside
from rope_viz.embedding.spec import RopeSpec, shorten
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import ROPE_TYPES, meant
from rope_viz.runtimes import Emulation, emulate, emulated, read_case, resolve_release
from rope_viz.runtimes.compare import Comparison, against, compare
from rope_viz.runtimes.transformers_validation import find_refusal

LEAST = 1.05
"""A runtime that is off by more than 5 % in a frequency or in the factor on cos and sin serves another model."""
# Releases that are read for history: what they alone get wrong is worth a note.
OLD = (("transformers", "4.43.4"), ("transformers", "4.52.4"))
# Keys without which a method still says all it needs.
BESIDE = frozenset(
    (
        *("attn_factor", "extrapolation_factor", "apply_yarn_scaling", "apply_scale", "attention_factor", "truncate"),
        *("mscale", "mscale_all_dim", "beta_fast", "beta_slow", "short_mscale", "long_mscale", "rope_dim"),
    )
)
NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}


def runtimes_differ(view: View) -> Iterator[Finding]:
    """A runtime computes other frequencies, or another factor on cos and sin, by more than 5 %.

    A warning where other keys mend it; a note where it is the runtime that does not know the method.

    Source: rope_viz.runtimes, whose rules were read in the runtimes and are held to what they computed when they were
    run (tests/goldens/runtimes.json, servers.json, releases.json, mlx.json).
    """
    for layer in view.specs:
        found = compare(view.config, layer_type=layer or None)
        off = [one for one in found if apart(one)]
        if not off or not found[0].emulation.supported:
            continue
        current = [one for one in off if (one.emulation.runtime, one.emulation.version) not in OLD]
        if not current:
            continue  # releases of the past alone: what they never knew is no fault of the config
        repaired = repair(view, layer, found)
        where = f" for the {layer} layers" if layer else ""
        parts = "; ".join(f"{name(one)}: {size(one)}{why(one, found[0])}" for one in off)
        worst = max((one.effect for one in off if one.effect), key=lambda effect: effect.ratio, default=None)
        text = f"Not every runtime computes what transformers 5.23.0 does{where}. {parts}.{mended(view, repaired)}"
        severity: Severity = "warning" if repaired is not None else "note"
        yield Finding("", severity, place(view, layer), text, worst, repaired)


def transformers_refuses(view: View) -> Iterator[Finding]:
    """The newest transformers raises for this config, so nothing that is computed here holds for it.

    Source: the configuration and rotary classes of transformers 5.23.0, run (tests/goldens/releases.json,
    refused.json).
    """
    if not view.fields.is_listed or view.fields.architecture.remote_code:
        return
    refusal = find_refusal(view.fields)
    if refusal is not None:
        text = f"transformers 5.23.0 refuses this, as do vLLM and SGLang, which load it by that: {refusal.message}."
        repaired = view.changed(view.root, **{refusal.key: refusal.meant}) if refusal.is_repairable else None
        yield Finding("", "error", view.place(refusal.key), text, None, repaired)
        return
    for layer in view.specs:
        result = emulate(view.config, runtime="transformers", layer_type=layer or None)
        # A size that is null is told by its own rules.
        if result.supported or "null" in result.reason:
            continue
        site = next((site for site in view.sites if layer in site.layers), None)
        repaired, more = None, ""
        if site is not None and site.kind == "yarn" and "factor" not in site.rope:
            factor = view.limit / view.specs[layer].context
            repaired = view.changed(site.path, factor=factor)
            more = f" {factor:g} is max_position_embeddings over the trained length."
        where = f" for the {layer} layers" if layer else ""
        text = f"transformers 5.23.0 refuses this{where}: {result.reason}.{more}"
        yield Finding("", "error", place(view, layer), text, None, repaired)
        return


def mended(view: View, repaired: Config | None) -> str:
    """What the repair is, in a sentence."""
    if repaired is None:
        return " No spelling of the keys mends it: give these runtimes their own flags, or serve with another."
    for site in view.sites:
        left = inside(repaired, site.path)
        gone = [key for key in site.rope if not isinstance(left, Mapping) or key not in left]
        if isinstance(left, Mapping) and len(gone) == 1:
            return f" It is {gone[0]} that they read and transformers does not: without it they agree."
    return " Written with the keys from before transformers 5, more of them read it alike."


def apart(one: Comparison) -> bool:
    """Whether a runtime is off by more than 5 %; a formula on paper is none."""
    if one.emulation.runtime == "paper" or not one.differs:
        return False
    ratio = one.attention_ratio or 1.0
    return one.pairs_differ or (one.effect is not None and one.effect.ratio > LEAST) or abs(ratio - 1.0) > LEAST - 1.0


def name(one: Comparison) -> str:
    """A runtime's name and version as people write them."""
    emulation = one.emulation
    shown = NAMES.get(emulation.runtime, emulation.runtime)
    return shown if emulation.runtime == "tensorrt-llm" else f"{shown} {emulation.version.split(' ')[0]}"


def size(one: Comparison) -> str:
    """By how much it is off."""
    parts = [f"frequencies off by up to ×{one.effect.ratio:.4g}, at pair {one.effect.pair}"] if one.effect else []
    parts += ["other pairs rotate"] if one.pairs_differ else []
    ratio = one.attention_ratio
    parts += [f"cos and sin × {ratio:.4g}"] if ratio is not None and abs(ratio - 1.0) > LEAST - 1.0 else []
    return ", ".join(parts)


def why(one: Comparison, base: Comparison) -> str:
    """The rules that it has and the reference has not, in brackets."""
    known = {rule.key for rule in base.emulation.rules}
    own = [rule.text.rstrip(".") for rule in one.emulation.rules if rule.key not in known]
    return f" ({'; '.join(own)})" if own else ""


def place(view: View, layer: str) -> str:
    """Where the rope dict of a layer type stands."""
    return next((site.key for site in view.sites if layer in site.layers), ".".join(view.root))


def repair(view: View, layer: str, found: list[Comparison]) -> Config | None:
    """A config that transformers reads as it did, and fewer runtimes otherwise; None where there is none."""
    off = [one.emulation for one in found if apart(one)]
    best, fewest = None, len(off) + refusals(found)
    for draft in drafts(view, layer):
        try:
            if not alike(from_config(draft), view.specs) or not mends(draft, layer, off):
                continue
            after = compare(draft, layer_type=layer or None)
        except ValueError:
            continue
        left = sum(map(apart, after)) + refusals(after)
        if left < fewest:
            best, fewest = draft, left
    return best


def mends(draft: Config, layer: str, off: list[Emulation]) -> bool:
    """Whether one of the runtimes that were off computes what transformers does from this draft."""
    case = read_case(draft, layer_type=layer or None)
    base = emulated(*resolve_release("transformers"), case)
    others = (emulated(one.runtime, one.version, case) for one in off)
    return any(other.supported and not apart(against(base, other)) for other in others)


def refusals(found: list[Comparison]) -> int:
    """How many runtimes take the config not at all."""
    return sum(not one.emulation.supported for one in found)


def drafts(view: View, layer: str) -> Iterator[Config]:
    """Other spellings: without one key, and in both generations of keys."""
    # Here, so that a config that all runtimes read alike does not wait for it.
    from rope_viz.models.edit_config import rewritten, rewritten_old

    for site in view.sites:
        for key in site.rope:
            if key in BESIDE:
                yield view.changed(site.path, **{key: None})
    for write in (rewritten_old, rewritten):
        try:
            yield write(copy.deepcopy(view.config), view.specs[layer], layer or None).whole
        except ValueError:
            continue


def alike(after: Mapping[str, RopeSpec], before: Mapping[str, RopeSpec]) -> bool:
    """Whether transformers reads the same embeddings."""
    return dict(after) == dict(before)


def type_spelling(view: View) -> Iterator[Finding]:
    """A rope type in another spelling, such as "YaRN": it is read here as it is meant, and by no runtime.

    Source: ROPE_INIT_FUNCTIONS of transformers 5.23.0 and get_rope of vLLM 0.33.0, which look the name up as it stands.
    """
    for site in view.sites:
        for key in ("rope_type", "type"):
            given: Any = site.rope.get(key)
            if isinstance(given, str) and meant(given) != given and meant(given) in ROPE_TYPES:
                said = shorten(given).strip(chr(39))
                text = f'"{said}" is read here as {meant(given)}, which is the only spelling that runtimes know.'
                repaired = view.changed(site.path, **{key: meant(given)})
                yield Finding("", "error", f"{site.key}.{key}", text, None, repaired)
