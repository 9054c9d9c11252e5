"""Moving pictures in a notebook: the widgets of five pictures, and a function that shows any picture.

    from rope_viz.widgets import Clocks

    clocks = Clocks(rope_viz.model_specs("qwen3-8b")[""])
    clocks.spec  # follows the sliders below the picture; an assigned one moves them

Needs `pip install 'rope-viz[widget]'`. What is named here is loaded when it is first asked for, because the module
`rope-viz.js` and saved pages need no package of notebooks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rope_viz.texts import Texts

if TYPE_CHECKING:
    from rope_viz.widgets.notebook import ClocksWidget as Clocks
    from rope_viz.widgets.notebook import DecayWidget as Decay
    from rope_viz.widgets.notebook import FrequenciesWidget as Frequencies
    from rope_viz.widgets.notebook import HandsWidget as Hands
    from rope_viz.widgets.notebook import ScalingWidget as Scaling
    from rope_viz.widgets.notebook import show as show

__all__ = ["Clocks", "Decay", "Frequencies", "Hands", "Scaling", "show"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.notebook"), name if name == "show" else f"{name}Widget")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rope_viz"):
            raise
        raise ImportError(Texts("widget")("needs", name=error.name)) from None


def __dir__() -> list[str]:
    return [*globals(), *__all__]
