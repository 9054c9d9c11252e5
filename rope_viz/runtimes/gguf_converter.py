"""What llama.cpp's conversion classes write to the GGUF of base, rotated share and scaling, where they differ.

Read from `conversion/*.py` of llama.cpp 0c1e57098 and run class by class (tests/goldens/converted.json).
"""

from __future__ import annotations

from rope_viz.embedding.spec import require_number
from rope_viz.runtimes.rule_engine import Case, Refused, has

FACTS = "llama.cpp"


def as_written(case: Case) -> Case:
    """What the config says of base and scaling, where the model's own code has both fixed."""
    rope = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    base = rope.pop("rope_theta", case.fields.config.get("rope_theta"))
    require_number(base or case.base, "rope_theta", above=1.0, most=1e30)
    return case.replace(base=float(base or case.base), rope=rope or case.rope)


def dbrx(case: Case) -> Case:
    """DBRX: the base that is written is the one in attn_config, and no other."""
    base = (case.fields.mapping("attn_config") or {}).get("rope_theta")
    if base is None:
        raise Refused("KeyError: rope_theta in attn_config")
    require_number(base, "rope_theta", above=1.0, most=1e30)
    return case.replace(base=float(base))


def ministral3(case: Case) -> Case:
    """Ministral 3: no other type than yarn, with what the loader multiplies its factor by."""
    if case.kind != "yarn":
        raise Refused("AssertionError: ministral3 rope_type must be 'yarn'")
    if case.rope.get("mscale_all_dim") is None:
        raise Refused("KeyError: mscale_all_dim")
    return case


def nemotron(case: Case) -> Case:
    """Nemotron: any type with a factor is written as linear."""
    return case.with_rope(rope_type="linear", type=None) if case.rope.get("factor") is not None else case.drop_scaling()


def unscaled(case: Case) -> bool:
    """Whether no scaling is written, nor a tensor for it."""
    return has(FACTS, "unscaled")(case) and not (case.kind == "llama3" and has(FACTS, "llama3_tensor")(case))


def shares(case: Case) -> Case:
    """The rotated dimensions that conversion writes."""
    if case.kind == "proportional":
        return case
    if not has(FACTS, "partial")(case):
        return case.replace(share=1.0, plain_share=1.0)
    rope = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    said = any("partial_rotary_factor" in place for place in (case.fields.config, rope))
    share = case.share if said else case.architecture.runtime(FACTS).get("share", case.share)
    if int(case.head_dim * share) % 2:
        raise Refused(f"GGML_ASSERT: {int(case.head_dim * share)} dimensions of a head cannot rotate in pairs")
    return case.replace(share=share, plain_share=share)
