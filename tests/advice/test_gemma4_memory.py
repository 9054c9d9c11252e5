"""Memory of Gemma 4, against models of transformers 5.23.0 that were built on the meta device from the same keys."""

import pytest

from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.models.catalog import catalog


def built(id):
    """num_parameters() of AutoModelForCausalLM.from_config for the language model, by torch 2.13.0 on "meta"."""
    return {"gemma-4-26b-a4b": 25_233_141_760, "gemma-4-31b": 30_697_345_280}[id]


@pytest.mark.parametrize("id", ["gemma-4-26b-a4b", "gemma-4-31b"])
def test_gemma_4_has_its_experts_and_global_heads(id):
    assert memory(catalog()[id].whole, length=1000)["parameters"] == built(id)


def test_listed_layers_are_counted_where_the_number_is_missing():
    config = dict(catalog()["gemma-4-31b"].config)
    found = memory(config, length=1000)
    assert sum(group["layers"] for group in found["groups"]) == len(config["layer_types"]) == 60
    assert "num_hidden_layers" not in str(found["assumed"])
