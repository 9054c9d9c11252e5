"""RoPE Viz: what rotary position embedding does, computed exactly.

    import rope_viz

    rope_viz.RopeSpec(head_dim=128, base=1e6).inv_freq()  # radians per position, float64, (64,)
    rope_viz.check("config.json")
    rope_viz.emulate("qwen3-8b", "vllm")

`from_config`, `check`, `repair`, `emulate`, `plan` and `memory` take a config as a dict, as a configuration of
transformers, or by name: a config.json, its folder, a GGUF file, a params.json, an id of the list (`rope-viz models`),
or an id in the local Hugging Face cache.

What is named here is loaded when it is first asked for: `import rope_viz` alone loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rope_viz.advice.lint import check as _check
    from rope_viz.advice.lint import repair as _repair
    from rope_viz.advice.memory.estimate_memory import memory as _memory
    from rope_viz.advice.plan.export import export as export
    from rope_viz.advice.plan.extension_plan import plan as _plan
    from rope_viz.advice.verify.assert_rope import assert_rope as assert_rope
    from rope_viz.embedding.scaling import METHODS as METHODS
    from rope_viz.embedding.spec import RopeSpec as RopeSpec
    from rope_viz.embedding.spec import Scaling as Scaling
    from rope_viz.embedding.spectrum import bands as bands
    from rope_viz.embedding.spectrum import wavelength as wavelength
    from rope_viz.models.catalog import catalog as catalog
    from rope_viz.models.catalog import model_specs as model_specs
    from rope_viz.models.identity.named_config import takes_names
    from rope_viz.models.model_config import from_config as _from_config
    from rope_viz.models.rope_config import to_config as to_config
    from rope_viz.real_models.capture import capture as capture
    from rope_viz.runtimes import emulate as _emulate

    check, repair, plan, memory = takes_names(_check), takes_names(_repair), takes_names(_plan), takes_names(_memory)
    from_config, emulate = takes_names(_from_config), takes_names(_emulate)

__version__ = "0.3.0.dev0"

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
    "export": "advice.plan.export",
    "plan": "advice.plan.extension_plan",
    "memory": "advice.memory.estimate_memory",
    "capture": "real_models.capture",
    "assert_rope": "advice.verify.assert_rope",
}
TAKES_NAMES = frozenset(("from_config", "emulate", "check", "repair", "plan", "memory"))
"""Functions whose first argument may also be the name of a config."""
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in TAKES_NAMES:
        value = importlib.import_module(f"{__name__}.models.identity.named_config").takes_names(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
