"""The KV cache and the weights, against the caches and the classes of transformers."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.memory.kv_cache import DTYPES, GPU, USED, cache, human
from rope_viz.advice.memory.parameter_count import parameters, weight_bytes
from rope_viz.models.architecture import find_architecture
from rope_viz.models.catalog import catalog
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "memory.json").read_text())
UNHEARD = {"model_type": "unheard-of", "hidden_size": 64, "num_attention_heads": 4}
# Bytes per token, table 1 of https://arxiv.org/abs/2505.09343.
PUBLISHED = {
    "qwen2.5-72b": ({"model_type": "qwen2", "hidden_size": 8192, "num_hidden_layers": 80}, (64, 8), 327_680),
    "llama-3.1-405b": ({"model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126}, (128, 8), 516_096),
}


@pytest.mark.parametrize("case", GOLDEN["caches"], ids=lambda case: case["config"]["model_type"])
def test_cache_size_equals_that_of_transformers(case):
    found = cache(case["config"])
    for length, measured in case["bytes"].items():
        # A sliding layer of transformers lets the oldest token of its window go before it is asked again.
        gone = sum(one.layers * one.per_token for one in found.groups if one.window and int(length) >= one.window)
        assert found.bytes(int(length)) - gone == measured


@pytest.mark.parametrize("name", PUBLISHED)
def test_bytes_per_token_match_published_values(name):
    sizes, (heads, kept), per_token = PUBLISHED[name]
    config = {**sizes, "num_attention_heads": heads, "num_key_value_heads": kept, "max_position_embeddings": 32768}
    assert cache(config).per_token == per_token


def test_latent_attention_stores_one_vector_and_one_rotated_key():
    model = catalog()["deepseek-v3"]
    assert cache(model.whole).per_token == 70_272


@pytest.mark.parametrize("case", GOLDEN["parameters"], ids=lambda case: case["model"])
def test_parameters_are_those_of_the_class(case):
    model = catalog()[case["model"]]
    assert parameters(model.whole) == pytest.approx(case["parameters"], rel=5e-4)


COUNTED = [
    one.id for one in catalog().values() if one.sizes and not find_architecture(one.config["model_type"]).memory.cache
]


@for_each(COUNTED)
def test_a_model_of_the_list_with_sizes_has_a_cache(id):
    model = catalog()[id]
    found = cache(model.whole)
    assert found.bytes(4096) > found.bytes(128) > 0
    assert parameters(model.whole) > (1e8 if id != "rope-viz-reader" else 5e4)


def test_the_longest_length_fits_and_one_token_more_does_not():
    model = catalog()["qwen3-8b"]
    config = model.whole
    room = USED * GPU - weight_bytes(config)[0]
    found = cache(config)
    longest = found.longest(room, 3)
    assert found.bytes(longest, 3) <= room < found.bytes(longest + 1, 3)


def test_too_large_model_fits_nowhere_and_a_window_everywhere():
    large, windowed = catalog()["deepseek-v3"], catalog()["mistral-7b-v0.1"]
    assert cache(large.whole).longest(-1.0) == 0
    assert cache(windowed.whole).longest(60e9) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cache_scales_with_its_type(dtype):
    model = catalog()["llama-3-8b"]
    config = model.whole
    assert cache(config, dtype=dtype).per_token == 131_072 / 2.0 * DTYPES[dtype]


def test_quantized_weights_are_counted_as_they_are_stored():
    model = catalog()["llama-3-8b"]
    config = model.whole
    whole, _ = weight_bytes(config)
    # Embeddings, head and norms keep 16 bits; GPTQ adds scales and zero points for 128 inputs and an index per input.
    layers, others = 6_979_321_856, 2 * 128256 * 4096 + 65 * 4096
    quantized = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    order = 32 * (6 * 4096 + 14336) * 4
    assert weight_bytes({**config, "quantization_config": quantized})[0] == layers * 4.15625 / 8 + order + 2 * others
    assert weight_bytes({**config, "quantization_config": {"quant_method": "fp8"}})[0] == layers + 2 * others
    assert weight_bytes({**config, "torch_dtype": "float32"})[0] == whole * 2


def test_missing_sizes_are_named():
    with pytest.raises(ValueError, match="num_hidden_layers is missing"):
        cache({**UNHEARD, "num_key_value_heads": 2})
    with pytest.raises(ValueError, match="modernbert reads a whole text at once and has no KV cache"):
        cache(catalog()["modernbert-base-global"].config)
    with pytest.raises(ValueError, match="does not follow from heads and windows alone"):
        cache({"model_type": "dots3_note_text"})
    with pytest.raises(ValueError, match="kv_lora_rank is missing"):
        cache({**UNHEARD, "num_hidden_layers": 4, "qk_rope_head_dim": 16})
    with pytest.raises(ValueError, match="must be one of bfloat16"):
        cache(catalog()["qwen3-8b"].config, dtype="int3")


@pytest.mark.parametrize(
    ("count", "said"), [(147_456, "147 KB"), (19.33e9, "19.3 GB"), (12, "12 bytes"), (1.4e12, "1.4 TB")]
)
def test_bytes_are_formatted_in_powers_of_ten(count, said):
    assert human(count) == said


@pytest.mark.parametrize(("size", "fp8"), [(128, 132), (64, 68)])
def test_a_note_says_that_indexer_keys_are_counted(size, fp8):
    found = cache({**catalog()["deepseek-v3.2"].config, "index_head_dim": size})
    # 512 latent numbers, 64 rotated ones and those of the indexer, in 2 bytes.
    assert [group.per_token for group in found.groups] == [2 * (512 + 64 + size)]
    assert f"Counted for the indexer: {2 * size} bytes per token and layer. In fp8 it takes {fp8}." in found.notes
