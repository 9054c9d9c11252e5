"""A rotary embedding as the options of a trainer, read back through the trainer's rules."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.advice.plan import TEXTS as PLAN
from rope_viz.advice.plan.export import config_to_change, export
from rope_viz.advice.training import TEXTS
from rope_viz.advice.training.match_training import FREQUENCY_TOLERANCE, SCORE_TOLERANCE, has_same_pairs
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import Source
from rope_viz.runtimes import emulate_case, read_case, resolve_release
from rope_viz.runtimes.compare import find_max_ratio
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Refused
from rope_viz.runtimes.trainers import Training, find_trainer, megatron, torchtitan, train_case
from rope_viz.texts.sentences import describe_error, remove_period
from rope_viz.texts.texts import join_clauses

Options: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class TrainerExport:
    """What to give one trainer, and what it will compute from that.

    `text` is to be copied, `options` is the same as data. `faithful` says whether the trainer's rules give the intended
    frequencies and scores from them; `reason` why not. `loses` says what the trainer's own export to Hugging Face does
    not carry.
    """

    trainer: str
    version: str
    text: str
    options: Options
    faithful: bool
    reason: str
    loses: str
    training: Training | None = None


@dataclass(frozen=True)
class Writer:
    """How one trainer is told an embedding.

    `write` returns the options for the case after the change; `show` makes text of them. `reads_config` says whether
    the trainer starts from the changed config, and not from the old one.
    """

    trainer: str
    write: Callable[[Case], Options]
    show: Callable[[Options, Case], str]
    reads_config: bool = False


def write_megatron(case: Case) -> Options:
    """Return the flags of pretrain_gpt.py."""
    found = megatron.write_arguments(case)
    flags: Options = {"rotary-base": found["rotary_base"]}
    if "rotary_percent" in found and not case.mla:
        flags["rotary-percent"] = found["rotary_percent"]
    if "rotary_interleaved" in found:
        flags["rotary-interleaved"] = True
    if "seq_len_interpolation_factor" in found:
        flags["rotary-seq-len-interpolation-factor"] = found["seq_len_interpolation_factor"]
    if found.get("rope_scaling"):
        flags |= {"use-rope-scaling": True, "rope-scaling-factor": found["rope_scaling_factor"]}
    flags = {"position-embedding-type": "yarn" if case.kind == "yarn" and not case.mla else "rope", **flags}
    if case.kind != "yarn":
        return flags
    flags["rotary-scaling-factor"] = found["scaling_factor"]
    mscales = (found["mscale"], found["mscale_all_dim"])
    over, under = (1.0, 0.0) if None in mscales else mscales
    flags |= {"mscale": over, "mscale-all-dim": under}
    if case.mla:
        return flags
    flags["yarn-original-max-position-embeddings"] = int(found[ORIGINAL])
    flags |= {"yarn-beta-fast": found["beta_fast"], "yarn-beta-slow": found["beta_slow"]}
    rounds = found["correction_range_round_to_int"]
    flags["yarn-correction-range-round-to-int" if rounds else "no-yarn-correction-range-round-to-int"] = True
    return flags


def show_flags(options: Options, case: Case) -> str:
    """Return flags, one per line, numbers as short as they can be."""
    lines = [f"--{name}" if value is True else f"--{name} {format_number(value)}" for name, value in options.items()]
    return " \\\n".join(lines)


def format_number(value: Any) -> str:
    """Return a number as text without a needless fraction; --rotary-base takes whole numbers only."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def show_torchtitan(options: Options, case: Case) -> str:
    """Return the RoPE.Config of a model in Python."""
    name = "CosSinRoPE" if torchtitan.is_half_split(case) or torchtitan.is_gpt_oss(case) else "ComplexRoPE"
    own = {key: value for key, value in options.items() if key != "mscale"}
    fields = ", ".join(f"{key}={value!r}" for key, value in {**own, "max_context_length": case.limit}.items())
    lines = [f"rope={name}.Config({fields})"]
    if "mscale" in options:
        lines.append(f"mscale={options['mscale']!r}  # of the attention's Config")
    return "\n".join(lines)


def whole_rope(case: Case) -> Options:
    """Return the rope dict of a case with type and base, and every key that some trainer needs."""
    rope: Options = {"rope_type": case.kind, "rope_theta": case.base}
    if case.kind == "yarn":
        rope |= {"beta_fast": 32.0, "beta_slow": 1.0, ORIGINAL: case.original}
    return rope | {key: value for key, value in case.rope.items() if key not in ("rope_type", "type")}


def write_axolotl(case: Case) -> Options:
    """Return the overrides that set a whole rope_parameters."""
    return {"overrides_of_model_config": {"rope_parameters": whole_rope(case)}}


def write_unsloth(case: Case) -> Options:
    """Return the arguments of from_pretrained."""
    return {"max_seq_length": case.limit, "rope_scaling": whole_rope(case)}


def write_automodel(case: Case) -> Options:
    """Return the rope_parameters of the model's config.json."""
    return {"rope_parameters": whole_rope(case)}


def write_llama_factory(case: Case) -> Options:
    """Return rope_scaling and cutoff_len. Raise `Refused` for a method that it does not have."""
    if case.kind == "default":
        return {}
    if case.kind not in ("linear", "dynamic", "yarn", "llama3"):
        raise Refused(TEXTS("export.no_type", kind=case.kind))
    original = case.original if case.kind != "linear" else case.limit / case.number("factor")
    return {"rope_scaling": case.kind, "cutoff_len": math.floor(original * case.number("factor"))}


def show_yaml(options: Options, case: Case) -> str:
    """Return lines of YAML; inner objects in JSON, which YAML contains."""
    return "\n".join(
        f"{key}: {json.dumps(value) if not isinstance(value, str) else value}" for key, value in options.items()
    )


def show_python(options: Options, case: Case) -> str:
    """Return the call in Python."""
    return (
        "FastLanguageModel.from_pretrained(model, "
        + ", ".join(f"{key}={value!r}" for key, value in options.items())
        + ")"
    )


def show_json(options: Options, case: Case) -> str:
    """Return a fragment of config.json."""
    return json.dumps(options, indent=2)


WRITERS: dict[str, Writer] = {
    "megatron": Writer("megatron-lm", write_megatron, show_flags),
    "torchtitan": Writer("torchtitan", torchtitan.write_arguments, show_torchtitan),
    "axolotl": Writer("axolotl", write_axolotl, show_yaml),
    "llamafactory": Writer("llama-factory", write_llama_factory, show_yaml),
    "unsloth": Writer("unsloth", write_unsloth, show_python),
    "automodel": Writer("nemo-automodel", write_automodel, show_json, reads_config=True),
}
"""How each trainer is told an embedding, by the name that `export --to` takes."""


def export_training(
    spec: RopeSpec, *, to: str, config: Source | None = None, layer_type: str | None = None
) -> TrainerExport:
    """Return an embedding as the options of a trainer, one of `WRITERS`, read back through its rules.

    `config` is the model's own config.json; without it the model is a Llama of these sizes. Raise `ValueError` for a
    config that cannot be read.
    """
    writer = WRITERS[to]
    trainer, release = find_trainer(writer.trainer)
    loses = TEXTS(f"loses.{to}")
    base = config_to_change(config, spec)
    changed = export(spec, to="transformers", config=base, layer_type=layer_type)
    case = read_case(changed.config, layer_type=layer_type)
    try:
        options = writer.write(case)
    except Refused as refusal:
        return TrainerExport(trainer.label, release, "", {}, False, describe_error(refusal), loses)
    text = writer.show(options, case) if options else "# no option is needed: it trains what config.json says"
    start = case if writer.reads_config else read_case(base, layer_type=layer_type)
    training = train_case(trainer, release, start, options)
    reason = changed.reason or explain(training, case)
    return TrainerExport(trainer.label, training.version, text, options, not reason, reason, loses, training)


def explain(training: Training, intended: Case) -> str:
    """Return why a training does not compute the intended case, "" where it does."""
    if training.inv_freq is None:
        return training.reason
    wanted = emulate_case(*resolve_release("transformers"), intended)
    assert wanted.inv_freq is not None, wanted.reason
    because = join_clauses([remove_period(rule.text) for rule in training.rules if rule.key not in TECHNICAL])
    if training.inv_freq.shape != wanted.inv_freq.shape:
        return PLAN("export.pairs", rotate=len(training.inv_freq), intended=len(wanted.inv_freq), because=because)
    effect = find_max_ratio(wanted.inv_freq, training.inv_freq)
    if effect is not None and effect.ratio > 1.0 + FREQUENCY_TOLERANCE:
        return TEXTS("export.pair", pair=effect.pair, ratio=effect.ratio, because=because)
    score = (training.attention_factor or 1.0) ** 2 * (training.softmax_multiplier or 1.0)
    right = (wanted.attention_factor or 1.0) ** 2 * (wanted.softmax_multiplier or 1.0)
    if not math.isclose(score, right, rel_tol=SCORE_TOLERANCE):
        return TEXTS("export.scores", ratio=score / right, because=because)
    return "" if has_same_pairs(training, intended) else TEXTS("export.channels")


TECHNICAL = ("stated-options", "option-names", "options", "pairing")
"""Rules that say how options are read, and not what is lost."""
