"""What a config says, under whichever of its names: every reader raises `ValueError` naming the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.embedding.spec import MAX_HEAD_DIM, MAX_LENGTH, FloatArray, require_number, shorten

# The names under which classes and configuration files keep the same thing.
HEAD_DIM = ("head_dim", "attention_head_dim", "head_size", "dim_head")
HIDDEN = ("hidden_size", "embed_dim", "inner_dim", "dim", "model_dim", "hidden_dim")
HEADS = ("num_attention_heads", "num_heads", "n_heads")
BASE = ("rope_theta", "theta", "base", "freq_base", "temperature", "max_period", "rope_base")
AXES_DIM = (
    *("axes_dim", "axes_dims", "axes_dims_rope", "axes_dim_rope", "rope_axes_dim", "rope_axes_dims", "rope_dim"),
    *("rope_dim_list", "fhw_dim", "rope_dims"),
)
MAX_SIDE = 1 << 20
MAX_HEADS = 4096  # of a model whose heads are read one by one


def plainly(name: str) -> str:
    """Letters and digits alone, small."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


class Given:
    """A config, read key by key. `defaults` are the class' own values, asked for last."""

    def __init__(self, config: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        if not isinstance(config, Mapping):
            raise ValueError(f"a config must be an object, got {shorten(config)}")
        self.config, self.defaults = config, defaults or {}

    def raw(self, *names: str) -> Any:
        """The first of these keys that is there and not null; then the defaults likewise; else None."""
        for source in (self.config, self.defaults):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None

    def name(self, *names: str) -> str:
        """The first of these keys that is there, for an error message."""
        return next((name for name in names if self.config.get(name) is not None), names[0])

    def number(self, *names: str, default: float | None = None, **bounds: Any) -> float:
        """A finite number, or the default where none of the keys is there; without a default it must be."""
        value = self.raw(*names)
        value = default if value is None else value
        if value is None:
            raise ValueError(f"{names[0]} is missing: expected a number")
        require_number(value, self.name(*names), **bounds)
        return float(value)

    def corners(self, *names: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Two corners, [[top, left], [bottom, right]]."""
        corners = self.array(*names)
        if corners.shape != (2, 2):
            raise ValueError(
                f"{self.name(*names)} must be [[top, left], [bottom, right]], got {shorten(self.raw(*names))}"
            )
        (top, left), (bottom, right) = corners.tolist()
        return (top, left), (bottom, right)

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = MAX_LENGTH) -> int:
        """A whole number, or the default where none of the keys is there."""
        return int(self.number(*names, default=default, least=least, most=most, integer=True))

    def numbers(
        self, *names: str, default: Sequence[float] | None = None, count: int | None = None, **bounds: Any
    ) -> list[float]:
        """A list of numbers; one number stands for `count` equal ones."""
        value = self.raw(*names)
        value = default if value is None else value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and count:
            value = [value] * count
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{self.name(*names)} must be a list of numbers, got {shorten(value)}")
        if count is not None and len(value) != count:
            raise ValueError(f"{self.name(*names)} must have {count} numbers, got {shorten(list(value))}")
        for part in value:
            require_number(part, f"{self.name(*names)} entries", **bounds)
        return [float(part) for part in value]

    def wholes(
        self, *names: str, default: Sequence[int] | None = None, count: int | None = None, least: int = 1
    ) -> list[int]:
        """A list of whole numbers of at least `least`."""
        values = self.numbers(*names, default=default, count=count)
        for value in values:
            require_number(value, f"{self.name(*names)} entries", least=least, most=MAX_SIDE, integer=True)
        return [int(value) for value in values]

    def array(self, *names: str) -> FloatArray:
        """An array of numbers of any shape, nested lists in a config."""
        value = self.raw(*names)
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name(*names)} must be rows of numbers alike, got {shorten(value)}") from None
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{self.name(*names)} must be finite numbers")
        return array

    def part(self, *names: str) -> Given:
        """The object under one of these keys, empty where there is none."""
        value = self.raw(*names)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{self.name(*names)} must be an object, got {shorten(value)}")
        return Given(value or {})

    def flag(self, *names: str, default: bool = False) -> bool:
        """true or false."""
        value = self.raw(*names)
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{self.name(*names)} must be true or false, got {shorten(value)}")
        return default if value is None else value

    def choice(self, *names: str, options: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self.raw(*names)
        if value is not None and value not in options:
            raise ValueError(f"{self.name(*names)} must be one of {', '.join(options)}, got {shorten(value)}")
        return default if value is None else value

    def head_dim(self, default: int | None = None, *, width: str = "", derived: bool = False) -> int:
        """The size of a head: under a name of its own, else the width over the number of heads.

        `width` is the key of the width where a class has several; else the first of the usual ones. `derived` is a
        class that reads no name of its own where it knows a width.
        """
        names = (width,) if width and self.raw(width) is not None else HIDDEN
        known = derived and self.raw(*names) is not None and self.raw(*HEADS) is not None
        if self.raw(*HEAD_DIM) is not None and not known:
            return self.whole(*HEAD_DIM, least=2, most=MAX_HEAD_DIM)
        if self.raw(*names) is not None and self.raw(*HEADS) is not None:
            size = self.whole(*names) // self.whole(*HEADS)
            require_number(size, "the size of a head", least=2, most=MAX_HEAD_DIM)
            return size
        if default is None:
            raise ValueError("head_dim is missing: expected it, or hidden_size and num_attention_heads")
        return default

    def base(self, default: float) -> float:
        """The base of the ladder, from rope_parameters, from the top, or the class' own."""
        inner = self.part("rope_parameters", "rope_scaling")
        source = inner if inner.raw("rope_theta") is not None else self
        return source.number(*BASE, default=default, above=1.0, most=1e30)
