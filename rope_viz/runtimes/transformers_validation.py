"""What the configuration and rotary classes of transformers 5.23.0 refuse, beyond missing keys.

Each class was built with every rope type (tests/goldens/make_composites.py); what raised is a rule here.
"""

from __future__ import annotations

from rope_viz.embedding.spec import shorten
from rope_viz.models import remote_code_types
from rope_viz.models.config_reader import GLOBAL_HEADS
from rope_viz.runtimes.rule_engine import Case, Refused, Rule, model, of, refuse, when

DEFAULT_ONLY = ("cosmos3_edge_text", "ernie4_5_vl_moe_text", "recurrent_gemma")
LONGROPE_ONLY = ("phi3", "phi4_multimodal")
# Types under names of older code, and the classes that put today's in their place.
OLD_NAMES: dict[str, tuple[str, ...]] = {
    "mrope": ("qwen2_vl_text", "qwen2_5_vl_text"),
    "su": LONGROPE_ONLY,
    "xdrope": ("hunyuan_vl_text",),
    "none": (),
}


def old_name(case: Case) -> Case:
    """A type under the name of older code, where no class renames it: the table of functions has no such type."""
    named = case.rope.get("rope_type", case.rope.get("type"))
    own = case.fields.listed and case.model not in remote_code_types.TYPES
    if own and isinstance(named, str) and case.model not in OLD_NAMES.get(named, (case.model,)):
        raise Refused(f"KeyError: its table of functions has no rope type {shorten(named)}")
    return case


def phimoe(case: Case) -> Case:
    """PhimoeConfig wants both mscale numbers for every type but the default."""
    for key in ("short_mscale", "long_mscale"):
        value = case.rope.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Refused(f"TypeError: its PhimoeConfig wants a number in {key} wherever RoPE is scaled")
    return case


def phi3_lists(case: Case) -> Case:
    """Phi3Config counts the pairs by hidden_size / num_attention_heads, whatever head_dim says."""
    heads = case.fields.required("num_attention_heads")
    pairs = int(case.fields.required("hidden_size") // heads * case.share) // 2
    for key in ("short_factor", "long_factor"):
        values = case.rope.get(key)
        if isinstance(values, (list, tuple)) and len(values) != pairs:
            raise Refused(f"ValueError: its Phi3Config wants {pairs} numbers in {key}, by hidden_size over heads")
    return case


def several_heads(case: Case) -> bool:
    """Whether the head size differs between the layer types."""
    if case.model == "dots3_note_text":
        return True
    layers = ("full_attention", "sliding_attention")
    return model(*GLOBAL_HEADS)(case) and len({case.fields.layer(layer).head_dim() for layer in layers}) > 1


def scaled(case: Case) -> bool:
    """Whether the rope type is another than the default."""
    return case.kind != "default"


STRICT_CLASSES = (
    Rule("old-name", "Old names of types are known to single classes only.", old_name),
    Rule(
        "default-only",
        "The class takes the default rope type only.",
        when(
            lambda case: model(*DEFAULT_ONLY)(case) and scaled(case),
            refuse("{model} takes the default rope type only, and raises ValueError for {kind}"),
        ),
    ),
    Rule(
        "longrope-only",
        "Phi3Config takes the types default and longrope only.",
        when(
            lambda case: model(*LONGROPE_ONLY)(case) and scaled(case) and not of("longrope")(case),
            refuse("its Phi3Config takes the types default and longrope only, and raises ValueError for {kind}"),
        ),
    ),
    Rule(
        "phi3-lists",
        "Phi3Config wants one number per pair of hidden_size / num_attention_heads dimensions.",
        when(lambda case: model(*LONGROPE_ONLY)(case) and of("longrope")(case), phi3_lists),
    ),
    Rule(
        "phimoe-mscales",
        "PhimoeConfig wants short_mscale and long_mscale wherever RoPE is scaled.",
        when(lambda case: model("phimoe")(case) and scaled(case), phimoe),
    ),
    Rule(
        "heads-by-layer",
        "longrope's lists are checked against one head_dim, and this class has one per layer type.",
        when(
            lambda case: of("longrope")(case) and several_heads(case),
            refuse("its class has a head size per layer type, and raises AttributeError for longrope"),
        ),
    ),
)
