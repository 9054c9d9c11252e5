"""The list of pages: the only place that knows them all."""

from pathlib import Path

from rope_viz.ui import frame

frame.run(
    Path(__file__).parent,
    {
        "home": "Home",
        "frequencies": "Frequencies",
        "scaling": "Scaling",
        "decay": "Decay",
        "runtimes": "Runtimes",
    },
)
