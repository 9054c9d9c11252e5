"""The address written last counts where the browser asks with one from before, but not where the reader went back."""

from types import SimpleNamespace

import pytest

from rope_viz.ui import query_params as written


class Query(dict):
    def to_dict(self):
        return dict(self)

    def from_dict(self, query):
        self.clear()
        self.update(query)


@pytest.fixture
def browser(monkeypatch):
    """browser(base="2", back=True): with which address it asks now; its `query` is what Streamlit believes."""
    query, context = Query(), SimpleNamespace(is_history_navigation=False)
    monkeypatch.setattr(written, "st", SimpleNamespace(session_state={}, query_params=query))
    monkeypatch.setattr(written, "get_script_run_ctx", lambda: context)

    def asks(back=False, **now):
        context.is_history_navigation = back
        query.from_dict({key.replace("_", "-"): value for key, value in now.items()})
        written.catch_up()
        return dict(query)

    return asks


def test_an_address_from_before_is_behind_and_one_that_nobody_wrote_is_a_link(browser):
    assert browser(base="1") == {"base": "1"}
    written.record_address({"base": "1"})
    written.write({"base": "2"})
    written.write({"base": "2", "show": "a"})
    for behind in ("1", "2"):
        assert browser(base=behind) == {"base": "2", "show": "a"}
    assert browser(base="3") == {"base": "3"}
    assert browser(base="1", back=True) == {"base": "1"}


def test_who_went_back_stands_there(browser):
    written.write({"base": "1"})
    written.write({"base": "2"})
    assert browser(base="1", back=True) == {"base": "1"}
    written.record_address({"base": "1"})
    assert browser(base="1") == {"base": "1"}


def test_ranges_of_pictures_are_the_browsers_own(browser):
    written.write({"base": "1"})
    written.write({"base": "2", "axes-decay-curves": "x:0:9"})
    assert browser(base="1", axes_decay_curves="x:0:5") == {"base": "2", "axes-decay-curves": "x:0:5"}
    assert browser(base="2", axes_decay_curves="x:0:7") == {"base": "2", "axes-decay-curves": "x:0:7"}


def test_only_the_last_addresses_are_remembered(browser):
    for base in range(2 * written.RECENT):
        written.write({"base": str(base)})
    assert browser(base="0") == {"base": "0"}
    assert browser(base=str(written.RECENT)) == {"base": str(2 * written.RECENT - 1)}
