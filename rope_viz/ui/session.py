"""What the app remembers of a session between its runs: one value in Streamlit's session state.

Streamlit's own keys are those of widgets. Everything else is a field here.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.safe_session_state import SafeSessionState

from rope_viz.advice.lint.diagnose import Diagnosis
from rope_viz.embedding.spec import RopeSpec
from rope_viz.kernels.measurement_process import Run
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import Variant
from rope_viz.own_files import blob_store
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest

KEY = "rope-viz"


@dataclass(frozen=True)
class Chosen:
    """The current subject and pinned pair, and the problems of the last link or control.

    `variants` are the pinned curves by number.
    `typed` are the lengths of the spec ("context", "target") that the user has set, even if to the model's own value.
    """

    subject: Subject
    pin: int | None = None
    problems: tuple[str, ...] = ()
    revision: int = 0
    typed: frozenset[str] = frozenset()
    variants: Mapping[int, Variant] = field(default_factory=dict)

    @property
    def spec(self) -> RopeSpec:
        return self.subject.spec


class Stored(NamedTuple):
    """A content of this session: what it was made of, its name, its size, and the salted content if it is small.

    A large one is in the store only, which counts it. The user drops the file again should the store evict it.
    """

    of: object
    name: str
    size: int
    small: bytes | None

    @property
    def salted(self) -> bytes | None:
        return self.small or blob_store.STORE.salted(self.name)


@dataclass(frozen=True)
class Rejected:
    """A file that is no config; `repair` makes the repaired text the model."""

    name: str
    diagnosis: Diagnosis
    repair: Callable[[str, str], object]


@dataclass
class Session:
    """The values of one session."""

    folder: Path = Path()
    """The folder of the pages."""
    page: str = ""
    """The open page."""
    language: str = ""
    """The language of the open page, and the one that the browser prefers; "" before the first run."""
    preferred_language: str = ""
    next_page: tuple[str, dict[str, str]] | None = None
    """The page that a link opens, with its query."""
    needs_whole_run: bool = False
    """True if a run of the page alone does not suffice."""
    is_more_open: bool = False
    """True while the expander of rarely used controls is open."""

    choice: Chosen | None = None
    own: Upload | None = None
    """The user's config, even while a model of the list is chosen."""
    uploads: Mapping[str, Upload] = field(default_factory=dict)
    """{value of its link: a file of the user}, for Back."""
    is_forgotten: bool = False
    """True if the browser must remove the user's config, too."""
    rejected: Rejected | None = None
    upload_generation: int = 0
    """Part of the keys of the fields for a config: new fields are empty."""
    is_pasted: bool = False
    """True if the problem of an upload belongs to the field to paste into."""

    address: Mapping[str, str] | None = None
    """The part of the address for the choice, as last read or written."""
    addresses: list[Mapping[str, str]] = field(default_factory=list)
    """Whole addresses as last read or written, the newest last."""
    choices: dict[str, str] = field(default_factory=dict)
    """Choices of all pages, as in an address, for a return to a page."""
    request: tuple[str, PictureRequest] | None = None
    """The last request of pictures, with its page."""
    is_current: bool = False
    """True if the last request is that of this run."""
    used_controls: tuple[PictureRequest, frozenset[str]] | None = None
    """The controls that a request's page depends on."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    salt: bytes = field(default_factory=blob_store.salt)
    stored: dict[str, Stored] = field(default_factory=dict)
    """Contents that no address can hold, by key."""
    names_in_browser: list[str] = field(default_factory=list)
    """Names of the contents that the browser has stored, or cannot store."""
    is_restored: bool = False
    """True after the browser sent what it had stored."""
    lacks_contents: bool = False
    """True if a server has answered that it lacks contents of this session."""
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    """The typed texts of a choice, by key."""
    generations: dict[str, int] = field(default_factory=dict)
    """Part of the keys of a choice's text fields, which grows when the browser restores their texts."""

    shown_values: dict[str, Any] = field(default_factory=dict)
    """The value of each menu when it was last in the window, by its key (`ui/popovers.py`)."""
    is_in_closed_popover: bool = False
    """True while the content of a closed popover is drawn."""
    confirmed: dict[str, Any] = field(default_factory=dict)
    """The last message of a component that was applied, by the component's key."""
    problems: dict[str, str] = field(default_factory=dict)
    """Sentences to show once next to a control, by the control's key."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Measurements that run, by the key of their button."""
    reports: dict[str, Any] = field(default_factory=dict)
    """Results of measurements, by the key of their button."""

    def size_of_texts(self) -> int:
        """Return the bytes of the texts that messages brought: typed vectors and addresses."""
        typed = sum(sys.getsizeof(text) for fields in self.texts.values() for text in fields.values())
        addresses = sum(sys.getsizeof(text) for query in self.addresses for text in query.values())
        choices = sum(map(sys.getsizeof, self.choices.values()))
        return typed + addresses + choices

    def forget_values(self) -> None:
        """Forget the values of stored contents after a run: only the store counts them, and gives them to the next."""
        if self.request is not None and has_stored_values(self.request[1]):
            self.request = None
        if self.used_controls is not None and has_stored_values(self.used_controls[0]):
            self.used_controls = None


def has_stored_values(request: PictureRequest) -> bool:
    """True if a request holds the value of a stored content, which can be large."""
    return any(isinstance(value, StoredValue) for value in request.given.values())


def session() -> Session:
    """Return the values of the running session."""
    context = get_script_run_ctx()
    found = None if context is None else _SESSIONS.get(context.session_state)
    if found is None:
        found = st.session_state.setdefault(KEY, Session())
        if context is not None:
            _SESSIONS[context.session_state] = found
    return found


# Streamlit's own look-up takes ten times as long, and a run needs the session a hundred times.
_SESSIONS: WeakKeyDictionary[SafeSessionState, Session] = WeakKeyDictionary()


def session_id() -> str:
    """Return the id of the running session, "" for none."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id
