"""What llama.cpp's conversion classes write to the GGUF of base, rotated share and scaling, where they differ.

Read from `conversion/*.py` of llama.cpp 0c1e57098 and run class by class (tests/goldens/converted.json).
"""

from __future__ import annotations

from rope_viz.embedding.spec import require_number
from rope_viz.runtimes.rule_engine import Case, Refused
from rope_viz.runtimes.transformers_history import names

# Conversion classes that write neither the base nor any scaling, so that the runtime takes 10000.
BARE = ("gpt_neox", "stablelm", "gemma", "gemma2", "phi", "falcon", "persimmon", "minicpm3", "orion")
# Conversion classes that write a base and no scaling.
UNSCALED = names("modernbert eurobert chatglm glm deepseek dbrx bitnet cohere cohere2 cohere2_moe exaone_moe falcon_h1")
# Types whose own code reads no base or no scaling, and whose conversion class writes what the config says of it.
WRITTEN = ("baichuan", "qwen")
# Children of LlamaModel: the only ones that bake llama3 into a tensor.
LLAMAS = names(
    "llama mistral mixtral llama4 llama4_text granite_swa granitemoe_swa smollm3 apertus arcee exaone exaone4 "
    "exaone_moe internlm3 iquestcoder nanbeige nemotron-nas step3p5"
)
# Those whose list of tensors has none for it.
NO_TENSOR = ("afmoe", "bamba", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared")
PARTIAL = names(
    "gpt_neox stablelm phi phi3 glm glm4 glm4_moe glm4v_text glm4v_moe_text glm_ocr_text chatglm qwen3_5 qwen3_5_text "
    "qwen3_5_moe_text qwen3_next qwen4_exp_text nemotron deepseek_v4 minimax_m2 laguna solar_open bailing_moe_v2"
)
# What is written where no key says a share.
SHARES = {
    **dict.fromkeys(("glm4v_text", "glm4v_moe_text", "glm_ocr_text", "solar_open", "bailing_moe_v2"), 0.5),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text"), 0.25),
}


def as_written(case: Case) -> Case:
    """What the config says of base and scaling, where the model's own code has both fixed."""
    rope = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    base = rope.pop("rope_theta", case.fields.config.get("rope_theta"))
    require_number(base or case.base, "rope_theta", above=1.0, most=1e30)
    return case.but(base=float(base or case.base), rope=rope or case.rope)


def dbrx(case: Case) -> Case:
    """DBRX: the base that is written is the one in attn_config, and no other."""
    base = (case.fields.mapping("attn_config") or {}).get("rope_theta")
    if base is None:
        raise Refused("KeyError: rope_theta in attn_config")
    require_number(base, "rope_theta", above=1.0, most=1e30)
    return case.but(base=float(base))


def ministral3(case: Case) -> Case:
    """Ministral 3: no other type than yarn, with what the loader multiplies its factor by."""
    if case.kind != "yarn":
        raise Refused("AssertionError: ministral3 rope_type must be 'yarn'")
    if case.rope.get("mscale_all_dim") is None:
        raise Refused("KeyError: mscale_all_dim")
    return case


def nemotron(case: Case) -> Case:
    """Nemotron: any type with a factor is written as linear."""
    return case.using(rope_type="linear", type=None) if case.rope.get("factor") is not None else case.plain()


def unscaled(case: Case) -> bool:
    """Whether no scaling is written, nor a tensor for it."""
    return case.model in UNSCALED and not (case.kind == "llama3" and case.model in LLAMAS)


def shares(case: Case) -> Case:
    """The rotated dimensions that conversion writes."""
    if case.kind == "proportional":
        return case
    if case.model not in PARTIAL:
        return case.but(share=1.0, plain_share=1.0)
    rope = case.fields.mapping("rope_parameters") or case.fields.mapping("rope_scaling") or {}
    said = any("partial_rotary_factor" in place for place in (case.fields.config, rope))
    share = case.share if said else SHARES.get(case.model, case.share)
    if int(case.head_dim * share) % 2:
        raise Refused(f"GGML_ASSERT: {int(case.head_dim * share)} dimensions of a head cannot rotate in pairs")
    return case.but(share=share, plain_share=share)
