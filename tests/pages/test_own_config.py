"""The user's own config becomes the model on every page, or the page explains why not."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.models.model_config import from_config
from rope_viz.pages.model import extend
from rope_viz.ui import upload
from rope_viz.ui.session import KEY
from tests.configs import QWEN3_8B

# Learn shows its own models.
PAGES = sorted({path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py")} - {"learn", "home"})
MODEL_PAGES = [page for page in PAGES if page not in ("gallery", "lab", "differences")]
"""The pages that depend on a model: the others have no menu of models."""
STRIPS = "Which vector turns where"
"""The heading below the reasons."""
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
    """paste("runtimes", text) opens the page and submits the text as the user's config."""

    def run(page, text, **params):
        app = open_page(page, **params)
        return paste_into(app, text)

    return run


def paste_into(app, text):
    field = next(item for item in app.text_area if item.key.startswith("upload.text"))
    field.set_value(text)
    next(item for item in app.button if item.label == "Use this config").click()
    return app.run()


@pytest.mark.parametrize("page", MODEL_PAGES)
def test_pasted_config_becomes_the_model_on_every_page(paste, page):
    app = paste(page, json.dumps(GEMMA))
    assert not app.exception
    assert app.session_state[KEY].choice.spec == from_config(GEMMA)["full_attention"]
    assert app.query_params["model"] == "custom"
    assert app.selectbox(key="select.Model").options[0] == "me/my-gemma (yours)"


def test_each_layer_type_can_be_chosen(paste, page_text):
    app = paste("runtimes", json.dumps(GEMMA))
    app.selectbox(key="select.Layers").select("sliding_attention").run()
    assert app.session_state[KEY].choice.spec == from_config(GEMMA)["sliding_attention"]
    assert not app.exception
    assert "sliding attention layers" in page_text(app)


def test_config_stays_in_the_menu_while_another_model_is_shown(paste, page_text):
    app = paste("runtimes", json.dumps(GEMMA))
    app.selectbox(key="select.Model").select("qwen3-8b").run()
    assert "Qwen3 8B, unchanged" in page_text(app)
    app.selectbox(key="select.Model").select("custom").run()
    assert app.session_state[KEY].choice.spec == from_config(GEMMA)["full_attention"]


@pytest.mark.parametrize("page", MODEL_PAGES)
def test_the_pictures_are_those_of_the_pasted_config(paste, picture_requests, page):
    odd = GEMMA | {"rope_theta": 1.5, "rope_scaling": {"rope_type": "linear", "factor": 1e9}}
    for config in (GEMMA, odd):
        for picture, request in picture_requests(paste(page, json.dumps(config))).items():
            assert request.spec == from_config(config)["full_attention"]
            assert not picture.config or request.subject.config == config
            assert picture(request).title


def test_link_carries_the_numbers_of_the_config(paste, open_page):
    app = paste("runtimes", json.dumps(GEMMA))
    other = open_page("runtimes", **{key: value for key, value in app.query_params.items()})
    assert not other.exception
    assert other.session_state[KEY].choice.spec == from_config(GEMMA)["full_attention"]
    assert other.session_state[KEY].choice.subject.layer == "full_attention"


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
def test_invalid_config_changes_nothing(paste, rejection_card, text):
    app = paste("scaling", text, model="kimi-k2-instruct", base="77000")
    assert not app.exception
    assert [one.value for one in app.warning] == ["Could not read this config. The page says why."]
    assert "This config cannot be read" in rejection_card(app)
    choice = app.session_state[KEY].choice
    assert (choice.subject.model, choice.spec.base) == ("kimi-k2-instruct", 77_000)
    assert app.query_params["base"] == "77000"


@pytest.fixture
def hub_cache(monkeypatch, tmp_path):
    """Let the server look up model ids in a local Hugging Face cache that contains acme/gemma."""
    monkeypatch.setenv(upload.HUB_CACHE, "1")
    for name in ("HF_HOME", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    place = tmp_path / "models--acme--gemma" / "snapshots" / "c0ffee"
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(GEMMA))
    (tmp_path / "config.json").write_text(json.dumps(GEMMA))


@pytest.mark.parametrize("id", ["acme/gemma", " acme/gemma@c0ffee", "https://huggingface.co/acme/gemma/"])
def test_a_models_id_is_read_from_the_local_cache(paste, hub_cache, id):
    app = paste("extend", id)
    assert not app.exception
    assert all("Could not read" not in one.value for one in app.warning), [w.value for w in app.warning]
    assert app.session_state[KEY].choice.spec == from_config(GEMMA)["full_attention"]


@pytest.mark.parametrize("id", ["Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B"])
def test_id_of_a_listed_model_chooses_that_model(paste, id):
    app = paste("extend", id)
    assert not app.exception
    assert app.session_state[KEY].choice.subject.model == "qwen3-8b"
    assert all("Could not read" not in one.value for one in app.warning)


def test_id_missing_from_the_cache_is_reported(paste, hub_cache):
    app = paste("extend", "acme/other")
    assert "acme/other is not in the server's local Hugging Face cache" in app.warning[0].value
    assert "hf download acme/other config.json" in app.warning[0].value
    app = paste("extend", "https://huggingface.co/acme/other/blob/main/config.json")
    assert "hf download acme/other config.json" in app.warning[0].value


@pytest.mark.parametrize("id", ["../..", "acme/..", "acme/../..", "acme\\gemma", "/etc/passwd", "acme/gemma@../../.."])
def test_id_never_leads_outside_the_cache(paste, hub_cache, rejection_card, id):
    app = paste("extend", id)
    assert app.session_state[KEY].choice.subject.model != "custom"
    assert "It is not JSON" in rejection_card(app)


def test_cache_is_off_unless_the_setting_is_1(paste, hub_cache, monkeypatch):
    """Also for a browser on the same machine: behind a proxy every browser looks like one."""
    for value in ("0", "", None):
        if value is None:
            monkeypatch.delenv(upload.HUB_CACHE)
        else:
            monkeypatch.setenv(upload.HUB_CACHE, value)
        app = paste("extend", "acme/gemma")
        assert app.session_state[KEY].choice.subject.model != "custom"
        assert "acme/gemma is not in the list of models" in app.warning[0].value
        assert "rope-viz app --hub-cache" in app.warning[0].value
        assert "Paste a config" in [each.label for each in app.expander]


def test_a_flag_of_the_app_switches_the_cache_on():
    from rope_viz.cli import app

    assert upload.HUB_CACHE not in app.environment("")
    assert app.environment("", hub_cache=True)[upload.HUB_CACHE] == "1"


def test_raised_limit_becomes_the_wanted_length(paste, picture_requests):
    app = paste("extend", json.dumps({**QWEN3_8B, "max_position_embeddings": 131_072}))
    assert {
        request[extend.TARGET] for picture, request in picture_requests(app).items() if picture.page == "extend"
    } == {131_072}
    assert any('"factor": 4.0' in one.value for one in app.code)


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"rope_theta": "big"}, "rope_theta must be a number"),
        ({"rope_theta": -4, "layer_types": ["x"] * 26}, "Unknown layer type"),
        ({"model_type": "gpt2"}, "gpt2 has no rotary embedding"),
    ],
)
def test_refused_config_shows_the_findings_of_the_check(paste, rejection_card, changes, finding):
    assert finding in rejection_card(paste("extend", json.dumps(GEMMA | changes)))


def test_rope_scaling_alone_takes_sizes_from_the_model(paste):
    app = paste("scaling", '{"rope_type": "linear", "factor": 4.0}', model="qwen3-8b")
    assert "taken from Qwen3 8B" in app.warning[0].value
    assert app.session_state[KEY].choice.spec.base == 1e6
    assert app.session_state[KEY].choice.spec.scaling.factor == 4


def test_changed_knobs_produce_their_config(open_page, page_text):
    app = open_page("runtimes", model="qwen3-8b", method="yarn", factor="4", trained="32768", target="131072")
    text = page_text(app)
    assert "The config of Qwen3 8B with your changes" in text
    # In the form of the model's own config, which older releases can read.
    assert '"rope_scaling"' not in text
    assert "8 of 9 runtimes agree" in text


@pytest.mark.parametrize("menu", ["select.Model", "select.Scaling method", "choice.precision.where"])
def test_menu_ignores_an_option_of_an_earlier_server(open_page, menu):
    app = open_page("precision")
    before = app.session_state[KEY].choice, app.query_params
    box = app.selectbox(key=menu)
    # The page in the browser still shows the option.
    box.options.append("me/my-gemma (yours)")
    box.set_value("me/my-gemma (yours)")
    app.run()
    assert not app.exception
    assert (app.session_state[KEY].choice, app.query_params) == before


def test_diffusion_transformer_has_no_language_model_runtimes(paste, page_text, picture_requests):
    app = paste("runtimes", json.dumps({"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [16, 56, 56]}))
    assert not app.exception
    assert "is a diffusion transformer: it runs in diffusers" in page_text(app)
    assert not picture_requests(app)
    assert "The axes of this model: Axes" in [link.proto.label for link in app.get("page_link")]


def test_model_without_text_has_no_strip_of_layers(paste, page_text, picture_requests):
    config = {"_class_name": "FluxTransformer2DModel", "num_attention_heads": 24, "attention_head_dim": 128}
    app = paste("extend", json.dumps(config))
    assert not app.exception
    assert "has no context in tokens" in page_text(app)
    assert extend.layers not in picture_requests(app)


def test_runtimes_page_compares_the_axes_of_a_vision_model(open_page, page_text, picture_requests):
    app = open_page("runtimes", model="qwen3.5-9b")
    assert "axes" in [picture.name for picture in picture_requests(app)]
    assert "text continues at 15 in every runtime" in page_text(app)


def test_a_link_from_axes_opens_decay_along_the_same_axis(open_page):
    app = open_page("axes", **{"model": "qwen3.5-9b", "axes.along": "column"})
    link = next(link.proto for link in app.get("page_link") if "along this axis alone" in link.proto.label)
    assert "decay.axis=column" in link.query_string


def test_menu_of_a_closed_popover_keeps_the_config(open_page):
    """The browser sends what the menu last showed with the next click, because its popover is closed."""
    app = open_page("scaling")
    last = app.selectbox(key="select.Model").value
    app = paste_into(app.switch_page("model.py").run(), json.dumps(GEMMA))
    menu = app.selectbox(key="select.Model")
    assert menu.value != last
    menu.set_value(last).run()
    assert app.query_params["model"] == "custom"
    app.selectbox(key="select.Model").set_value("qwen3-8b").run()
    assert app.query_params["model"] == "qwen3-8b"


def test_unscalable_model_gets_a_command_only_on_request(paste):
    app = paste("extend", json.dumps({"model_type": "gptj"}))
    app.query_params["target"] = "4096"
    app.run()
    assert [header.value for header in app.header] == ["No method is recommended for 4,096 tokens", STRIPS]
    assert not [code for code in app.code if "serve ./model" in code.value]
    app.query_params["extend.way"] = "ntk"
    app.run()
    assert [header.value for header in app.header] == ["If you must: NTK-aware with factor 2", STRIPS]
    assert [code for code in app.code if "serve ./model" in code.value]


def test_the_page_and_the_command_line_answer_alike(paste):
    config = {**GEMMA, "max_position_embeddings": 131_072}
    app = paste("extend", json.dumps(config))
    app.query_params["target"] = "262144"
    app.run()
    plan = make_plan(config, 262_144, ["vllm"])
    assert plan.way.spec.scaling.factor == 16.0
    assert [header.value for header in app.header] == ["Use Linear (position interpolation) with factor 16", STRIPS]
    assert plan.instructions[0].command in [code.value for code in app.code]
