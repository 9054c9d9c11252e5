"""The time line on My model marks every known release once, and joins only neighbours by a solid line."""

import dataclasses
import itertools

import pytest

from rope_viz.figures import theme
from rope_viz.models.model_config import ModelConfig
from rope_viz.pages.model import runtimes
from rope_viz.pages.model.runtimes import history
from rope_viz.picture import read_address
from rope_viz.runtimes import asked_engines
from rope_viz.runtimes.history import is_next
from rope_viz.runtimes.releases import RELEASES, format_version


def ask(model):
    return read_address.read_request(runtimes.PAGE, {"model": model})


@pytest.mark.parametrize("model", ["deepseek-v2", "yarn-llama-2-7b-128k", "qwen3-8b", "glm-4-9b-chat"])
def test_time_line_marks_every_known_release(model):
    fig = runtimes.releases(ask(model)).fig
    marks = [trace for trace in fig.data if trace.mode == "markers"]
    named = [text.partition(":")[0] for trace in marks for text in trace.hovertext]
    listed = sorted(name for name in named if ", asked about " not in name)
    names = [(RELEASES[name].name, release) for name in history.LANES for release in RELEASES[name].releases]
    assert listed == sorted(f"{name} {format_version(release)}" for name, release in names)
    for trace in marks:
        for text, fill in zip(trace.hovertext, trace.marker.color, strict=True):
            assert (fill == theme.BACKGROUND) == text.endswith("(by rule)")


def test_solid_lines_join_neighbours_only():
    fig = runtimes.releases(ask("qwen3-8b")).fig
    lanes = {name: [format_version(each) for each in RELEASES[name].releases] for name in history.LANES}
    order = {name: sorted(each, key=lambda each: tuple(map(int, each.split(".")))) for name, each in lanes.items()}
    neighbours = sum(is_next(name, *pair) for name, each in order.items() for pair in itertools.pairwise(each))
    pairs = sum(len(each) - 1 for each in order.values())
    drawn = {trace.line.dash: len(trace.x) // 3 for trace in fig.data if trace.mode == "lines"}
    assert drawn == {"solid": neighbours, "dot": pairs - neighbours}


def test_three_changes_of_the_catalog_are_in_the_table():
    rows = {}
    for model in ("yarn-llama-2-7b-128k", "deepseek-v2", "qwen3-8b"):
        rows[model] = [tuple(row.values()) for row in runtimes.spans(ask(model)).columns]
    (old,) = [row for row in rows["yarn-llama-2-7b-128k"] if row[:2] == ("transformers", "4.43.4")]
    assert old[2].startswith("×30.76 at pair 46, executed. yarn computes its range from max_position_embeddings")
    (softmax,) = [row for row in rows["deepseek-v2"] if row[:2] == ("transformers", "4.57.6, 5.0.0 to 5.14.1")]
    assert softmax[2].startswith("softmax ×0.6291, executed.")
    (refused,) = [row for row in rows["qwen3-8b"] if row[:2] == ("vLLM", "0.6.6")]
    assert refused[2].startswith("refuses, by rule. no qwen3 model")


def test_config_that_cannot_be_compared_has_no_time_line(monkeypatch):
    case = runtimes.config_in_question(ask("qwen3-8b"))
    broken = dataclasses.replace(case, config=ModelConfig.read({**case.clean, "rope_theta": -1.0}))
    assert history.trace(broken, None) == []
    monkeypatch.setattr(runtimes, "_histories", lambda subject, length: history.trace(broken, length))
    assert runtimes.untraced(ask("qwen3-8b")) == "The releases cannot be compared on this config."
    assert runtimes.line_height(ask("qwen3-8b")) < 40


def test_sentence_says_what_is_not_known():
    sentence = runtimes.releases(ask("qwen3-8b")).sentence
    assert "vLLM: refuses in 0.6.6, agrees since 0.8.5. " in sentence
    assert sentence.endswith("What releases that are not named compute is not known.")


@pytest.fixture
def answered(monkeypatch):
    """Answers of two releases of vLLM about YaRN of a Llama, between those with rules of their own."""
    about = ("llama", "yarn", False, "llama-yarn", "2026-11-27")
    rows = [
        asked_engines.AskedEngine("vllm", release, *about, verdict)
        for release, verdict in (("0.18.0", "something else"), ("0.32.0", "as intended"), ("0.8.5", "something else"))
    ]
    monkeypatch.setattr(asked_engines, "list_asked", lambda: tuple(rows))
    case = runtimes.config_in_question(ask("yarn-llama-2-7b-128k"))
    return history.trace(case, None)


def test_asked_engines_have_a_lane_of_their_own(answered):
    name = "vLLM, asked about llama-yarn"
    spans = [(list(span.releases), span.words, span.state) for span in history.list_lanes(answered)[name]]
    assert spans == [(["0.8.5", "0.18.0"], "something else", "differs"), (["0.32.0"], "as intended", "agrees")]
    executed = [(span.how, list(span.releases)) for span in history.list_lanes(answered)["vLLM"]]
    assert executed == [("executed", ["0.6.6", "0.8.5", "0.10.2", "0.33.0"])]
    edges = [
        edge for trace in history.draw(answered).data if trace.mode == "markers" for edge in trace.marker.line.color
    ]
    assert edges.count(theme.TEXT) == 3
    rows = [tuple(row.values()) for row in history.tabulate(answered)]
    assert ("vLLM", "0.32.0", "as intended, asked about a config of this type and scaling (llama-yarn).") in rows
