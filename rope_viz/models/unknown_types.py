"""A model type whose code was not read: its config by the usual keys, and by others that can mean only one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.models.architecture import Architecture, RopeReading, listed_types
from rope_viz.models.config_reader import Fields
from rope_viz.models.rope_parameters import get_dotted

# {the usual key: names that cannot be mistaken for anything else, whatever the type}
UNMISTAKABLE = {
    "hidden_size": ("n_embd", "d_model", "dim", "model_dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "head_dim": ("kv_channels", "attention_head_dim", "head_size", "attention_head_size"),
    "max_position_embeddings": (
        *("max_position_embedding", "n_positions", "max_seq_len", "max_sequence_length", "max_seq_length"),
        *("seq_length", "n_ctx", "model_max_length", "max_context_length", "max_source_positions"),
    ),
    "rope_theta": (
        "rotary_emb_base",
        "rope_base",
        "rope_embedding_base",
        "rope_freq_constant",
        "rotary_base",
        "rotary_embedding_base",
        "attn_config.rope_theta",
        "rotary.base",
    ),
    "partial_rotary_factor": ("rotary_pct", "rope_pct", "rotary_percent", "rotary_emb_fraction"),
    "rope_interleave": ("rotary_emb_interleaved",),
}


# Files that come with a config.json, by a key that only they have.
OTHER_FILES = {
    "peft_type": "this is the config of an adapter: use the config.json of its base model",
    "weight_map": "this is the index of the weights: use the config.json next to it",
    "tokenizer_class": "this is the config of a tokenizer: use the config.json next to it",
    "image_processor_type": "this is the config of a preprocessor: use the config.json next to it",
    "feature_extractor_type": "this is the config of a preprocessor: use the config.json next to it",
    "general.architecture": "these are keys of a GGUF file: use the config.json from which it was converted",
    "text_model_id": "its language model is another model, named by text_model_id: use the config.json of that one",
    "rope_type": "this is only the content of rope_scaling, without the sizes of a model: use the whole config.json",
    "eos_token_id": "it does not describe a model: generation_config.json is not a config.json",
}
# Keys that no config.json of a whole model has.
NO_CONFIG_KEYS = ("peft_type", "weight_map", "image_processor_type", "feature_extractor_type", "added_tokens_decoder")
SIZES = ("hidden_size", "num_attention_heads", "head_dim", "rope_scaling", "rope_parameters", "rope_theta")


def refuse_others(config: Mapping[str, Any], kind: str) -> None:
    """Raise `ValueError` for a file that is no model's config, or whose language model is elsewhere."""
    sizes = {name for usual in SIZES for name in (usual, *UNMISTAKABLE.get(usual, ()))}
    heads = ("num_attention_heads", *UNMISTAKABLE["num_attention_heads"])
    if any(config.get(name) is not None for name in (heads if "text_model_id" in config else sizes)):
        return
    found = next((message for key, message in OTHER_FILES.items() if key in config), None)
    if found is None and not kind:
        found = "it has neither a model_type nor any size of a model, so it is not a model's config.json"
    if found is not None:
        base = config.get("base_model_name_or_path", config.get("text_model_id"))
        raise ValueError(f"{found} ({short_repr(base)})" if isinstance(base, str) else found)


def is_model_config(config: Mapping[str, Any]) -> bool:
    """Return whether an object looks like the config of a model: it names a type, or heads and a width."""
    if any(key in config for key in NO_CONFIG_KEYS):
        return False
    heads, widths = (
        any(isinstance(config.get(name), int) for name in (usual, *UNMISTAKABLE[usual]))
        for usual in ("num_attention_heads", "hidden_size")
    )
    return isinstance(config.get("model_type"), str) or (heads and widths)


def read_unknown_fields(config: Mapping[str, Any], kind: str, wrapper: str | None) -> Fields:
    """Return the fields of a model type without a record, with the defaults of a Llama."""
    read, taken = dict(config), []
    head_size = "head_dim"
    for usual, others in UNMISTAKABLE.items():
        name = next(
            (name for name in others if config.get(usual) is None and get_dotted(config, name) is not None), None
        )
        if name is not None:
            read[usual] = get_dotted(config, name)
            taken.append(name)
    if config.get("qk_rope_head_dim") is not None:
        head_size = "qk_rope_head_dim"
        taken.append("qk_rope_head_dim")
    elif config.get("rotary_dim") is not None and read.get("partial_rotary_factor") is None:
        fields = Fields(read, Architecture(kind, listed=False))
        rotary, head_dim = fields.required("rotary_dim"), fields.head_dim()
        if rotary > head_dim:
            raise ValueError(f"rotary_dim must be at most head_dim = {head_dim}, got {rotary}")
        read["partial_rotary_factor"] = rotary / head_dim
        taken.append("rotary_dim")
    # Partial rotation and pairing are believed where the config names them.
    architecture = Architecture(
        kind,
        head_size=head_size,
        partial_rotary=True,
        reads_rope_interleave=True,
        rope=RopeReading(alpha_is_ntk=kind.startswith("hunyuan")),
        listed=False,
    )
    return Fields(read, architecture, own_keys=tuple(taken), wrapper=wrapper)


def letters_of(kind: str) -> str:
    """Return a model type in lower case, without punctuation."""
    return "".join(letter for letter in kind.lower() if letter.isalnum())


def describe_doubt(fields: Fields) -> str:
    """Return a sentence where this model type, or its wrapper's, has no record; empty where both have one."""
    if fields.is_listed:
        if not fields.wrapper:
            return ""
        return f"model_type {short_repr(fields.wrapper)} is unknown. The {fields.kind} inside is read by its own rules."
    if not fields.kind:
        used = f"{', '.join(fields.own_keys)} is" if fields.own_keys else "the config is"
        return f"model_type is missing, which transformers refuses; {used} read by general rules."
    letters = letters_of(fields.kind)
    spelled = next((name for name in sorted(listed_types()) if letters_of(name) == letters), "")
    if spelled:
        return f"Unknown model_type {short_repr(fields.kind)}. Did you mean {spelled}? transformers reads only that."
    used = f" with its keys {', '.join(fields.own_keys)}" if fields.own_keys else ""
    return (
        f"model_type {short_repr(fields.kind)} is unknown. It is read by general rules{used}; its own code may differ."
    )
