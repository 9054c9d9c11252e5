"""The pictures of the Recall page match the answers of the demo models and load in parts."""

import dataclasses

import numpy as np
import pytest

from rope_viz.pictures import recall, registry
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.recall import answered

PAGE = registry.page("recall")
YARN = {"model": "rope-viz-reader", "method": "yarn", "factor": "4", "target": "1024"}


def now(**more):
    return registry.read_request(PAGE, YARN | {key.replace("_", "."): text for key, text in more.items()})


def test_each_part_adds_a_length():
    first, second = (recall.lengths(now(part=part)) for part in ("0", "1"))
    ends = [float(max(np.max(trace.x) for trace in drawn.fig.data)) for drawn in (first, second)]
    assert ends == [1024.0, 2048.0]
    assert "part 1 of 2" in first.sentence
    assert "part" not in second.sentence
    picture, longest = PAGE.pictures["lengths"], now(recall_length="16384")
    assert [picture.parts(each) for each in (now(), longest)] == [2, 7]
    keys = [registry.key(dataclasses.replace(longest, part=part), picture) for part in (0, 6, 7, 99)]
    assert keys[0] != keys[1] == keys[2] == keys[3]


def test_main_line_is_the_share_found_by_the_demo_models():
    drawn = recall.lengths(now(part="1"))
    line = next(trace for trace in drawn.fig.data if trace.name == "YaRN")
    spec = checkpoints.scaled(recall.TRAINED, "yarn", 1024)
    readers = [checkpoints.reader(name) for name in checkpoints.SEEDS]
    assert readers[0].spec == recall.TRAINED
    wanted = recall.asked(readers, spec, 512, sequences=4).share
    assert float(np.array(line.y)[list(line.x).index(512)]) == pytest.approx(wanted)
    assert "finds **100 %** of the facts with YaRN" in drawn.sentence


def test_switching_off_high_frequency_pairs_costs_recall():
    drawn = recall.switched(now(recall_band="fast"))
    as_it_is, switched = (trace for trace in drawn.fig.data if trace.name in ("as it is", "switched"))
    at = list(as_it_is.x).index(256)
    assert as_it_is.y[at] > 0.9
    assert switched.y[at] < 0.3
    assert drawn.sentence.startswith("Pairs 0 to 3 standing still: that takes recall from")
    assert "Choose pairs" in recall.switched(now()).sentence


def test_zoomed_range_is_switched_completely():
    drawn = recall.carry(now(view="-0.4,3.4"))
    assert "Pairs 0 to 3 standing still" in drawn.sentence
    assert "Pairs" not in recall.carry(now()).sentence


def test_lists_for_another_number_of_pairs_are_refused():
    said = registry.read_request(PAGE, {"model": "phi-3.5-mini"})
    assert "the reader has 16 pairs" in recall.misfit(said)


def test_steps_to_recover_match_the_measured_training():
    drawn = recall.recover(now(recall_tuned="linear"))
    rows = [row for row in checkpoints.measured()["recover"] if row["method"] == "linear" and row["at"] == "target"]
    line = next(trace for trace in drawn.fig.data if trace.name == "Linear")
    assert list(line.x) == [row["step"] for row in rows]
    np.testing.assert_allclose(line.y, [row["recall"] for row in rows])


def test_moving_knob_reuses_known_lines_and_samples_the_rest():
    def drawn(**more):
        before = answered.cache_info().misses
        traces = recall.lengths(now(recall_length="1024", **more)).fig.data
        lines = {trace.name: list(trace.y) for trace in traces if trace.name and not trace.name.startswith("YaRN")}
        return lines, answered.cache_info().misses - before

    rest, _ = drawn()
    lines, asked = drawn(knob="factor", value="4.125", coarse="1")
    assert lines == rest
    assert 0 < asked <= 5  # 64 to 1,024 tokens
    lines, asked = drawn(knob="base", value="12345", coarse="1")
    assert lines.keys() == rest.keys()
    assert 0 < asked <= 5 * 4, "the three beside it as well"
