"""Vectors and files of a reader: a session that has none takes those that his browser keeps, on a new server too."""

import base64
import json
from types import SimpleNamespace

import pytest

from rope_viz.pictures import blob_store
from rope_viz.ui import browser_storage, state, widgets


@pytest.fixture
def anew(monkeypatch):
    """anew() is another session, on a server that keeps nothing."""

    def start():
        session = {}
        monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
        monkeypatch.setattr(state, "st", SimpleNamespace(session_state=session))
        monkeypatch.setattr(browser_storage, "st", state.st)
        return session

    start()
    return start


TYPED = json.dumps({"q": "1, 2", "k": "3"}).encode()
FILE = b"mine.npz\0" + b"0"


def encoded(content):
    return base64.b64encode(content).decode()


def test_stored_inputs_return_in_a_new_session(anew):
    state.store_blob("decay.typed", TYPED)
    names, contents = browser_storage.names(), browser_storage.contents()
    assert list(names) == ["decay.typed"]
    session = anew()
    browser_storage.bring_back({key: contents[name] for key, name in names.items()})
    assert browser_storage.names() == names
    assert state.blob("decay.typed") == TYPED
    assert session["texts.decay.typed"] == {"q": "1, 2", "k": "3"}
    assert blob_store.STORE.salted(names["decay.typed"]).endswith(TYPED)


def test_inputs_are_sent_once_and_removed_ones_are_dropped(anew):
    first = state.store_blob("decay.typed", TYPED)
    browser_storage.record_stored_names([first])
    assert browser_storage.contents() == {}
    second = state.store_blob("decay.typed", b"{}")
    assert list(browser_storage.contents()) == [second] != [first]
    state.store_blob("decay.typed", None)
    assert browser_storage.names() == {}


def test_stale_empty_fields_do_not_erase_restored_inputs(anew, monkeypatch):
    state.store_blob("decay.typed", TYPED)
    sent = {key: browser_storage.contents()[name] for key, name in browser_storage.names().items()}
    session, fields = anew(), {}
    area = lambda label, *, key, on_change, **_: fields.update({key: on_change})  # noqa: E731
    monkeypatch.setattr(widgets, "st", SimpleNamespace(session_state=session, text_area=area))
    monkeypatch.setattr(state, "frame_too", lambda: None)
    shown = {"q": ("q", ""), "k": ("k", "")}
    widgets._texts(browser_storage.choices()["decay.typed"], shown)
    browser_storage.bring_back(sent)
    for changed in list(fields.values()):
        changed()
    assert state.blob("decay.typed") == TYPED
    before = set(fields)
    widgets._texts(browser_storage.choices()["decay.typed"], shown)
    now = sorted(set(fields) - before)
    assert [session[key] for key in now] == ["3", "1, 2"]
    session[now[0]] = "4"
    fields[now[0]]()
    assert json.loads(state.blob("decay.typed")) == {"q": "1, 2", "k": "4"}


def test_too_large_inputs_do_not_block_the_others(anew):
    name = state.store_blob("decay.typed", TYPED)
    state.store_blob("decay.file", b"mine.npz\0" + bytes(browser_storage.LARGEST))
    assert browser_storage.names() == {"decay.typed": name}
    assert list(browser_storage.contents()) == [name]


def test_inputs_of_the_session_win_over_stored_ones(anew):
    name = state.store_blob("decay.typed", TYPED)
    browser_storage.bring_back({"decay.typed": encoded(bytes(blob_store.SALT) + b"{}")})
    assert browser_storage.names() == {"decay.typed": name}


@pytest.mark.parametrize(
    "sent",
    [
        {"decay.typed": "*"},
        {"decay.typed": ""},
        {"decay.typed": None},
        {"decay.typed": encoded(bytes(blob_store.SALT) + b"[1]")},
        {"decay.typed": encoded(bytes(blob_store.SALT) + b"\xff")},
        {"decay.file": encoded(bytes(blob_store.SALT) + FILE)},
        {"decay.file": encoded(bytes(3))},
        {"heads.file": encoded(bytes(blob_store.SALT) + b"a\0" + b"\xff" * 8 + b"{")},
        {"recall.file": encoded(bytes(blob_store.SALT) + b"a\0{")},
        {"kernels.report": encoded(bytes(blob_store.SALT) + b"{}")},
        {"own": encoded(bytes(blob_store.SALT) + b"{}")},
        {"": ""},
    ],
    ids=str,
)
def test_unreadable_stored_inputs_are_ignored(anew, sent):
    browser_storage.bring_back(sent)
    assert browser_storage.names() == {}
    browser_storage.record_stored_names(sent)
    browser_storage.record_stored_names([{}])
