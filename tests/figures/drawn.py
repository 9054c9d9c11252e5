"""Every figure of the package, drawn once for the tests: `FIGURES` have two axes with titles, `OTHERS` may not.

A figure is drawn when a test first looks at it: every worker reads the names, and few look at all of them.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np

from rope_viz.advice.plan import runtime_matrix
from rope_viz.embedding.scaling import METHODS
from rope_viz.figures import clocks, hands, table_figure, wavelengths
from rope_viz.figures.compared import alternatives, choices, compared
from rope_viz.kernels.card_files import read_cards
from rope_viz.kernels.measurement_process import MeasurementReport
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.spec_url import Subject
from rope_viz.models.variant import make_variant, read_variant
from rope_viz.pages.attention import figures as attention
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.decay import per_distance
from rope_viz.pages.frequencies import figures as frequencies
from rope_viz.pages.kernels import card_figures
from rope_viz.pages.kernels import figures as kernels
from rope_viz.pages.learn import scenes
from rope_viz.pages.model.runtimes import figures as runtimes
from rope_viz.pages.precision import figures as precision
from rope_viz.pages.rotation import figures as rotation
from rope_viz.pages.scaling import figures as scaling
from rope_viz.studies.attention import DEFAULT_SENTENCE
from rope_viz.studies.conversion import conversion_mistakes
from rope_viz.studies.precision import ROUNDINGS

LLAMA = model_specs("llama-3.1-8b")[""]
QWEN = model_specs("qwen3-8b-yarn")[""]
PARTS = (np.full(64, 1 / 64), np.zeros(64), 0.0)


def every_figure():
    curves = compared(QWEN, alternatives(QWEN, [name for name in choices(QWEN) if METHODS[name].extends]))
    where = decay.Range.from_length(4096, None, log=False)
    yield "wavelengths", lambda: wavelengths.wavelengths(LLAMA, pin=3)
    for quantity in frequencies.QUANTITIES:
        yield quantity, lambda quantity=quantity: frequencies.heatmap(LLAMA, stop=100_000, quantity=quantity)
    for view in scaling.VIEWS:
        yield view, lambda view=view: scaling.view(view, curves, pin=5)[0]
    for view in decay.VIEWS:
        yield view, lambda view=view: decay.main(view, decay.with_plain(curves), where, PARTS, "iid")[0]
    yield "contributions", lambda: per_distance.contributions(LLAMA, 1000, PARTS, pin=None)
    yield "map", lambda: per_distance.attention_map(LLAMA, 16, PARTS, True)
    yield "errors", lambda: kernels.errors(LLAMA)
    jane = {"sentence": DEFAULT_SENTENCE}
    for view in attention.VIEWS:
        yield f"attention {view}", lambda view=view: attention.maps(QWEN, **jane, offset=4096, causal=True, shown=view)
    yield "dots", lambda: attention.added_or_multiplied(QWEN, offset=4096)
    yield "lengths", lambda: attention.lengths(QWEN, **jane, offset=4096)
    yield "linear", lambda: attention.linear_weights(QWEN, **jane, spacing=4096, causal=False)
    yield "costs", lambda: attention.costs(QWEN, causal=True)
    for rounded in ROUNDINGS:
        yield rounded, lambda rounded=rounded: precision.heatmap(LLAMA, rounded, position=4096, pin=3)
    for view in precision.VIEWS:
        yield view, lambda view=view: precision.scores(LLAMA, precision.FIRST, shown=view, names=list(precision.OTHERS))
    kimi = catalog()["kimi-k2-instruct"]
    asked = runtime_matrix.RuntimeCase(ModelConfig.read(kimi.config), "", model_specs("kimi-k2-instruct")[""], "")
    yield "runtimes", lambda: runtimes.curves(runtime_matrix.compare_runtimes(asked), asked.spec, pin=3)[0]
    yield "bases", lambda: per_distance.bases(LLAMA, 8192, quick=True)


def other_figures():
    long = decay.Range.from_length(131_072, None, log=True)
    current = make_variant(Subject(LLAMA, "llama-3.1-8b"))
    pinned = {n: read_variant(f"model={name}", current) for n, name in ((1, "llama-2-7b"), (2, "qwen3-8b"))}
    lines = decay.with_plain(compared(LLAMA, [], pinned, current=current))
    yield "pinned wavelengths", lambda: wavelengths.wavelengths(LLAMA, curves=lines[:3])
    yield "pinned dials", lambda: clocks.still(clocks.message(LLAMA, pin=None, variants=lines[1:3]))
    yield "long decay", lambda: decay.main("mean", lines, long, PARTS, "iid")[0]
    for part in rotation.PARTS:
        yield f"matrices {part}", lambda part=part: rotation.matrices(LLAMA, 1000, part=part)
    yield "permutation", lambda: rotation.permutation(LLAMA, 32, "interleaved", "half")
    found = conversion_mistakes(LLAMA, np.arange(rotation.DISTANCES), length=LLAMA.target)
    yield "mistakes", lambda: rotation.mistakes(found)
    yield (
        "table",
        lambda: table_figure.sheet({"runtime": ["vLLM", "llama.cpp"], "why": ["agrees", "reads β as 32 " * 12]}),
    )
    for scene, draw in scenes.STATIC.items():
        yield f"scene {scene}", lambda draw=draw: draw()[0]
    yield "speeds", lambda: kernels.speeds(measured())
    yield "cards", lambda: card_figures.shares(next(iter(read_cards().values())))
    yield "time", lambda: attention.costs(QWEN, causal=True, shown="time")
    yield "dials", lambda: clocks.draw_still(clocks.packed(LLAMA, mode="turn", plain=True), 1000, pin=5)
    yield "hands", lambda: hands.draw_static(hands.message(LLAMA, "Llama 3.1 8B"))
    yield "dials score", lambda: clocks.still(clocks.message(LLAMA, pin=None, mode="score"))


def measured():
    """A measurement made up."""
    names = {"copy": 0.05, "ours, out=": 0.1, "ours": 0.12, "torch.compile of eager rotate_half": 0.3, "eager": 0.8}
    ways = {
        name: {
            "name": name,
            "median_s": median,
            "best_s": 0.9 * median,
            "bytes_per_second": 1e9 / median,
            "fraction_of_copy": 0.05 / median,
            "error": None if name == "copy" else 1e-7,
            "note": "",
            "rounds": 15,
        }
        for name, median in names.items()
    }
    machine = {"device": "Z80", "gpu": False, "gpu_found": False, "threads": 2, "torch": "2.13.0", "bytes": 10**9}
    return MeasurementReport(kernels.workload("half", "float32", "1024", "auto"), machine, [], ways)


class Figures(Mapping):
    """{name: figure} of (name, what draws it)."""

    def __init__(self, named):
        self.makers = {name: cache(make) for name, make in named}

    def __getitem__(self, name):
        return self.makers[name]()

    def __iter__(self):
        return iter(self.makers)

    def __len__(self):
        return len(self.makers)


FIGURES = Figures(every_figure())
OTHERS = Figures(other_figures())
# The maps of all roundings are built alike.
ALIKE = set(ROUNDINGS) - {"bf16-inv-freq", "phase64"}
DRAWN = Figures((name, make) for name, make in (FIGURES.makers | OTHERS.makers).items() if name not in ALIKE)
