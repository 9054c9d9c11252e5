"""The pictures of the Kernels page, from known errors and from an invented measurement."""

import numpy as np

from rope_viz.kernels import error_by_position
from rope_viz.kernels.card_files import read_cards
from rope_viz.models.catalog import model_specs
from rope_viz.pages.kernels import card_figures, words
from rope_viz.pages.kernels import figures as kernels
from tests.figures.reports import make_report, make_way

LLAMA = model_specs("llama-3.1-8b")[""]


def test_curves_show_errors_up_to_ten_million():
    traces = {trace.name: trace for trace in kernels.errors(LLAMA).data}
    inv_freq = LLAMA.inv_freq(LLAMA.target)
    for method in kernels.SHOWN:
        trace = traces[kernels.TEXTS(f"methods.{method}")]
        x, y = trace.x, trace.y
        assert (x[0], x[-1]) == (1, 10_000_000)
        assert y[-1] >= error_by_position(inv_freq, np.array([10_000_000]), method)[0]
    assert traces["64-bit phase"].y.max() < 1.5e-7
    assert traces["float32 angle"].y[-1] > 0.1
    assert traces["bf16 position"].y[traces["bf16 position"].x <= 256].max() < 1e-4
    assert traces["bf16 position"].y[traces["bf16 position"].x > 600].min() > 0.5


def test_every_measured_kernel_has_a_bar_relative_to_a_copy():
    fig = kernels.speeds(make_report())
    assert list(fig.data[0].y) == ["eager rotate_half", "ours, out=", "copy"]
    np.testing.assert_allclose(fig.data[0].x, [1.25, 10.0, 20.0])
    np.testing.assert_allclose(fig.data[1].x, [1.25, 10.0, 20.0])
    assert fig.layout.annotations[1].text == "ours, out=: 50% of copy, error 1·10⁻⁷"
    assert fig.layout.shapes[0].x0 == 20


def test_a_measurement_in_which_only_the_copy_ran_is_still_shown():
    copy = make_report()
    copy.ways = {
        name: item if name == "copy" else make_way(name, None, note="broken") for name, item in copy.ways.items()
    }
    assert kernels.speeds(copy).data[0].y == ("copy",)
    assert len(kernels.ways_table(copy)["way"]) == 4
    assert len(kernels.agreement_table(copy)["pairing"]) == 1


def test_card_has_a_mark_for_every_way_that_ran_and_its_error():
    card = next(iter(read_cards().values()))
    fig = card_figures.shares(card)
    marks = {trace.name: [x for x in trace.x if x is not None] for trace in fig.data}
    ours = [card_figures.find_time(case, "rope_viz").share_of_copy for case in card.cases]
    assert marks["rope_viz"] == ours
    assert len(marks["FLA"]) == sum("FLA" in case.ways for case in card.cases) < len(card.cases)
    texts = [note.text for note in fig.layout.annotations]
    assert "● rope_viz, error 1.64·10⁻³" in texts
    assert "one head of 64, interleaved: 96%" in texts
    assert "Liger, in place" in " ".join(texts)
    assert len(texts) == len(marks) + len(card.cases)
    table = card_figures.shares_table(card)
    assert len(table["case"]) == len(card.cases)
    assert np.isnan(table["Liger, in place (%)"][1])
    assert "73d2ba41" in words.describe_card(card)
    assert "FlashInfer" in words.list_missing(card)
    first = read_cards()["nvidia_h200_2026_11_26"]
    assert "rope_viz, table (waited)" in {trace.name for trace in card_figures.shares(first).data}
    assert "rope_viz, table" in marks
    assert "wait for the host" in words.describe_card(first)
    assert "wait for the host" not in words.describe_card(card)
