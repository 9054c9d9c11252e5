"""`ModelConfig.rope_dicts`: the rope dicts that are read, with their places and the layers that read them."""

import pytest

from rope_viz.models.model_config import ModelConfig

SIZES = {"hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 4096}
LLAMA = {"model_type": "llama", **SIZES}
LINEAR = {"rope_type": "linear", "factor": 2.0}


def read(**keys):
    return ModelConfig.read({**LLAMA, **keys}).rope_dicts


def test_second_dict_of_shared_layers_is_not_read():
    (found,) = read(rope_scaling=LINEAR, rope_parameters={"rope_type": "default"})
    assert (found.key, found.kind, found.layers) == ("rope_scaling", "linear", ("",))
    assert found.number("factor") == 2.0


def test_dict_of_a_wrapped_model_has_its_place_in_the_file():
    inner = {**LLAMA, "rope_parameters": {"type": "linear", "factor": 2.0}}
    model = ModelConfig.read({"model_type": "llava", "text_config": inner})
    assert [one.path for one in model.rope_dicts] == [("text_config", "rope_parameters")]
    assert model.text == inner


def test_nested_dicts_are_those_of_known_layer_types():
    layers = {"full_attention": LINEAR, "sliding_attention": {"rope_type": "default"}, "conv": LINEAR}
    model = ModelConfig.read({"model_type": "gemma3_text", **SIZES, "rope_parameters": layers})
    assert [(one.layer, one.kind) for one in model.rope_dicts] == [
        ("full_attention", "linear"),
        ("sliding_attention", "default"),
    ]


def test_config_without_a_dict_asks_nothing_of_its_layers():
    """Such a config has no dicts even where the parameters of its layers cannot be read."""
    model = ModelConfig.read({**LLAMA, "rope_theta": "many"})
    assert model.rope_dicts == ()
    with pytest.raises(ValueError, match="rope_theta"):
        _ = model.specs
