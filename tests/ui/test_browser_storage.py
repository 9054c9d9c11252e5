"""A new session, even on a new server, restores the user's vectors and files from the browser."""

import base64
import json

import pytest
from streamlit.testing.v1 import AppTest

from rope_viz.own_files import blob_store
from rope_viz.storage.limits import BROWSER_CONTENT_BYTES
from rope_viz.ui import state
from rope_viz.ui.components import navigation
from rope_viz.ui.session import KEY, session


@pytest.fixture
def new_session(enter_session, monkeypatch):
    """new_session() starts another session on a server that stores nothing yet."""

    def start():
        monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
        enter_session()

    start()
    return start


TYPED = json.dumps({"q": "1, 2", "k": "3"}).encode()
FILE = b"mine.npz\0" + b"0"


def encode(content):
    return base64.b64encode(content).decode()


def test_stored_inputs_return_in_a_new_session(new_session):
    state.store_blob("decay.typed", TYPED)
    names, contents = navigation.names(), navigation.contents()
    assert list(names) == ["decay.typed"]
    new_session()
    navigation.bring_back({key: contents[name] for key, name in names.items()})
    assert navigation.names() == names
    assert state.blob("decay.typed") == TYPED
    assert session().texts["decay.typed"] == {"q": "1, 2", "k": "3"}
    assert blob_store.STORE.salted(names["decay.typed"]).endswith(TYPED)


def test_inputs_are_sent_once_and_removed_ones_are_dropped(new_session):
    first = state.store_blob("decay.typed", TYPED)
    navigation.record_stored_names([first])
    assert navigation.contents() == {}
    second = state.store_blob("decay.typed", b"{}")
    assert list(navigation.contents()) == [second] != [first]
    state.store_blob("decay.typed", None)
    assert navigation.names() == {}


def draw_fields():
    """Run two text fields; the browser's stored texts arrive after they were drawn."""

    from rope_viz.ui import widgets
    from rope_viz.ui.components import navigation

    widgets._texts(navigation.choices()["decay.typed"], {"q": ("q", ""), "k": ("k", "")})
    if stored := widgets.st.session_state.pop("stored", None):
        navigation.bring_back(stored)


def test_stale_empty_fields_do_not_erase_restored_inputs():
    app = AppTest.from_function(draw_fields, default_timeout=60).run()
    app.session_state["stored"] = {"decay.typed": encode(bytes(blob_store.SALT) + TYPED)}
    app.run()
    assert [field.value for field in app.text_area] == ["", ""]
    app.text_area[0].set_value(" ").run()
    assert app.session_state[KEY].stored["decay.typed"][0] == TYPED
    assert [field.value for field in app.text_area] == ["1, 2", "3"]
    app.text_area[1].set_value("4").run()
    assert json.loads(app.session_state[KEY].stored["decay.typed"][0]) == {"q": "1, 2", "k": "4"}


def test_too_large_inputs_do_not_block_the_others(new_session):
    name = state.store_blob("decay.typed", TYPED)
    state.store_blob("decay.file", b"mine.npz\0" + bytes(BROWSER_CONTENT_BYTES))
    assert navigation.names() == {"decay.typed": name}
    assert list(navigation.contents()) == [name]


def test_inputs_of_the_session_win_over_stored_ones(new_session):
    name = state.store_blob("decay.typed", TYPED)
    navigation.bring_back({"decay.typed": encode(bytes(blob_store.SALT) + b"{}")})
    assert navigation.names() == {"decay.typed": name}


@pytest.mark.parametrize(
    "sent",
    [
        {"decay.typed": "*"},
        {"decay.typed": ""},
        {"decay.typed": None},
        {"decay.typed": encode(bytes(blob_store.SALT) + b"[1]")},
        {"decay.typed": encode(bytes(blob_store.SALT) + b"\xff")},
        {"decay.file": encode(bytes(blob_store.SALT) + FILE)},
        {"decay.file": encode(bytes(3))},
        {"heads.file": encode(bytes(blob_store.SALT) + b"a\0" + b"\xff" * 8 + b"{")},
        {"recall.file": encode(bytes(blob_store.SALT) + b"a\0{")},
        {"kernels.report": encode(bytes(blob_store.SALT) + b"{}")},
        {"own": encode(bytes(blob_store.SALT) + b"{}")},
        {"": ""},
    ],
    ids=str,
)
def test_unreadable_stored_inputs_are_ignored(new_session, sent):
    navigation.bring_back(sent)
    assert navigation.names() == {}
    navigation.record_stored_names(sent)
    navigation.record_stored_names([{}])
