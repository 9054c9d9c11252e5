"""What one address or one uploaded file may cost: libraries, memory, processor time."""

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from rope_viz.own_files import blob_store
from rope_viz.own_files.outside import memory_of
from rope_viz.storage import byte_cache
from rope_viz.storage.limits import CONTENT_BYTES, CONTENT_OVERHEAD_BYTES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run_fresh(script):
    """Return what a script prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def test_address_with_torch_is_drawn_without_torch():
    script = """
import sys
from rope_viz.pages import decay
from rope_viz.picture.read_address import read_request
drawn = [decay.curves(read_request(decay.PAGE, {"decay.backend": name})) for name in ("torch-cpu", "numpy")]
print("torch" in sys.modules, *("NumPy" in each.sentence for each in drawn), drawn[0].fig == drawn[1].fig)
"""
    assert run_fresh(script) == ["False", "True", "False", "True"]


LARGEST = """
import resource
from rope_viz.figures.files import Style
from rope_viz.pages import registry
from rope_viz.picture import export, read_address
picture = registry.picture(*"{address}".split("/"))
now = picture.finished(read_address.read_request(registry.page(picture.page), {{}}))
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


def test_decoded_contents_count_towards_the_limit():
    store = blob_store.Store(most=8 << 20)
    names = [store.keep(blob_store.salt() + bytes([n])) for n in range(8)]
    for name in names:
        assert store.load(name, lambda content: np.zeros(1 << 20, dtype=np.uint8)).nbytes == 1 << 20
    assert 7 << 20 < store.size <= 8 << 20
    assert [store.salted(name) is not None for name in names] == [False] + [True] * 7


def test_value_larger_than_a_share_is_decoded_again():
    store, decoded = blob_store.Store(most=4 << 20), []
    name = store.keep(blob_store.salt())

    def decode(content):
        decoded.append(content)
        return np.zeros(2 << 20, dtype=np.uint8)

    assert store.load(name, decode).nbytes == store.load(name, decode).nbytes == 2 << 20
    assert len(decoded) == 2
    assert store.size < 1000 + CONTENT_OVERHEAD_BYTES


def test_visitor_holds_at_most_a_quarter_of_the_store():
    store = blob_store.Store(most=40_000)
    others = [store.keep(blob_store.salt() + bytes(3000), f"192.0.2.{n}") for n in range(4)]
    mine = [store.keep(blob_store.salt() + bytes(3000), "198.51.100.7") for _ in range(20)]
    assert all(store.salted(name) for name in others)
    assert [name for name in mine if store.salted(name)] == mine[-2:]


class CountedDict(OrderedDict):
    """A dict that counts the entries that are looked at."""

    looked = 0

    def __iter__(self):
        for key in super().__iter__():
            CountedDict.looked += 1
            yield key

    def items(self):
        return [(key, self[key]) for key in self]


def test_storing_a_content_does_not_look_through_the_others(monkeypatch):
    monkeypatch.setattr(byte_cache, "OrderedDict", CountedDict)
    store = blob_store.Store(most=4 << 20)
    for number in range(3000):
        store.keep(blob_store.salt(), f"192.0.2.{number % 3}")
    # Each is evicted once, and eviction looks at one entry.
    assert CountedDict.looked <= 2 * 3000


def test_small_contents_count_with_their_place():
    store = blob_store.Store(most=4 << 20)
    names = [store.keep(blob_store.salt(), "198.51.100.7") for _ in range(2000)]
    assert sum(store.salted(name) is not None for name in names) <= (1 << 20) // CONTENT_OVERHEAD_BYTES
    assert store.size <= 1 << 20


def test_largest_content_is_stored_by_one_visitor():
    store = blob_store.Store()
    name = store.keep(bytes(CONTENT_BYTES), "198.51.100.7")
    assert len(store.salted(name)) == CONTENT_BYTES
    store.keep(blob_store.salt() + b"x", "198.51.100.7")
    assert store.salted(name) is None, "it is above the share"


@pytest.mark.parametrize("size", [0, 1, 15])
def test_content_without_its_salt_is_refused_with_its_size(size):
    with pytest.raises(ValueError, match=f"16 random bytes, got {size} bytes"):
        blob_store.Store().keep(bytes(size))


def test_forgotten_contents_count_no_more():
    store = blob_store.Store()
    names = [store.keep(blob_store.salt() + bytes(1000), "198.51.100.7") for _ in range(3)]
    store.forget([*names[:2], "unknown"])
    assert [store.salted(name) is not None for name in names] == [False, False, True]
    store.forget(names)
    assert store.size == 0


def test_memory_counts_what_numpy_and_python_allocate():
    array = np.zeros((1000, 1000))
    assert 8_000_000 <= memory_of({"view": array[:2], "again": array}) < 8_001_000
    text = ["x" * 1000] * 50 + ["y" * 1000]
    assert 2 * 1049 < memory_of(text) < 2 * 1049 + 51 * 8 + 200
    assert memory_of([[] for _ in range(10_000)]) > 10_000 * 56
