"""Every page runs for every model and every method, and says what is wrong with a bad link instead of failing."""

from pathlib import Path

import pytest

from rope_viz.configs.catalog import catalog
from rope_viz.embedding.scaling import METHODS

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py"))
MODELS = list(catalog())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_for_every_model(open_page, page):
    app = open_page(page)
    for model in MODELS:
        app.query_params["model"] = model
        app.run()
        assert not app.exception, f"{page} with {model}: {app.exception[0].value}"
        assert not app.warning, f"{page} with {model}: {app.warning[0].value}"
        assert len(app.title) == 1


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("method", METHODS)
def test_a_page_runs_for_every_method(open_page, page, method):
    app = open_page(page, model="qwen3-8b", method=method, target="131072")
    assert not app.exception, app.exception[0].value
    assert not app.warning, app.warning[0].value


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "params",
    [{"dim": "201"}, {"model": "none of them"}, {"base": "NaN"}, {"dim": "4", "rot": "2", "method": "dynamic"}],
    ids=str,
)
def test_a_bad_link_is_a_sentence(open_page, page, params):
    app = open_page(page, **params)
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
@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
def test_a_page_runs_at_the_ends_of_every_knob(open_page, page, extreme):
    app = open_page(page, **extreme)
    assert not app.exception, app.exception[0].value


def test_choosing_a_model_changes_the_page(open_page, said):
    app = open_page("frequencies")
    app.selectbox(key="select.Model").select("gpt-oss-20b").run()
    assert "of 32 pairs" in said(app)
    assert app.query_params["model"] == "gpt-oss-20b"


def test_reset_returns_to_the_model(open_page):
    app = open_page("scaling", base="77000")
    assert app.query_params["base"] == "77000"
    app.button(key="reset").click().run()
    assert "base" not in app.query_params
