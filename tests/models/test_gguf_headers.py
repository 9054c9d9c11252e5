"""A GGUF file of llama.cpp's converter gives the answers of the config that it was written from."""

import json
from pathlib import Path

import numpy as np

from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.advice.memory.layer_kinds import list_layers
from rope_viz.models.formats.gguf_config import config_from_gguf
from rope_viz.models.model_config import ModelConfig
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "gguf_headers.json").read_text())
ROWS = {row["config"]["model_type"]: row for row in GOLDEN["rows"]}
LENGTHS = (1, 100, 700, 5000, 100_000)
# {model type: (what differs, why)}
EXCEPTIONS = {
    "bamba": ("frequencies", "the converter writes no share that rotates, so that the whole head does"),
    "cohere2": ("frequencies", "the converter derives the rotated dimensions from the width, not from head_dim"),
    "dbrx": ("cache", "the class counts KV heads elsewhere than in attn_config"),
    "glm4v_text": ("frequencies", "the converter takes half the head where the config names no share"),
    "glm_ocr_text": ("frequencies", "the converter takes half the head where the config names no share"),
    "mistral": ("layers cache", "the converter writes no window for the architecture llama"),
    "nemotron": ("frequencies", "the converter derives the rotated dimensions from the width, not from head_dim"),
    "orion": ("frequencies", "the converter writes no base"),
    "qwen4_exp_text": ("frequencies", "the converter takes a quarter of the head where the config names no share"),
    "solar_open": ("frequencies", "the converter takes half the head where the config names no share"),
}


def read_header(row, **more):
    """The config that is read from the header that llama.cpp's converter wrote."""
    name = row["architecture"]
    keys = {"general.architecture": name} | {f"{name}.{key}": value for key, value in (row["keys"] | more).items()}
    return config_from_gguf(
        {"keys": keys, "divisors": {"rope_freqs.weight": row["factors"]} if "factors" in row else {}}
    )


def answer(config):
    """What the tool says of a config: frequencies, layers and cache, or why it says nothing."""
    model = ModelConfig.read(config)
    found = {}
    try:
        specs = model.specs
        found["frequencies"] = {
            layer: [*np.round(np.log(np.maximum(spec.inv_freq(), 1e-29)), 5), round(spec.attention_factor(), 5)]
            for layer, spec in specs.items()
        }
    except ValueError as error:
        found["frequencies"] = type(error).__name__
    try:
        found["layers"] = [(layer.sees, layer.reach, layer.rotates) for layer in list_layers(model).layers]
    except ValueError as error:
        found["layers"] = type(error).__name__
    found["cache"] = [memory(config, length=length)["kv_cache_bytes"] for length in LENGTHS]
    return found


@for_each(sorted(ROWS))
def test_header_gives_the_answers_of_its_config(kind):
    meant, found = answer(ROWS[kind]["config"]), answer(read_header(ROWS[kind]))
    assert None not in meant["cache"]
    different = {name for name in meant if meant[name] != found[name]}
    assert different == set(EXCEPTIONS.get(kind, ("",))[0].split()), (different, meant, found)


def test_every_key_of_the_converter_is_read_or_named():
    unread = {kind: read_header(row)["_source_file"]["unread"] for kind, row in ROWS.items()}
    assert not {kind: names for kind, names in unread.items() if names}
