"""The measurement alternates between kernels, names those that cannot run, and finds the known errors."""

import math

import pytest

torch = pytest.importorskip("torch")

from rope_viz.kernels.measure import SPIN, Measurement, Workload, _time, agreement, measure  # noqa: E402

SMALL = {"tokens": 16, "heads": 2, "head_dim": 16}


def results_of(**changes):
    options = {name: changes.pop(name) for name in ("rounds", "only", "compiled", "peers") if name in changes}
    steps = list(measure(Workload(**(SMALL | changes)), **({"rounds": 2, "compiled": False} | options)))
    return steps, {name: result for name, _, result in steps}


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("k_heads", [0, 1])
def test_every_kernel_agrees_with_float64_and_runs_every_round(pairing, k_heads):
    _, results = results_of(pairing=pairing, k_heads=k_heads)
    ran = {name: result for name, result in results.items() if not result.note}
    assert {"copy", "ours, out=", "ours", "dense matrix"} < set(ran)
    for name, result in ran.items():
        assert len(result.seconds) == 2
        assert result.fraction_of_copy > 0
        assert name == "copy" or result.error < 5e-6


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize(
    "changes", [{"rotary_dim": 8}, {"backward": True}, {"rotary_dim": 8, "backward": True}], ids=str
)
def test_partial_rotation_and_gradients_are_measured(pairing, changes):
    _, results = results_of(pairing=pairing, k_heads=1, **changes)
    ran = {name: result for name, result in results.items() if not result.note}
    assert {"copy", "ours", "ours, float32 table", "dense matrix"} < set(ran)
    assert ("ours, out=" in ran) == ("backward" not in changes)
    assert all(result.error < 5e-6 and result.relative_error < 5e-6 for name, result in ran.items() if name != "copy")


def test_kernel_that_leaves_elements_unwritten_is_reported(monkeypatch):
    def write_first(x, *_, out=None, **__):
        out[:, :1] = x[:, :1]
        return out

    monkeypatch.setattr("rope_viz.kernels.measure.rotate", write_first)
    _, results = results_of(only=("ours, out=",))
    assert results["ours, out="].note == "leaves elements unwritten"
    assert not results["ours, out="].seconds


class FakeEvent:
    """An event of a GPU that takes 2 ms for every call."""

    def __init__(self, enable_timing):
        pass

    def record(self):
        pass

    def elapsed_time(self, other):
        return 2.0


def test_gpu_spins_while_the_host_launches(monkeypatch):
    spins = []
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "_sleep", spins.append, raising=False)
    result = Measurement("x", Workload(device="cuda"))
    _time(lambda: spins.append("called"), result)
    assert spins == [SPIN, "called"]
    assert result.seconds == [0.002]
    result.host_seconds[:] = [0.0035]
    _time(lambda: spins.append("called"), result)
    assert spins[2:] == [4 * SPIN, "called"]
    assert len(result.host_seconds) == 2


def test_progress_rises_to_one():
    steps, _ = results_of(peers=False)
    fractions = [fraction for _, fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_far_positions_are_right_with_exact_angles_only():
    _, results = results_of(start=10_000_000)
    assert results["ours, out="].error < 1e-6
    assert results["eager rotate_half"].error > 0.1


def test_baselines_that_cannot_run_name_the_reason():
    _, results = results_of()
    for name in ("flash-attention", "FLA", "Liger, in place"):
        assert results[name].note
        assert math.isnan(results[name].median)


def test_only_requested_kernels_run():
    _, results = results_of(only=("ours",))
    assert set(results) == {"copy", "ours"}


def test_failing_kernel_is_reported_and_the_others_run(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no compiler\nand a long story")

    monkeypatch.setattr("rope_viz.kernels.measure.eager_half", broken)
    _, results = results_of()
    assert "no compiler" in results["eager rotate_half"].note
    assert results["ours"].seconds


@pytest.mark.parametrize("start", [0, 10_000_000])
def test_pairings_and_backends_agree_within_rounding(start):
    rows = list(agreement(tokens=8, heads=2, head_dim=16, start=start))
    assert len({row[:3] for row in rows}) == len(rows) >= 8
    for _, dtype, _, difference, half_step in rows:
        assert difference <= half_step * (1.01 if dtype in ("float16", "bfloat16") else 8)


def test_each_byte_is_counted_once_in_and_once_out():
    workload = Workload(batch=4, tokens=8192, heads=32, k_heads=8, dtype="bfloat16")
    assert workload.bytes_moved == 671_088_640
    result = Measurement("x", workload, seconds=[1.0, 3.0, 2.0], copy_seconds=[1.0])
    assert (result.bytes_per_second, result.fraction_of_copy) == (671_088_640 / 2.0, 0.5)
