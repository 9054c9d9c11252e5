"""RoPE Viz: what rotary position embedding does, computed exactly.

    from rope_viz import RopeSpec, from_config

    RopeSpec(head_dim=128, base=1e6).inv_freq()  # radians per position, float64, (64,)

What is named here is loaded when it is first asked for: `import rope_viz` alone loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rope_viz.advice.estimate_memory import memory as memory
    from rope_viz.advice.export import export as export
    from rope_viz.advice.extension_plan import plan as plan
    from rope_viz.advice.lint import check as check
    from rope_viz.advice.lint import repair as repair
    from rope_viz.embedding.scaling import METHODS as METHODS
    from rope_viz.embedding.spec import RopeSpec as RopeSpec
    from rope_viz.embedding.spec import Scaling as Scaling
    from rope_viz.embedding.spectrum import bands as bands
    from rope_viz.embedding.spectrum import wavelength as wavelength
    from rope_viz.models.catalog import catalog as catalog
    from rope_viz.models.catalog import model_specs as model_specs
    from rope_viz.models.model_config import from_config as from_config
    from rope_viz.models.rope_config import to_config as to_config
    from rope_viz.runtimes import emulate as emulate
    from rope_viz.tiny_lm.capture import capture as capture

__version__ = "0.2.0"

_HOME = {
    "RopeSpec": "embedding.spec",
    "Scaling": "embedding.spec",
    "METHODS": "embedding.scaling",
    "bands": "embedding.spectrum",
    "wavelength": "embedding.spectrum",
    "from_config": "models.model_config",
    "to_config": "models.rope_config",
    "catalog": "models.catalog",
    "model_specs": "models.catalog",
    "emulate": "runtimes",
    "check": "advice.lint",
    "repair": "advice.lint",
    "export": "advice.export",
    "plan": "advice.extension_plan",
    "memory": "advice.estimate_memory",
    "capture": "tiny_lm.capture",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
