"""Sentences of the page Extend, with the current numbers."""

from __future__ import annotations

from rope_viz.advice.extension_plan import Plan
from rope_viz.figures.words.common import plain
from rope_viz.texts.numbers import format_number, format_tokens

INTRO = (
    "You have a config and need a longer context: what to write, where, and whether it is right. Drop your "
    "`config.json` at the side, name a model of your local Hugging Face cache there, or choose one."
)


def have(plan: Plan) -> str:
    """Name the recognised model and the source of its trained length."""
    known = plan.recognised
    return f"**{plain(known.sentence)}** Trained length from {plain(known.trained.source)}."


def mistakes(plan: Plan) -> str:
    """List likely mistakes in the length keys of the config as Markdown, "" if there are none."""
    return "\n".join(f"- **A mistake, usually:** {plain(mistake)}" for mistake in plan.recognised.mistakes)


def best(plan: Plan) -> str:
    """Recommend the best method in one sentence."""
    first = plan.advice.best
    place = "Documented by its maker" if first.rank == "documented" else first.rank.capitalize()
    source = f" Source: {plain(first.source)}." if first.source else ""
    return f"For **{format_tokens(plan.target)}** tokens: **{plain(first.title)}**. {place}.{source}"


def speeds(plan: Plan) -> str:
    """Describe what the chosen method does to the pairs."""
    numbers = plan.way.option
    unseen = "no pair" if not numbers.unseen else f"{numbers.unseen} pairs"
    return (
        f"**{numbers.kept}** of {plan.way.spec.pairs} pairs keep their speed, so neighbours stay apart; "
        f"{numbers.blended} are blended and {numbers.divided} divided. At {format_tokens(plan.target)} tokens **{unseen}** "
        f"{'reaches' if not numbers.unseen else 'reach'} angles that training never showed; logits are multiplied by "
        f"{format_number(numbers.logit_factor)}."
    )


def short(plan: Plan) -> str:
    """Describe the effect on short texts."""
    return " ".join(plain(sentence) for sentence in plan.advice.short)


def memory(plan: Plan) -> str:
    """Give cache, weights and the longest length that fits."""
    return " ".join(plain(sentence) for sentence in plan.memory.sentences(plan.target))


def unknown(plan: Plan) -> str:
    """Say why the memory is unknown, "" if it is known."""
    return "" if plan.memory.cache is not None else plain(plan.memory.sentences(plan.target)[0])


def describe_readers(plan: Plan) -> str:
    """Say which runtimes read the written file as intended."""
    return " ".join(plain(sentence) for sentence in (plan.file.generation, *plan.file.proof))
