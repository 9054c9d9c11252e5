"""Fixtures of sessions, which the tests of ui/ make."""

from tests.ui.conftest import enter_session as enter_session
