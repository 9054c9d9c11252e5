"""Files dropped together on a page: the config with what lies next to it, as the command line reads a folder."""

import json

import pytest

from rope_viz.advice.memory.kv_cache import cache
from rope_viz.advice.memory.parameter_count import weight_bytes
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.formats.side_files import add_side_files, split_files
from rope_viz.own_files import config_link
from rope_viz.own_files.own_file import read_file
from rope_viz.ui.session import KEY

LLAMA = {
    **{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192},
    **{"rope_theta": 500000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": False},
}
# Longer than the lists that a page loads: only half of the layers are in 8 bits.
NAMES = [f"model.layers.{index}.{part}" for index in range(16) for part in ("self_attn", "mlp")]
LONG = NAMES + [f"model.layers.{index}.no_such_module_{number}" for index in range(16) for number in range(40)]
FP8 = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": LONG}}
SIDE = {"hf_quant_config.json": json.dumps(FP8).encode(), "generation_config.json": b'{"max_length": 4096}'}
HALF = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) // 2
OTHERS = 2 * 128256 * 4096 + 65 * 4096


def read(config=LLAMA, files=SIDE):
    """Return the upload of a config with these files."""
    return read_file(json.dumps(config), RopeSpec(), "the current settings", files)


def test_page_and_command_count_the_same():
    own = read()
    assert weight_bytes(own.model_config)[0] == HALF + 2 * HALF + 2 * OTHERS
    assert weight_bytes(own.model_config) == weight_bytes(add_side_files(LLAMA, SIDE))
    assert make_plan(own.model_config, 16384, ("vllm",)).memory.cache.dtype == "fp8"


def test_a_link_carries_the_size_without_the_lists():
    own = read()
    text = config_link.write_config(own)
    again = config_link.read_config(text)
    assert weight_bytes(again.model_config) == weight_bytes(own.model_config)
    assert "exclude_modules" not in json.dumps(again.config)


def test_long_lists_of_a_config_are_counted():
    quantized = {"quant_method": "modelopt", **FP8["quantization"]}
    own = read({**LLAMA, "quantization_config": quantized}, {})
    assert weight_bytes(own.model_config)[0] == HALF + 2 * HALF + 2 * OTHERS


def test_a_size_that_is_not_known_stays_so():
    unread = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["re:(a+)+$"]}}
    own = read(files={"hf_quant_config.json": json.dumps(unread).encode()})
    with pytest.raises(ValueError, match="not known"):
        weight_bytes(own.model_config)
    assert cache(own.model_config).per_token == 131_072


def test_a_config_without_a_quantization_gets_nothing():
    assert read(files={}).config == LLAMA


def test_a_broken_file_is_named():
    assert "hf_quant_config.json" in str(read(files={"hf_quant_config.json": b"{"}).problems)


def test_the_config_is_found_by_its_name():
    named = {"tokenizer.json": b"{}", "config.json": b"{}", **SIDE}
    assert split_files(named) == ("config.json", SIDE)
    assert split_files({**SIDE, "mine.json": b"{}"}) == ("mine.json", SIDE)
    assert split_files({"generation_config.json": b"{}"}) == ("generation_config.json", {})
    with pytest.raises(ValueError, match="drop one config"):
        split_files({"one.json": b"{}", "two.json": b"{}"})


@pytest.fixture
def drop(open_page):
    """drop({name: content}) drops files on the page of My model."""

    def run(files):
        app = open_page("model")
        field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
        return field.set_value([(name, content, "application/json") for name, content in files.items()]).run()

    return run


def test_files_dropped_together_become_one_model(drop):
    app = drop({**SIDE, "config.json": json.dumps(LLAMA).encode()})
    assert not app.exception
    assert weight_bytes(app.session_state[KEY].own.model_config)[0] == HALF + 2 * HALF + 2 * OTHERS


@pytest.mark.parametrize(("files", "expected"), [(SIDE, "fp8"), ({}, "bfloat16")], ids=["fp8", "no file"])
def test_the_type_of_the_cache_starts_at_that_of_the_files(drop, files, expected):
    app = drop({**files, "config.json": json.dumps(LLAMA).encode()})
    (menu,) = [item for item in app.selectbox if item.label == "KV cache in"]
    assert menu.value == expected


def test_two_configs_at_once_are_refused(drop, rejection_card):
    app = drop({"one.json": json.dumps(LLAMA).encode(), "two.json": json.dumps(LLAMA).encode()})
    assert not app.exception
    assert "drop one config" in rejection_card(app)
