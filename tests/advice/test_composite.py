"""A language model inside a wrapper is read, checked, repaired, emulated and exported as it is by itself."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rope_viz.advice.lint import check, repair
from rope_viz.advice.plan import extend, runtime_matrix
from rope_viz.advice.plan.export import TARGETS, export
from rope_viz.advice.plan.extension_plan import plan
from rope_viz.embedding.spec import knobs
from rope_viz.models.edit_config import merge_dicts
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.models.spec_url import CUSTOM, Subject, move_knob
from rope_viz.models.user_config import Upload
from rope_viz.runtimes import RUNTIMES, emulate
from rope_viz.runtimes.known_types import find_missing_wrapper

CATALOG = Path(__file__).parents[2] / "rope_viz" / "models" / "catalog"


def language_models():
    """{name: the language model's part of each config of the list}."""
    found = {}
    for path in sorted(CATALOG.glob("*.json")):
        config = json.loads(path.read_text())
        part = ModelConfig.read({key: value for key, value in config.items() if key != "_about"}).part
        found[path.stem] = {**part.config, "model_type": part.kind}
    return found


TEXTS = language_models()
# Wrappers of transformers that take any language model, and shapes of published ones that it does not know.
OPEN = st.sampled_from(["llava", "internvl", "kimi_k25", "aya_vision", "smolvlm", "idefics3"]).map(
    lambda kind: ({"model_type": kind}, ("text_config",))
)
OUTSIDE = st.sampled_from(
    [
        *(("text_config",), ("llm_config",), ("language_config",), ("language_model_config",), ("decoder",)),
        *(("thinker_config", "text_config"), ("llm_cfg",), ("text_model_config",)),
    ]
).map(lambda path: ({"model_type": "somebodys_vlm"}, path))
SIBLINGS = st.fixed_dictionaries(
    {},
    optional={
        "vision_config": st.just({"hidden_size": 1152, "num_attention_heads": 16, "rope_theta": 100.0}),
        "audio_config": st.just({"d_model": 1280, "rope_parameters": {"rope_type": "default", "rope_theta": 5.0}}),
        "talker_config": st.just({"hidden_size": 896, "num_attention_heads": 14, "rope_theta": 1e4}),
        "hidden_size": st.just(3584),
        "image_token_index": st.just(262144),
        "id2label": st.just({"0": "a"}),
        # What nobody reads next to a part.
        "rope_theta": st.just(123.0),
    },
)


@st.composite
def composites(draw):
    """(the wrapped config, its language model, where that stands)."""
    text = TEXTS[draw(st.sampled_from(sorted(TEXTS)))]
    shell, path = draw(OPEN | OUTSIDE)
    return wrap(text, {**shell, **draw(SIBLINGS)}, path), text, path


def wrap(text, shell, path):
    """The language model inside the shell."""
    out = copy.deepcopy(shell)
    place = out
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = copy.deepcopy(text)
    return out


def inside(config, path):
    """The part at a place."""
    for key in path:
        config = config[key]
    return config


@settings(deadline=None, max_examples=40)
@given(composites())
def test_wrapped_text_config_reads_like_the_plain_one(case):
    config, text, path = case
    assert ModelConfig.read(config).part.path == path
    assert from_config(config) == from_config(text)


@settings(deadline=None, max_examples=40)
@given(composites())
def test_wrapped_text_config_is_checked_like_the_plain_one(case):
    config, text, path = case

    def list_messages(found):
        # Of what stands in a wrapper outside the list it is not known how the runtimes load it.
        apart = ("unlisted-type", "runtimes-differ")
        return [(one.rule, one.severity, one.message) for one in found if one.rule not in apart]

    assert list_messages(check(config)) == list_messages(check(text))
    places = [one.key for one in check(config) if one.key]
    assert all(place.startswith(".".join(path)) for place in places if place != "model_type")
    mended = repair(config)
    assert inside(mended, path) == repair(text)
    assert wrap(text, mended, path) == config


@settings(deadline=None, max_examples=40)
@given(composites(), st.sampled_from(RUNTIMES))
def test_wrapped_text_config_is_emulated_like_the_plain_one(case, runtime):
    config, text, _ = case
    # Where a release has no such wrapper it refuses, or transformers' code runs the whole.
    assume(not find_missing_wrapper(*runtime, ModelConfig.read(config).fields.wrappers))
    for layer in from_config(text):
        one, other = (
            emulate(asked, runtime=runtime[0], version=runtime[1], layer_type=layer or None) for asked in (config, text)
        )
        assert (one.supported, one.reason, one.attention_factor) == (
            other.supported,
            other.reason,
            other.attention_factor,
        )
        assert one.inv_freq is None or one.inv_freq.tolist() == other.inv_freq.tolist()


@settings(deadline=None, max_examples=40)
@given(composites(), st.sampled_from(sorted(TARGETS)), st.sampled_from(["none", "linear", "yarn", "llama3", "ntk"]))
def test_export_writes_into_the_text_part_and_is_idempotent(case, target, method):
    config, text, path = case
    assume(not find_missing_wrapper(*TARGETS[target][:2], ModelConfig.read(config).fields.wrappers))
    layer = find_main_layer(from_config(config))
    spec = extend.extend(from_config(config)[layer], method, 2 * from_config(config)[layer].target)
    made, alone = (export(spec, to=target, config=one, layer_type=layer or None) for one in (config, text))
    assert (made.faithful, made.reason, made.changed, made.kept) == (
        *(alone.faithful, alone.reason),
        *(alone.changed, alone.kept),
    )
    # Around the part nothing moved.
    assert wrap(text, made.config, path) == config
    assert made.fragment == {} or set(made.fragment) == {path[0]}
    if target == "transformers" and made.faithful:
        laid_over = merge_dicts(made.fragment, config)
        for whole in (made.config, laid_over):
            np.testing.assert_allclose(from_config(whole)[layer].inv_freq(), spec.inv_freq(), rtol=1e-6)
        again = export(spec, to=target, config=made.config, layer_type=layer or None)
        assert again.config == made.config


@settings(deadline=None, max_examples=40)
@given(composites(), st.data())
def test_changing_a_knob_preserves_the_users_config(case, data):
    config, text, path = case
    specs = from_config(config)
    layer = data.draw(st.sampled_from(sorted(specs)))
    start = specs[layer]
    name = data.draw(st.sampled_from(sorted(knobs(type(start)) | knobs(start.scaling))))
    knob = (knobs(type(start)) | knobs(start.scaling))[name]
    value = (
        data.draw(st.integers(int(knob.low), int(knob.high)))
        if knob.integer
        else data.draw(st.floats(knob.low, knob.high))
    )
    try:
        spec = move_knob(start, name, value)
    except ValueError:
        return
    asked = runtime_matrix.config_for(Subject(spec, CUSTOM, layer, Upload("mine", config, specs)))
    assert "Llama" not in asked.whose
    assert asked.layer == layer
    assert wrap(text, asked.clean, path) == config
    read = from_config(asked.config)
    assert set(read) == set(specs)
    if not asked.problem:
        # A needed length alone changes no config.
        spec = start if name == "target" else spec
        np.testing.assert_allclose(read[layer].inv_freq(), spec.inv_freq(), rtol=1e-6)
        assert (read[layer].head_dim, read[layer].pairing) == (spec.head_dim, spec.pairing)
        assert read[layer].attention_factor() == pytest.approx(spec.attention_factor(), rel=1e-6)


def test_a_model_made_from_another_one_keeps_its_own_scaling():
    """InternVL3-8B scales Qwen2.5 7B by dynamic NTK (llm_config of its config.json); Qwen's card is about Qwen."""
    llm = {
        **{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28},
        **{"num_key_value_heads": 4, "num_hidden_layers": 28, "vocab_size": 151674, "rope_theta": 1000000.0},
        **{"max_position_embeddings": 32768, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    }
    ranks = [
        (way.rank, way.method) for way in plan({"model_type": "internvl_chat", "llm_config": llm}, 131072).advice.ways
    ]
    assert ranks[0] == ("its own, further", "dynamic")
    assert "documented" not in dict(ranks)
    del llm["rope_scaling"]
    assert plan({"model_type": "internvl_chat", "llm_config": llm}, 131072).advice.ways[0].rank == "documented"
