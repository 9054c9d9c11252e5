"""The numbers in the sentences of the Kernels page, against mathematics and a measurement made up for it."""

import numpy as np
import pytest

from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.models.catalog import model_specs
from rope_viz.pages.kernels import words as kernels
from tests.figures.reports import make_report, make_way
from tests.figures.specs import to_bf16
from tests.figures.test_precision_sentences import every


def largest_difference(angles, exact):
    return max(float(np.abs(wave(angles) - wave(exact)).max()) for wave in (np.cos, np.sin))


@every
def test_errors_are_those_of_float32_angles_and_bf16_positions(spec):
    values = kernels.describe_errors(spec).values
    inv_freq, last = spec.inv_freq(spec.target), np.arange(spec.target - 31, spec.target + 1)
    exact = np.outer(last, inv_freq)
    single, rounded = (
        (places.astype(np.float32)[:, None] * inv_freq.astype(np.float32)).astype(np.float64)
        for places in (last, to_bf16(last))
    )
    # The last float32 rounding of cos and sin themselves is in the sentence's number, too.
    assert values["float32"] == pytest.approx(largest_difference(single, exact), abs=1.3e-7)
    assert values["bf16"] == pytest.approx(largest_difference(rounded, exact), abs=1.3e-7)
    assert values["ours"] <= 2e-7


def test_an_exact_bf16_position_does_not_hide_the_error():
    # 131072 itself is a bf16 number, so a single position would show no error there.
    assert kernels.describe_errors(model_specs("llama-3.1-8b")[""]).values["bf16"] > 1.9


def test_speed_compares_medians_with_a_copy_and_the_usual_way():
    sentence = kernels.describe_speed(make_report())
    values = sentence.values
    assert (values["rate"], values["of_copy"], values["times"]) == pytest.approx((10.0, 0.5, 8.0))
    assert values["usual"] == "eager rotate_half"
    assert (values["device"], values["threads"], values["tokens"], values["torch"]) == ("Z80", 2, 1024, "2.13.0")
    assert "speeds.no_gpu" in sentence.entries
    assert "speeds.busy" not in sentence.entries
    assert "speeds.gpu" in kernels.describe_speed(make_report(gpu=True)).entries


def test_speed_on_a_busy_machine_compares_best_rounds():
    sentence = kernels.describe_speed(make_report(make_way("ours, out=", 0.1, best=0.06)))
    assert {"speeds.busy", "speeds.best_rate"} <= set(sentence.entries)
    found = tuple(sentence.values[name] for name in ("rate", "of_copy", "times"))
    assert found == pytest.approx((1 / 0.06, 0.05 / 0.06, 0.8 / 0.06))


def test_ways_that_did_not_run_are_listed_with_reasons():
    assert kernels.list_left_out(make_report()).values == {"reasons": "FLA (not installed)"}
    assert kernels.list_left_out(MeasurementReport({})) == ""


def test_speed_without_our_kernel_describes_the_machine_only():
    copy = make_report()
    copy.ways = {"copy": copy.ways["copy"]}
    assert kernels.describe_speed(copy) == kernels.describe_workload(copy)
    assert kernels.describe_speed(MeasurementReport({})).entries == ("speeds.none",)
