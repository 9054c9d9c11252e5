"""The rule of the check about a trainer that the user names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rope_viz.advice.lint.lint_context import (
    TEXTS,
    Config,
    Finding,
    Severity,
    find_dict,
    place_of,
    write_keys,
)
from rope_viz.advice.training.match_training import Match, describe_match, match_training
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import compare_with
from rope_viz.runtimes.rule_engine import ORIGINAL
from rope_viz.runtimes.trainers import find_trainer
from rope_viz.texts import join

STATED = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}
"""YaRN keys that transformers 5.23.0 fills in, and that some trainers need in the file."""


def find_training_differences(config: Source, trainer: str, version: str | None = None) -> list[Finding]:
    """Return where a trainer computes something else than transformers, or refuses; none where there is no embedding.

    Raise `ValueError` for an unknown trainer or version.
    """
    find_trainer(trainer, version)
    try:
        return list(trained_otherwise(ModelConfig.read(config), trainer, version))
    except (ValueError, ArithmeticError):
        return []


def trained_otherwise(model: ModelConfig, trainer: str, version: str | None) -> Iterator[Finding]:
    """Yield the finding of each layer type that a trainer computes otherwise."""
    for layer in model.specs:
        found = find_match(model, trainer, version, layer)
        if found.same is not False and found.training.supported:
            continue
        repaired = None if found.same_values else state_keys(model, trainer, version, layer)
        hint = "" if repaired is None else TEXTS("trained-otherwise.state")
        place = find_dict(model, layer)
        key = place.key if place is not None else place_of(model, "rope_parameters")
        text = join(describe_match(found), hint)
        # Many trainers permute q and k themselves when they write a checkpoint for transformers.
        severity: Severity = "note" if found.same_values else "warning"
        yield Finding("trained-otherwise", severity, key, text, found.effect, repaired, "rope_viz.runtimes.trainers")


def find_match(
    model: ModelConfig, trainer: str, version: str | None, layer: str, config: Config | None = None
) -> Match:
    """Return the trainer against transformers for one layer type of a config, by default the model's own."""
    source = model if config is None else config
    return match_training(source, trainer, version=version, layer_type=layer or None)


def state_keys(model: ModelConfig, trainer: str, version: str | None, layer: str) -> Config | None:
    """Return the config with the keys that transformers fills in, if the trainer then computes the same."""
    site = find_dict(model, layer)
    if site is None or site.kind != "yarn":
        return None
    missing = {key: value for key, value in STATED.items() if site.rope.get(key) is None}
    if site.rope.get(ORIGINAL) is None:
        missing[ORIGINAL] = model.specs[layer].context
    if not missing:
        return None
    config = write_keys(model, site.path, **missing)
    return config if find_match(model, trainer, version, layer, config).same_values else None


SOURCE = "config/speculative.py of vLLM 0.33.0, read; Automodel#2399, sglang#6783, vllm-ascend#6612"


def find_draft_mistakes(target: ModelConfig, draft: ModelConfig) -> list[Finding]:
    """Return what does not fit between a target and its draft. Raises `ValueError` where RoPE cannot be read."""
    for name, model in (("target", target), ("draft", draft)):
        if model.problems:
            raise ValueError(TEXTS(f"draft.unreadable_{name}", problem=model.problems[0]))
    found = [*compare_vocabularies(target, draft), *compare_limits(target, draft)]
    return found + ([*compare_rope(target, draft)] if shares_positions(draft) else [])


def shares_positions(draft: ModelConfig) -> bool:
    """Return whether this is a head on the target's hidden states (EAGLE and its like), not a model of its own."""
    names = draft.mapping.get("architectures")
    classes = [str(name).lower() for name in names] if isinstance(names, list) else []
    is_head = any(word in name for name in classes for word in ("eagle", "draft", "speculator", "mtp", "nextn"))
    return is_head or "draft_vocab_size" in draft.part.config or "speculators_config" in draft.mapping


def find_vocabulary(model: ModelConfig, key: str = "vocab_size") -> int | None:
    """Return a vocabulary size, None where it is missing or no whole number."""
    value: Any = model.part.config.get(key, model.mapping.get(key))
    if value is None and key == "vocab_size":
        value = model.architecture.defaults.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def compare_vocabularies(target: ModelConfig, draft: ModelConfig) -> Iterator[Finding]:
    """Yield a finding where vLLM refuses the two vocabularies."""
    own, other = find_vocabulary(target), find_vocabulary(draft)
    short = find_vocabulary(draft, "draft_vocab_size")
    if own is not None and short is not None and short > own:
        text = TEXTS("draft.tokens", draft=short, target=own)
        yield Finding("draft", "error", "draft_vocab_size", text, source=SOURCE)
    if own is None or other is None:
        text = TEXTS("draft.no_vocabulary")
        yield Finding("draft", "note", "vocab_size", text, source=SOURCE)
    elif own != other and not (shares_positions(draft) and short is not None):
        key = "draft.vocabularies" if shares_positions(draft) else "draft.vocabularies_refused"
        text = TEXTS(key, target=own, draft=other)
        yield Finding("draft", "error", "vocab_size", text, source=SOURCE)


def compare_limits(target: ModelConfig, draft: ModelConfig) -> Iterator[Finding]:
    """Yield a finding where the draft ends before the target."""
    if draft.limit >= target.limit:
        return
    text = TEXTS("draft.limits", draft=draft.limit, target=target.limit)
    yield Finding("draft", "warning", "max_position_embeddings", text, source=SOURCE)


def compare_rope(target: ModelConfig, draft: ModelConfig) -> Iterator[Finding]:
    """Yield a finding where a head rotates the positions of its target otherwise."""
    one = compare_with(emulate(target, "transformers"), emulate(draft, "transformers"))
    if one.agrees or not one.emulation.supported:
        return
    if one.pairs_differ:
        pairs = [model.specs[model.main_layer].rotary_dim // 2 for model in (target, draft)]
        how = TEXTS("draft.pairs", target=pairs[0], draft=pairs[1])
    else:
        how = TEXTS("draft.differs", how=one.words("×{:.4g}".format))
    text = join(how, TEXTS("draft.trained"))
    yield Finding("draft", "warning", "rope_parameters", text, one.effect, source=SOURCE)
