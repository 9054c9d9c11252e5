"""Messages of pages: how many may be sent, how large they may be, and what their session keeps of them.

The pace holds a page back and loses nothing. A value that is too large is left out of its message,
and the page says so.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.session_state import SessionState, Value

from rope_viz.storage.limits import COMPONENT_VALUE, CONFIG_BYTES, COST_OF_BYTE, COST_OF_TEXT_BYTE, TEXT_FIELD_BYTES
from rope_viz.texts import Texts
from rope_viz.ui.session import KEY, Session
from rope_viz.ui.visitors import CONNECTION

TEXTS = Texts("app")

CONFIG_FIELDS = re.compile(r"-(upload\.text\.\d+|second\.text)$")
"""The end of the ids of the fields for a pasted config."""


class Pace:
    """A burst of messages, then so many per second."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.burst, self.rate, self._clock = burst, rate, clock
        self._left, self._since = burst, clock()

    def take(self, cost: float) -> float:
        """Count a message. Return the seconds for which it has to wait."""
        now = self._clock()
        self._left = min(self.burst, self._left + (now - self._since) * self.rate) - cost
        self._since = now
        return max(0.0, -self._left / self.rate)

    @property
    def is_rested(self) -> bool:
        """True if a whole burst may be sent again."""
        return self._left + (self._clock() - self._since) * self.rate >= self.burst


def cost_of(size: int) -> float:
    """Return the cost of a message; an ordinary one costs about 1."""
    return 1 + min(size, COMPONENT_VALUE) * COST_OF_BYTE + size * COST_OF_TEXT_BYTE


def is_run(content: bytes) -> bool:
    """True if a message asks for a run of its page."""
    return bool(parse(content).WhichOneof("type") == "rerun_script")


def parse(content: bytes) -> BackMsg:
    """Return a message; an empty one for bytes that are none, because Streamlit then closes the connection."""
    message = BackMsg()
    try:
        message.ParseFromString(content)
    except DecodeError:
        return BackMsg()
    return message


def screen(content: bytes, most: int | None = None) -> tuple[bytes, bool]:
    """Leave out the values of a message that are larger than their kind may be, or than `most`.

    Return the message, and whether something was left out.
    """
    if len(content) <= COMPONENT_VALUE:
        return content, False
    message, is_shortened = parse(content), False
    for state in message.rerun_script.widget_states.widgets:
        if is_too_large(state) if most is None else state.ByteSize() > most:
            state.ClearField(str(state.WhichOneof("value")))
            is_shortened = True
    return (message.SerializeToString(), True) if is_shortened else (content, False)


def is_too_large(state: WidgetState) -> bool:
    """True if a widget's value is larger than values of its kind may be."""
    size = state.ByteSize()
    kind = state.WhichOneof("value")
    if size <= COMPONENT_VALUE or kind is None:
        return False
    if kind == "string_value":
        largest = CONFIG_BYTES + COMPONENT_VALUE if CONFIG_FIELDS.search(state.id) else TEXT_FIELD_BYTES
        return bool(size > largest)
    # What a browser restores is a trigger of the page's shell. Its contents are looked at where they are read.
    return bool(kind != "json_trigger_value")


def count_state(state: SessionState) -> None:
    """Count the texts that a session keeps after a run. Empty the fields for which there is no room."""
    page = CONNECTION.get()
    if page is None:
        return
    widgets = state._new_widget_state
    texts = {key: value.value for key, value in widgets.states.items() if is_text(value)}
    texts |= {key: value for key, value in state._old_state.items() if isinstance(value, str)}
    mine = state._new_session_state.get(KEY) or state._old_state.get(KEY)
    own = mine.size_of_texts() if isinstance(mine, Session) else 0
    if not page.keep(own + sum(map(sys.getsizeof, texts.values()))):
        page.refusal = "messages.full"
        for key in texts:
            state._old_state.pop(key, None)
            widgets.states.pop(key, None)


def is_text(value: object) -> bool:
    """True if a widget's value in Streamlit's state is a text."""
    return isinstance(value, Value) and isinstance(value.value, str)
