"""The pictures of rounding match the published numbers."""

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import model_specs
from rope_viz.pages.precision import figures as precision
from rope_viz.pages.precision import words
from rope_viz.studies.precision import PRACTICES, ROUNDINGS

pytestmark = pytest.mark.float32_products

LLAMA_2 = model_specs("llama-2-7b")[""]


def test_a_bf16_inv_freq_is_five_radians_off_at_4096():
    values = words.describe_errors(LLAMA_2, "bf16-inv-freq", 4096).values
    assert (values["pair"], values["position"], values["angle"]) == (1, 4096, pytest.approx(5.0, abs=0.05))
    trace = precision.heatmap(LLAMA_2, "bf16-inv-freq", position=4096).data[0]
    column = int(np.argmin(np.abs(trace.x - 4096)))
    assert trace.z[1, column] == pytest.approx(np.log10(5.0), abs=0.05)


def test_error_of_bf16_positions_shows_at_powers_of_two():
    values = words.describe_errors(LLAMA_2, "bf16-positions", 4096).values
    assert (values["first"], values["first_at"]) == (0, 257)


@pytest.mark.parametrize("where", ROUNDINGS)
def test_line_marks_where_the_error_passes_a_tenth_of_a_turn(where):
    heat, _, line = precision.heatmap(LLAMA_2, where, position=4096).data
    threshold = np.log10(0.2 * np.pi)
    grown = ROUNDINGS[where].stage == "angle"
    for pair, first in enumerate(np.asarray(line.x, dtype=float)):
        hot = heat.x[np.nan_to_num(heat.z[pair], nan=-np.inf) > threshold + 1e-6]
        assert hot.size == 0 or grown
        if np.isfinite(first):
            # A column is 8 % wide, and only 12 positions of it are tried.
            assert hot.size == 0 or hot[0] > 0.92 * first
        else:
            assert hot.size == 0
    assert np.isfinite(np.asarray(line.x, dtype=float)).any() == grown


def test_only_a_rounded_inv_freq_is_wrong_without_drifting():
    worst = {
        name: [off.max() for off in precision.score_curve(LLAMA_2, name)[1].values()]
        for name in ("bf16-inv-freq", "bf16-positions", "float32-angles", "bf16-table")
    }
    error, drift = worst.pop("bf16-inv-freq")
    assert error > 1e-4
    assert drift < 1e-13
    assert all(drift > 1e-3 for _, drift in worst.values())


def test_selected_rounding_is_drawn_once_and_on_top():
    names = [
        t.name for t in precision.scores(LLAMA_2, "bf16-table", shown="error", names=["bf16-table", "phase64"]).data
    ]
    assert names == ["64-bit phase", "bf16 table"]


def test_the_summary_has_a_row_for_every_rounding():
    rows = {row["rounded"]: row for row in precision.summary(LLAMA_2)}
    assert len(rows) == len(ROUNDINGS)
    assert rows["inv_freq in bf16"]["angle off by (rad)"] == pytest.approx(5.0, abs=0.06)
    assert rows["Angles in float32"]["pairs past 0.1 turn"] == 0


@pytest.mark.parametrize("where", ROUNDINGS)
def test_the_table_lists_every_implementation_once(where):
    lines = words.format_practices(where).splitlines()
    assert len(lines) == len(PRACTICES) + 2
    assert sum(line.startswith("| ●") for line in lines) == sum(where in each.roundings for each in PRACTICES)


def test_figures_work_at_extreme_settings():
    for spec in (RopeSpec(head_dim=4), RopeSpec(head_dim=512, base=100.0), RopeSpec(head_dim=64, base=1e9)):
        assert precision.heatmap(spec, "float32-angles", position=1).data[0].z.shape[0] == spec.pairs
