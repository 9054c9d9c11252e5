"""A reader's own config on every page: it becomes the model, or nothing changes and one sentence says why."""

import json
from pathlib import Path

import pytest

from rope_viz.configs.models import from_config

# The tour shows models of its own, whatever the reader brought.
PAGES = sorted({path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py")} - {"learn"})
GEMMA = {
    "_name_or_path": "me/my-gemma",
    "model_type": "gemma3_text",
    "hidden_size": 1152,
    "num_attention_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 32768,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}


@pytest.fixture
def paste(open_page):
    """paste("runtimes", text) opens the page and submits the text as the reader's config."""

    def run(page, text, **params):
        app = open_page(page, **params)
        return again(app, text)

    return run


def again(app, text):
    field = next(item for item in app.text_area if item.key.startswith("upload.text"))
    field.set_value(text)
    next(item for item in app.button if item.label == "Use this config").click()
    return app.run()


@pytest.mark.parametrize("page", PAGES)
def test_a_pasted_config_is_the_model_on_every_page(paste, page):
    app = paste(page, json.dumps(GEMMA))
    assert not app.exception
    assert app.session_state["chosen"].spec == from_config(GEMMA)["full_attention"]
    assert app.query_params["model"] == "custom"
    assert app.selectbox(key="select.Model").options[0] == "me/my-gemma (yours)"


def test_each_layer_type_can_be_chosen(paste, said):
    app = paste("runtimes", json.dumps(GEMMA))
    app.selectbox(key="select.Layers").select("sliding_attention").run()
    assert app.session_state["chosen"].spec == from_config(GEMMA)["sliding_attention"]
    assert not app.exception
    assert "sliding attention layers" in said(app)


def test_the_config_waits_in_the_menu_while_another_model_is_looked_at(paste, said):
    app = paste("runtimes", json.dumps(GEMMA))
    app.selectbox(key="select.Model").select("qwen3-8b").run()
    assert "Qwen3 8B, as it stands" in said(app)
    app.selectbox(key="select.Model").select("custom").run()
    assert app.session_state["chosen"].spec == from_config(GEMMA)["full_attention"]


@pytest.mark.parametrize("page", PAGES)
def test_the_pictures_are_those_of_the_pasted_config(paste, asked, page):
    odd = GEMMA | {"rope_theta": 1.5, "rope_scaling": {"rope_type": "linear", "factor": 1e9}}
    for config in (GEMMA, odd):
        for picture, now in asked(paste(page, json.dumps(config))).items():
            assert now.spec == from_config(config)["full_attention"]
            assert not picture.config or now.config == config
            assert picture(now).title


def test_the_numbers_travel_by_link(paste, open_page):
    app = paste("runtimes", json.dumps(GEMMA))
    other = open_page("runtimes", **{key: value for key, value in app.query_params.items()})
    assert not other.exception
    assert other.session_state["chosen"].spec == from_config(GEMMA)["full_attention"]
    assert other.session_state["chosen"].layer == "full_attention"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '{"model_type": "qwen3", "head_dim": NaN}',
        "[" * 9999,
        '{"rope_theta": -1}',
        '{"a": ' + "1" * 5000 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_config_changes_nothing(paste, text):
    app = paste("runtimes", text, model="kimi-k2-instruct", base="77000")
    assert not app.exception
    assert len(app.warning) == 1
    assert app.warning[0].value.startswith("Your config was not taken: ")
    assert (app.session_state["chosen"].model, app.session_state["chosen"].spec.base) == ("kimi-k2-instruct", 77_000)
    assert app.query_params["base"] == "77000"


def test_a_bare_rope_scaling_says_where_the_sizes_came_from(paste):
    app = paste("scaling", '{"rope_type": "linear", "factor": 4.0}', model="qwen3-8b")
    assert "taken from Qwen3 8B" in app.warning[0].value
    assert app.session_state["chosen"].spec.base == 1e6
    assert app.session_state["chosen"].spec.scaling.factor == 4


def test_turned_knobs_are_asked_about_with_the_config_that_says_them(open_page, said):
    app = open_page("runtimes", model="qwen3-8b", method="yarn", factor="4", trained="32768", target="131072")
    text = said(app)
    assert "The config of Qwen3 8B with your changes" in text
    # In the form of the model's own config, which older releases read too.
    assert '"rope_scaling"' not in text
    assert "8 of 9 runtimes agree" in text


@pytest.mark.parametrize("menu", ["select.Model", "select.Scaling method", "choice.precision.where"])
def test_a_menu_hears_what_only_the_server_before_this_one_offered(open_page, menu):
    app = open_page("precision")
    before = app.session_state["chosen"], app.query_params
    box = app.selectbox(key=menu)
    # The page in the browser still shows it.
    box.options.append("me/my-gemma (yours)")
    box.set_value("me/my-gemma (yours)")
    app.run()
    assert not app.exception
    assert (app.session_state["chosen"], app.query_params) == before
