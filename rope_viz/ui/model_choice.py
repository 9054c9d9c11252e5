"""The chosen model and spec as a value, and its query parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url

LENGTHS = {key: name for key, name in spec_url.SIZES.items() if name in ("context", "target")}
"""{address key: field} of the lengths that pages share with the sidebar."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The current model, layer type, spec and pinned pair, and the problems of the last link or control.

    `typed` are the lengths of the spec ("context", "target") that the user has set, even if to the model's own value.
    """

    model: str
    layer: str
    spec: RopeSpec
    pin: int | None = None
    problems: tuple[str, ...] = ()
    revision: int = 0
    typed: frozenset[str] = frozenset()

    @property
    def spec_json(self) -> dict[str, Any]:
        """Return the full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def write_address(now: Chosen) -> dict[str, str]:
    """Return the choice as query parameters."""
    ours = spec_url.write_query(now.spec, model=now.model, layer=now.layer)
    ours |= {key: str(getattr(now.spec, name)) for key, name in LENGTHS.items() if name in now.typed}
    return ours | ({"pin": str(now.pin)} if now.pin is not None else {})


def without_key(params: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the parameters without one key."""
    return {name: value for name, value in params.items() if name != key}


def read_pin(text: str, pairs: int) -> int | None:
    """Return the number of the pinned pair, None if the text is not the number of a pair."""
    return int(text) if text.isdecimal() and len(text) < 6 and int(text) < pairs else None
