"""Checks of values on a GPU never wait for it: with a stand-in everywhere, and in CUDA's own debug mode on a GPU."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rope_viz.kernels import exact_table, flash_attn, rotate, rotate_qk  # noqa: E402

# What a scenario of ten calls may wait for: a new inv_freq, weights, or table whose values decide the way.
ALLOWED = {
    "packed, Transformer Engine": ["equal"],
    "inv_freq": ["cpu", "to"],
    "weights": ["to", "to", "to"],
    "transformers": ["equal", "equal"],
}
ROWS = "positions must be rows of the table, from 0 to 49, got "
# The GPU catches up with the wrong call, the third, before the fourth.
RAISED = {
    "a position outside the table": [[3, ROWS + "57"]],
    "a wrong start, plain": [[3, ROWS + "3 to 55"]],
    "wrong bounds": [[3, "cu_seqlens must end at the 9 tokens there are, got 10"]],
}


@pytest.fixture(scope="module")
def scenarios():
    script = Path(__file__).parent / "gpu_stand_in.py"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="pip install --no-deps triton==3.7.1")
def test_gpu_waits_for_new_frequencies_and_tables_only(scenarios):
    assert {name: found["waits"] for name, found in scenarios.items() if found["waits"]} == ALLOWED


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="pip install --no-deps triton==3.7.1")
def test_wrong_values_on_a_gpu_are_raised_by_a_later_call(scenarios):
    assert {name: found["raised"] for name, found in scenarios.items() if found["raised"]} == RAISED


def on_gpu(rows=50):
    table = [torch.as_tensor(part).float().cuda() for part in exact_table([1.0, 0.1, 0.01], np.arange(rows))]
    return torch.randn(2, 6, 4, 8, device="cuda"), table


@pytest.mark.gpu
def test_new_positions_do_not_wait():
    x, table = on_gpu()
    inv_freq = torch.tensor([1.0, 0.1, 0.01], device="cuda")

    def rotate_all():
        positions = torch.arange(6, device="cuda") + 1
        rotate_qk(x, x, positions, table=table, pairing="half")
        rotate(x, positions, inv_freq, pairing="half")
        bounds = torch.arange(3, device="cuda", dtype=torch.int32) * 3
        flash_attn.apply_rotary_emb(x[0], *table, cu_seqlens=bounds, max_seqlen=6)

    rotate_all()  # compiles, and waits for the new inv_freq
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(10):
            rotate_all()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [-1, 50, 2**40])
def test_position_outside_the_table_is_raised_later(wrong):
    x, table = on_gpu()
    positions = torch.tensor([0, 1, 2, 3, 4, wrong], device="cuda")
    nearest = rotate(x, positions.clamp(0, 49), table=table, pairing="half")
    y = rotate(x, positions, table=table, pairing="half")
    torch.cuda.synchronize()
    with pytest.raises(ValueError, match=f"from 0 to 49, got {wrong}"):
        rotate(x, positions.clamp(0, 49), table=table, pairing="half")
    assert torch.equal(y, nearest)
    rotate(x, positions.clamp(0, 49), table=table, pairing="half")


@pytest.mark.gpu
def test_wrong_bounds_are_raised_later():
    x, table = on_gpu()
    bounds = torch.tensor([0, 3, 7], device="cuda", dtype=torch.int32)
    # A fast GPU has the bounds on the host before the call itself ends, which then raises.
    with pytest.raises(ValueError, match="must end at the 6 tokens"):  # noqa: PT012
        flash_attn.apply_rotary_emb(x[0], *table, cu_seqlens=bounds, max_seqlen=6)
        torch.cuda.synchronize()
        flash_attn.apply_rotary_emb(x[0], *table, seqlen_offsets=1)
