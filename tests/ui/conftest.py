"""Streamlit sessions without a server and without a page."""

import threading

import pytest
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import add_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import SCRIPT_RUN_CONTEXT_ATTR_NAME, ScriptRunContext
from streamlit.runtime.state import SafeSessionState, SessionState


@pytest.fixture
def enter_session(monkeypatch):
    """enter_session(context) continues a session, enter_session() starts an empty one; both return its context."""

    def enter(context=None):
        context = context or ScriptRunContext(
            session_id="a session",
            _enqueue=lambda message: None,
            query_string="",
            session_state=SafeSessionState(SessionState(), lambda: None),
            uploaded_file_mgr=MemoryUploadedFileManager(""),
            main_script_path=__file__,
            user_info={},
            fragment_storage=MemoryFragmentStorage(),
            pages_manager=PagesManager(__file__),
        )
        monkeypatch.setattr(threading.current_thread(), SCRIPT_RUN_CONTEXT_ATTR_NAME, context, raising=False)
        add_script_run_ctx(ctx=context)
        return context

    return enter
