"""Sentences of the page Extend, with the current numbers."""

from __future__ import annotations

from rope_viz.advice.extension_plan import Plan
from rope_viz.advice.ways import SUPPORT, Rank
from rope_viz.figures.words.common import footnote, plain
from rope_viz.models.shipped_scaling import describe_method
from rope_viz.texts import Texts
from rope_viz.texts.numbers import format_number, format_tokens

TEXTS = Texts("model")
RANKS: dict[Rank, str] = {
    "as it is": "shipped",
    "documented": "documented",
    "its own, further": "further",
    "usual": "common",
    "possible": "untested",
    "as set": "set",
    "not advised": "not_advised",
}


def headline(plan: Plan) -> str:
    """Return the verdict in a few words."""
    way, before = plan.way, plan.recognised.spec
    if not plan.file.fragment:
        return TEXTS("verdict.keep")
    if way.spec.scaling == before.scaling and way.spec.base == before.base:
        return TEXTS("verdict.limit")
    if way.spec.base != before.base:
        return TEXTS("verdict.base", base=way.spec.base)
    return TEXTS("verdict.method", method=describe_method(way.spec))


def reason(plan: Plan) -> str:
    """Return why this is the answer, in one or two sentences."""
    way = plan.way
    first = plain(way.because) or TEXTS(f"reason.{RANKS[way.rank]}", reach=way.reach or plan.target)
    unseen = way.option.unseen
    angles = TEXTS("reason.unseen" if unseen else "reason.seen", unseen=unseen, pairs=way.spec.pairs)
    return f"{first} {angles}"


def list_costs(plan: Plan) -> list[str]:
    """Return what it costs short texts, and how well the model was measured on long ones."""
    measured = [f"{plain(one.text)}{footnote(one.source)}" for one in plan.way.evidence[:1]]
    return [*(plain(sentence) for sentence in plan.advice.short[:1]), *measured]


def have(plan: Plan) -> str:
    """Name the recognised model and its trained length, with the source as a footnote."""
    known = plan.recognised
    return f"**{plain(known.sentence)}**{footnote(known.trained.source)}"


def list_mistakes(plan: Plan) -> str:
    """List likely mistakes in the length keys of the config as Markdown, "" if there are none."""
    return "\n".join(f"- **Probably a mistake:** {plain(mistake)}" for mistake in plan.recognised.mistakes)


def best(plan: Plan) -> str:
    """Recommend the best method in one sentence."""
    first = plan.advice.best
    support = f"Support: {SUPPORT[first.rank]}.{footnote(first.source)}"
    return f"For **{format_tokens(plan.target)}** tokens: **{plain(first.title)}**. {support}"


def speeds(plan: Plan) -> str:
    """Describe what the chosen method does to the pairs."""
    numbers = plan.way.option
    unseen = "no pair reaches" if not numbers.unseen else f"{numbers.unseen} pairs reach"
    return (
        f"**{numbers.kept}** of {plan.way.spec.pairs} pairs keep their frequency; {numbers.blended} are blended and "
        f"{numbers.divided} divided. At {format_tokens(plan.target)} tokens **{unseen}** angles never seen in "
        f"training. Logits are multiplied by {format_number(numbers.logit_factor)}."
    )


def short(plan: Plan) -> str:
    """Describe the effect on short texts."""
    return " ".join(plain(sentence) for sentence in plan.advice.short)


def memory(plan: Plan) -> str:
    """Give cache, weights and the longest length that fits."""
    return " ".join(plain(sentence) for sentence in plan.memory.sentences(plan.target))


def unknown(plan: Plan) -> str:
    """Return why the memory is unknown, "" if it is known."""
    return "" if plan.memory.cache is not None else plain(plan.memory.sentences(plan.target)[0])


def describe_support(plan: Plan) -> str:
    """Return which runtimes read the written file as intended."""
    return " ".join(plain(sentence) for sentence in (plan.file.generation, *plan.file.proof))
