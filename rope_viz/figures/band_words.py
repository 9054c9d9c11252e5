"""Names of pairs, changes and heads in a table of band changes, and the sentence on two published claims."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import TAU
from rope_viz.figures.words import footnote
from rope_viz.real_models.band_table import BandTable, Condition, Estimate
from rope_viz.texts import Sentence, Texts, join

TEXTS = Texts("bands")
NOISE = 0.05
"""Nats that a difference of two losses can have by chance."""


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


def describe_claims(table: BandTable, spec: RopeSpec) -> Sentence:
    """Compare the table with two claims on slow pairs: little effect in all heads, and recall that falls."""
    turns = spec.context * spec.plain_inv_freq / TAU
    first = int(np.argmax(turns < 1.0))
    slow = [each for each in table.conditions if int(each.pairs.split("-")[0]) >= first]
    added = [table.added_loss(each) for each in slow if (each.how, each.heads) == ("zero", "all")]
    most = max(added, key=lambda one: float(one.mean[0]))
    is_little = all(float(one.high[0]) < NOISE for one in added)
    pairs = slow[-1].pairs
    before, after, random = (
        table.found(None if heads is None else Condition(pairs, "remove", heads))
        for heads in (None, "induction", "random")
    )
    falls = float(after.high[0]) < min(float(before.low[0]), float(random.low[0]))
    shares = {"before": float(before.mean[0]), "after": float(after.mean[0]), "random": float(random.mean[0])}
    return join(
        TEXTS("claims.little", first=first, last=spec.pairs - 1, **list_ends(most)),
        TEXTS(f"claims.little_{'agrees' if is_little else 'differs'}", source=footnote(TEXTS("claims.little_source"))),
        TEXTS("claims.little_scope"),
        TEXTS("claims.fall", pairs=pairs.replace("-", "–"), heads=name_heads(table, "induction"), **shares),
        TEXTS(f"claims.fall_{'agrees' if falls else 'differs'}", source=footnote(TEXTS("claims.fall_source"))),
        TEXTS("claims.fall_scope"),
    )
