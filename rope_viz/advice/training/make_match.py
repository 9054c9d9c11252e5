"""Find the config, flags or override with which a server computes what was trained, read back through its rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from rope_viz.advice.plan.export import TARGETS, Export, export, find_changed_layers
from rope_viz.advice.training import TEXTS
from rope_viz.advice.training.match_training import (
    Match,
    compare_scores,
    describe_match,
    make_limit_whole,
    measure_match,
)
from rope_viz.embedding.scaling import Yarn, as_divisors
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes import emulate_case, llamacpp, read_case
from rope_viz.runtimes.releases import format_version
from rope_viz.runtimes.trainers import Training
from rope_viz.texts import join
from rope_viz.texts.sentences import remove_period

CONFIG_FORMS = ("transformers", "transformers-4")
"""The two forms of config.json, which every server can be given."""


@dataclass(frozen=True)
class Remedy:
    """What to give a server. `text` is to be copied: keys of config.json where `is_config`, else options.

    `after` is the match with it. `matches` says whether the server then computes what was trained; `reason` is a
    sentence that says why not, or why there is nothing to do.
    """

    text: str = ""
    is_config: bool = False
    after: Match | None = None
    matches: bool = False
    reason: str = ""


def find_remedy(found: Match, config: Source, *, length: int | None = None, layer_type: str | None = None) -> Remedy:
    """Return what makes the server of a match compute what was trained, else what comes closest.

    `config`, `length` and `layer_type` are those of the match.
    """
    training, server = found.training, found.emulation
    if training.spec is None:
        return Remedy(reason=TEXTS("remedy.untrained", trainer=training.name))
    if found.same:
        return Remedy(matches=True, reason=TEXTS("remedy.same", server=server.name))
    if found.same_values:
        return Remedy(reason=TEXTS("remedy.pairs", server=server.name))
    if server.known.how == "not known":
        return Remedy(reason=TEXTS("match.unknown", server=server.name, source=server.known.source))
    model = ModelConfig.read(config)
    whole, notes = make_limit_whole(model.mapping)
    model = ModelConfig.read(whole) if notes else model
    closest: Remedy | None = None
    for spec in vary_scores(training.spec, training):
        for target in list_targets(server.runtime, server.version):
            made = write_draft(spec, target, model, layer_type)
            after = None if made is None else read_back(made, found, length, layer_type)
            if made is None or after is None:
                continue
            is_config = bool(made.fragment) and not made.flags
            if after.same and keeps_rest(made, found, model, layer_type):
                return Remedy(made.text, is_config, after, True)
            remedy = Remedy(made.text, is_config, after, False, explain(made, after, found))
            if closest is None or measure_remedy(remedy) < measure_remedy(closest):
                closest = remedy
    if closest is None:
        return Remedy(reason=TEXTS("remedy.no_config", trainer=training.name))
    # Do not recommend options that do not even give the frequencies.
    return closest if has_frequencies(closest.after) else Remedy(after=closest.after, reason=closest.reason)


def explain(made: Export, after: Match, found: Match) -> str:
    """Return why a server does not compute what was trained from this."""
    server = found.emulation.name
    if not after.emulation.supported:
        return TEXTS("remedy.refuses", server=server, reason=after.emulation.reason)
    if not has_frequencies(after):
        return TEXTS("remedy.cannot", server=server, reason=remove_period(made.reason or describe_match(after)))
    if after.same:
        return TEXTS("remedy.layers", server=server)
    return join(TEXTS("remedy.no_scores", server=server), describe_match(after))


def has_frequencies(match: Match | None) -> bool:
    """Return whether a server computes the trained frequencies."""
    return match is not None and match.emulation.supported and match.effect is None and not match.widths_differ


def list_targets(runtime: str, version: str) -> list[str]:
    """Return the exports that a server may be given: its own first, then both forms of config.json."""
    own = [name for name, (one, _, _) in TARGETS.items() if one == runtime]
    own.sort(key=lambda name: TARGETS[name][1] != format_version(version))
    return [*own, *(name for name in CONFIG_FORMS if name not in own)]


def write_draft(spec: RopeSpec, target: str, model: ModelConfig, layer_type: str | None) -> Export | None:
    """Return an embedding as a target takes it; None where the config cannot be written so."""
    try:
        return export(spec, to=target, config=model, layer_type=layer_type)
    except ValueError:
        return None


def read_back(made: Export, found: Match, length: int | None, layer_type: str | None) -> Match | None:
    """Return the match of the trainer with the server after a change; None where its config cannot be read."""
    server = found.emulation
    flags = llamacpp.parse_flags(made.flags or None) if server.runtime == "llama.cpp" else None
    try:
        case = read_case(made.config, length=length, layer_type=layer_type)
        after = emulate_case(server.runtime, server.version, case, flags)
    except ValueError:
        return None
    return compare_scores(found.training, after, case.has_unrotated)


def keeps_rest(made: Export, found: Match, model: ModelConfig, layer_type: str | None) -> bool:
    """Return whether layers of other types stay, and whether a method that depends on the length fits at each."""
    spec, server = found.training.spec, found.emulation
    if spec is not None and spec.scaling.depends_on_length and not made.faithful:
        return False
    if "" in model.specs or len(model.specs) < 2:
        return True
    layer, written = layer_type or model.main_layer, ModelConfig.read(made.config)
    flags = made.flags if server.runtime == "llama.cpp" else ""
    return not find_changed_layers(model, written, layer, server.runtime, server.version, flags)


def vary_scores(spec: RopeSpec, training: Training) -> Iterator[RopeSpec]:
    """Yield the trained embedding in each way that a config can state its factors.

    The multiplier of the softmax scale is stated by the factor on cos and sin where all dimensions rotate, and by
    mscale_all_dim in DeepSeek's attention. Servers that read no attention_factor read mscale and mscale_all_dim.
    """
    yield spec
    attention, softmax = training.attention_factor or 1.0, training.softmax_multiplier or 1.0
    scaling, joint = spec.scaling, attention * math.sqrt(softmax)
    if not isinstance(scaling, Yarn):
        if softmax != 1.0 and (spec.inv_freq() > 0).all():
            yield as_divisors(spec, spec.inv_freq(), joint)
        return
    step = 0.1 * math.log(scaling.factor) if scaling.factor > 1.0 else 0.0
    if softmax != 1.0:
        yield dataclasses.replace(spec, scaling=dataclasses.replace(scaling, attention=joint))
    if not step:
        return
    for under in ((math.sqrt(softmax) - 1.0) / step, 1.0):
        over = (attention * (1.0 + step * under) - 1.0) / step
        split = dataclasses.replace(scaling, attention=None, mscale=over, mscale_all_dim=under)
        yield dataclasses.replace(spec, scaling=split)


def measure_remedy(remedy: Remedy) -> tuple[float, float]:
    """Return how far a server is off after a change, for choosing the closest; a refusal is the farthest."""
    if remedy.after is None or not remedy.after.emulation.supported:
        return math.inf, math.inf
    return measure_match(remedy.after)
