"""Sentences of the page Extend, with the current numbers."""

from __future__ import annotations

from rope_viz.advice.memory.layer_kinds import Layers
from rope_viz.advice.plan.extension_plan import ExtensionPlan
from rope_viz.advice.plan.verdict import find_measured, make_verdict
from rope_viz.advice.plan.ways import SUPPORT, Way
from rope_viz.figures.words import footnote, plain
from rope_viz.models.identity.shipped_scaling import describe_method
from rope_viz.pages.model.extend.figures import EXTEND, find_rows, row_of
from rope_viz.texts import Sentence, Texts, join
from rope_viz.texts.texts import join_items, join_list

TEXTS = Texts("model")


def describe_setting(way: Way) -> str:
    """Name an embedding that the user set: its method, and its base where that is another."""
    base, spec = way.recognised.spec.base, way.spec
    method = describe_method(spec)
    return method if spec.base == base else join_items((method, TEXTS("facts.base", base=spec.base)))


def refusals(plan: ExtensionPlan) -> str:
    """List why each way is refused, and what the user can do."""
    told = "\n".join(f"- {plain(reason)}" for reason in plan.refusals[1:])
    return f"{told}\n\n{TEXTS('refused')}"


def list_costs(plan: ExtensionPlan) -> list[str]:
    """Return what it costs short texts, and how well the model was measured on long ones."""
    # A result for a shorter length is part of the verdict, and what was found of other models is no cost of this one.
    own = [one for one in plan.way.evidence if one.models and one != find_measured(plan.way)]
    measured = [f"{plain(one.text)}{footnote(one.source)}" for one in own[:1]]
    return [*(plain(sentence) for sentence in plan.advice.short[:1]), *measured]


def have(plan: ExtensionPlan) -> str:
    """Name the recognised model and its trained length, with the source as a footnote."""
    known = plan.recognised
    return f"**{plain(known.sentence)}**{footnote(known.trained.source)}"


def list_mistakes(plan: ExtensionPlan) -> str:
    """List likely mistakes in the length keys of the config as Markdown, "" if there are none."""
    return "\n".join(f"- {EXTEND('mistake', mistake=plain(mistake))}" for mistake in plan.recognised.mistakes)


def best(plan: ExtensionPlan) -> str:
    """Give the verdict and the best method in two sentences."""
    first, verdict = plan.advice.best, make_verdict(plan)
    words = join(EXTEND("best.words", words=verdict.words), verdict.measured) if verdict.words else verdict.reason
    return join(
        EXTEND("best.title", target=plan.target, title=plain(first.title)),
        EXTEND("best.headline", headline=plain(verdict.headline)),
        EXTEND("best.reason", reason=plain(words)),
        EXTEND("best.support", support=SUPPORT[first.rank], source=footnote(first.source)),
    )


def speeds(plan: ExtensionPlan) -> str:
    """Describe what the chosen method does to the pairs."""
    numbers, trained = plan.way.option, plan.recognised.trained
    reach = f"speeds.{'some' if numbers.unseen else 'none'}_{'unseen' if trained.is_known else 'beyond'}"
    counts = {"kept": numbers.kept, "blended": numbers.blended, "divided": numbers.divided}
    return join(
        EXTEND("speeds.bands", pairs=plan.way.spec.pairs, **counts),
        EXTEND(reach, target=plan.target, unseen=numbers.unseen, trained=trained.length),
        EXTEND("speeds.logits", factor=numbers.logit_factor),
    )


def short(plan: ExtensionPlan) -> str:
    """Describe the effect on short texts."""
    return join(*map(plain, plan.advice.short))


def memory(plan: ExtensionPlan) -> str:
    """Give cache, weights and the longest length that fits."""
    return join(*map(plain, plan.memory.sentences(plan.target)))


def unknown(plan: ExtensionPlan) -> str:
    """Return why the memory is unknown, "" if it is known."""
    return "" if plan.memory.cache is not None else plain(plan.memory.sentences(plan.target)[0])


def describe_support(plan: ExtensionPlan) -> str:
    """Return which runtimes read the written file as intended."""
    return join(*map(plain, (plan.file.generation, *plan.file.proof)))


def layers(found: Layers) -> Sentence:
    """Say how many layers there are of each kind, and how many of them scaling reaches."""
    count, parts = len(found.layers), _layer_parts(found)
    first = TEXTS("layers.all", count=count, part=_kind_of_row(next(iter(find_rows(found))), found))
    if len(parts) > 1:
        first = TEXTS("layers.mixed", count=count, parts=join_list(parts))
    key = "reached_all" if found.scaled == count else "reached" if found.scaled else "reached_none"
    reach = found.longest_reach
    short = "" if reach is None else TEXTS("layers.short", reach=reach)
    assumed = TEXTS("layers.assumed", count=count) if found.assumed else ""
    return join(first, TEXTS(f"layers.{key}", scaled=found.scaled), short, assumed)


def layers_title(found: Layers) -> str:
    """Return the accessible name of the strip of layers."""
    return TEXTS("layers.title", parts=join_list(_layer_parts(found)), scaled=found.scaled)


def no_layers(problem: str) -> str:
    """Say why the layers are not known."""
    return TEXTS("layers.unknown", problem=plain(problem))


def _layer_parts(found: Layers) -> list[Sentence]:
    rows = [row_of(layer) for layer in found.layers]
    names = [name for name in find_rows(found) if name in rows]
    return [TEXTS("layers.part", number=rows.count(name), kind=_kind_of_row(name, found)) for name in names]


def _kind_of_row(name: str, found: Layers) -> Sentence:
    reaches = {layer.reach for layer in found.layers if row_of(layer) == name}
    reach = reaches.pop() if len(reaches) == 1 else None
    if name in ("window", "chunk") and reach is not None:
        return TEXTS(f"layers.kinds.{name}_of", reach=reach)
    return TEXTS(f"layers.kinds.{name}")
