"""What a moving knob asks for: every picture of every page, drawn without a session from what the page registered."""

import contextlib
import dataclasses
import functools
import gc
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import streamlit as st
from hypothesis import given, settings, strategies
from starlette.requests import Request
from streamlit.testing.v1 import AppTest

from rope_viz.configs import link
from rope_viz.configs.catalog import catalog
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec, knobs
from rope_viz.ui.components import live
from rope_viz.ui.pictures import prose

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("[a-z]*.py"))
KNOBS = sorted(knobs(RopeSpec).keys() | link.method_knobs().keys())
SHARES = strategies.floats(0.0, 1.0)


class Forbidden:
    def __getattr__(self, name):
        raise AssertionError(f"a picture asked the session for {name}")

    __getitem__ = __contains__ = __getattr__


def reader_of(page, **params):
    app = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=60)
    app.query_params.update(params)
    if page != "home":
        app.switch_page(f"{page}.py")
    app.run()
    assert not app.exception
    return app.session_state["reader"], app


def ask(reader, name, knob, value):
    scope = {
        "type": "http",
        "path_params": {"token": reader if isinstance(reader, str) else reader.token, "name": name},
        "query_string": f"knob={knob}&value={value}".encode(),
        "headers": [],
    }
    # As the server does: on a thread that belongs to no session.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(live.drawn, Request(scope)).result()


def header(answer):
    size = int.from_bytes(answer.body[:4], "little")
    return json.loads(answer.body[4 : 4 + size])


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "params", [{"model": "qwen3-8b-yarn"}, {"model": "gemma-3-27b"}, {"model": "phi-4-mini"}], ids=str
)
def test_every_picture_follows_every_knob_without_a_session(monkeypatch, page, params):
    reader, app = reader_of(page, **params)
    monkeypatch.setattr(st, "session_state", Forbidden())
    assert reader.shown.draws, "a page has at least one picture that follows"
    resting = reader.shown.resting.spec
    for name in reader.shown.draws:
        for key, knob in {**knobs(resting), **knobs(resting.scaling), **reader.shown.knobs}.items():
            held = getattr(resting, key, getattr(resting.scaling, key, None)) if key not in reader.shown.knobs else 0
            if held is None:
                continue
            for value in (at_share(knob, share) for share in (0.0, 0.5, 1.0)):
                cannot = key == "rotary_dim" and value > resting.head_dim
                assert ask(reader, name, key, value).status_code == (204 if cannot else 200), f"{name}, {key} = {value}"
    assert reader.shown.resting.spec == resting, "a picture on its way changes nothing"
    assert app.session_state["chosen"].spec == resting


@functools.cache
def kept_reader(page):
    return reader_of(page)


@pytest.mark.parametrize("page", PAGES)
@settings(max_examples=20, deadline=None)
@given(data=strategies.data())
def test_no_walk_over_the_knobs_breaks_a_picture(page, data):
    """Any model and method, any knobs anywhere: each is what a reader could have come to by hand."""
    reader, _ = kept_reader(page)
    model = data.draw(strategies.sampled_from(list(catalog())))
    spec = link.model_spec(model)
    if method := data.draw(strategies.sampled_from([None, *METHODS])):
        spec = link.with_method(spec, method)
    for name, share in data.draw(
        strategies.lists(strategies.tuples(strategies.sampled_from(KNOBS), SHARES), max_size=4)
    ):
        knob = {**knobs(spec), **knobs(spec.scaling)}.get(name)
        if knob and getattr(spec, name, getattr(spec.scaling, name, None)) is not None:
            with contextlib.suppress(ValueError):  # a sentence to the reader, and the knob goes back
                spec = link.moved(spec, name, at_share(knob, share))
    own = {key: at_share(knob, data.draw(SHARES)) for key, knob in reader.shown.knobs.items()}
    chosen = dataclasses.replace(reader.shown.resting.chosen, model=model, spec=spec)
    at = dataclasses.replace(reader.shown.resting, chosen=chosen, own=own, live=data.draw(strategies.booleans()))
    for name, draw in reader.shown.draws.items():
        assert draw(at).packed(at, name)


def at_share(knob, share):
    """The value at this share of a slider's track."""
    value = knob.low * (knob.high / knob.low) ** share if knob.log else knob.low + share * (knob.high - knob.low)
    step = knob.step or 1
    return min(max(round(value / step) * step, knob.low), knob.high) if knob.integer else value


def test_the_picture_is_that_of_the_moved_knob():
    reader, _ = reader_of("frequencies", model="llama-3.1-8b")
    sent = header(ask(reader, "wavelengths", "base", 10000))
    other, _ = reader_of("frequencies", model="llama-3.1-8b", base="10000")
    picture = other.shown.draws["wavelengths"](other.shown.resting)
    assert sent["sentence"] == prose(picture.sentence)
    assert sent["spec"]["base"] == 10000
    assert sent["file"] == "rope-frequencies-wavelengths_" + other.shown.resting.chosen.file
    assert sent["picture"] == "wavelengths"


def test_a_knob_of_the_page_moves_its_picture():
    reader, _ = reader_of("frequencies")
    sent = header(ask(reader, "heatmap", "frequencies.length", 1000))
    assert sent["title"].endswith("over positions 0 to 1000")


@pytest.mark.parametrize(
    ("name", "knob", "value"),
    [
        ("nothing", "base", "10000"),
        ("wavelengths", "nothing", "10000"),
        ("wavelengths", "base", "nan"),
        ("wavelengths", "base", ""),
        ("wavelengths", "base", "-1"),
        ("wavelengths", "base", "1e300"),
        ("wavelengths", "head_dim", "127.5"),
        ("wavelengths", "pairing", "1"),
        ("wavelengths", "decay.length", "4096"),
        ("wavelengths", "__class__", "1"),
    ],
)
def test_what_cannot_be_is_answered_with_nothing(name, knob, value):
    reader, _ = reader_of("frequencies")
    answer = ask(reader, name, knob, value)
    assert answer.status_code == 204
    assert answer.body == b""


def test_a_reader_who_has_gone_is_forgotten():
    token = "guessed"
    assert ask(token, "wavelengths", "base", "10000").status_code == 204
    reader, app = reader_of("frequencies")
    token = reader.token
    assert ask(token, "wavelengths", "base", "10000").status_code == 200
    del reader, app
    gc.collect()
    assert ask(token, "wavelengths", "base", "10000").status_code == 204


def test_two_readers_do_not_share():
    first, _ = reader_of("frequencies", model="llama-2-7b")
    second, _ = reader_of("frequencies", model="gpt-oss-20b")
    assert first.token != second.token
    assert header(ask(first, "wavelengths", "base", 5e5))["spec"]["model"] == "llama-2-7b"
    assert header(ask(second, "wavelengths", "base", 5e5))["spec"]["model"] == "gpt-oss-20b"


def test_a_pin_beyond_the_last_pair_is_let_go():
    reader, _ = reader_of("frequencies", model="llama-2-7b", pin="60")
    assert live.moved(reader.shown, "base", "10000").pin == 60
    at = live.moved(reader.shown, "head_dim", "64")
    assert at.spec == RopeSpec(head_dim=64, base=1e4, context=4096)
    assert at.pin is None


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        ("**3 of 64 pairs** never", "<strong>3 of 64 pairs</strong> never"),
        ("*Unseen* and **`a*b*c`**", "<em>Unseen</em> and <strong><code>a*b*c</code></strong>"),
        ("<b>& `<i>`", "&lt;b&gt;&amp; <code>&lt;i&gt;</code>"),
        ("2 × 3 * 4", "2 × 3 * 4"),
    ],
)
def test_prose_knows_bold_emphasis_and_code_only(sentence, html):
    assert prose(sentence) == html
