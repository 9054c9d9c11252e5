"""The rules of the check about the scaling method and about names of keys; those about sizes are in `size_rules`."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rope_viz.advice.lint.key_places import find_misplaced
from rope_viz.advice.lint.lint_context import (
    KNOWN_KEYS,
    TEXTS,
    Finding,
    Severity,
    find_dicts,
    measure_effect,
    place_of,
    write_keys,
)
from rope_viz.embedding.scaling import mscale
from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS as CONFIGS
from rope_viz.models.config_reader import SECTION_KEYS, Fields, is_number
from rope_viz.models.formats import FILE
from rope_viz.models.formats.megatron_config import FORMAT
from rope_viz.models.long_names import describe_long_names
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import UNMISTAKABLE, letters_of
from rope_viz.models.rope_config import ORIGINAL, PRETRAINED_TYPES, read_optional
from rope_viz.models.rope_dicts import RopeDict
from rope_viz.models.text_config import find_inside
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import Effect, find_max_ratio
from rope_viz.runtimes.releases import REFERENCE, RELEASES
from rope_viz.storage.limits import NAME_CHARACTERS
from rope_viz.texts import join
from rope_viz.texts.texts import join_list

# {rope type: keys that some runtime reads for it}; those of the first row are read for all types.
READ: Mapping[str, Sequence[str]] = KNOWN_KEYS["by_type"]
EVERY_KEY = sorted({word for words in READ.values() for word in words})


def missing_original(model: ModelConfig) -> Iterator[Finding]:
    """The original length is missing, and every runtime assumes another number.

    Source: transformers 5.23.0 standardize_rope_params; the documentation of Qwen3, whose 40960 are 32768 and 8192 for
    the prompt; values from executed runtimes (tests/goldens/runtimes.json).
    """
    outer, limit = model.fields.number(ORIGINAL), model.limit
    for site in find_dicts(model, *PRETRAINED_TYPES):
        if site.rope.get(ORIGINAL) is not None or (outer is not None and site.layers == ("",)):
            continue
        trained, _ = model.fields.architecture.documented_lengths.get(str(limit), (limit, ""))
        repaired = write_keys(model, site.path, **{ORIGINAL: trained})
        effect = measure_effect(model, repaired, site.layer) or compare_with_mlx(model, site)
        text = TEXTS("missing-original.message", limit=limit)
        if trained != limit:
            second = TEXTS("missing-original.prompt", trained=trained, room=limit - trained)
            text = join(text, second)
        yield Finding("", "error", site.key, text, effect, repaired)


def compare_with_mlx(model: ModelConfig, site: RopeDict) -> Effect | None:
    """Return the largest ratio between the frequencies of transformers and mlx-lm for this config."""
    ours, theirs = (
        emulate(model, runtime=name, layer_type=site.layer or None).inv_freq for name in ("transformers", "mlx-lm")
    )
    return None if ours is None or theirs is None else find_max_ratio(ours, theirs)


def factor_mismatch(model: ModelConfig) -> Iterator[Finding]:
    """YaRN's factor is not max_position_embeddings over the trained length.

    Source: https://github.com/huggingface/transformers/issues/38224 (4.52 uses the ratio and ignores the factor) and
    the warning of transformers 5.23.0 validate_rope. vLLM 0.33.0, config/model.py, does not multiply YaRN's length.
    """
    limit = model.limit
    for site in find_dicts(model, "yarn"):
        factor, spec = site.optional("factor"), model.specs[site.layer]
        ratio = limit / spec.context
        if factor is None or abs(ratio / factor - 1.0) < 1e-6:
            continue
        reached, repaired = factor * spec.context, None
        if ratio == 1.0:
            if factor <= 1.0 or site.rope.get(ORIGINAL) is None:
                continue
            # Without knowing which of both lengths is meant there is no repair.
            meant = "not_raised"
        elif limit > reached:
            repaired = write_keys(model, site.path, factor=ratio)
            meant = "factor_too_small"
        else:
            repaired = write_keys(model, model.path, max_position_embeddings=int(reached))
            meant = "limit_too_small"
        old = emulate(model, runtime="transformers", version="4.52.4", layer_type=site.layer or None).inv_freq
        effect = None if repaired is None else measure_effect(model, repaired, site.layer)
        effect = effect or (None if old is None else find_max_ratio(spec.inv_freq(), old))
        text = join(
            TEXTS(f"factor-mismatch.{meant}", factor=factor, ratio=ratio, reached=reached, limit=limit),
            TEXTS("factor-mismatch.old_transformers"),
        )
        # A few hundred unused tokens only change what 4.52 computes, and only slightly.
        severity: Severity = "note" if 1.0 < factor / ratio < 1.05 else "warning"
        yield Finding("", severity, f"{site.key}.factor", text, effect, repaired)


def swapped_betas(model: ModelConfig) -> Iterator[Finding]:
    """beta_fast below beta_slow, or high_freq_factor below low_freq_factor: high frequencies are divided.

    Source: the warning of transformers 5.23.0 validate_rope; a published config with beta_fast 1 and beta_slow 32.
    """
    for site in find_dicts(model, "yarn", "llama3"):
        fast, slow = ("beta_fast", "beta_slow") if site.kind == "yarn" else ("high_freq_factor", "low_freq_factor")
        high, low = site.number(fast, 32.0 if site.kind == "yarn" else 4.0), site.number(slow, 1.0)
        if high < low:
            repaired = write_keys(model, site.path, **{fast: low, slow: high})
            text = TEXTS("swapped-betas.message", fast=fast, high=high, slow=slow, low=low)
            effect = measure_effect(model, repaired, site.layer)
            yield Finding("", "error", f"{site.key}.{fast}", text, effect, repaired)


def integer_factor(model: ModelConfig) -> Iterator[Finding]:
    """A linear factor written as a JSON integer: vLLM 0.33.0 and SGLang 0.5.23 raise TypeError.

    Source: both executed with factor 2 instead of 2.0.
    """
    for site in find_dicts(model, "linear"):
        factor = site.rope.get("factor")
        if isinstance(factor, int) and not isinstance(factor, bool):
            text = TEXTS("integer-factor.message", factor=factor)
            repaired = write_keys(model, site.path, factor=float(factor))
            yield Finding("", "error", f"{site.key}.factor", text, None, repaired)


def nested_truncate(model: ModelConfig) -> Iterator[Finding]:
    """truncate: false in parameters nested by layer type: transformers reads it only from the outer dict.

    Source: transformers 5.23.0 _compute_yarn_parameters, executed: the result is exactly that of truncate: true.
    """
    for site in find_dicts(model, "yarn"):
        if site.rope.get("truncate", True) or site.layers == ("",):
            continue
        theirs = emulate(model, runtime="vllm", layer_type=site.layer).inv_freq
        effect = None if theirs is None else find_max_ratio(model.specs[site.layer].inv_freq(), theirs)
        text = TEXTS("nested-truncate.message")
        yield Finding("", "warning", f"{site.key}.truncate", text, effect)


def type_keys(model: ModelConfig) -> Iterator[Finding]:
    """The old key "type" is used, or it differs from the new key "rope_type".

    Source: vLLM 0.33.0 patch_legacy_rope_type raises where they differ; phi3.py and internlm2.py of mlx-lm 0.32.2 and
    Phi3Config before transformers 5 require "type"; Cohere and Granite before 5 require "rope_type".
    """
    for site in model.rope_dicts:
        new, old = site.rope.get("rope_type"), site.rope.get("type")
        if old is None or new == old or [old, new] in (["su", "longrope"], ["mrope", "default"]):
            continue
        if new is None:
            text = TEXTS("type-keys.old_key", old=short_repr(old))
            needs_old = model.fields.architecture.runtime("mlx-lm").get("legacy_type")
            repaired = None if needs_old else write_keys(model, site.path, rope_type=old)
            yield Finding("", "note", f"{site.key}.type", text, None, repaired)
            continue
        text = TEXTS("type-keys.differ", new=short_repr(new), old=short_repr(old))
        yield Finding("", "error", f"{site.key}.type", text, None, write_keys(model, site.path, type=None))


def mscale_keys(model: ModelConfig) -> Iterator[Finding]:
    """mscale and mscale_all_dim on a model without latent attention, or only one of the two.

    Source: https://github.com/turboderp-org/exllamav3/issues/259 and executed runtimes. The pair sets the factor on cos
    and sin to their ratio, often 1. llama.cpp ignores it. mscale without the other counts in mlx-lm and TensorRT-LLM.
    """
    usual = model.fields.default("rope_parameters") or {}
    trained = [read_optional(usual, key) for key in ("mscale", "mscale_all_dim")]
    for site in find_dicts(model, "yarn"):
        pair, factor = [site.optional(key) for key in ("mscale", "mscale_all_dim")], site.number("factor", 1.0)
        explicit = site.rope.get("attention_factor") is not None
        if explicit or model.fields.has_latent_attention or pair in ([None, None], trained):
            continue
        if pair[0] and pair[1]:
            ratio = mscale(factor, pair[0]) / mscale(factor, pair[1])
            text = TEXTS("mscale-keys.both", mscale=pair[0], mscale_all_dim=pair[1], ratio=ratio, factor=mscale(factor))
            yield Finding("", "warning", f"{site.key}.mscale", text)
        elif pair[0] not in (None, 1.0):
            text = TEXTS("mscale-keys.alone", mscale=pair[0])
            yield Finding("", "warning", f"{site.key}.mscale", text, None, write_keys(model, site.path, mscale=None))


def attention_factor(model: ModelConfig) -> Iterator[Finding]:
    """An explicit attention_factor that differs from the method's own: most runtimes ignore it.

    Source: executed runtimes: transformers and vLLM use it for YaRN; SGLang, llama.cpp, mlx-lm and TensorRT-LLM do not;
    for LongRoPE only transformers does. Where vLLM or SGLang runs a model with the code of transformers, it does too,
    and so does SGLang's class of Laguna (srt/configs/laguna.py of 0.5.23, read).
    """
    for site in find_dicts(model, "yarn", "longrope"):
        explicit = site.optional("attention_factor")
        if explicit is None:
            continue
        without = from_config(write_keys(model, site.path, attention_factor=None))[site.layer].attention_factor()
        if abs(explicit - without) > 1e-6 * abs(without):
            found = {name: emulate(model, name, layer_type=site.layer or None) for name in ("vllm", "sglang")}
            users = [RELEASES[name].name for name, one in found.items() if one.attention_factor == explicit]
            names = join_list(["transformers", *users])
            text = TEXTS("attention-factor.message", given=explicit, names=names, without=without)
            yield Finding("", "warning", f"{site.key}.attention_factor", text)


def longrope_lists(model: ModelConfig) -> Iterator[Finding]:
    """LongRoPE lists that do not have one number per pair.

    Source: transformers 5.23.0 _validate_longrope_rope_parameters warns and then fails on the shapes.
    """
    for site in find_dicts(model, "longrope"):
        share = read_optional(model.rope_parameters[site.layer], "partial_rotary_factor")
        pairs = (int(model.fields.head_dim() * (1.0 if share is None else share)) + 1) // 2
        for key in ("short_factor", "long_factor"):
            values = site.rope.get(key)
            if isinstance(values, list) and len(values) != pairs:
                text = TEXTS("longrope-lists.message", key=key, numbers=len(values), pairs=pairs)
                yield Finding("", "error", f"{site.key}.{key}", text)


def longrope_switch(model: ModelConfig) -> Iterator[Finding]:
    """The length at which LongRoPE switches its list is inside the context, or is never reached.

    Source: https://github.com/ggml-org/llama.cpp/issues/8995, https://github.com/huggingface/transformers/pull/33129;
    vLLM 0.33.0 serves at most the trained length by default.
    """
    for site in find_dicts(model, "longrope"):
        spec, place = model.specs[site.layer], f"{site.key}.{ORIGINAL}"
        effect = find_max_ratio(spec.inv_freq(spec.context), spec.inv_freq(spec.context + 1))
        if spec.context >= spec.target:
            text = TEXTS("longrope-switch.never", context=spec.context)
            yield Finding("", "warning", place, text, effect)
        elif effect is not None:
            text = TEXTS("longrope-switch.cache", context=spec.context)
            yield Finding("", "note", place, text, effect)


def two_originals(model: ModelConfig) -> Iterator[Finding]:
    """Two original lengths that differ, one inside the rope dict and one outside.

    Source: transformers 5.23.0 standardize_rope_params: the outer one wins; releases before 5 read the inner one for
    YaRN and the outer one for LongRoPE.
    """
    outer = model.text.get(ORIGINAL)
    for site in find_dicts(model, *PRETRAINED_TYPES):
        inner = site.rope.get(ORIGINAL)
        if inner is not None and outer is not None and inner != outer:
            text = TEXTS("two-originals.message", outer=short_repr(outer), inner=short_repr(inner))
            repaired = write_keys(model, site.path, **{ORIGINAL: outer})
            yield Finding("", "error", f"{site.key}.{ORIGINAL}", text, None, repaired)


def dynamic_cache(model: ModelConfig) -> Iterator[Finding]:
    """Dynamic NTK with a KV cache: cached keys keep the base of the length at which they were computed.

    Source: https://github.com/huggingface/transformers/issues/25104; vLLM and SGLang use one static base
    (https://github.com/vllm-project/vllm/issues/3488), llama.cpp none, all executed.
    """
    for site in find_dicts(model, "dynamic"):
        spec = model.specs[site.layer]
        # Hunyuan's alpha makes the base a constant.
        if spec.scaling.depends_on_length:
            longest = int(spec.context * max(site.number("factor", 1.0), 1.0))
            text = TEXTS("dynamic-cache.message")
            yield Finding("", "note", site.key, text, find_max_ratio(spec.inv_freq(), spec.inv_freq(longest)))


def unknown_keys(model: ModelConfig) -> Iterator[Finding]:
    """A key of the rope dict that no runtime reads for this type.

    Source: the keys that the executed runtimes read, and the warning of transformers 5.23.0 _check_received_keys.
    """
    for site in model.rope_dicts:
        if not site.rope.keys() & {"rope_type", "type"} and "rope_type" in find_misplaced(model):
            continue  # misplaced-keys says what is wrong
        read = {*READ[""], *READ[site.kind]}
        for key, value in site.rope.items():
            if key == "factor" and site.kind == "default" and site.optional(key) not in (None, 1.0):
                text = TEXTS("unknown-keys.factor", factor=site.number(key))
                yield Finding("", "warning", f"{site.key}.factor", text)
                continue
            if key in read or isinstance(value, dict):
                continue
            close = [name for name in difflib.get_close_matches(key, sorted(read), 1, 0.75) if name not in site.rope]
            if key in EVERY_KEY:
                text, repaired = (
                    TEXTS("unknown-keys.other_type", key=key, kind=site.kind),
                    write_keys(model, site.path, **{key: None}),
                )
            elif close:
                text = TEXTS("unknown-keys.close", key=short_repr(key), meant=short_repr(close[0]))
                repaired = write_keys(model, site.path, **{key: None, close[0]: value})
            else:
                text, repaired = TEXTS("unknown-keys.unread", key=short_repr(key)), None
            yield Finding("", "warning", f"{site.key}.{short_repr(key).strip(chr(39))}", text, None, repaired)


SWITCH, FACTOR = "use_rope_scaling", "rope_scaling_factor"


def learned_frequencies(model: ModelConfig) -> Iterator[Finding]:
    """The frequencies are in the weights.

    Source: transformers 5.23.0, modeling_mistral_large4.py, executed (tests/goldens/learned_frequencies.json).
    """
    if model.fields.architecture.rope.learned:
        yield Finding("", "note", "", join(CONFIGS("learned"), TEXTS("learned-frequencies.command")))


def megatron_scaling(model: ModelConfig) -> Iterator[Finding]:
    """use_rope_scaling, Megatron-LM's switch of Llama 3 scaling, whose numbers are constants in its code.

    Source: megatron-core, rotary_pos_embedding.py, executed (tests/goldens/training.json); swiss-ai/Megatron-LM#80.
    """
    source = model.mapping.get(FILE)
    if isinstance(source, Mapping) and source.get("format") == FORMAT:
        for site in find_dicts(model, "llama3"):
            text = TEXTS("megatron-scaling.arguments", factor=site.number("factor"))
            yield Finding("", "note", SWITCH, text)
    elif model.text.get(SWITCH) is True and not any(spec.is_scaled for spec in model.specs.values()):
        text = TEXTS("megatron-scaling.config")
        yield Finding("", "warning", place_of(model, SWITCH), text)


# Keys that this project reads for every model type.
USUAL_KEYS = frozenset(KNOWN_KEYS["usual"])

# Keys of some class of transformers 5.23.0 that look like a misspelling of a usual key.
LOOKALIKES = frozenset((*KNOWN_KEYS["lookalikes"], *SECTION_KEYS))

# {key of single classes of transformers: the model types that read it}.
READ_BY: Mapping[str, Sequence[str]] = KNOWN_KEYS["read_by"]
ROPE_LIKE = re.compile(r"rope|rotary|yarn|(^|_)ntk|trained_positions|trained_length|(^|_)n_positions$|theta")
"""Names that only keys of a rotary embedding have."""

# Names of llama.cpp's options, which no config class reads.
FOREIGN = {"rope_freq_base": "rope_theta", "rope_freq_scale": "rope_scaling"}

ALIKE, WORD_ALIKE = 0.88, 0.72
"""Least ratios of difflib for a whole key and for each of its words to be a misspelling."""


def long_names(model: ModelConfig) -> Iterator[Finding]:
    """A model type, a class, a rope type or a kind of layer of more than 100 characters, which no name has.

    Source: the names in transformers 5.23.0, of at most 63 characters; a longer one is cut before it is read.
    """
    for place, text in describe_long_names(model.long_names):
        yield Finding("", "warning", place, text)


def misspelled_keys(model: ModelConfig) -> Iterator[Finding]:
    """A key that nothing reads, whose name is nearly that of a key that is read.

    Source: the keys that this project and the classes of transformers 5.23.0 read (all classes were searched for keys
    with similar names).
    """
    read = find_read_keys(model.fields)
    for depth in range(len(model.path) + 1):
        path = model.path[:depth]
        level = find_inside(model.mapping, path)
        for key, value in level.items() if isinstance(level, Mapping) else ():
            meant = None if key in read or len(key) > NAME_CHARACTERS else find_meant_key(str(key), read)
            if meant is None:
                continue
            hidden = [letter for letter in key if is_invisible(letter)]
            values = {"key": key[:60], "meant": short_repr(meant), "code": ord(hidden[0]) if hidden else 0}
            text = TEXTS("misspelled-keys.invisible" if hidden else "misspelled-keys.message", **values)
            repaired = None
            if level.get(meant) is None and FOREIGN.get(key) is None:
                repaired = write_keys(model, path, **{key: None, meant: value})
            place = ".".join((*path, ascii(key[:60]).strip("'")))
            yield Finding("", "warning" if model.fields.is_listed else "note", place, text, None, repaired)


def keys_of_other_code(model: ModelConfig) -> Iterator[Finding]:
    """Keys that look like keys of RoPE and that the class of the model does not read.

    Source: the configuration classes of transformers 5.24.0, searched for such names; NomicBertConfig, executed.
    """
    kind, record = model.fields.kind, model.fields.architecture
    if not model.fields.is_listed or record.remote_code:
        return
    read = find_read_keys(model.fields) | {record.rope.base_key, *find_misplaced(model)}
    # What says the same as the model's own numbers changes nothing.
    neutral = (1.0, *(spec.base for spec in model.specs.values()))
    lost = {
        key: value
        for key, value in sorted(model.text.items(), key=str)  # a link has another order than its file
        if isinstance(key, str)
        and ROPE_LIKE.search(key)
        and is_number(value)
        and value not in neutral
        and key not in read
        and kind not in READ_BY.get(key, ())
        and find_meant_key(key, read) is None
    }
    if lost:
        names = join_list([f"{short_repr(key).strip(chr(39))} {value:,}" for key, value in lost.items()][:5])
        text = TEXTS("keys-of-other-code.message", count=len(lost), names=names, kind=kind, reference=REFERENCE)
        yield Finding("", "note", place_of(model, next(iter(lost))), text)


def find_read_keys(fields: Fields) -> frozenset[str]:
    """Return the keys that are read for a model type, as far as its record and this project name them."""
    record, taken = fields.architecture, fields.architecture.validation
    named = (*taken.whole, *taken.also_whole, *taken.flags, *taken.not_null)
    own = {*record.defaults, *record.aliases, *(key.rstrip("?+") for key in named)}
    own |= {key for key, _ in record.rope.bases.values()}
    if not fields.is_listed:
        own |= {name for names in UNMISTAKABLE.values() for name in names}
    return USUAL_KEYS | LOOKALIKES | own


def find_meant_key(key: str, read: Iterable[str]) -> str | None:
    """Return the key that is meant by a misspelled one, None where it resembles none."""
    if key in FOREIGN:
        return FOREIGN[key]
    cleaned = "".join(letter for letter in key if not is_invisible(letter)).strip()
    letters = letters_of(cleaned)
    same = next((one for one in sorted(read) if letters_of(one) == letters), None)
    if same is not None:
        return same
    close = difflib.get_close_matches(cleaned.lower(), sorted(read), 3, ALIKE)
    return next((one for one in close if has_similar_words(cleaned.lower(), one)), None)


def has_similar_words(key: str, other: str) -> bool:
    """Return whether two keys consist of as many words, each like the other's."""
    ours, theirs = key.split("_"), other.split("_")
    return len(ours) == len(theirs) and all(
        difflib.SequenceMatcher(None, one, two).ratio() >= WORD_ALIKE for one, two in zip(ours, theirs, strict=True)
    )


def is_invisible(letter: str) -> bool:
    """Return whether a character shows nothing: format and control characters, and all spaces but the usual one."""
    kind = unicodedata.category(letter)
    return kind in ("Cf", "Cc", "Zl", "Zp") or (kind == "Zs" and letter != " ")
