"""The check: what is wrong with a model's config.json, by how much, and the repaired config.

Every rule is a generator of findings about a `ModelConfig`. Its docstring tells what it looks for, and its source.
A rule may raise `ValueError` where the config cannot be read far enough.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence

from rope_viz.advice.lint import (
    base_rules,
    contradictions,
    gguf_rules,
    key_places,
    rules,
    runtime_rules,
    size_rules,
    trained_scaling,
)
from rope_viz.advice.lint import multi_axis_rules as multi_axis
from rope_viz.advice.lint.lint_context import TEXTS, Config, Finding, Severity, place_of
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.model_config import ModelConfig, Source, as_model_config, normalise_errors
from rope_viz.models.no_rope_types import NoRope
from rope_viz.runtimes.compare import Effect
from rope_viz.texts.sentences import describe_error, end_sentence
from rope_viz.texts.texts import join_items

__all__ = ["COMMON_NOTES", "RULES", "SEVERITIES", "Effect", "Finding", "Severity", "check", "repair", "summary"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the most to the least severe."""
COMMON_NOTES = ("head-dim-derived", "base-too-small")
"""Rules whose notes most published configs get."""

RULES: tuple[Callable[[ModelConfig], Iterator[Finding]], ...] = (
    rules.long_names,
    contradictions.numbers_as_text,
    key_places.misplaced_keys,
    rules.missing_original,
    size_rules.trained_length,
    size_rules.not_as_shipped,
    base_rules.missing_base,
    base_rules.other_base,
    trained_scaling.trained_scaling_gone,
    rules.factor_mismatch,
    runtime_rules.derived_length,
    rules.swapped_betas,
    rules.integer_factor,
    contradictions.out_of_range,
    size_rules.base_not_read,
    size_rules.remote_dynamic_ntk,
    rules.nested_truncate,
    runtime_rules.type_spelling,
    rules.type_keys,
    size_rules.scaled_sliding,
    size_rules.scaled_window,
    size_rules.head_dim_derived,
    size_rules.class_head_dim,
    size_rules.null_head_dim,
    size_rules.partial_ignored,
    rules.mscale_keys,
    rules.attention_factor,
    rules.longrope_lists,
    rules.longrope_switch,
    rules.two_originals,
    contradictions.two_rope_dicts,
    contradictions.unread_rope_keys,
    contradictions.two_bases,
    contradictions.sizes_outside,
    contradictions.part_without_type,
    contradictions.layer_types_unknown,
    key_places.lists_longer_than_layers,
    contradictions.heads_do_not_divide,
    rules.dynamic_cache,
    size_rules.base_too_small,
    rules.unknown_keys,
    rules.misspelled_keys,
    rules.keys_of_other_code,
    size_rules.unlisted_type,
    size_rules.two_codes,
    size_rules.fixed_ntk,
    size_rules.dual_chunk_attention,
    size_rules.some_layers,
    rules.learned_frequencies,
    rules.megatron_scaling,
    multi_axis.sections_do_not_add_up,
    multi_axis.interleaving_by_another_key,
    multi_axis.pairs_that_stand_still,
    multi_axis.no_rotation,
    runtime_rules.transformers_refuses,
    runtime_rules.runtimes_differ,
    gguf_rules.unread_gguf_keys,
    gguf_rules.gguf_differs,
)
"""All rules, in the order in which findings of one severity are listed and repairs are made."""


SPELLINGS = frozenset(
    """
        numbers-as-text missing-original integer-factor base-not-read nested-truncate type-spelling type-keys
        head-dim-derived null-head-dim partial-ignored mscale-keys attention-factor two-originals two-rope-dicts
        unread-rope-keys two-bases sizes-outside part-without-type unknown-keys misspelled-keys misplaced-keys
        keys-of-other-code derived-length transformers-refuses runtimes-differ
    """.split()
)
"""Rules about how the keys of a config.json are spelled, and about who reads them: a GGUF file has none of them."""


def check(config: Source, *, without: Sequence[str] = ()) -> list[Finding]:
    """Return everything that the rules find, the worst first, leaving out the rules named in `without`.

    A key from which nothing can be computed is the finding "not-computable". A model without rotary embedding has the
    note "no-rope" and no other finding. Raises `ValueError` where the argument is no object.
    """
    with normalise_errors():
        read = as_model_config(config)
        # Rules may not change what the caller holds.
        model = read if config is read else dataclasses.replace(read, mapping=copy.deepcopy(read.mapping))
    try:
        alone = multi_axis.check_axes(model.mapping)
        if alone is not None:
            return alone
        place = place_of(model)
    except ValueError as error:
        return [not_computable("", describe_error(error))]
    try:
        _ = model.fields
    except NoRope as absence:
        return [
            Finding(
                "no-rope", "note", place, end_sentence(describe_error(absence)), source="rope_viz.models.no_rope_types"
            )
        ]
    except ValueError:
        pass  # reported below, unless a rule has more to say
    is_gguf = bool(source_file(model.mapping))
    left_out = {*without, *(SPELLINGS if is_gguf else ())}
    found = [one for rule in RULES if rule_name(rule) not in left_out for one in run_rule(rule, model)]
    if is_gguf:
        # A repair would change a config.json, which the user does not have.
        found = [dataclasses.replace(one, repaired=None) for one in found]
    if not any(finding.severity == "error" for finding in found):
        found += [not_computable(place, problem) for problem in model.problems]
    return sort_by_severity(found)


def not_computable(key: str, message: str) -> Finding:
    """Return the finding that RoPE cannot be computed."""
    return Finding("not-computable", "error", key, message, source="rope_viz.models.rope_config")


def sort_by_severity(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings, the worst first."""
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def summary(found: Sequence[Finding]) -> str:
    """Return how many findings of each severity there are, as "1 error, 2 notes"; empty where there are none."""
    counts = [(severity, sum(finding.severity == severity for finding in found)) for severity in SEVERITIES]
    return join_items([TEXTS(f"severity.{severity}", count=count) for severity, count in counts if count])


def describe_errors(found: Sequence[Finding]) -> str:
    """Return that a config with errors is wrong, and how many it has; empty where it has none."""
    errors = [finding for finding in found if finding.severity == "error"]
    return TEXTS("wrong", errors=summary(errors)) if errors else ""


def repair(config: Source, *, least: Severity = "note") -> Config:
    """Return the config after every repair that the check offers. Raises `ValueError` as `check` does.

    `least` is the least severity of what is repaired.
    """
    return make_repairs(config, least=least)[0]


def make_repairs(config: Source, *, least: Severity = "note") -> tuple[Config, tuple[Finding, ...]]:
    """Return the config after every repair, as `repair` does, and the findings that were repaired."""
    made: list[Finding] = []
    severities = SEVERITIES[: SEVERITIES.index(least) + 1]
    current = copy.deepcopy(dict(ModelConfig.read(config).mapping))
    for _ in range(4 * len(RULES)):
        found = (one for one in check(current) if one.severity in severities and one.repaired is not None)
        first = next(found, None)
        # Compared as text: 4 and 4.0 are equal and yet a repair.
        if first is None or first.repaired is None or repr(first.repaired) == repr(current):
            break
        current = first.repaired
        made.append(first)
    return current, tuple(made)


def run_rule(rule: Callable[[ModelConfig], Iterator[Finding]], model: ModelConfig) -> list[Finding]:
    """Return what one rule finds; nothing where the config cannot be read far enough for it."""
    try:
        found = list(rule(model))
    except (ValueError, ArithmeticError, RecursionError):
        return []
    name, known = rule_name(rule), source_of(inspect.getdoc(rule) or "")
    return [dataclasses.replace(one, rule=name, source=one.source or known) for one in found]


def rule_name(rule: Callable[..., object]) -> str:
    """Return the name of a rule as findings have it."""
    return rule.__name__.replace("_", "-")


def source_of(text: str) -> str:
    """Return the source that a rule's text names, on one line."""
    return " ".join(text.partition("Source:")[2].split())
