"""mlx-lm 0.32.2 as rules: `mlx_lm/models/rope_utils.py` and what each model file passes to it.

The models were run on mlx 0.32.4 for CPU (tests/goldens/runtimes.json).
"""

from __future__ import annotations

from rope_viz.embedding.spec import require_number, short_repr
from rope_viz.models.formats import find_format, mistral_params
from rope_viz.models.rope_config import TELECHAT3_YARN
from rope_viz.runtimes import shared_rules as shared
from rope_viz.runtimes.known_types import find_missing_wrapper
from rope_viz.runtimes.releases import RELEASES
from rope_viz.runtimes.rule_engine import (
    ORIGINAL,
    Case,
    Refused,
    Rule,
    all_hold,
    assume,
    has,
    has_type,
    ignore,
    is_not,
    is_scaled,
    refuse,
    require,
    require_by_type,
    rule,
)
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts.texts import join_list

KNOWN = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional")
FACTS = "mlx-lm"


@rule("refused")
def refuse_unknown_wrapper(case: Case) -> Case:
    """mlx-lm has no model file for the type at the top of the config, which a params.json does not name."""
    if find_format(case.fields.config) == mistral_params.FORMAT:
        raise Refused(TEXTS("mlx.keyerror_model_type"))
    missing = find_missing_wrapper(FACTS, RELEASES[FACTS].today[0], case.fields.wrappers)
    if missing:
        raise Refused(TEXTS("mlx.valueerror_model", value=short_repr(missing).strip(chr(39))))
    return case


@rule("needs-keys")
def require_keys(case: Case) -> Case:
    """The model file has no default for some keys; without them it raises TypeError."""
    facts = case.architecture.runtime(FACTS)
    needed = (*facts.get("needs", ()), *(facts.get("needs_in_wrapper", ()) if case.fields.wrappers else ()))
    missing = [key for key in needed if key not in case.fields.config]
    if missing:
        raise Refused(TEXTS("mlx.typeerror_py", file=facts["file"], missing=join_list(missing, more="end")))
    return case


@rule("needs-parameters", has(FACTS, "needs_parameters"))
def require_parameters(case: Case) -> Case:
    """The model file reads some keys of rope_parameters without asking whether they are there."""
    given, facts = case.fields.config.get("rope_parameters"), case.architecture.runtime(FACTS)
    if not given:
        raise Refused(TEXTS("mlx.typeerror_py_reads", file=facts["file"]))
    missing = [key for key in facts["needs_parameters"] if key not in given]
    if missing:
        raise Refused(TEXTS("mlx.keyerror_py", file=facts["file"], missing=join_list(missing, more="end")))
    return case


@rule("always-yarn", has(FACTS, "always_yarn"))
def build_yarn_always(case: Case) -> Case:
    """The model file builds YaRN from rope_scaling at the top, whatever its type."""
    given = case.fields.config.get("rope_scaling")
    if not given:
        raise Refused(TEXTS("mlx.attributeerror_deepseek_v2"))
    if "factor" not in given:
        raise Refused(TEXTS("mlx.keyerror_deepseek_v2"))
    return case.with_rope(rope_type="yarn", type=None)


@rule("own-sizes", has(FACTS, "own_sizes"))
def take_own_sizes(case: Case) -> Case:
    """For sizes that the config does not name, the model file has defaults of its own."""
    facts, fields = case.architecture.runtime(FACTS), case.fields
    read = [fields.config, fields.mapping("rope_parameters") or {}] if facts.get("new_keys") else [fields.config]
    share, head_dim = facts["own_sizes"].get("partial_rotary_factor"), facts["own_sizes"].get("head_dim")
    if share is not None and all(keys.get("partial_rotary_factor") is None for keys in read):
        case = shared.set_share(case, share)
    if head_dim is None or fields.raw("head_dim") is not None:
        return case
    return case.replace(head_dim=head_dim) if isinstance(head_dim, int) else shared.derive_head.change(case)


@rule("own-base")
def take_own_base(case: Case) -> Case:
    """Without rope_theta at the top the model file uses a base of its own."""
    facts = case.architecture.runtime(FACTS)
    key = "rope_theta"
    if case.layer == "sliding_attention" and "local_base" in facts:
        key = "rope_local_base_freq"
    own = facts.get("local_base" if key != "rope_theta" else "base")
    given = case.fields.config.get(key)
    return case if own is None or given is not None else case.replace(base=own)


@rule("old-keys-only")
def read_old_keys(case: Case) -> Case:
    """The model file reads rope_theta and rope_scaling at the top and does not read rope_parameters."""
    config, facts = case.fields.config, case.architecture.runtime(FACTS)
    is_old, is_new = bool(config.get("rope_scaling")), bool(config.get("rope_parameters"))
    if facts.get("ignores_class_defaults") and not is_old and not is_new:
        return case.drop_scaling().replace(base=case.fields.theta())
    if facts.get("new_keys") or is_old or not is_new:
        return case
    share = config.get("partial_rotary_factor") or case.fields.default("partial_rotary_factor") or 1.0
    is_local = case.layer == "sliding_attention" and "local_base" in facts
    base = config.get("rope_local_base_freq" if is_local else "rope_theta") or 10_000.0
    require_number(base, "rope_theta", above=1.0)
    require_number(share, "partial_rotary_factor", above=0.0, most=1.0)
    return shared.set_share(case.drop_scaling().replace(base=float(base)), float(share))


@rule("new-keys-only", has(FACTS, "new_scaling_only"))
def read_new_keys(case: Case) -> Case:
    """The model file takes scaling from rope_parameters alone: a rope_scaling at the top is silently ignored."""
    if case.fields.config.get("rope_parameters"):
        return case
    return case.drop_scaling().replace(base=case.architecture.runtime(FACTS).get("new_base", case.base))


@rule("some-types", is_scaled)
def take_some_types(case: Case) -> Case:
    """The model file supports only some types of scaling."""
    facts = case.architecture.runtime(FACTS)
    if case.kind not in facts.get("takes", (case.kind,)):
        raise Refused(TEXTS("mlx.py_accepts", model=case.model, takes=join_list(facts["takes"], more="end")))
    if facts.get("needs_alpha") and case.rope.get("alpha") is None:
        raise Refused(TEXTS("mlx.rope_scaling_must"))
    return case.drop_scaling() if case.kind not in facts.get("ignores_all_but", (case.kind,)) else case


@rule("old-type-first")
def prefer_old_type(case: Case) -> Case:
    """The old key "type" overrides "rope_type"."""
    named = case.rope.get("type") or case.rope.get("rope_type")
    if named == "su" and not has(FACTS, "knows_su")(case):
        raise Refused(TEXTS("mlx.unsupported_rope_type"))
    return case if named is None or case.rope.get("rope_type") is None else case.with_rope(rope_type=named)


@rule("telechat3-yarn", has_type(TELECHAT3_YARN))
def take_telechat3_as_yarn(case: Case) -> Case:
    """telechat3-yarn is plain yarn: its weight 0.07 is not known, 0.1 is used."""
    return case.with_rope(rope_type="yarn", type=None)


@rule("legacy-type", has(FACTS, "legacy_type"), is_scaled)
def add_old_type(case: Case) -> Case:
    """The model file raises ValueError without the old key "type"; computed as if it were present."""
    return case if "type" in case.rope else case.with_rope(type=case.kind)


def refuse_whole_factor(case: Case) -> Case:
    """Raise `Refused` for a factor that is no float."""
    if not isinstance(case.rope.get("factor"), float):
        raise Refused(TEXTS("mlx.linear_factor"))
    return case


@rule("phi3", has(FACTS, "phi3_longrope"), is_scaled)
def compute_phi3(case: Case) -> Case:
    """This class supports longrope and linear; the original length is read at the top, 4096 by default."""
    require("long_factor")(case)
    if case.kind == "longrope":
        return case.with_rope(**{ORIGINAL: case.top_original or 4096})
    return refuse_whole_factor(case) if case.kind == "linear" else case.drop_scaling()


@rule("nemotron", has(FACTS, "nemotron_linear"), is_scaled)
def compute_nemotron(case: Case) -> Case:
    """nemotron.py supports linear."""
    if case.kind != "linear":
        raise Refused(TEXTS("mlx.rope_scaling_supports_linear"))
    return refuse_whole_factor(require("factor")(case))


@rule("longrope-long", has_type("longrope"))
def take_long_list(case: Case) -> Case:
    """longrope always uses the long list, and ignores attention_factor and factor."""
    return ignore("attention_factor", "factor")(case.replace(length=case.original + 1))


RULES = (
    refuse_unknown_wrapper,
    refuse("mlx.mlx_lm_model", shared.is_absent(FACTS)),
    require_keys,
    require_parameters,
    build_yarn_always,
    read_old_keys,
    read_new_keys,
    take_own_base,
    shared.partial_share(FACTS),
    shared.derive_head.where(has(FACTS, "derived_head")),
    take_own_sizes,
    refuse("mlx.valueerror_rope", lambda case: case.rotary_dim % 2 == 1),
    shared.share_base,
    take_some_types,
    shared.unscaled(FACTS, "mlx.plain"),
    Rule(
        "unscaled",
        "mlx.unscaled",
        Case.drop_scaling,
        all_hold(has(FACTS, "unscaled_alone"), lambda case: not case.fields.wrappers),
    ),
    prefer_old_type,
    take_telechat3_as_yarn,
    add_old_type,
    compute_phi3,
    compute_nemotron,
    refuse(
        "mlx.rope_scaling_supports",
        has(FACTS, "internlm2_types"),
        is_not(has_type("default", "linear", "dynamic")),
    ),
    refuse("mlx.unsupported_rope", is_not(has_type(*KNOWN))),
    require_by_type(linear=("factor",), dynamic=("factor",), yarn=("factor",), llama3=("factor",)),
    refuse(
        "mlx.typeerror_class",
        has(FACTS, "passes_no_limit"),
        has_type("dynamic", "longrope"),
    ),
    require_by_type(longrope=(*shared.LISTS, ORIGINAL)),
    Rule("yarn-original", "mlx.yarn_original", assume(**{ORIGINAL: 4096}), has_type("yarn")),
    Rule(
        "llama3-defaults",
        "mlx.llama3_defaults",
        assume(low_freq_factor=1.0, high_freq_factor=4.0, **{ORIGINAL: 8192}),
        has_type("llama3"),
    ),
    shared.scale_softmax,
    shared.take_mscale_alone,
    take_long_list,
)
