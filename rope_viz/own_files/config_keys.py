"""What a user's config shows to others: a list of keys, and texts only from closed sets and patterns.

Links, reports, pictures and badges carry a config as `cut_config` cuts it. The owner of a config keeps all of it: what
is exported, extended or repaired is the whole file.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from rope_viz.advice.lint.lint_context import KNOWN_KEYS
from rope_viz.advice.lint.rules import ROPE_LIKE, find_meant_key, find_read_keys
from rope_viz.advice.memory.kv_cache import NAMES as MEMORY_NAMES
from rope_viz.advice.memory.weight_storage import ALGORITHMS
from rope_viz.models import architecture, text_config
from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.config_reader import RENAMED_LAYERS, UNLISTED
from rope_viz.models.formats.gguf_keys import LOADER
from rope_viz.models.identity.identify_model import PRETRAINING_HEADS, read_own_name
from rope_viz.models.layer_patterns import WITHOUT_ATTENTION
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.no_rope_types import NOT_ROTARY, UNMISTAKABLE, letters_of, reasons
from rope_viz.models.parameter_formulas import formula_keys
from rope_viz.models.rope_config import RENAMED_TYPES, ROPE_TYPES
from rope_viz.models.rope_parameters import LAYER_TYPES
from rope_viz.models.several_axes.diffusion import find_rule
from rope_viz.models.several_axes.text import UNRECORDED
from rope_viz.runtimes.known_types import read_lists
from rope_viz.storage.decode_json import read_own
from rope_viz.texts import Texts

DECLARED = read_own(architecture.__file__, "config_keys.json")
"""Keys that readers declare, the kinds of their texts, and the keys that stay with the owner."""

OWN_NAME = "_name_or_path"
PRIVATE = frozenset(key for keys in DECLARED["private"].values() for key in keys)
"""Keys that name the user's files, models and modules. They are left out, whatever they hold."""

ROPE_DICTS = ("rope_scaling", "rope_parameters")

NUMBERED = re.compile(r"[0-9]{1,5}|group_[0-9]{1,3}")
"""Keys that count layers or groups of weights."""

NAME = re.compile(r"(?!(?:hf|sk|gh[oprsu])_)[A-Za-z_]{1,40}")
"""A key that no reader knows and that may travel; not one that begins as an access token does."""

PLAIN_NAME = re.compile(r"(?!(?:hf|sk|gh[oprsu])_)[a-z_]{1,40}")
"""The same where nothing but its place tells that it is about positions: random letters are rarely all small."""

POSITIONS = frozenset(
    """
    angle angles context ctx freq freqs frequency frequencies length mscale ntk pos position positional positions
    rotate rotated rotation scale scaling seq seqlen sequence window
    """.split()
)
"""Words of keys that may be about positions."""

NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?")
"""A number that a file has as text, which the check finds."""

VERSION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,4}){0,3}(\.?(dev|rc|post)[0-9]{0,3})?")
DATA_TYPE = re.compile(
    r"(torch\.)?(b?float|fp|bf|u?int|nf|mxfp|nvfp)[0-9]{1,2}(_e[0-9]m[0-9](fn|fnuz)?)?|float|half|auto"
)
LETTERS_OF_LAYERS = re.compile(r"[ME*|-]{1,1000}")
LETTERS_OF_WINDOWS = re.compile(r"[LGlg]{1,1000}")

HEADS = (
    *PRETRAINING_HEADS,
    *(
        "ForSequenceClassification ForTokenClassification ForQuestionAnswering ForMultipleChoice ForTextEncoding "
        "ForPreTraining ForRewardModel ForImageClassification ForCTC ForAudioClassification ForSpeechSeq2Seq "
        "ForVision2Seq ForRetrieval DoubleHeadsModel PreTrainedModel TextModel Model"
    ).split(),
)
"""How names of classes end."""

QUANTIZATIONS = frozenset(
    (
        *MEMORY_NAMES["quantized"],
        *(
            "aqlm auto-round auto_round autoround bitnet bitsandbytes compressed-tensors eetq fp_quant ggml gguf higgs "
            "hqq intel/auto-round metal mlx modelopt modelopt_fp4 nvfp4 quanto quark sinq spqr torchao vptq"
        ).split(),
    )
)
SCALINGS = frozenset(
    (*ROPE_TYPES, *RENAMED_TYPES, *KNOWN_KEYS["by_type"], "deepseek_yarn", "telechat3-yarn", "float", "int")
) - {""}
"""Types of scaling, and the two types of numbers that have the same key."""

LAYERS = frozenset(
    (*LAYER_TYPES, *RENAMED_LAYERS, *RENAMED_LAYERS.values(), *WITHOUT_ATTENTION, "local_attention", "global_attention")
)


# --- The list


@functools.cache
def list_keys() -> frozenset[str]:
    """Return the keys whose values may travel: those that readers declare, and those of tables and records."""
    found = {key for keys in DECLARED["keys"].values() for key in keys} | DECLARED["texts"].keys()
    found.update(*KNOWN_KEYS["by_type"].values(), KNOWN_KEYS["read_by"], text_config.TEXT_KEYS)
    for group in ("usual", "lookalikes", "numbers", "outside", "only_inside"):
        found.update(KNOWN_KEYS[group])
    for table in (MEMORY_NAMES["sizes"], UNMISTAKABLE):
        dotted = (name for usual, others in table.items() for name in (usual, *others))
        found.update(part for name in dotted for part in name.split("."))
    found.update(*(record.config_keys() for record in all_architectures().values()))
    # A model is recognised by its numbers, whatever they are.
    found.update(key for model in catalog().values() for key in find_sizes(model.whole))
    return frozenset(found | formula_keys()) - PRIVATE - {"*"}


def find_sizes(part: Mapping[str, Any]) -> set[str]:
    """Return the keys of an entry of the catalog, and of its parts, that hold numbers."""
    found = {key for key, value in part.items() if isinstance(value, (int, float)) and key != "_about"}
    parts = (value for key, value in part.items() if isinstance(value, Mapping) and key != "_about")
    return found.union(*map(find_sizes, parts))


@functools.cache
def list_number_keys() -> frozenset[str]:
    """Return the keys of numbers for which the check names a number that is written as text."""
    records = (record.validation for record in all_architectures().values())
    whole = {word.rstrip("?+") for rules in records for word in (*rules.whole, *rules.also_whole)}
    return frozenset(whole | {*KNOWN_KEYS["numbers"]})


@functools.cache
def list_types() -> frozenset[str]:
    """Return the model types that some record, runtime or list knows."""
    found = {*DECLARED["types"], *all_architectures(), *reasons(), *UNRECORDED}
    found.update(LOADER["architectures"], LOADER["aliases"])
    found.update(model.config.get("model_type") for model in catalog().values())
    for runtime, releases in read_lists().items():
        for lists in releases.values() if isinstance(releases, Mapping) and runtime != "_about" else ():
            found.update(*(lists.get(name, ()) for name in ("adds", "types", "files", "renamed")))
    return frozenset(kind for kind in found if isinstance(kind, str))


@functools.cache
def list_classes() -> frozenset[str]:
    """Return the names of classes that some runtime, record or catalog entry knows."""
    found = {"Grok1ForCausalLM", *HEADS}
    found.update(*(record.by_class for record in all_architectures().values()))
    for model in catalog().values():
        named = model.config.get("architectures")
        found.update(named if isinstance(named, (list, tuple)) else ())
    for runtime, releases in read_lists().items():
        for lists in releases.values() if isinstance(releases, Mapping) and runtime != "_about" else ():
            found.update(lists.get("classes", ()))
    return frozenset(found)


@functools.cache
def list_letters() -> frozenset[str]:
    """Return the letters and digits of the known types, as names of classes have them."""
    return frozenset(map(letters_of, list_types()))


# --- Texts


def cut_class(name: str) -> str | None:
    """Return the name of a known class; of others the known ending, None where it has none."""
    if name in list_classes():
        return name
    head = next((head for head in HEADS if name.endswith(head)), None)
    if head is None:
        return None
    stem = name.removesuffix(head)
    return name if stem.isalnum() and stem.lower() in list_letters() else head


def cut_remark(remark: str) -> str | None:
    """Return a remark on a file: the key of a sentence, and a number or a model type."""
    key, _, value = remark.partition(" ")
    known = key in Texts("configs").group("remark")
    return remark if known and (not value or value in list_types() or re.fullmatch(r"[\d.,e+-]{1,20}", value)) else None


def cut_key_name(name: str) -> str | None:
    """Return the name of a key that was not read; it may begin with an architecture of llama.cpp."""
    prefix, _, rest = name.partition(".")
    parts = rest if prefix in LOADER["architectures"] else name
    return name if all(PLAIN_NAME.fullmatch(part) for part in parts.split(".")) and len(parts) <= 40 else None


SETS = ("classes", "names of keys", "remarks")
"""Kinds of texts that come in lists whose length means nothing: others leave no gap there."""

Cut: TypeAlias = Callable[[str], "str | None"]


def keep_listed(words: Callable[[], Iterable[str]]) -> Cut:
    """Return a function that keeps the texts of a closed set."""
    return lambda text: text if text in words() else None


def keep_matching(pattern: re.Pattern[str]) -> Cut:
    """Return a function that keeps the texts of a pattern."""
    return lambda text: text if pattern.fullmatch(text) else None


KINDS: Mapping[str, Cut] = {
    "algorithms": keep_listed(lambda: (*ALGORITHMS, "FP8", "INT8", "MIXED_PRECISION")),
    "architectures of llama.cpp": keep_listed(lambda: (*LOADER["architectures"], *LOADER["aliases"])),
    "classes": cut_class,
    "data types": keep_matching(DATA_TYPE),
    "kinds of positions": keep_listed(lambda: (*NOT_ROTARY, "rope", "rotary", "rope_gptj")),
    "layer types": keep_listed(lambda: LAYERS),
    "letters of layers": keep_matching(LETTERS_OF_LAYERS),
    "letters of windows": keep_matching(LETTERS_OF_WINDOWS),
    # The check finds an unknown type then, and not a missing one; so with scalings.
    "model types": lambda text: text if text in list_types() else UNLISTED,
    "names of keys": cut_key_name,
    "quantizations": keep_listed(lambda: QUANTIZATIONS),
    "remarks": cut_remark,
    "scalings": lambda text: text if text in SCALINGS else UNLISTED,
    "transformers of diffusion": lambda text: text if text.isalnum() and find_rule(text) is not None else None,
    "versions": keep_matching(VERSION),
}
"""{kind of text: a function that returns a text that may travel, None for another}."""


def cut_text(key: str, text: str) -> str | None:
    """Return the text under a key of the list if it is from the closed set or of the pattern of that key, else None."""
    kind = DECLARED["texts"].get(key)
    if not text:
        return text
    if isinstance(kind, list):
        return text if text in kind else None
    if kind is not None:
        return KINDS[kind](text)
    # "auto" means a number that the class derives.
    return text if text == "auto" or (key in list_number_keys() and NUMBER.fullmatch(text)) else None


# --- Configs


def cut_config(config: Mapping[str, Any], model: ModelConfig | None = None) -> dict[str, Any]:
    """Return the config as it may be shown to others: without the user's names, paths, sentences and secrets.

    A name that helped to recognise a model of the catalog is replaced by that of the catalog. `model` is the same
    config if the caller has read it.
    """
    read = model or ModelConfig.read(config)
    found = cut_object(config, find_named_keys(read))
    name = find_catalog_name(read)
    return {**found, OWN_NAME: name} if name and read_own_name(config) else found


def find_named_keys(config: ModelConfig) -> frozenset[str]:
    """Return the keys of a config that no reader knows but that it names: where the model is, and misspelled keys."""
    try:
        path, read = config.path, find_read_keys(config.fields)
    except ValueError:
        return frozenset()
    levels = (text_config.find_inside(config.mapping, path[:depth]) for depth in range(len(path) + 1))
    unknown = {key for level in levels if isinstance(level, Mapping) for key in level} - list_keys() - PRIVATE
    misspelled = (key for key in unknown if NAME.fullmatch(key) and find_meant_key(key, read) is not None)
    return frozenset((*path, *misspelled))


def find_catalog_name(config: ModelConfig) -> str:
    """Return the catalog's name of the model that a config is recognised as, or of which it is a fine-tune; else ""."""
    try:
        found = config.identity
    except ValueError:
        return ""
    name = "" if found.model is None else found.model.name
    return f"Fine-tune of {name}" if name and found.how == "fine-tune" else name


def cut_object(part: Mapping[str, Any], named: frozenset[str], *, in_rope: bool = False) -> dict[str, Any]:
    """Return what of an object may be shown: keys with their values, or with None where only the key may be.

    `named` are those of `find_named_keys`. `in_rope`: the object is the content of rope_scaling or rope_parameters,
    whose keys are all about positions.
    """
    found: dict[str, Any] = {}
    for key, value in part.items():
        if key in PRIVATE:
            continue
        if key in list_keys() or NUMBERED.fullmatch(key):
            found[key] = cut_value(key, value, named)
        elif may_be_named(key, named, in_rope=in_rope):
            found[key] = cut_unknown(key, value, named, in_rope=in_rope)
    return found


def may_be_named(key: str, named: frozenset[str], *, in_rope: bool) -> bool:
    """Return whether a key that no reader knows may be shown."""
    if NAME.fullmatch(key) is None:
        return False
    return key in named or is_about_positions(key) or (in_rope and PLAIN_NAME.fullmatch(key) is not None)


def cut_value(key: str, value: Any, named: frozenset[str]) -> Any:
    """Return the value of a key of the list; None in the place of a text that may not be shown."""
    if isinstance(value, str):
        return cut_text(key, value)
    if isinstance(value, Mapping):
        return cut_object(value, named, in_rope=key in ROPE_DICTS or key in LAYER_TYPES)
    if isinstance(value, (list, tuple)):
        cut = [cut_value(key, each, named) for each in value]
        return [each for each in cut if each is not None] if DECLARED["texts"].get(key) in SETS else cut
    return value


def cut_unknown(key: str, value: Any, named: frozenset[str], *, in_rope: bool) -> Any:
    """Return the value of a key that no reader knows: a model inside the config, or numbers about positions."""
    if isinstance(value, Mapping):
        return cut_object(value, named, in_rope=in_rope) if in_rope or key in named else None
    return value if (in_rope or is_about_positions(key)) and is_numeric(value) else None


def is_about_positions(key: str) -> bool:
    """Return whether an unknown key may be about positions."""
    return ROPE_LIKE.search(key) is not None or not POSITIONS.isdisjoint(key.lower().split("_"))


def is_numeric(value: Any) -> bool:
    """Return whether a value is a number, a boolean, null, or a list of these."""
    if isinstance(value, (list, tuple)):
        return all(is_numeric(each) for each in value)
    return value is None or isinstance(value, (bool, int, float))
