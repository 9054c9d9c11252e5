"""A link that contains a config opens in another session as if the config was uploaded there."""

import base64
import json
import zlib

import pytest

from rope_viz.own_files import config_link
from rope_viz.pages.model import extend
from rope_viz.ui.session import KEY
from tests.configs import LLAMA_3_1_8B, QWEN3_8B

PAGES = ("extend", "scaling", "runtimes", "decay", "frequencies", "axes")
OLD_LINK = {"model": "custom", "base": "1000000", "trained": "40960", "target": "40960"}


@pytest.fixture
def paste(open_page):
    """paste("runtimes", text) opens the page and submits the text as the user's config."""

    def run(page, config, **params):
        return paste_into(open_page(page, **params), config)

    return run


def paste_into(app, config):
    field = next(item for item in app.text_area if item.key.startswith("upload.text"))
    field.set_value(json.dumps(config))
    next(item for item in app.button if item.label == "Use this config").click()
    return app.run()


def address_of(app):
    return dict(app.query_params.items())


def link_query(app):
    """Return the link's query with single values."""
    return {key: value[0] if isinstance(value, list) else value for key, value in address_of(app).items()}


def warnings(app):
    return [one.value.replace("\\", "") for one in app.warning]


@pytest.mark.parametrize("page", PAGES)
def test_a_link_opens_the_config_in_another_session(paste, open_page, picture_requests, page):
    sent = paste(page, {**QWEN3_8B, "_name_or_path": "/home/anna/qwen"})
    opened = open_page(page, **link_query(sent))
    assert not opened.exception
    assert not opened.warning
    before, after = picture_requests(sent), picture_requests(opened)
    assert [picture.address for picture in before] == [picture.address for picture in after]
    for picture, request in before.items():
        assert after[picture].spec == request.spec
        assert after[picture].spec.context == 32_768
        if picture.config:
            assert after[picture].subject.model_config.identity.model.id == "qwen3-8b"
    assert "anna" not in json.dumps(address_of(sent))


def test_extend_recognises_the_model_of_a_link(paste, open_page, page_text):
    opened = open_page("extend", **link_query(paste("extend", QWEN3_8B)))
    text = page_text(opened)
    assert "Recognised by its numbers: Qwen3 8B" in text
    assert "Trained length: 32,768 tokens" in text
    assert "Llama" not in text
    assert '"factor": 4.0' in " ".join(one.value for one in opened.code)


def test_runtimes_describe_the_config_of_a_link(paste, open_page, page_text):
    opened = open_page("runtimes", **link_query(paste("runtimes", LLAMA_3_1_8B)))
    assert "The config of llama, unchanged" in page_text(opened)
    assert opened.session_state[KEY].choice.spec.scaling.name == "llama3"


def test_picture_links_of_both_sessions_are_equal(paste, open_page):
    def links(app):
        found = {}
        for element in app.get("bidi_component"):
            if element.proto.component_name.startswith("rope_viz_picture"):
                pictures = json.loads(element.proto.bytes)["pictures"]
                found |= {address: data["link"] for address, data in pictures.items()}
        return found

    sent = paste("extend", QWEN3_8B)
    opened = open_page("extend", **link_query(sent))
    assert links(sent) == links(opened)
    assert all("config=" in link for link in links(sent).values())


def test_a_config_survives_a_change_of_page_and_back(paste, open_page, follow):
    sent = link_query(paste("extend", QWEN3_8B))
    opened = open_page("extend", **sent)
    opened.switch_page("scaling.py").run()
    assert link_query(opened) == sent
    assert opened.session_state[KEY].own.model_config.identity.model.id == "qwen3-8b"
    follow(opened, model="gpt-oss-20b")
    assert opened.session_state[KEY].choice.subject.model == "gpt-oss-20b"
    follow(opened, **sent)
    assert opened.session_state[KEY].choice.spec.context == 32_768
    assert opened.session_state[KEY].own.model_config.identity.model.id == "qwen3-8b"


def test_upload_replaces_the_config_of_a_link(paste, open_page, follow):
    sent = link_query(paste("extend", QWEN3_8B))
    opened = paste_into(open_page("extend", **sent), LLAMA_3_1_8B)
    assert opened.session_state[KEY].own.config == LLAMA_3_1_8B
    assert link_query(opened)["config"] == config_link.write_config(opened.session_state[KEY].own)
    follow(opened, **sent)
    assert opened.session_state[KEY].own.model_config.identity.model.id == "qwen3-8b"


def test_back_to_an_upload_restores_the_whole_file(paste, follow):
    whole = {**QWEN3_8B, "attention_dropout": 0.125}
    app = paste("extend", whole)
    sent = link_query(app)
    paste_into(app, LLAMA_3_1_8B)
    follow(app, **sent)
    assert app.session_state[KEY].own.config == whole


def test_link_contains_config_and_changed_numbers(paste, open_page, picture_requests):
    opened = open_page("scaling", **link_query(paste("scaling", QWEN3_8B)), method="yarn", factor="8", base="20000")
    spec = opened.session_state[KEY].choice.spec
    assert (spec.base, spec.scaling.name, spec.scaling.factor, spec.context) == (20_000, "yarn", 8, 32_768)
    assert {request.spec for picture, request in picture_requests(opened).items() if picture.page == "scaling"} == {
        spec
    }


@pytest.mark.parametrize("page", ["extend", "runtimes", "scaling"])
def test_old_link_shows_numbers_without_a_model(open_page, page_text, page):
    opened = open_page(page, **OLD_LINK)
    assert not opened.exception
    text = page_text(opened)
    assert "Recognised" not in text
    assert "Llama 2 7B" not in text
    box = opened.selectbox(key="select.Model")
    assert box.format_func(box.value) == "Custom (numbers only)"
    assert (opened.session_state[KEY].choice.spec.base, opened.session_state[KEY].choice.spec.context) == (1e6, 40_960)


def test_extend_of_an_old_link_uses_its_numbers(open_page, page_text, picture_requests):
    opened = open_page("extend", **OLD_LINK)
    assert "Numbers only: without a config no model is recognised" in page_text(opened)
    assert {
        request[extend.TRAINED] for picture, request in picture_requests(opened).items() if picture.page == "extend"
    } == {40_960}
    assert '"rope_theta": 1000000' in " ".join(one.value for one in opened.code)


@pytest.mark.parametrize("value", ["", "eNp", "<b>x</b>", "A" * 5000])
@pytest.mark.parametrize("page", ["extend", "recall", "scaling"])
def test_a_broken_config_in_a_link_is_named(open_page, page, value):
    opened = open_page(page, model="custom", config=value)
    assert not opened.exception
    assert [one for one in warnings(opened) if one.startswith("Could not open the config of this link: ")]


def test_a_config_with_another_model_is_named(paste, open_page):
    opened = open_page("scaling", **link_query(paste("scaling", QWEN3_8B)) | {"model": "qwen3-8b"})
    assert not opened.exception
    assert any("needs model=custom" in one for one in warnings(opened))


def test_part_of_a_config_is_not_offered_as_a_file(paste, open_page, page_text):
    sent = paste("extend", QWEN3_8B)
    assert "No download" not in page_text(sent)
    assert sent.get("download_button")
    opened = open_page("extend", **link_query(sent))
    assert "No download" in page_text(opened)
    assert not opened.get("download_button")


def test_a_removed_config_leaves_the_address(paste):
    app = paste("extend", QWEN3_8B)
    app.button(key="forget").click().run()
    assert "config" not in link_query(app)
    assert app.session_state[KEY].choice.spec.context == 32_768
    assert link_query(app)["base"] == "1000000"


def share_labels(app):
    found = [one for one in app.get("bidi_component") if one.proto.component_name.startswith("rope_viz_navigation")]
    return [*json.loads(found[0].proto.bytes if found[0].proto.bytes else found[0].proto.json)["share"]]


def test_share_button_names_what_the_link_contains(paste, open_page):
    assert share_labels(open_page("scaling"))[0] == "Copy link"
    assert share_labels(paste("scaling", QWEN3_8B))[0] == "Copy link (your config is in it)"
    numbers = "Copy link (this link carries the numbers, not your file)"
    assert share_labels(open_page("scaling", **OLD_LINK))[0] == numbers
    layers = {str(index): {"head_dim": 64 + (index * index * 7919) % 4093} for index in range(900)}
    large = paste("scaling", {**QWEN3_8B, "per_layer_config": layers})
    assert share_labels(large)[0] == numbers
    assert "config" not in link_query(large)


def write_old_link(config):
    """Return the value of a link that holds every key, as those of older releases did."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(config).encode())).decode().rstrip("=")


def test_address_of_an_old_link_is_cut(open_page):
    old = write_old_link({**QWEN3_8B, "token": "hf_AbCdEf"})
    app = open_page("scaling", model="custom", config=old)
    text = link_query(app)["config"]
    assert not app.exception
    assert text != old
    assert "hf_AbCdEf" not in zlib.decompress(base64.urlsafe_b64decode(text + "==")).decode()


def test_address_of_an_old_second_config_is_cut(open_page):
    old = write_old_link({**QWEN3_8B, "token": "hf_AbCdEf"})
    app = open_page("compare", **{"model": "llama-2-7b", "compare.with": old})
    text = link_query(app)["compare.with"]
    assert not app.exception
    assert text != old
    assert "hf_AbCdEf" not in zlib.decompress(base64.urlsafe_b64decode(text + "==")).decode()
