"""Every page runs for every model and every method, and warns about invalid links instead of failing."""

from pathlib import Path

import pytest

from rope_viz.embedding.scaling import METHODS
from rope_viz.models.catalog import catalog
from rope_viz.pages import decay, recall, registry, scaling
from rope_viz.picture.choices import Pick, Switch
from tests.pages.app_texts import texts_of

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py"))
MODELS = list(catalog())
GROUP_PAGES = {"rotation": ["rotation", "conversion", "pairings"], "attention": ["attention", "linear"]}
"""{group: the pages that show its pictures}, if there are several."""
TABS = {
    "decay": [{}, {"model": "ministral-3-3b"}],
    "extend": [{"extend.tab": "why", "model": "gemma-3-27b-global"}, {"extend.tab": "runtimes", "model": "qwen3-8b"}],
    "runtimes": [{"extend.tab": "runtimes", "model": "kimi-k2-instruct"}, {"extend.tab": "training"}],
    "recall": [{"recall.tab": tab} for tab in ("real", "pairs", "training", "own")],
    "heads": [{}, {"heads.tab": "whole"}, {"heads.tab": "own"}],
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_for_every_model(open_page, follow, page):
    app = open_page(page)
    for model in MODELS:
        follow(app, model=model)
        assert not app.exception, f"{page} with {model}: {app.exception[0].value}"
        assert not app.warning, f"{page} with {model}: {app.warning[0].value}"
        assert len(app.title) == 1


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_for_every_method(open_page, follow, page):
    app = open_page(page)
    for method in METHODS:
        follow(app, model="qwen3-8b", method=method, target="131072")
        assert not app.exception, f"{page} with {method}: {app.exception[0].value}"
        assert not app.warning, f"{page} with {method}: {app.warning[0].value}"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "params",
    [{"dim": "201"}, {"model": "none of them"}, {"base": "NaN"}, {"dim": "4", "rot": "2", "method": "dynamic"}],
    ids=str,
)
def test_invalid_value_in_a_link_shows_a_warning(open_page, page, params):
    app = open_page(page, is_valid=False, **params)
    assert not app.exception
    assert app.warning
    assert "Traceback" not in app.warning[0].value


EXTREMES = [
    {"dim": "4"},
    {"dim": "512"},
    {"base": "100"},
    {"base": "1e9"},
    {"target": "16M"},
    {"method": "proportional", "share": "0"},
    {"method": "proportional", "rot": "64"},
]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_runs_at_the_ends_of_every_knob(open_page, follow, page):
    app = open_page(page)
    for extreme in EXTREMES:
        follow(app, **extreme)
        assert not app.exception, f"{page} with {extreme}: {app.exception[0].value}"


def test_choosing_a_model_changes_the_page(open_page, page_text):
    app = open_page("frequencies")
    app.selectbox(key="select.Model").select("gpt-oss-20b").run()
    assert "of 32 pairs" in page_text(app)
    assert app.query_params["model"] == "gpt-oss-20b"


@pytest.mark.parametrize("page", PAGES)
def test_script_run_renders_no_picture(open_page, monkeypatch, page):
    for picture in registry.pictures():
        monkeypatch.setattr(
            type(picture), "__call__", lambda self, request: pytest.fail(f"the run rendered {self.address}")
        )
    assert not open_page(page, model="qwen3-8b-yarn").exception


@pytest.mark.parametrize("group", [name for name in registry.PAGES if name != "learn"])
def test_every_picture_of_a_group_has_its_place(open_page, picture_requests, group):
    """Pictures of measurements appear after a measurement; Learn shows only its story; Who differs? has all models."""
    places = {
        picture.name
        for page in GROUP_PAGES.get(group, [group])
        for tab in TABS.get(group, [{}])
        for picture in picture_requests(open_page(page, **tab))
    }
    later = {
        "kernels": {"speeds", "ways", "agreement"},
        "runtimes": {"axes", "models"},
        "recall": {"live_loss", "live_keys"},
    }
    later = later.get(group, set())
    assert places >= registry.page(group).pictures.keys() - later


@pytest.mark.parametrize("page", registry.PAGES)
def test_every_choice_has_a_control_and_reaches_its_pictures(open_page, follow, picture_requests, page):
    app = open_page(page, **TABS.get(page, [{}])[0])
    start = picture_requests(app)
    for choice in registry.page(page).choices:
        if not isinstance(choice, Pick | Switch):
            continue
        options = list(choice.options) if isinstance(choice, Pick) else ["yes", "no"]
        follow(app, **{choice.key: options[-1]})
        assert not app.exception
        for picture, request in picture_requests(app).items():
            if (
                choice.key in picture.depends
                and choice.when(request)
                and options[-1] in allowed_values(choice, request)
            ):
                assert choice.text(request[choice]) == options[-1]
    assert start


def allowed_values(choice, request):
    return choice.shown(request) if isinstance(choice, Pick) else ("yes", "no")


# A picture that the page has for one model or choice and not for another: (page, queries with it, queries without).
CONDITIONAL = {
    decay.temperature: ("decay", {"model": "ministral-3-3b"}, {"model": "llama-3.1-8b"}),
    scaling.maps: ("scaling", {"model": "qwen3-8b-yarn"}, {"model": "llama-2-7b", "scaling.example": "none"}),
}


@pytest.mark.parametrize("picture", CONDITIONAL, ids=lambda picture: picture.address)
def test_picture_is_left_out_where_it_does_not_apply(open_page, picture_requests, picture):
    page, with_it, without_it = CONDITIONAL[picture]
    assert picture in picture_requests(open_page(page, **with_it))
    assert picture not in picture_requests(open_page(page, **without_it))


@pytest.mark.parametrize(("band", "is_named"), [("all", True), ("slow", False)])
def test_drope_is_named_only_if_no_pair_rotates(open_page, picture_requests, band, is_named):
    query = {"model": "rope-viz-reader", "method": "yarn", "factor": "4", "target": "1024", "recall.band": band}
    app = open_page("recall", **query)
    sentence = recall.switched(picture_requests(app)[recall.switched]).sentence
    assert ("this is the first step of DroPE" in sentence) == is_named
    assert is_named or "at zero frequency" in sentence
    assert is_named or "DroPE" not in sentence + texts_of(app)


def test_too_many_words_are_refused_with_a_warning(open_page):
    app = open_page("attention", **{"attention.sentence": "a " * 70})
    assert "at most 64 words, got 70" in app.warning[0].value


def test_reset_returns_to_the_model(open_page):
    app = open_page("scaling", base="77000")
    assert app.query_params["base"] == "77000"
    app.button(key="reset").click().run()
    assert "base" not in app.query_params
