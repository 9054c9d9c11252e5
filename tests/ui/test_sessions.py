"""What belongs to one session or one run stays there, also where a server lets one thread serve several."""

import contextvars
from types import SimpleNamespace

from rope_viz.models import spec_url
from rope_viz.pictures import decay
from rope_viz.ui import state
from rope_viz.ui.components import picture


class Query(dict):
    def to_dict(self):
        return dict(self)


def test_sessions_in_one_thread_have_separate_requests(monkeypatch):
    sessions = {}
    for model in ("llama-2-7b", "qwen3-8b"):
        layer = spec_url.main_layer_of(model)
        sessions[model] = {"chosen": state.Chosen(model, layer, spec_url.model_spec(model, layer))}
    found = []
    for model in [*sessions, *sessions]:
        monkeypatch.setattr(state, "st", SimpleNamespace(session_state=sessions[model], query_params=Query()))
        found.append(state.now("decay"))
    assert [now.model for now in found] == [*sessions, *sessions]
    assert found[0] is found[2]
    state.invalidate()
    assert state.now("decay") is found[3], "nothing has changed"
    sessions["qwen3-8b"]["chosen"] = sessions["llama-2-7b"]["chosen"]
    state.invalidate()
    assert state.now("decay").model == "llama-2-7b"


def test_runs_in_one_thread_have_separate_picture_places(monkeypatch):
    mounted = []
    monkeypatch.setattr(picture, "_mount", mounted.append)
    monkeypatch.setattr(picture, "st", SimpleNamespace(html=lambda text: None))
    runs = {each: (contextvars.copy_context(), picture.places()) for each in (decay.curves, decay.pairs)}
    for context, places in runs.values():
        context.run(places.__enter__)
    for each, (context, _) in runs.items():
        context.run(picture.place, each, None)
    for context, places in runs.values():
        context.run(places.__exit__, None, None, None)
    assert mounted == [{"decay/curves": (decay.curves, None)}, {"decay/pairs": (decay.pairs, None)}]
