"""The pictures of the Kernels page, from known errors and from an invented measurement."""

import numpy as np

from rope_viz.figures import kernels
from rope_viz.figures.words import kernels as words_kernels
from rope_viz.kernels import error_by_position
from rope_viz.kernels.measurement_process import Report
from rope_viz.models.catalog import model_specs

LLAMA = model_specs("llama-3.1-8b")[""]


def way(name, median, *, best=None, error=1e-7, note=""):
    timed = {"median_s": median, "best_s": best or median, "bytes_per_second": 1e9 / median if median else None}
    fraction = 0.05 / median if median else None
    return timed | {"name": name, "fraction_of_copy": fraction, "error": error, "note": note, "rounds": 15}


def report(*more, gpu=False):
    ways = [way("copy", 0.05, error=None), way("ours, out=", 0.1), way("eager rotate_half", 0.8, error=1e-3)]
    ways += [way("FLA", None, error=None, note="not installed"), *more]
    machine = {"device": "Z80", "gpu": gpu, "gpu_found": gpu, "threads": 2, "torch": "2.13.0", "bytes": 10**9}
    load = kernels.workload("half", "float32", "1024", "auto")
    rows = [{"pairing": "half", "dtype": "float32", "backend": "CPU", "difference": 2e-7, "half_step": 2.4e-7}]
    return Report(load, machine, rows, {item["name"]: item for item in ways})


def test_curves_show_errors_up_to_ten_million():
    traces = {trace.name: trace for trace in kernels.errors(LLAMA).data}
    inv_freq = LLAMA.inv_freq(LLAMA.target)
    for method, (label, *_) in kernels.SHOWN.items():
        x, y = traces[label].x, traces[label].y
        assert (x[0], x[-1]) == (1, 10_000_000)
        assert y[-1] >= error_by_position(inv_freq, np.array([10_000_000]), method)[0]
    assert traces["64-bit phase"].y.max() < 1.5e-7
    assert traces["float32 angle"].y[-1] > 0.1
    assert traces["bf16 position"].y[traces["bf16 position"].x <= 256].max() < 1e-4
    assert traces["bf16 position"].y[traces["bf16 position"].x > 600].min() > 0.5


def test_sentence_accounts_for_powers_of_two():
    # 131072 itself is a bf16 number, so a single position would show no error there.
    assert "bf16 position by 2." in words_kernels.errors(LLAMA)


def test_every_measured_kernel_has_a_bar_relative_to_a_copy():
    fig = kernels.speeds(report())
    assert list(fig.data[0].y) == ["eager rotate_half", "ours, out=", "copy"]
    np.testing.assert_allclose(fig.data[0].x, [1.25, 10.0, 20.0])
    np.testing.assert_allclose(fig.data[1].x, [1.25, 10.0, 20.0])
    assert fig.layout.annotations[1].text == "ours, out=: 50% of copy, error 1·10⁻⁷"
    assert fig.layout.shapes[0].x0 == 20


def test_sentence_names_throughput_device_and_what_did_not_run():
    text = words_kernels.measured(report())
    assert "**10 GB/s, 50% of a copy**, 8 times as fast as eager rotate_half" in text
    assert "No GPU here, so this is the CPU: Z80, 2 threads" in text
    assert "busy" not in text
    assert words_kernels.left_out(report()) == "Did not run: FLA (not installed)."
    assert "the GPU (Z80)" in words_kernels.measured(report(gpu=True))


def test_busy_machine_is_reported_when_the_best_round_is_faster():
    text = words_kernels.measured(report(way("ours, out=", 0.1, best=0.06)))
    assert "**The machine was busy" in text
    assert "By its best round ours moves **16.67 GB/s, 83% of a copy**, 13 times as fast" in text


def test_a_measurement_in_which_only_the_copy_ran_is_still_shown():
    copy = report()
    copy.ways = {name: item if name == "copy" else way(name, None, note="broken") for name, item in copy.ways.items()}
    assert kernels.speeds(copy).data[0].y == ("copy",)
    assert words_kernels.measured(copy) == words_kernels.machine(copy)
    assert len(kernels.ways_table(copy)["way"]) == 4
    assert len(kernels.agreement_table(copy)["pairing"]) == 1
