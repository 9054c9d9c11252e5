"""What each architecture reads from its config.json: class defaults, key names, and how it derives the size of a head.

`architectures.json` holds the facts; tests/goldens/make_architectures.py asked the classes of transformers 5.23.0.
`folding` holds how the RoPE keys themselves are brought together.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, require_number, shorten
from rope_viz.models import no_rope_types, remote_code_types

Params: TypeAlias = dict[str, Any]

# Architectures whose full-attention layers have larger heads, under `global_head_dim`.
GLOBAL_HEADS = ("gemma4_text", "gemma4_unified_text", "diffusion_gemma_text", "embedding_gemma2_text")
RENAMED_LAYERS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """{model type: facts} of every architecture of transformers 5.23.0 with text RoPE, and of other published ones."""
    text = Path(__file__).with_name("architectures.json").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = json.loads(text)
    return {**loaded, **remote_code_types.TYPES}


def entry(kind: str) -> dict[str, Any] | None:
    """What is known of a model type: its facts, or where its text part is; None for a type outside the list."""
    return table().get(kind) or no_rope_types.WRAPPERS.get(kind) or remote_code_types.WRAPPERS.get(kind)


class Fields:
    """A config with the defaults of its class behind it. Every reader raises `ValueError` naming the key.

    `taken` are the keys by which a type outside the list says what is usually said by others, `wrapper` is the type of
    the outermost wrapper whose class is not known, None where there is none.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        facts: Mapping[str, Any],
        kind: str,
        *,
        taken: tuple[str, ...] = (),
        wrapper: str | None = None,
    ) -> None:
        self.config, self.facts, self.kind, self.taken, self.wrapper = config, facts, kind, taken, wrapper

    @property
    def listed(self) -> bool:
        """Whether the code of this model type was read; the others are read by general rules."""
        return self.kind in table()

    def raw(self, key: str) -> Any:
        """The value in the config under this name or its other one, None where absent."""
        if "aliases" not in self.facts:
            return self.config.get(key)
        names = [key, *(other for other, usual in self.facts.get("aliases", {}).items() if usual == key)]
        return next((self.config[name] for name in names if self.config.get(name) is not None), None)

    def number(self, key: str, **bounds: Any) -> float | None:
        """The number under this key, or the class default, or None."""
        value = self.raw(key)
        if value is None:
            value = self.facts.get(key)
        if value is not None:
            require_number(value, key, **bounds)
        return None if value is None else float(value)

    def size(self, key: str) -> int | None:
        """A whole number of at least 1 under this key, or the class default, or None."""
        value = self.number(key, least=1, most=MAX_LENGTH, integer=True)
        return None if value is None else int(value)

    def required(self, key: str) -> int:
        """As `size`, but it must be there."""
        value = self.size(key)
        if value is None:
            raise ValueError(f"{key} is missing: expected a whole number")
        return value

    def mapping(self, key: str) -> Params | None:
        """A copy of the object under this key, None where absent or empty."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{key} must be an object, got {shorten(value)}")
        return (
            {name: dict(part) if isinstance(part, Mapping) else part for name, part in value.items()} if value else None
        )

    def theta(self, key: str = "rope_theta", default: float | None = None) -> float:
        """The base under this key, or the class default."""
        value = self.config.get(key)
        if value is None:
            value = self.facts.get("default_theta", 10_000.0) if default is None else default
        require_number(value, key)
        return float(value)

    def head_dim(self) -> int:
        """The size of the part of a head that carries RoPE, as the class derives it."""
        rule = self.facts.get("head", "head_dim")
        found = None
        if rule == "head_dim":
            found = None if "head_dim" in self.config and self.config["head_dim"] is None else self.size("head_dim")
        elif self.facts.get("head_wins") and self.config.get("head_dim") is not None:
            require_number(self.config["head_dim"], "head_dim", least=1, most=MAX_LENGTH, integer=True)
            found = int(self.config["head_dim"])
        elif "hidden_size" not in rule:
            found = sum(self.required(key) for key in rule.split("+"))
        if found is None:
            doubled = 2 if rule == "2*hidden_size" else 1
            found = doubled * self.required("hidden_size") // self.required("num_attention_heads")
        require_number(found, "head_dim", least=2, most=MAX_HEAD_DIM)
        return found

    def layer_types(self) -> list[str] | None:
        """The layer types the config names, under their present names and in order, None where it names none."""
        value = self.config.get("layer_types")
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"layer_types must be a list of names, got {shorten(value)}")
        return [RENAMED_LAYERS.get(str(name), str(name)) for name in value]

    def layer(self, layer: str) -> Fields:
        """The same with what `per_layer_config` overrides for the layers of this type."""
        overrides = self.mapping("per_layer_config") or {}
        types = self.layer_types()
        if self.kind in GLOBAL_HEADS and "per_layer_config" not in self.config:
            changed = {"head_dim": self.config.get("global_head_dim", 512)} if layer == "full_attention" else {}
        elif self.kind == "dots3_note_text" and "per_layer_config" not in self.config:
            changed = self.sliding_heads() if layer == "sliding_attention" else {}
        else:
            by_index = {int(key): value for key, value in overrides.items() if key.isdigit() and len(key) < 6}
            named = by_index if types is None else {i: v for i, v in by_index.items() if types[i : i + 1] == [layer]}
            changed = next((dict(value) for value in named.values() if isinstance(value, Mapping)), {})
            if types is None and layer != "full_attention":
                changed = {}
        return Fields({**self.config, **changed}, self.facts, self.kind)

    def sliding_heads(self) -> Params:
        """The head sizes of the sliding layers of dots.3."""
        head = self.config.get("swa_head_dim", 256)
        plain = self.config.get("swa_qk_nope_head_dim", 192)
        require_number(head, "swa_head_dim", least=1, most=MAX_HEAD_DIM)
        require_number(plain, "swa_qk_nope_head_dim", least=0, most=MAX_HEAD_DIM)
        return {"head_dim": head, "qk_rope_head_dim": self.config.get("swa_qk_rope_head_dim", head - plain)}


# What most configuration classes of transformers 5 insist on as whole numbers; null where there is a question mark.
WHOLE = (
    "head_dim? hidden_size intermediate_size max_position_embeddings num_attention_heads num_hidden_layers "
    "num_key_value_heads? vocab_size"
)
# Sizes that must be above 0, and those that may be 0: then the model has no such part.
ABOVE = ("hidden_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "vocab_size")
PARTS = ("intermediate_size", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "v_head_dim")

# What classes take and their models do not, run on meta tensors: null and 96.0 raise TypeError in the attention.
READ_HEAD = (
    "afmoe apertus bitnet cohere cohere2 doge dots1 ernie4_5_moe exaone4 exaone_moe falcon_h1 flex_olmo glm "
    "glm4_moe glm4_moe_lite glm4v_moe_text glm_image_text glm_ocr_text granite granite_docling_text granite_swa "
    "granitemoe granitemoe_swa granitemoeshared hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl_text jetmoe lfm2 "
    "ministral nanochat olmo olmo2 olmo3 olmo_hybrid olmoe phi phi3 phi4_multimodal phimoe qwen2 qwen2_moe "
    "qwen3_moe smollm3"
)
READ = {
    "head_dim": frozenset(READ_HEAD.split()),
    "num_key_value_heads": frozenset(("ernie4_5_moe", "glm", "nemotron", "qwen2_moe")),
}
# Further keys of single types, run key by key (tests/goldens/refused.json, refused_types.json): whole numbers, null
# where there is a question mark; yes or no; keys whose null is read, indexed or raised to a power all the same.
OWN = {
    # What others call hidden_size and num_hidden_layers stands under these names, which are typed alike.
    "codegen": "n_ctx n_embd n_head n_inner? n_layer n_positions rotary_dim",
    "dbrx": "d_model max_seq_len? n_heads? n_layers?",
    "deepseek_v3": "v_head_dim",
    "deepseek_v4": "moe_intermediate_size",
    "falcon": "num_kv_heads? ffn_hidden_size?",
    "gpt_oss": "num_local_experts",
    "gptj": "n_embd n_head n_inner? n_layer n_positions rotary_dim",
    "jetmoe": "kv_channels",
    "llama4_text": "attention_chunk_size? no_rope_layer_interval",
    "longcat_flash": "expert_ffn_hidden_size ffn_hidden_size num_layers",
    "mistral4": "head_dim",
    "modernbert": "local_attention",
    "moonshine": "head_dim decoder_num_attention_heads decoder_num_hidden_layers decoder_num_key_value_heads? "
    "encoder_num_attention_heads",
    "phi3": "original_max_position_embeddings",
    "recurrent_gemma": "attention_window_size",
    "smollm3": "no_rope_layer_interval",
    "starcoder2": "head_dim?",
    "zamba2": "attention_head_dim?",
    **dict.fromkeys(
        (
            *("glmasr_encoder", "gte", "jina_embeddings_v3", "nemotron3_5_transcribe_asr_audio"),
            "nemotron3_diarization_audio",
        ),
        "head_dim",
    ),
    "lasr_encoder": "head_dim num_key_value_heads",
    **dict.fromkeys(("moonshine_streaming", "voxtral_realtime_encoder"), "num_key_value_heads"),
}
FLAGS = {"falcon": ("alibi", "multi_query", "new_decoder_architecture")}
NOT_NULL = {
    "layer_types": "bamba falcon_h1 pe_audio_encoder qwen3_vl_moe_text qwen3_vl_text recurrent_gemma",
    "original_max_position_embeddings": "apertus cwm gpt_oss higgs_audio_v2 ministral3 mistral4 mistral_large4_text "
    "openai_privacy_filter",
    "rope_parameters": "cohere2_moe",
    "rope_scaling": f"beam laguna mellum mimo_v2_flash neomme zaya {' '.join(GLOBAL_HEADS)}",
    "rope_theta": "bamba cohere2_moe deepseek_v4 dots3_note_text esm gpt_oss openai_privacy_filter",
    "sliding_window": "modernbert neomme",
}
# Without layer_types every n-th layer is another, and n is sliding_window_pattern; no window makes it 0.
COUNTED = ("exaone4", "kolibri1")
# The same where a fraction is taken, too, and a window is not asked for: i % n, whatever n is.
EVERY_NTH = {
    "cohere2": "sliding_window_pattern",
    "gemma3_text": "sliding_window_pattern",
    "modernbert": "global_attn_every_n_layers",
}
# A list of which layers rotate; without it every n-th does not, and n is no_rope_layer_interval.
LISTED_LAYERS = ("llama4_text", "smollm3")
# Their attention rotates pairs of neighbours inside rotary_dim and repeats each angle twice.
EVEN = ("codegen", "gptj")
# Classes that check it, each built with one dimension more.
DIVIDED = no_rope_types.names(
    """
    arcee aria_text cosmos3_edge_text cwm deepseek_ocr2_text deepseek_v2 dots3_note_audio_encoder esmc eurobert gemma2
    gemma3_text gemma3n_text gpt_neox gradium_phonon_tts higgs_audio_v2 hrm_text hyperclovax internlm3 iquestcoder jais2
    llama minicpm3 muse_glimmer_text muse_spark_text nemotron3_5_transcribe_asr_audio nemotron3_diarization_audio
    nemotron3_5_transcribe_word_timestamp neucodec pocket_tts t5_gemma_module t5gemma2_decoder t5gemma2_text ultrabert
    unlimited_ocr_text vaultgemma xcodec2
    """
)
# A null share is multiplied by the head's size.
SHARED = ("nemotron", "persimmon", "phi", "phi3", "phi4_multimodal", "stablelm")
# Their rope_parameters know this method and no other.
LONGROPE_ALONE = ("phi3", "phi4_multimodal", "phimoe")


def insist(fields: Fields) -> None:
    """Raise `ValueError` where a size is of a kind that the configuration class of transformers 5.23.0 refuses.

    Its fields are typed and checked: "4096", 4096.0 and true raise, and so does null for most of them.
    """
    if not fields.listed or fields.kind in remote_code_types.TYPES:
        return
    for key, null in whole_numbers(fields.kind):
        value = fields.config.get(key)
        if value is None and key in fields.config and not null:
            raise ValueError(f"{key} is null, which transformers refuses: leave it out or write a number")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"{key} must be a whole number, got {shorten(value)}")
        if value is not None and key in (*ABOVE, *PARTS):
            require_number(value, key, least=0 if key in PARTS else 1, most=MAX_LENGTH)
    for key in ("num_attention_heads", "num_hidden_layers"):
        fields.size(key)
    if fields.kind in SHARED and fields.config.get("partial_rotary_factor", 1.0) is None:
        raise ValueError("partial_rotary_factor is null, which transformers refuses: leave it out or write a number")
    divided(fields)
    own_values(fields)
    layer_patterns(fields)
    fields.layer_types()


@functools.cache
def whole_numbers(kind: str) -> tuple[tuple[str, bool], ...]:
    """The keys that the class of a listed model type insists on as whole numbers, each with whether it may be null."""
    words = table()[kind].get("whole", WHOLE).split() + OWN.get(kind, "").split()
    words += [key for key, kinds in READ.items() if kind in kinds]
    return tuple((word.rstrip("?"), word.endswith("?")) for word in words)


def divided(fields: Fields) -> None:
    """Raise `ValueError` where the class insists on a width that the heads divide, whatever head_dim says."""
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    if fields.kind in DIVIDED and width and heads and width % heads:
        raise ValueError(
            f"hidden_size {width} is no multiple of num_attention_heads {heads}, and transformers refuses that for "
            f"{fields.kind}, whatever head_dim says"
        )


def own_values(fields: Fields) -> None:
    """Raise `ValueError` for values that single classes and their models refuse."""
    config = fields.config
    for key in FLAGS.get(fields.kind, ()):
        if config.get(key) is not None and not isinstance(config[key], bool):
            raise ValueError(f"{key} must be true or false, got {shorten(config[key])}")
    for key in NOT_NULL:
        if key in config and config[key] is None and refuses_null(fields.kind, key):
            raise ValueError(f"{key} is null, which transformers refuses: leave it out or fill it in")
    if config.get("rope_scaling") == {} and fields.kind in NOT_NULL["rope_scaling"].split():
        raise ValueError("rope_scaling is empty, and transformers looks for layer types in it: leave it out")
    if fields.kind == "falcon" and "head_dim" in config:
        raise ValueError("head_dim cannot be set for Falcon, whose class derives it: leave it out")
    if fields.kind in COUNTED and config.get("layer_types") is None:
        if "sliding_window" in config and config["sliding_window"] is None:
            raise ValueError("sliding_window is null and there is no layer_types: transformers divides by 0")
        if "sliding_window_pattern" in config:
            require_number(config["sliding_window_pattern"], "sliding_window_pattern", least=1, integer=True)


def layer_patterns(fields: Fields) -> None:
    """Raise `ValueError` for what makes a class fail where it counts out which layers are of another kind."""
    config, key = fields.config, EVERY_NTH.get(fields.kind, "")
    if key in config and config.get("layer_types") is None:
        value = config[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value == 0:
            what = "null" if value is None else shorten(value)
            raise ValueError(f"{key} is {what} and there is no layer_types: transformers divides by it, write a number")
    if fields.kind in LISTED_LAYERS:
        rotating = config.get("no_rope_layers")
        if rotating is not None and not (isinstance(rotating, list) and all(type(one) is int for one in rotating)):
            raise ValueError(f"no_rope_layers must be a list of 0 and 1, got {shorten(rotating)}")
        count = fields.size("num_hidden_layers")
        if rotating is not None and count is not None and config.get("layer_types") is None:
            exact = fields.kind == "llama4_text"
            if len(rotating) < count if not exact else rotating and len(rotating) != count:
                raise ValueError(f"no_rope_layers has {len(rotating)} entries, and num_hidden_layers is {count}")
        if config.get("no_rope_layer_interval") == 0 and (fields.kind == "llama4_text" or not rotating):
            raise ValueError("no_rope_layer_interval is 0, and transformers divides by it: leave it out")
    if fields.kind in EVEN:
        rotated = fields.size("rotary_dim")
        if rotated is not None and rotated % 2:
            raise ValueError(f"rotary_dim must be even for {fields.kind}, whose first forward raises, got {rotated}")


def refuses_null(kind: str, key: str) -> bool:
    """Whether a null under this key makes the class of this model type, or its model, raise."""
    return kind in NOT_NULL.get(key, "").split() or (key == "partial_rotary_factor" and kind in SHARED)


# An architecture that is not in the table: partial rotary is believed where the config names it.
UNKNOWN: dict[str, Any] = {"partial": True, "rope_interleave": True}


def name_of(config: Mapping[str, Any]) -> str:
    """The model type, empty where there is none."""
    value = config.get("model_type")
    if value is not None and not isinstance(value, str):
        raise ValueError(f"model_type must be a name, got {shorten(value)}")
    return value or ""
