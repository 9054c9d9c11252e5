"""Which vectors rotate: what the records say against what classes of transformers did when they were run."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.memory.kv_cache import find_layer_kinds, read_memory_fields
from rope_viz.advice.memory.layer_kinds import WITH_ATTENTION, list_layers
from rope_viz.advice.memory.turning_vectors import find_turning_vectors, list_vectors
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from tests.offenders import for_each

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "vectors.json").read_text(encoding="utf-8"))
ROWS = {row["name"]: row for row in GOLDEN["rows"]}
AWAY = GOLDEN["away"]


def find_vectors(config):
    """{layer: {name: vector}} of a config."""
    layers = list_layers(config).layers
    return {
        number: {each.name: each for each in list_vectors(config, layer)}
        for number, layer in enumerate(layers)
        if layer.sees in WITH_ATTENTION
    }


def read_whole(name):
    """The config of a model of the list, with all sizes that are known."""
    return ModelConfig.read(catalog()[name].whole, known=catalog()[name])


def list_channels(seen):
    return [channel for first, stop in seen["channels"] for channel in range(first, stop)]


@for_each(ROWS)
def test_vectors_are_those_that_the_class_rotates(row):
    config = ModelConfig.read(row["config"])
    found = find_vectors(config)
    for number, kind in enumerate(row["layers"]):
        seen = row["kinds"][kind]
        if not seen:
            continue
        assert number in found, number
        for vector, one in seen.items():
            mine = found[number][vector]
            assert mine.rotates is not None
            assert mine.channels().tolist() == list_channels(one), (number, vector)
            assert mine.size in (None, one["size"]), (number, vector)
            if mine.rotates and mine.channels().size:
                assert mine.pairing == one["pairing"], (number, vector)
        blocks = set(found[number]) - set(seen)
        assert not blocks & {"block", "index_q", "index_k"}, (number, blocks)


@for_each(ROWS)
def test_vectors_rotate_by_their_embedding_at_their_position(row):
    config = ModelConfig.read(row["config"])
    found = find_vectors(config)
    for number, kind in enumerate(row["layers"]):
        for vector, one in row["kinds"][kind].items():
            mine = found[number][vector]
            if "positions" in one:
                assert mine.every > 0
                expected = mine.every * np.arange(len(one["positions"]))
                np.testing.assert_allclose(one["positions"], expected, atol=0.2, err_msg=f"{number} {vector}")
            if "turns" not in one:
                continue
            seen = np.array(row["turns"][one["turns"]]) * (-1 if one.get("inverse") else 1)
            turns = mine.spec.inv_freq() * AWAY / (2 * np.pi) * (-1 if mine.inverse else 1)
            away = (seen - turns + 0.5) % 1 - 0.5
            # Of fast pairs the angle is rounded in float32, of slow ones it is small.
            assert (np.abs(away) < np.minimum(1e-6 + 1e-3 * np.abs(turns), 2e-4)).all(), (number, vector)


def test_golden_has_most_models_of_the_list():
    types = {row["config"]["model_type"] for row in ROWS.values()}
    listed = {read_catalog_model(name).model_type for name in catalog()}
    assert len(types) > 100
    assert len(listed - types) < 8, listed - types
    assert {
        "deepseek_v4",
        "deepseek_v32",
        "deepseek_v3",
        "deepseek_v2",
        "glm_moe_dsa",
        "gpt_oss",
        "gemma3_text",
    } <= types


def test_deepseek_v4_turns_its_output_back():
    found = find_turning_vectors(read_whole("deepseek-v4-flash"))
    assert [strip.layer.embedding for strip in found.strips] == ["main", "compress", "compress"]
    assert [len(strip.numbers) for strip in found.strips] == [2, 21, 20]
    assert found.evidence == "executed"
    for strip, every in zip(found.strips, (0, 4, 128), strict=True):
        vectors = {each.name: each for each in strip.vectors}
        assert vectors["v"].rotates
        assert vectors["k"].with_value
        assert vectors["output"].inverse
        assert vectors["output"].channels().tolist() == list(range(448, 512))
        assert ("block" in vectors) is bool(every)
        if every:
            assert vectors["block"].every == every
        assert ("index_q" in vectors) is (every == 4)
    assert {strip.spec.base for strip in found.strips} == {10_000.0, 160_000.0}


def test_index_of_deepseek_v32_is_paired_otherwise_than_its_keys():
    (strip,) = find_turning_vectors(read_whole("deepseek-v3.2")).strips
    vectors = {each.name: each for each in strip.vectors}
    assert vectors["q"].pairing == "interleaved"
    assert (vectors["index_q"].pairing, vectors["index_k"].pairing) == ("half", "half")
    assert vectors["q"].channels().tolist() == list(range(128, 192))
    assert vectors["index_k"].channels().tolist() == list(range(64))
    assert vectors["v"].rotates is False


def test_vectors_of_code_that_was_not_run_are_not_known():
    config = ModelConfig.read(
        {
            "model_type": "of-the-future",
            "hidden_size": 64,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "max_position_embeddings": 2048,
            "rope_theta": 1e4,
        }
    )
    (strip,) = find_turning_vectors(config).strips
    assert {each.name: each.rotates for each in strip.vectors} == {"q": True, "k": True, "v": None, "output": None}


def test_values_of_roformer_rotate_where_its_config_says_so():
    config = {**catalog()["roformer-base"].whole, "rotary_value": True}
    (strip,) = find_turning_vectors(ModelConfig.read(config)).strips
    assert next(each for each in strip.vectors if each.name == "v").rotates


@pytest.mark.parametrize("name", sorted(catalog()))
def test_every_model_of_the_list_has_strips(name):
    config = read_whole(name)
    try:
        kinds = find_layer_kinds(read_memory_fields(config))
    except ValueError:
        pytest.skip("the file of this model does not list its layers")
    found = find_turning_vectors(config)
    assert found.strips
    numbers = [number for strip in found.strips for number in strip.numbers]
    assert len(numbers) == len(set(numbers)) <= len(kinds)
    for strip in found.strips:
        for vector in strip.vectors:
            channels = vector.channels()
            assert not channels.size or (vector.size is None or channels[-1] < vector.size)
