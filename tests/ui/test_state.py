"""What the reader has chosen, where Streamlit wants to run the page anew in the middle of a callback."""

from types import SimpleNamespace

from streamlit.runtime.scriptrunner import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from rope_viz.ui import state


class Query(dict):
    """Streamlit's query, which ends a run instead of sending what it was given, as often as another was asked for."""

    def __init__(self, asked):
        super().__init__({"base": "77000"})
        self.asked, self.sent = asked, []

    def to_dict(self):
        return dict(self)

    def from_dict(self, query):
        self.clear()
        self.update(query)
        if self.asked:
            raise RerunException(self.asked.pop(0))
        self.sent.append(query)


def test_the_address_goes_out_and_what_was_asked_for_meanwhile_is_asked_for_after_it(monkeypatch):
    first, second = RerunData(query_string="base=77000"), RerunData(query_string="")
    session, query, later = {}, Query([first, second]), []
    monkeypatch.setattr(state, "st", SimpleNamespace(session_state=session, query_params=query))
    requests = SimpleNamespace(request_rerun=later.append)
    monkeypatch.setattr(state, "get_script_run_ctx", lambda: SimpleNamespace(script_requests=requests))
    state.keep("decay.log", "no", default="yes")
    assert query.sent == [{"base": "77000", "decay.log": "no"}]
    assert session["query"] == query.sent[0]
    assert later == [first, second]
    state.keep("decay.log", "yes", default="yes")
    assert query.sent[1:] == [{"base": "77000"}]
    assert session == {"locals": {}, "query": {"base": "77000"}}
    assert later == [first, second]
