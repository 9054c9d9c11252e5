"""What one address or one uploaded file may cost: libraries, memory, processor time."""

import subprocess
import sys
from pathlib import Path

import pytest

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


LARGEST = """
import resource
from rope_viz.figures.files import Style
from rope_viz.pictures import export, registry
picture = registry.picture(*"{address}".split("/"))
now = picture.finished(registry.read_request(registry.page(picture.page), {{}}))
export.render(picture, now, "{form}", Style(width="300px"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
drawn = export.render(picture, now, "{form}", Style.read({style}))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, len(drawn))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize(
    ("address", "form", "style"),
    [
        ("frequencies/heatmap", "png", {"width": "4800px", "height": "4800px", "dpi": "140"}),
        ("frequencies/heatmap", "png", {"width": "4800px", "height": "4800px"}),
        ("frequencies/heatmap", "svg", {"width": "4800px", "height": "4800px"}),
        ("heads/across", "pdf", {"width": "50in"}),
    ],
)
def test_largest_heatmap_is_drawn_in_400_mb(address, form, style):
    megabytes, size = map(int, run_fresh(LARGEST.format(address=address, form=form, style=style)))
    assert size > 10_000
    assert megabytes < 400
