"""What components send, checked by type and size before it is stored, used or sent back.

Streamlit 1.67 parses every JSON text of a component, of any depth and size. `install` makes it ask `read_json` here.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeGuard

from streamlit.components.v2.bidi_component import serialization
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state import session_state
from streamlit.runtime.state.session_state import WStates

from rope_viz.storage.limits import (
    ADDRESS_CHARACTERS,
    COMPONENT_BRACKETS,
    COMPONENT_COMMAS,
    COMPONENT_NAME_CHARACTERS,
    COMPONENT_NUMBER_CHARACTERS,
    COMPONENT_VALUE,
    CONTENT_NAME_CHARACTERS,
    CONTENT_NAMES,
    LARGEST_WHOLE_NUMBER,
    WHOLE_NUMBER_DIGITS,
)

Check = Callable[[Any], bool]


class Sent(NamedTuple):
    """A message of a component that is what it says: its turn, name and value."""

    turn: int
    name: str
    value: Any


def read_json(text: str, largest: int = COMPONENT_VALUE) -> Any:
    """Return a small JSON value, None for anything else.

    That is also NaN, a huge number, a deep list, and half a surrogate pair.
    """
    if len(text) > largest or not is_simple(text):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_read_float, parse_int=_read_int)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails for a lone surrogate
    except (ValueError, RecursionError):
        return None
    return value


def is_simple(text: str) -> bool:
    """True if a JSON text has few parts. Its strings may be long."""
    plain = text.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 2 * COMPONENT_COMMAS:
        return False
    outside = "".join(plain.split('"')[::2])
    brackets = outside.count("[") + outside.count("{")
    return (
        len(outside) <= COMPONENT_NUMBER_CHARACTERS
        and outside.count(",") <= COMPONENT_COMMAS
        and brackets <= COMPONENT_BRACKETS
    )


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _read_float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _read_int(text: str) -> int:
    return int(text) if len(text) <= WHOLE_NUMBER_DIGITS else _refuse(text)


def read_message(message: Any, takes: Check) -> Sent | None:
    """Return a message of a component, None for one that is not of the form that `outbox.js` sends.

    `takes` says whether a value is of the kind that the component declares.
    """
    if not isinstance(message, Mapping):
        return None
    turn, name, value = message.get("turn"), message.get("name"), message.get("value")
    if not is_whole(turn) or not isinstance(name, str) or len(name) > COMPONENT_NAME_CHARACTERS or not takes(value):
        return None
    return Sent(turn, name, value)


def is_whole(value: Any) -> TypeGuard[int]:
    """True for a whole number of a size that JavaScript can count to."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_WHOLE_NUMBER


def is_number(value: Any) -> bool:
    """True for a finite number."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def is_text(value: Any) -> bool:
    """True for a text of a line or an address."""
    return isinstance(value, str) and len(value) <= ADDRESS_CHARACTERS


def is_positions(value: Any) -> bool:
    """True for two positions, {"m": …, "n": …}."""
    return isinstance(value, Mapping) and set(value) == {"m", "n"} and all(map(is_whole, value.values()))


def is_link(value: Any) -> bool:
    """True for a page with its query: {"page": …, "query": {…}}."""
    if not isinstance(value, Mapping) or set(value) != {"page", "query"}:
        return False
    page, query = value["page"], value["query"]
    if not isinstance(page, str) or len(page) > COMPONENT_NAME_CHARACTERS or not isinstance(query, Mapping):
        return False
    texts = [*query, *query.values()]
    return all(isinstance(text, str) for text in texts) and sum(map(len, texts)) <= ADDRESS_CHARACTERS


def is_names(value: Any) -> bool:
    """True for names of stored contents."""
    if not isinstance(value, list) or len(value) > CONTENT_NAMES:
        return False
    return all(isinstance(name, str) and len(name) <= CONTENT_NAME_CHARACTERS for name in value)


def any_of(*checks: Check) -> Check:
    """Return a check that is true for a value of one of several kinds."""
    return lambda value: any(check(value) for check in checks)


def install(largest_trigger: int) -> None:
    """Let Streamlit take values of a widget's own kind only, and ask `read_json` for those of components.

    `largest_trigger` is the number of characters that a trigger may have: a browser restores stored contents by one.
    """
    if hasattr(WStates.set_widget_from_proto, "__wrapped__"):
        return
    set_value = WStates.set_widget_from_proto
    unpack = session_state.unpack_widget_state_value  # type: ignore[attr-defined]

    @functools.wraps(set_value)
    def set_value_of_kind(states: WStates, state: WidgetState) -> None:
        widget, kind = states.widget_metadata.get(state.id), state.WhichOneof("value")
        if widget is None or kind is None or kind == widget.value_type:
            set_value(states, state)

    @functools.wraps(unpack)
    def unpack_checked(state: WidgetState) -> Any:
        return read_json(state.json_value) if state.WhichOneof("value") == "json_value" else unpack(state)

    def read_trigger(text: str | None) -> Any:
        return None if text is None else read_json(text, largest_trigger)

    WStates.set_widget_from_proto = set_value_of_kind  # type: ignore[method-assign, assignment]
    session_state.unpack_widget_state_value = unpack_checked  # type: ignore[attr-defined, assignment]
    serialization.handle_deserialize = read_trigger  # type: ignore[assignment]
