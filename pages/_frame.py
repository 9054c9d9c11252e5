"""The list of pages: the only place that knows them all."""

from pathlib import Path

from rope_viz.ui import frame

frame.run(
    Path(__file__).parent,
    {
        "home": "Home",
        "rotation": "Rotation",
        "frequencies": "Frequencies",
        "scaling": "Scaling",
        "decay": "Decay",
        "runtimes": "Runtimes",
        "attention": "Attention",
        "precision": "Precision",
        "kernels": "Kernels",
    },
)
