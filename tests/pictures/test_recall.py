"""The pictures of the Recall page match the answers of the demo models and load in parts."""

import dataclasses

import numpy as np
import pytest

from rope_viz.embedding.scaling import Proportional
from rope_viz.pages import recall, registry
from rope_viz.pages.recall import choices
from rope_viz.picture import read_address
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.recall import answered

pytestmark = pytest.mark.float32_products

PAGE = registry.page("recall")
YARN = {"model": "rope-viz-reader", "method": "yarn", "factor": "4", "target": "1024"}


def picture_request(**more):
    return read_address.read_request(PAGE, YARN | {key.replace("_", "."): text for key, text in more.items()})


@pytest.mark.parametrize(("target", "longest", "length"), [(300, 2048, 300), (1536, 3072, 1536), (8192, 4096, 2048)])
def test_default_lengths_follow_the_target(target, longest, length):
    request = picture_request(target=str(target))
    assert choices.default_longest(request) == longest
    assert choices.default_length(request) == length


def test_each_part_adds_a_length():
    first, second = (recall.lengths(picture_request(part=part)) for part in ("0", "1"))
    ends = [float(max(np.max(trace.x) for trace in drawn.fig.data)) for drawn in (first, second)]
    assert ends == [1024.0, 2048.0]
    assert (first.sentence.values["part"], first.sentence.values["parts"]) == (1, 2)
    assert first.sentence.values["evaluated"] == 1024
    assert "progress" not in second.sentence.entries
    picture, longest = PAGE.pictures["lengths"], picture_request(recall_length="16384")
    assert [picture.parts(each) for each in (picture_request(), longest)] == [2, 7]
    keys = [picture.cache_key(dataclasses.replace(longest, part=part)) for part in (0, 6, 7, 99)]
    assert keys[0] != keys[1] == keys[2] == keys[3]


def test_the_main_line_is_the_share_that_tiny_lm_finds():
    drawn = recall.lengths(picture_request(part="1"))
    line = next(trace for trace in drawn.fig.data if trace.name == "YaRN")
    spec = checkpoints.scaled(recall.TRAINED, "yarn", 1024)
    models = [checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS]
    assert models[0].spec == recall.TRAINED
    wanted = recall.evaluate(models, spec, 512, sequences=4).share
    assert float(np.array(line.y)[list(line.x).index(512)]) == pytest.approx(wanted)
    values = drawn.sentence.values
    at_target = recall.evaluate(models, spec, 1024, sequences=2).share
    assert (values["length"], values["method"], values["times"]) == (1024, "YaRN", 4.0)
    assert values["share"] == pytest.approx(at_target)
    assert values["plain"] == pytest.approx(recall.evaluate(models, recall.TRAINED, 1024, sequences=2).share)


def test_switching_off_high_frequency_pairs_costs_recall():
    drawn = recall.switched(picture_request(recall_band="fast"))
    as_it_is, switched = (trace for trace in drawn.fig.data if trace.name in ("as it is", "switched"))
    at = list(as_it_is.x).index(256)
    assert as_it_is.y[at] > 0.9
    assert switched.y[at] < 0.3
    values = drawn.sentence.values
    assert (values["first"], values["last"]) == (0, 3)
    assert (values["before"], values["after"]) == pytest.approx((as_it_is.y[at], switched.y[at]))
    assert drawn.sentence.entries == ("switched.changes", "switched.several", "switched.still")
    assert recall.switched(picture_request()).sentence.entries == ("switched.choose",)


def test_all_pairs_at_zero_frequency_is_a_model_without_rope():
    drawn = recall.switched(read_address.read_request(PAGE, {"model": "rope-viz-reader", "recall.band": "all"}))
    (switched,) = (trace for trace in drawn.fig.data if trace.name == "switched")
    assert drawn.sentence.entries[-1] == "switched.dropped"
    # p-RoPE with the share 0 rotates no pair either.
    none = dataclasses.replace(recall.TRAINED, scaling=Proportional(share=0.0))
    found = recall.evaluate(recall.load_models()[:3], none, 256, sequences=2)
    assert switched.y[list(switched.x).index(256)] == pytest.approx(found.share)
    plain = recall.switched(picture_request(recall_band="all", recall_how="plain"))
    assert "switched.dropped" not in plain.sentence.entries


def test_zoomed_range_is_switched_completely():
    drawn = recall.carry(picture_request(view="-0.4,3.4"))
    assert (drawn.sentence.values["first"], drawn.sentence.values["last"]) == (0, 3)
    assert "first" not in recall.carry(picture_request()).sentence.values


def test_lists_for_another_number_of_pairs_are_refused():
    request = read_address.read_request(PAGE, {"model": "phi-3.5-mini"})
    assert "tiny_lm has 16 pairs" in recall.explain_misfit(request)


def test_steps_to_recover_match_the_measured_training():
    drawn = recall.recover(picture_request(recall_tuned="linear"))
    rows = [row for row in checkpoints.measured()["recover"] if row["method"] == "linear" and row["at"] == "target"]
    line = next(trace for trace in drawn.fig.data if trace.name == "Linear")
    assert list(line.x) == [row["step"] for row in rows]
    np.testing.assert_allclose(line.y, [row["recall"] for row in rows])


def test_moving_knob_reuses_known_lines_and_samples_the_rest():
    def drawn(**more):
        before = answered.cache_info().misses
        traces = recall.lengths(picture_request(recall_length="1024", **more)).fig.data
        lines = {trace.name: list(trace.y) for trace in traces if trace.name and not trace.name.startswith("YaRN")}
        return lines, answered.cache_info().misses - before

    rest, _ = drawn()
    lines, asked = drawn(knob="factor", value="4.125", coarse="1")
    assert lines == rest
    assert 0 < asked <= 5  # 64 to 1,024 tokens
    lines, asked = drawn(knob="base", value="12345", coarse="1")
    assert lines.keys() == rest.keys()
    assert 0 < asked <= 5 * 4, "the three other methods as well"


def test_an_evaluation_shows_no_trained_length():
    drawn = recall.yours(picture_request())
    assert [shape.label.text for shape in drawn.fig.layout.shapes] == [None]
    assert drawn.sentence.values["answers"] > 0
