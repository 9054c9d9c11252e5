"""Sessions and runs have separate data, even if one thread serves several."""

import contextvars

from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.pages import decay
from rope_viz.ui import state
from rope_viz.ui.components import picture
from rope_viz.ui.session import Chosen, session


def test_sessions_in_one_thread_have_separate_requests(enter_session):
    models = ("llama-2-7b", "qwen3-8b")
    sessions, choices = {}, {}
    for model in models:
        sessions[model] = enter_session()
        layer = spec_url.main_layer_of(model)
        choices[model] = session().choice = Chosen(Subject(spec_url.model_spec(model, layer), model, layer))
    found = []
    for model in (*models, *models):
        enter_session(sessions[model])
        found.append(state.picture_request("decay"))
    assert [request.model for request in found] == [*models, *models]
    assert found[0] is found[2]
    state.invalidate()
    assert state.picture_request("decay") is found[3], "nothing has changed"
    session().choice = choices["llama-2-7b"]
    state.invalidate()
    assert state.picture_request("decay").model == "llama-2-7b"


def test_runs_in_one_thread_have_separate_picture_places(monkeypatch):
    mounted = []
    monkeypatch.setattr(picture, "_mount", mounted.append)
    runs = {each: (contextvars.copy_context(), picture.places()) for each in (decay.curves, decay.pairs)}
    for context, places in runs.values():
        context.run(places.__enter__)
    for each, (context, _) in runs.items():
        context.run(picture.place, each, None)
    for context, places in runs.values():
        context.run(places.__exit__, None, None, None)
    assert mounted == [{"decay/curves": (decay.curves, None)}, {"decay/pairs": (decay.pairs, None)}]
