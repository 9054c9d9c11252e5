"""Every control of every page is operated once and has an effect; one that the test cannot operate fails.

The controls are those that the page renders and the choices that it declares, not a list in this file. The browser side
of controls is tested in tests/browser.
"""

import itertools
import json
import re
from urllib.parse import parse_qsl

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from rope_viz.embedding.scaling import METHODS
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from rope_viz.pages.registry import groups_of, moved, titles
from rope_viz.picture import read_address
from rope_viz.picture.choices import Menu, PositionPair, Several
from rope_viz.ui.session import KEY

pytestmark = pytest.mark.slow

# The queries with which a page shows further controls.
SITUATIONS = {
    "decay": [
        "decay.show=random",
        "decay.show=own",
        "decay.show=own&decay.source=typed",
        "decay.show=own&decay.source=file",
    ],
    "recall": ["recall.band=range", "recall.tab=training", "recall.tab=own"],
    "heads": ["heads.tab=whole", "heads.tab=own"],
    "model": ["model=qwen3-8b&extend.tab=why", "model=phi-4-mini&extend.tab=runtimes"],
    "axes": ["axes.model=qwen2.5-omni-7b", "axes.model=wan-2.1"],
}
LINES = {"documents": "16, 9"}
"""{name of a line that is no prose: another value}."""
SIDEBAR = "rotation"
"""The page whose sidebar is operated; it shows every shared control."""
SITUATIONS[SIDEBAR] = ["base=77000", "model=gemma-3-1b", *(f"target=131072&method={name}" for name in METHODS)]
for page in ("frequencies", "scaling", "decay"):
    SITUATIONS[page] = [*SITUATIONS.get(page, []), "model=qwen3.5-9b"]
OTHER_PAGE = {
    **dict.fromkeys(("rotation.from", "rotation.library", "rotation.heads"), "conversion"),
    **dict.fromkeys(("attention.spacing", "attention.cost"), "linear"),
}
"""{choice: the page that shows it}, if that is not the page of its group."""
# Choice without a control -> the test that makes it.
CHOICE_TESTS = {
    "extend.tab": "tests/browser/test_doors.py",
    "recall.tab": "tests/browser/test_recall.py",
    "heads.tab": "tests/browser/test_heads.py",
    "kernels.report": "tests/browser/test_kernels.py",
    "learn.scene": "tests/browser/test_learn.py",
    **dict.fromkeys(("recall.report", "recall.keys"), "tests/pages/test_live_text.py"),
    "heads.live": "tests/pages/test_live_capture.py",
    "recall.searched": "tests/pages/test_live_search.py",
    "learn.m": "tests/pictures/test_every_picture.py",
    "runtimes.all": "tests/pages/test_differences.py",
}
CONFIG = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 32768, "rope_theta": 31337.0}

# Control that changes neither the address nor the choice -> the test that checks its effect.
EFFECT_TESTS = {
    "download.config.whole": "tests/browser/test_extend_page.py",
    "run.kernels": "tests/browser/test_kernels.py",
    "run.recall.search": "tests/pages/test_live_search.py",
    "copy.command": "tests/browser/test_doors.py",
    "shell": "tests/browser/test_links.py",
    "swap": "tests/pages/test_compare.py",
}


def list_controls(app, page):
    """Return {key: element} of all controls on the page, for SIDEBAR also those of the sidebar."""
    found = {}

    def walk(block):
        for child in block.children.values():
            if hasattr(child, "children"):
                walk(child)
            elif getattr(child.proto, "id", "") and child.key:
                found[child.key] = child

    walk(app.main)
    if page == SIDEBAR:
        walk(app.sidebar)
    return found


def identify(element):
    """Return a control's key with its knobs or pictures, which tell it from another control with the same key."""
    if element.type == "bidi_component" and element.proto.component_name.startswith("rope_viz_knob"):
        return element.key, *(row["name"] for row in json.loads(element.proto.bytes)["knobs"])
    if element.key == "pictures":
        return element.key, *read_pictures(element)
    return (element.key,)


def read_pictures(element):
    """Return {address: data} of the pictures on the page."""
    return json.loads(element.proto.bytes)["pictures"]


def read_state(app):
    session = app.session_state[KEY]
    choice = session.choice
    return (
        dict(app.query_params),
        (choice.subject[:3], choice.pin),
        [item.value for item in app.warning],
        sorted(session.stored),
        session.own is not None,
        session.rejected and session.rejected.diagnosis,
    )


def send(app, element, value):
    """Send what a component's JavaScript would send."""
    states = app._tree.get_widget_states()
    states.widgets.append(WidgetState(id=element.proto.id, json_value=json.dumps(value)))
    app._run(states)


def post(app, element, name, value):
    """Post a message as a component's script does, with a turn of its own."""
    send(app, element, {"message": {"name": name, "value": value, "turn": next(TURNS), "tries": 1}})


TURNS = itertools.count(1)


def other_value(row):
    """Return another valid number for a knob."""
    low, high, value = row["low"], row["high"], row["value"]
    step = row["step"] or (1 if row["integer"] else (high - low) / 64)
    return value + step if value + step <= high else value - step


def move_knobs(app, page, element):
    """Move every knob of a column; it shows the new value, or a warning says why not. Return their keys."""
    keys = [row["key"] for row in json.loads(element.proto.bytes)["knobs"]]
    for name in [row["name"] for row in json.loads(element.proto.bytes)["knobs"]]:
        request = list_controls(app, page)[element.key]
        row = next(row for row in json.loads(request.proto.bytes)["knobs"] if row["name"] == name)
        value = other_value(row)
        before = read_state(app)
        post(app, request, name, value)
        assert not app.exception, f"{name}: {app.exception[0].value}"
        assert read_state(app) != before, f"{element.key} {name}: nothing happened"
        refused = bool(app.warning)
        rows = (
            json.loads(list_controls(app, page)[element.key].proto.bytes)["knobs"]
            if element.key in list_controls(app, page)
            else []
        )
        shown = next((row["value"] for row in rows if row["name"] == name), value)
        assert refused or shown == pytest.approx(value), f"{name} shows {shown} instead of {value}"
    return keys


def click_marks(app, page, element):
    """Click the marks of each picture and set the position of its dials; each has an effect."""
    for address in read_pictures(element):
        picture, request, before = (
            registry.picture(*address.split("/")),
            list_controls(app, page)["pictures"],
            read_state(app),
        )
        if isinstance(picture.sets, PositionPair):
            post(app, request, f"{address} at", {"m": 7, "n": 3})
        elif picture.pin or picture.sets is not None:
            pair = 0 if picture.sets is not None and picture.sets.key in app.query_params else 1
            post(app, request, f"{address} pin", pair)
        else:
            continue
        assert not app.exception, f"{address}: {app.exception[0].value}"
        assert read_state(app) != before, f"{address}: nothing happened"


def move_border(app, element):
    """Move the first border of a bar."""
    first, second, *rest = json.loads(element.proto.bytes)["counts"]
    post(app, element, "counts", ",".join(map(str, (first - 1, second + 1, *rest))))


def list_options(app, element):
    """Return the options of a group of buttons."""
    page = registry.page(element.key.removeprefix("choice.").split(".")[0])
    choice = next(choice for choice in page.choices if element.key == f"choice.{choice.key}")
    known = (*spec_url.KEYS, *(choice.key for choice in page.choices))
    request = read_address.read_request(page, {key: value for key, value in app.query_params.items() if key in known})
    if isinstance(choice, Menu):
        return list(choice.entries(request))
    return list(choice.visible(request) if isinstance(choice, Several) else choice.shown(request))


def operate(app, page, element):
    """Operate a control, check that it has an effect, and return the keys of its knobs."""
    before, kind = read_state(app), element.type
    if kind == "bidi_component":
        part = element.proto.component_name.removeprefix("rope_viz_").split("_")[0]
        if part == "knob":
            return move_knobs(app, page, element)
        if part == "picture":
            return click_marks(app, page, element)
        if part in ("copy", "navigation", "gallery"):
            return None
        if part == "sections":
            move_border(app, element)
        elif part == "prompt":
            post(app, element, "prompt", "text 9")
        assert part in ("sections", "prompt"), f"cannot operate a component {part}: {element.key}"
    elif kind == "selectbox":
        element.select_index((element.index + 1) % len(element.options)).run()
    elif kind == "button_group":
        chosen = element.value if isinstance(element.value, list) else [element.value]
        element.select(next(name for name in list_options(app, element) if name not in chosen)).run()
    elif kind == "multiselect":
        element.set_value([next(iter(catalog()))]).run()
    elif kind == "toggle":
        element.set_value(not element.value).run()
    elif kind == "number_input":
        element.set_value(0.5 if element.value != 0.5 else 0.25).run()
    elif kind in ("text_input", "text_area"):
        name = element.key.rpartition(".")[2]
        element.input(LINES.get(name, f"{name} fish"))
        form = next((each for key, each in list_controls(app, page).items() if key.startswith("FormSubmitter")), None)
        (form.click() if element.key.startswith("upload.text") else element).run()
    elif kind == "file_uploader":
        suffix = next(iter(element.proto.type), ".json")
        element.set_value((f"mine{suffix}", json.dumps(CONFIG).encode(), "application/octet-stream")).run()
    elif kind in ("button", "download_button"):
        element.click().run()
    else:
        pytest.fail(f"cannot operate a {kind}: {element.key}")
    assert not app.exception, f"{element.key}: {app.exception[0].value}"
    if element.key not in EFFECT_TESTS:
        assert read_state(app) != before, f"{element.key}: nothing happened"
        if app.session_state[KEY].rejected is not None:
            app.button(key="rejected.keep").click().run()
    return None


def page_of(choice):
    """Return the page that shows a choice."""
    group = choice.key.partition(".")[0]
    return OTHER_PAGE.get(choice.key) or moved().get(group, (group,))[0]


@pytest.mark.parametrize("page", titles())
def test_every_control_of_a_page_has_an_effect(open_page, follow, page):
    app = open_page(page)
    app.session_state[KEY].is_more_open = True  # the expander More; tests/browser/test_tools.py clicks it
    done, found, names = set(), set(), set()
    for situation in ["", *SITUATIONS.get(page, [])]:
        query = dict(parse_qsl(situation))
        follow(app, **query)
        assert not app.exception, f"{situation}: {app.exception[0].value}"
        controls = list_controls(app, page)
        found |= {identify(element) for element in controls.values()}
        # In reverse: a control may change or hide those after it.
        for key in reversed(controls):
            if key in EFFECT_TESTS or identify(controls[key]) in done:
                continue
            element = list_controls(app, page).get(key)
            if element is None or identify(element) != identify(controls[key]):
                element = list_controls(follow(app, **query), page)[key]
            if not getattr(element, "disabled", False):
                names |= set(operate(app, page, element) or ())
                done.add(identify(element))
    assert {key for key, *_ in found - done} - set(EFFECT_TESTS) == set(), "controls that were not operated"
    assert page != SIDEBAR or {("select.Pairing",), ("truncate",)} <= done, "the expander More is closed"
    names |= {re.sub(r"^(choice|bar|prompt)\.", "", key) for key, *_ in done}
    groups = [registry.page(group) for group in groups_of(page)]
    click_marks = {p.sets.key for group in groups for p in group.pictures.values() if p.sets is not None}
    declared = {choice.key for group in groups for choice in group.choices if page_of(choice) == page} - set(
        CHOICE_TESTS
    )
    missing = {
        key for key in declared - click_marks if not any(name == key or name.startswith(f"{key}.") for name in names)
    }
    assert missing == set(), "choices that no situation shows"


def test_open_scene_is_in_the_address(open_page):
    app = open_page("learn")
    post(app, list_controls(app, "learn")["pictures"], "learn/story scene", 3)
    assert app.query_params["learn.scene"] == "3"
    post(app, list_controls(app, "learn")["pictures"], "learn/story scene", 1)
    assert "learn.scene" not in app.query_params
    post(app, list_controls(app, "learn")["pictures"], "learn/story scene", 99)
    assert app.query_params["learn.scene"] == "8"
