"""Trained length and target length are the same on all pages, and typed ones are kept."""

import json

import pytest

from rope_viz.pages.model import extend
from rope_viz.ui.session import KEY
from tests.configs import QWEN3_8B
from tests.pages.test_every_control import list_controls, post

LONG = {**QWEN3_8B, "hidden_size": 2048, "max_position_embeddings": 262_144}
GEMMA_3_27B = {
    "model_type": "gemma3_text",
    "hidden_size": 5376,
    "num_attention_heads": 32,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}


def drop(app, config):
    field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
    field.set_value(("config.json", json.dumps(config).encode(), "application/json")).run()
    assert not app.exception


def type_length(app, choice, value):
    column = next(
        element
        for key, element in list_controls(app, "extend").items()
        if key.startswith("knob.") and choice.name in [row["name"] for row in json.loads(element.proto.bytes)["knobs"]]
    )
    post(app, column, choice.name, value)
    assert not app.exception


def read_query(app):
    """Return the query without the tab of My model."""
    return {key: value for key, value in app.query_params.items() if key != "extend.tab"}


def read_lengths(picture_requests, app, choice):
    return {request[choice] for picture, request in picture_requests(app).items() if picture.page == "extend"}


def test_a_typed_length_survives_the_next_file(open_page, picture_requests):
    app = open_page("extend")
    assert read_lengths(picture_requests, app, extend.TARGET) == {131_072}
    type_length(app, extend.TARGET, 131_072)
    for config in (GEMMA_3_27B, QWEN3_8B):
        drop(app, config)
        assert read_lengths(picture_requests, app, extend.TARGET) == {131_072}
    app = open_page("extend")
    drop(app, LONG)
    assert read_lengths(picture_requests, app, extend.TARGET) == {262_144}


def test_a_typed_default_is_in_the_link(open_page, picture_requests):
    app = open_page("extend")
    type_length(app, extend.TARGET, 131_072)
    assert read_query(app) == {"target": "131072"}
    other = open_page("extend", **dict(app.query_params))
    other.selectbox(key="select.Model").select("deepseek-v3").run()
    assert read_lengths(picture_requests, other, extend.TARGET) == {131_072}


def test_next_model_replaces_the_trained_length(open_page, picture_requests):
    app = open_page("extend", model="qwen3-8b")
    type_length(app, extend.TRAINED, 8192)
    assert app.query_params["trained"] == "8192"
    app.selectbox(key="select.Model").select("deepseek-v3").run()
    assert read_lengths(picture_requests, app, extend.TRAINED) == {4096}
    assert "trained" not in app.query_params


@pytest.mark.parametrize(("key", "field"), [("trained", "context"), ("target", "target")])
def test_one_length_is_the_same_on_every_page(open_page, picture_requests, key, field):
    choice = extend.TRAINED if key == "trained" else extend.TARGET
    app = open_page("scaling", model="qwen3-8b", **{key: "65536"})
    assert getattr(app.session_state[KEY].choice.spec, field) == 65_536
    app = open_page("extend", **dict(app.query_params))
    assert read_lengths(picture_requests, app, choice) == {65_536}
    type_length(app, choice, 16_384)
    assert getattr(app.session_state[KEY].choice.spec, field) == 16_384
    assert {name: value for name, value in read_query(app).items() if name != "model"} == {key: "16384"}


def test_changed_trained_length_keeps_the_target(open_page, picture_requests):
    app = open_page("extend", model="qwen3-8b", trained="4096")
    assert read_lengths(picture_requests, app, extend.TRAINED) == {4096}
    assert read_lengths(picture_requests, app, extend.TARGET) == {131_072}


def test_old_addresses_of_the_two_lengths_work(open_page, picture_requests):
    old = {"model": "qwen3-8b", "extend.target": "65536", "extend.trained": "16384"}
    app = open_page("extend", **old)
    assert not app.exception
    assert read_lengths(picture_requests, app, extend.TARGET) == {65_536}
    assert read_lengths(picture_requests, app, extend.TRAINED) == {16_384}
    assert read_query(app) == {"model": "qwen3-8b", "target": "65536", "trained": "16384"}
    both = open_page("extend", **{"model": "qwen3-8b", "target": "8192", "extend.target": "65536"})
    assert read_lengths(picture_requests, both, extend.TARGET) == {65_536}


def test_target_length_alone_changes_no_config(open_page, page_text):
    assert "The config of DeepSeek-V3 / R1 671B, unchanged" in page_text(
        open_page("runtimes", model="deepseek-v3", target="131072")
    )


def test_reset_removes_a_typed_length(open_page, picture_requests):
    app = open_page("extend")
    type_length(app, extend.TARGET, 131_072)
    app.switch_page("scaling.py").run()
    app.button(key="reset").click().run()
    assert read_query(app) == {}
    drop(app, LONG)
    app.switch_page("model.py")
    app.query_params["extend.tab"] = "why"
    assert read_lengths(picture_requests, app.run(), extend.TARGET) == {262_144}


def test_other_numbers_survive_if_their_default_moves(open_page, picture_requests):
    app = open_page("frequencies", model="llama-2-7b")
    for key, element in list_controls(app, "frequencies").items():
        if key.startswith("knob.frequencies"):
            post(app, element, "length", 4096)
    app.selectbox(key="select.Model").select("qwen3-8b").run()
    assert app.query_params["frequencies.length"] == "4096"
