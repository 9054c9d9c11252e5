"""The last written address replaces an outdated one from the browser, except after Back or Forward."""

import pytest
import streamlit as st

from rope_viz.storage.limits import REMEMBERED_ADDRESSES
from rope_viz.ui import query_params as written


@pytest.fixture
def browser(enter_session):
    """browser(base="2", back=True) returns the address after the browser sent `base=2`, because of Back or not."""
    context = enter_session()

    def send(back=False, **query):
        context.is_history_navigation = back
        st.query_params.from_dict({key.replace("_", "-"): value for key, value in query.items()})
        written.catch_up()
        return st.query_params.to_dict()

    return send


def test_stale_address_is_replaced_and_a_new_one_is_followed(browser):
    assert browser(base="1") == {"base": "1"}
    written.record_address({"base": "1"})
    written.write({"base": "2"})
    written.write({"base": "2", "show": "a"})
    for behind in ("1", "2"):
        assert browser(base=behind) == {"base": "2", "show": "a"}
    assert browser(base="3") == {"base": "3"}
    assert browser(base="1", back=True) == {"base": "1"}


def test_history_navigation_is_respected(browser):
    written.write({"base": "1"})
    written.write({"base": "2"})
    assert browser(base="1", back=True) == {"base": "1"}
    written.record_address({"base": "1"})
    assert browser(base="1") == {"base": "1"}


def test_picture_ranges_come_from_the_browser(browser):
    written.write({"base": "1"})
    written.write({"base": "2", "axes-decay-curves": "x:0:9"})
    assert browser(base="1", axes_decay_curves="x:0:5") == {"base": "2", "axes-decay-curves": "x:0:5"}
    assert browser(base="2", axes_decay_curves="x:0:7") == {"base": "2", "axes-decay-curves": "x:0:7"}


def test_only_the_last_addresses_are_remembered(browser):
    for base in range(2 * REMEMBERED_ADDRESSES):
        written.write({"base": str(base)})
    assert browser(base="0") == {"base": "0"}
    assert browser(base=str(REMEMBERED_ADDRESSES)) == {"base": str(2 * REMEMBERED_ADDRESSES - 1)}
