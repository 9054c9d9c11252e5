"""Names of pairs, changes and heads in a table of band changes, and the sentence on two published claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import TAU
from rope_viz.figures.words import footnote
from rope_viz.real_models.band_table import BandTable, Condition, Estimate, find_first
from rope_viz.texts import Sentence, Texts, cache_by_language, join
from rope_viz.texts.texts import join_list

TEXTS = Texts("bands")
NOISE = 0.05
"""Nats that a difference of two losses can have by chance."""


@cache_by_language(256)
def name_pairs(pairs: str) -> Sentence:
    """Return a group of pairs as the screen shows it."""
    return TEXTS("pairs", pairs=pairs.replace("-", "–"))


def name_change(how: str, group: str = "change") -> Sentence:
    """Return what happens to the pairs as a label; the group "changed" has the words within a sentence."""
    kind, _, divisor = how.partition(" by ")
    return TEXTS(f"{group}.{kind}", divisor=float(divisor or 1.0))


def name_heads(table: BandTable, heads: str) -> str:
    """Return a choice of heads as the screen shows it: with their number where the file lists them."""
    if heads == "all":
        return str(TEXTS("all"))
    listed = (table.about.get("heads") or {}).get(heads)
    return (
        str(TEXTS(heads, count=len(listed))) if isinstance(listed, list) and heads in ("induction", "random") else heads
    )


def list_ends(found: Estimate) -> dict[str, float]:
    """Return the value and the ends of an estimate of one number."""
    return {name: float(part[0]) for name, part in (("value", found.mean), ("low", found.low), ("high", found.high))}


def describe_gaps(table: BandTable, pairs: str, how: str) -> Sentence:
    """Say for which heads a planned change is not measured yet, "" if there are none."""
    wanted = [each for each in table.planned if (each.pairs, each.how) == (pairs, how)]
    missing = [name_heads(table, each.heads) for each in wanted if each not in table.conditions]
    return TEXTS("open.heads", heads=join_list(missing)) if missing else Sentence()


def count_gaps(table: BandTable) -> Sentence:
    """Say how many planned changes are not measured yet, "" if there are none."""
    missing = len(table.planned) - len(table.conditions)
    return TEXTS("open.changes", count=missing, planned=len(table.planned)) if missing else Sentence()


def explain_no_change(table: BandTable, how: str, pairs: str | None = None) -> str:
    """Return why a change of some pairs, or of any for None, cannot be drawn, "" if it can."""
    if any(each.how == how and pairs in (None, each.pairs) for each in table.conditions):
        return ""
    return str(TEXTS("open.change", change=name_change(how, "changed")))


def describe_claims(table: BandTable, spec: RopeSpec) -> Sentence:
    """Compare the table with two claims on slow pairs: little effect in all heads, and recall that falls."""
    turns = spec.context * spec.plain_inv_freq / TAU
    first = int(np.argmax(turns < 1.0))
    slow = [each for each in table.planned if find_first(each.pairs) >= first]
    return join(describe_little_effect(table, slow, first, spec.pairs - 1), describe_fall(table, slow))


def describe_little_effect(table: BandTable, slow: Sequence[Condition], first: int, last: int) -> Sentence:
    """Compare what zero frequency in all heads adds to the loss, for planned slow pairs, with "little effect"."""
    source = footnote(TEXTS("claims.little_source"))
    wanted = [each for each in slow if (each.how, each.heads) == ("zero", "all")]
    added = {each.pairs: table.added_loss(each) for each in wanted if each in table.conditions}
    if not added:
        return TEXTS("claims.little_open", source=source)
    most = max(added.values(), key=lambda one: float(one.mean[0]))
    is_little = all(float(one.high[0]) < NOISE for one in added.values())
    verdict = ("agrees" if len(added) == len(wanted) else "part") if is_little else "differs"
    groups = join_list([pairs.replace("-", "–") for pairs in added])
    return join(
        TEXTS("claims.little", first=first, last=last, groups=groups, **list_ends(most)),
        TEXTS(f"claims.little_{verdict}", source=source),
        TEXTS("claims.little_scope"),
    )


def describe_fall(table: BandTable, slow: Sequence[Condition]) -> Sentence:
    """Compare the needles found without the slowest pairs in induction heads with "recall falls"."""
    source = footnote(TEXTS("claims.fall_source"))
    pairs = slow[-1].pairs if slow else ""
    changed = [Condition(pairs, "remove", heads) for heads in ("induction", "random")]
    if not set(changed) <= set(table.conditions):
        return TEXTS("claims.fall_open", source=source)
    before, after, random = (table.found(each) for each in (None, *changed))
    falls = float(after.high[0]) < min(float(before.low[0]), float(random.low[0]))
    shares = {"before": float(before.mean[0]), "after": float(after.mean[0]), "random": float(random.mean[0])}
    return join(
        TEXTS("claims.fall", pairs=pairs.replace("-", "–"), heads=name_heads(table, "induction"), **shares),
        TEXTS(f"claims.fall_{'agrees' if falls else 'differs'}", source=source),
        TEXTS("claims.fall_scope"),
    )
