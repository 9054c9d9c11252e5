"""Two processes that hold half of a sequence each rotate it as one process rotates the whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch is built without gloo")
def test_two_ranks_gather_what_one_computes(tmp_path):
    script = Path(__file__).parent / "two_ranks.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, script, tmp_path / "meeting", str(rank)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in ranks]
    for rank, (process, output) in enumerate(zip(ranks, outputs, strict=True)):
        assert process.returncode == 0, output
        assert f"rank {rank} agrees" in output
