"""What figures share: the style, compared curves, tables, clocks, and files. A page has its own figures.

In a notebook: `from rope_viz import figures`, then `figures.method_curves.ratios(...)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

__all__ = sorted(module.name for module in pkgutil.iter_modules(__path__))
# Names from before 0.3, which notebooks may still use.
RENAMED = {
    "dials": "clocks",
    "grids": "heatmap_grid",
    "looks": "line_styles",
    "numbers": "cell_text",
    "sheet": "table_figure",
}


def __getattr__(name: str) -> ModuleType:
    name = RENAMED.get(name, name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
