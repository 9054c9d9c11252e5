"""Every control that a page shows changes a figure or a text of that page."""

import dataclasses
import json
import pickle

import pytest

from rope_viz.embedding.spec import RopeSpec, knobs
from rope_viz.models import spec_url
from rope_viz.models.catalog import model_specs
from rope_viz.pages import recall, registry
from rope_viz.pages.registry import PAGES
from rope_viz.picture import read_address
from rope_viz.picture.choices import Menu, Number, Pick, Several, StoredChoice, Switch, TextLine
from rope_viz.picture.used_controls import LAYER, METHOD, PAIRING, list_moves, make_valid
from rope_viz.ui.session import KEY
from tests.pages.test_every_control import list_controls

pytestmark = pytest.mark.slow

SITUATIONS = [
    {"model": "qwen3-8b-yarn"},
    {"model": "rope-viz-reader"},
    {"model": "qwen3.5-9b"},
    {"model": "gemma-3-1b"},
]
SIDEBAR = {"select.Layers": LAYER, "select.Scaling method": METHOD, "select.Pairing": PAIRING, "truncate": "truncate"}
TABS = {"heads": ["own"]}
"""{page: its tabs but the first}, where controls act on another tab."""
# They change what the button measures, which tests/browser/test_kernels.py presses.
MEASUREMENT_CHOICES = {"kernels.pairing", "kernels.dtype", "kernels.tokens", "kernels.device", "kernels.compile"}
# Typed texts; tests/pages/test_every_control.py types them.
TEXT_CHOICES = (StoredChoice, TextLine)


@pytest.fixture(autouse=True)
def coarse_recall(monkeypatch):
    """Let Recall draw the few points of a moving knob and no cached ones."""
    monkeypatch.setattr(recall, "is_known", lambda *_: False)


def picture_content(picture, request):
    """Return everything that a picture shows, as bytes."""
    request = dataclasses.replace(request, coarse=True)
    if reason := picture.refuses(request):
        return reason.encode()
    drawn = picture(request)
    shown = drawn.fig.to_json() if hasattr(drawn, "fig") else getattr(drawn, "message", None) or drawn.columns
    return pickle.dumps((shown, drawn.title, drawn.sentence))


def list_texts(app):
    kinds = ("markdown", "html", "code", "caption", "warning", "badge", "subheader", "header")
    return [item.value for block in (app.main, app.sidebar) for kind in kinds for item in block.get(kind)]


def shown_controls(app):
    """Return the shared controls in the sidebar and below a picture."""
    found = {name for key, name in SIDEBAR.items() if any(item.key == key for item in (*app.selectbox, *app.toggle))}
    for element in app.get("bidi_component"):
        if element.proto.component_name.startswith("rope_viz_knob"):
            rows = json.loads(element.proto.bytes)["knobs"]
            found |= {row["name"] for row in rows if "." not in row["key"]}
    fields = (item.key.partition(".") for item in (*app.number_input, *app.text_area))
    return found | {name for kind, _, name in fields if kind in ("optional", "list")}


def has_effect(picture_requests, app, open_page, page, moved_requests, tab=None):
    """Return True if a picture or a text of the page differs for one of the moved requests."""
    pictures = picture_requests(app)
    for request in moved_requests:
        for picture, before in pictures.items():
            after = dataclasses.replace(
                before, subject=before.subject._replace(spec=request.spec, layer=request.layer), given=request.given
            )
            if picture_content(picture, before) != picture_content(picture, after):
                return True
    before = list_texts(app)
    return any(
        list_texts(open_page(page, **query_of(page, request) | (tab or {}))) != before for request in moved_requests
    )


def query_of(page, request):
    query = spec_url.write_query(request.subject)
    choices = {choice.key: choice for choice in registry.page(page).choices}
    return query | {key: choices[key].text(value) for key, value in request.given.items()}


def list_moved_requests(request, name):
    if name == LAYER:
        layers = model_specs(request.model)
        return [
            dataclasses.replace(request, subject=request.subject._replace(layer=layer, spec=spec))
            for layer, spec in layers.items()
            if layer != request.layer
        ]
    return [
        dataclasses.replace(request, subject=request.subject._replace(spec=spec))
        for spec in make_valid(list_moves(request.spec)[name])
        if spec != request.spec
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if page != "learn"])
def test_each_shown_control_of_the_model_changes_the_page(open_page, picture_requests, page):
    for situation in SITUATIONS:
        app = open_page(page, **situation)
        app.session_state[KEY].is_more_open = True
        app.run()
        assert not app.exception
        tabs = [{}, *({f"{page}.tab": tab} for tab in TABS.get(page, ()))]
        shown = [(open_page(page, **situation, **tab) if tab else app, tab) for tab in tabs]
        request = read_address.read_request(registry.page(page), situation)
        for name in shown_controls(app):
            moved = list_moved_requests(request, name)
            found = any(has_effect(picture_requests, each, open_page, page, moved, tab) for each, tab in shown)
            assert found, f"{situation} {name}: nothing changes"


def other_values(choice, request):
    """Return other values of a choice of the page."""
    value = request[choice]
    if isinstance(choice, Pick):
        return [name for name in choice.shown(request) if name != value]
    if isinstance(choice, Menu):
        return [name for name in choice.entries(request) if name != value][:3]
    if isinstance(choice, Several):
        return [(name,) for name in choice.visible(request) if (name,) != value]
    if isinstance(choice, Switch):
        return [not value]
    if isinstance(choice, Number):
        ends = choice.ends(request)
        return [
            each for each in (choice.resolve(end, request) for end in (ends.low, value * 2, ends.high)) if each != value
        ]
    return []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("learn", "home")])
def test_each_choice_of_a_page_changes_the_page(open_page, picture_requests, page):
    query = {"model": "qwen3-8b-yarn"}
    app = open_page(page, **query)
    request = read_address.read_request(registry.page(page), query)
    names = {name for key in list_controls(app, page) for name in [key.removeprefix("choice.")]}
    for element in app.get("bidi_component"):
        if element.proto.component_name.startswith("rope_viz_knob"):
            names |= {row["key"] for row in json.loads(element.proto.bytes)["knobs"]}
    for choice in registry.page(page).choices:
        moved_requests = [
            dataclasses.replace(request, given={choice.key: value}) for value in other_values(choice, request)
        ]
        if (
            choice.key not in names
            or choice.key in MEASUREMENT_CHOICES
            or isinstance(choice, TEXT_CHOICES)
            or not moved_requests
        ):
            continue
        assert has_effect(picture_requests, app, open_page, page, moved_requests), f"{choice.key}: nothing changes"


def test_pages_hide_unused_sliders(open_page):
    sizes = set(knobs(RopeSpec))
    for page, model in (("extend", "qwen3-8b"), ("axes", "qwen3-8b")):
        assert shown_controls(open_page(page, model=model)) == set()
    assert shown_controls(open_page("heads", model="qwen3-8b")) == {METHOD}
    assert shown_controls(open_page("recall", model="qwen3-8b")) & sizes == {"context", "target"}
    assert shown_controls(open_page("axes", model="qwen3.5-9b")) == {"base", METHOD}


def test_the_sidebar_follows_the_model_that_the_page_chooses(open_page):
    app = open_page("axes", model="qwen3.5-9b")
    assert "base" in shown_controls(app)
    app.selectbox(key="choice.axes.model").select("flux.1-dev").run()
    app.run()
    assert shown_controls(app) == set()
