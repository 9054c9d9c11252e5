"""The time line on My model marks every known release once, and joins only neighbours by a solid line."""

import itertools

import pytest

from rope_viz.figures import theme
from rope_viz.pages.model import runtimes
from rope_viz.pages.model.runtimes import history
from rope_viz.picture import read_address
from rope_viz.runtimes.history import is_next
from rope_viz.runtimes.releases import RELEASES, format_version


def ask(model):
    return read_address.read_request(runtimes.PAGE, {"model": model})


@pytest.mark.parametrize("model", ["deepseek-v2", "yarn-llama-2-7b-128k", "qwen3-8b", "glm-4-9b-chat"])
def test_time_line_marks_every_known_release(model):
    fig = runtimes.releases(ask(model)).fig
    marks = [trace for trace in fig.data if trace.mode == "markers"]
    listed = sorted(text.partition(":")[0] for trace in marks for text in trace.hovertext)
    names = [(RELEASES[name].name, release) for name in history.LANES for release in RELEASES[name].releases]
    assert listed == sorted(f"{name} {format_version(release)}" for name, release in names)
    for trace in marks:
        for text, fill in zip(trace.hovertext, trace.marker.color, strict=True):
            assert (fill == theme.BACKGROUND) == text.endswith("(by rule)")


def test_solid_lines_join_neighbours_only():
    fig = runtimes.releases(ask("qwen3-8b")).fig
    lanes = {name: [format_version(each) for each in RELEASES[name].releases] for name in history.LANES}
    order = {name: sorted(each, key=lambda each: tuple(map(int, each.split(".")))) for name, each in lanes.items()}
    neighbours = sum(is_next(*pair) for each in order.values() for pair in itertools.pairwise(each))
    pairs = sum(len(each) - 1 for each in order.values())
    drawn = {trace.line.dash: len(trace.x) // 3 for trace in fig.data if trace.mode == "lines"}
    assert drawn == {"solid": neighbours, "dot": pairs - neighbours}


def test_three_changes_of_the_catalog_are_in_the_table():
    rows = {}
    for model in ("yarn-llama-2-7b-128k", "deepseek-v2", "qwen3-8b"):
        rows[model] = [tuple(row.values()) for row in runtimes.spans(ask(model)).columns]
    (old,) = [row for row in rows["yarn-llama-2-7b-128k"] if row[:2] == ("transformers", "4.43.4")]
    assert old[2].startswith("×30.76 at pair 46, executed. yarn computes its range from max_position_embeddings")
    (softmax,) = [row for row in rows["deepseek-v2"] if row[:2] == ("transformers", "4.57.6")]
    assert softmax[2].startswith("softmax ×0.6291, executed.")
    (refused,) = [row for row in rows["qwen3-8b"] if row[:2] == ("vLLM", "0.6.6")]
    assert refused[2].startswith("refuses, by rule. no qwen3 model")


def test_sentence_says_what_is_not_known():
    sentence = runtimes.releases(ask("qwen3-8b")).sentence
    assert "vLLM: refuses in 0.6.6, agrees since 0.8.5. " in sentence
    assert sentence.endswith("What releases that are not named compute is not known.")
