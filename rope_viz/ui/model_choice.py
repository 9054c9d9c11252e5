"""The chosen model and spec as a value, and its query parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.variant import Variant

LENGTHS = {key: name for key, name in spec_url.SIZES.items() if name in ("context", "target")}
"""{address key: field} of the lengths that pages share with the sidebar."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The current model, layer type, spec and pinned pair, and the problems of the last link or control.

    `variants` are the pinned curves by number.
    `typed` are the lengths of the spec ("context", "target") that the user has set, even if to the model's own value.
    """

    model: str
    layer: str
    spec: RopeSpec
    pin: int | None = None
    problems: tuple[str, ...] = ()
    revision: int = 0
    typed: frozenset[str] = frozenset()
    variants: Mapping[int, Variant] = dataclasses.field(default_factory=dict)

    @property
    def spec_json(self) -> dict[str, Any]:
        """Return the full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def with_keys(params: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return only the parameters with these keys."""
    return {name: value for name, value in params.items() if name in keys}


def without_key(params: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the parameters without one key."""
    return {name: value for name, value in params.items() if name != key}
