"""What a component sends is checked by type and size before it is stored, used or sent back."""

import json

import pytest
from streamlit.components.v2.bidi_component import serialization
from streamlit.components.v2.bidi_component.serialization import BidiComponentSerde
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state import session_state
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates

from rope_viz.pages import registry
from rope_viz.pages.registry import groups_of, titles
from rope_viz.storage.limits import COMPONENT_NAME_CHARACTERS, COMPONENT_VALUE
from rope_viz.ui.components import navigation, sent_values
from rope_viz.ui.components.sent_values import (
    Sent,
    is_link,
    is_names,
    is_number,
    is_positions,
    is_text,
    read_json,
    read_message,
)

SURROGATE = '"\\ud800"'
HOSTILE = {
    "a list of lists": "[" + ",".join(["[]"] * 1000) + "]",
    "deep": "[" * 400 + "]" * 400,
    "deeper": "[" * 60_000,
    "many texts": "[" + ",".join(['""'] * 600) + "]",
    "many keys": json.dumps({str(number): 0 for number in range(600)}),
    "not a number": '{"message": {"value": NaN}}',
    "infinite": '{"message": {"value": -Infinity}}',
    "too large": '{"message": {"value": 1e999}}',
    "a huge whole number": '{"message": {"turn": ' + "9" * 5000 + "}}",
    "a large whole number": '{"message": {"turn": ' + "9" * 30 + "}}",
    "a long number": "0." + "1" * 20_000,
    "half a character": SURROGATE,
    "half a character in a key": '{"\\udfff": 1}',
    "a long text": json.dumps("x" * COMPONENT_VALUE),
    "no JSON": "{",
    "nothing": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_values_are_not_read(text):
    assert read_json(text) is None


@pytest.mark.parametrize(
    "value",
    [
        {"message": {"name": "base", "value": 10_000.5, "turn": 1_764_000_000_000, "tries": 1}},
        {"message": {"name": "open", "value": {"page": "decay", "query": {"q": 'a"b\\ [{,' * 200}}, "turn": 1}},
        ["é", "日本語", "😀", "\\ud800 in words"],
    ],
)
@pytest.mark.parametrize("escapes", [False, True])
def test_values_of_our_scripts_are_read(value, escapes):
    assert read_json(json.dumps(value, ensure_ascii=escapes)) == value


def test_what_a_browser_restores_may_have_long_texts():
    own = json.dumps({"layers": [0] * 100_000})
    sent = [{"event": "restore", "value": {"own": {"text": own, "tab": True}, "held": {"decay.file": "A" * (4 << 20)}}}]
    assert read_json(json.dumps(sent), 6 << 20) == sent
    assert read_json(json.dumps(sent)) is None


MESSAGE = {"turn": 7, "name": "base", "value": 2, "tries": 1}


def test_message_has_a_turn_a_name_and_a_value():
    assert read_message(MESSAGE, is_number) == Sent(7, "base", 2)


@pytest.mark.parametrize(
    "other",
    [
        *({"turn": turn} for turn in (True, None, "1", 1.5, [], [[]] * 9, {}, 2**53 + 1)),
        *({"name": name} for name in (None, 1, "x" * (COMPONENT_NAME_CHARACTERS + 1), ["base"])),
        *({"value": value} for value in (None, True, "2", [2], {}, float("nan"), float("inf"), 2**60)),
    ],
    ids=str,
)
def test_message_of_another_form_is_ignored(other):
    assert read_message(MESSAGE | other, is_number) is None
    for message in (None, 1, "text", [MESSAGE]):
        assert read_message(message, is_number) is None


KINDS = {
    is_number: ([0, -1.5, 2**53], ["0", True, None, float("inf")]),
    is_text: (["", "x" * 16_000], ["x" * 16_001, 1, None, ["x"]]),
    is_positions: ([{"m": 1, "n": 2}], [{"m": 1}, {"m": 1, "n": True}, {"m": 1, "n": 2, "o": 3}, [1, 2]]),
    is_link: (
        [{"page": "decay", "query": {"base": "1"}}],
        [
            {"page": "decay"},
            {"page": 1, "query": {}},
            {"page": "x" * 41, "query": {}},
            {"page": "", "query": {"a": 1}},
            {"page": "", "query": {"a": "x" * 16_000}},
            {"page": "", "query": []},
        ],
    ),
    is_names: ([[], ["x" * 43] * 32], [["x" * 44], ["x"] * 33, [1], "x", {}]),
}


@pytest.mark.parametrize("check", KINDS, ids=lambda check: check.__name__)
def test_value_is_of_its_kind(check):
    good, bad = KINDS[check]
    assert all(map(check, good))
    assert not any(map(check, bad))


def test_every_name_that_a_picture_sends_is_short_enough():
    pages = [registry.page(group) for page in titles() for group in groups_of(page)]
    pictures = [picture.address for page in pages for picture in page.pictures.values()]
    assert max(map(len, pictures)) + len(" present") <= COMPONENT_NAME_CHARACTERS


def test_names_of_stored_contents_are_few_and_short(enter_session):
    enter_session()
    navigation.record_stored_names(["x" * 44])
    assert navigation.session().names_in_browser == []
    navigation.record_stored_names(["x" * 43])
    assert navigation.session().names_in_browser == ["x" * 43]
    navigation.record_stored_names([[]] * 9)
    assert navigation.session().names_in_browser == []


@pytest.fixture
def installed(monkeypatch):
    """Streamlit with our checks, and a component and a text field that it knows."""
    set_value = WStates.set_widget_from_proto
    monkeypatch.setattr(WStates, "set_widget_from_proto", getattr(set_value, "__wrapped__", set_value))
    unpack = session_state.unpack_widget_state_value
    monkeypatch.setattr(session_state, "unpack_widget_state_value", getattr(unpack, "__wrapped__", unpack))
    monkeypatch.setattr(serialization, "handle_deserialize", serialization.handle_deserialize)
    sent_values.install(1 << 20)
    states = WStates()
    for id, kind, read in (("a", "json_value", BidiComponentSerde().deserialize), ("b", "string_value", str)):
        states.set_widget_metadata(WidgetMetadata(id, read, json.dumps, kind))
    return states


def test_streamlit_reads_values_of_components_as_installed(installed):
    """Fails if Streamlit parses them elsewhere."""
    installed.set_widget_from_proto(WidgetState(id="a", json_value='{"message": {"turn": 1}}'))
    assert installed["a"]["message"]["turn"] == 1
    for text in HOSTILE.values():
        installed.set_widget_from_proto(WidgetState(id="a", json_value=text))
        assert installed["a"] == {}
        if text != HOSTILE["a long text"]:
            assert not serialization.deserialize_trigger_list(text)
    assert serialization.deserialize_trigger_list('[{"event": "restore"}]') == [{"event": "restore"}]
    assert serialization.deserialize_trigger_list(None) is None


def test_value_of_another_kind_is_ignored(installed):
    installed.set_widget_from_proto(WidgetState(id="b", string_value="typed"))
    for other in ({"json_value": '{"a": 1}'}, {"double_value": 1.0}, {"json_trigger_value": "[]"}):
        installed.set_widget_from_proto(WidgetState(id="b", **other))
        assert installed["b"] == "typed"
