"""A dropped config is read or refused in one sentence, and never crashes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.storage.limits import CONFIG_BYTES
from tests.configs import QWEN3, yarn

GEMMA = {
    "model_type": "gemma3_text",
    "hidden_size": 1152,
    "num_attention_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
}
BASE = json.dumps(QWEN3)[:-1]

HOSTILE = {
    "empty": "",
    "blank": " \n ",
    "cut": BASE,
    "binary": b"\x80\x04\x95pickle",
    "utf16": json.dumps(QWEN3).encode("utf-16"),
    "array": "[1, 2]",
    "null": "null",
    "string": '"config"',
    "number": "3",
    "long number": "1" * 5000,
    "long number inside": f'{BASE}, "x": {"9" * 5000}}}',
    "deep array": "[" * 100_000,
    "deep object": '{"a":' * 50_000,
    "deep but closed": BASE + ', "x": ' + "[" * 200 + "]" * 200 + "}",
    "huge": " " * (CONFIG_BYTES + 1),
    "thousands of keys": json.dumps({f"key{i}": i for i in range(5000)}),
    "thousands of rope keys": BASE + f', "rope_scaling": {json.dumps({f"k{i}": 1 for i in range(5000)})}}}',
    "NaN base": BASE.replace("1000000.0", "NaN") + "}",
    "infinite factor": BASE + ', "rope_scaling": {"type": "linear", "factor": Infinity}}',
    "negative size": BASE.replace('"head_dim": 128', '"head_dim": -128') + "}",
    "text for a number": BASE.replace("40960", '"many"') + "}",
    "list for a dict": BASE + ', "rope_scaling": ["yarn", 4]}',
    "unknown type": BASE + ', "rope_scaling": {"rope_type": "nonsense"}}',
    "no sizes": '{"model_type": "no-such-model"}',
    "no object of ours": '{"name": "left-pad", "version": "1.0.0"}',
    "script": '{"model_type": "<script>alert(1)</script>", "head_dim": "<img src=x>"}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_invalid_upload_raises_a_clear_error(text):
    with pytest.raises(ValueError, match=r"\w+ \w+") as caught:
        read_upload(text)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_config_is_read_completely():
    found = read_upload(json.dumps(QWEN3).encode())
    assert found.specs == ModelConfig.read(QWEN3).start_specs
    assert (found.name, found.layer, found.notes) == ("qwen3", "", ())
    assert found.config == QWEN3


def test_every_layer_type_is_read_and_full_attention_is_selected():
    found = read_upload(json.dumps(GEMMA))
    assert set(found.specs) == {"full_attention", "sliding_attention"}
    assert found.layer == "full_attention"


def test_bare_rope_scaling_uses_given_sizes_with_a_note():
    rope = yarn(32768)
    found = read_upload(json.dumps(rope), RopeSpec(96, base=77000), "Llama 3.1 8B")
    spec = found.specs[""]
    assert (spec.head_dim, spec.base, spec.context, spec.target) == (96, 77000, 32768, 131072)
    assert spec.scaling.name == "yarn"
    assert "head_dim (96)" in found.notes[0]
    assert "Llama 3.1 8B" in found.notes[0]


def test_bare_parameters_by_layer_type_are_layers():
    rope = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    found = read_upload(json.dumps(rope), RopeSpec(64))
    assert {layer: spec.base for layer, spec in found.specs.items()} == {
        "full_attention": 1e6,
        "sliding_attention": 1e4,
    }


def test_infinity_outside_rope_is_accepted_as_in_transformers():
    text = json.dumps({**QWEN3, "time_step_limit": [0.0, float("inf")]})
    assert read_upload(text).specs == ModelConfig.read(QWEN3).start_specs


def test_repeated_key_is_named_and_the_last_value_counts():
    found = read_upload(BASE + ', "rope_theta": 10000.0}')
    assert found.specs[""].base == 10_000
    assert "'rope_theta' occurs more than once" in found.notes[0]


def test_long_label_lists_do_no_harm():
    labels = {str(i): f"LABEL_{i}" for i in range(21_000)}
    assert read_upload(json.dumps({**QWEN3, "id2label": labels})).specs == ModelConfig.read(QWEN3).start_specs


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/home/me/models/mine", "models/mine"),
        ("<b>[x](y)</b>", "bxy/b"),
        ("", "qwen3"),
        (7, "qwen3"),
    ],
)
def test_name_comes_from_the_config_and_is_harmless(path, name):
    assert read_upload(json.dumps({**QWEN3, "_name_or_path": path})).name == name


KEYS = st.sampled_from(
    [*QWEN3, "rope_scaling", "rope_parameters", "rope_type", "type", "factor", "text_config", "full_attention"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_object_is_read_or_refused(config):
    try:
        found = read_upload(json.dumps(config))
    except ValueError:
        return
    assert found.specs


def test_unlisted_type_and_unrotated_layers_are_noted():
    sizes = {"hidden_size": 1024, "num_attention_heads": 8, "max_position_embeddings": 4096}
    assert "is unknown" in read_upload(json.dumps({**sizes, "model_type": "nobody_knows"})).notes[0]
    assert "Only some layers rotate" in read_upload(json.dumps({**sizes, "model_type": "smollm3"})).notes[0]
    assert read_upload(json.dumps({**sizes, "model_type": "llama"})).notes == ()
