"""What one address or one uploaded file may cost: libraries, memory, processor time."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_fresh(script):
    """Return what a script prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def test_address_with_torch_is_drawn_without_torch():
    script = """
import sys
from rope_viz.pictures import decay, registry
drawn = [decay.curves(registry.read_request(decay.PAGE, {"decay.backend": name})) for name in ("torch-cpu", "numpy")]
print("torch" in sys.modules, *("NumPy" in each.sentence for each in drawn), drawn[0].fig == drawn[1].fig)
"""
    assert run_fresh(script) == ["False", "True", "False", "True"]
