"""Base class of the drop-in modules: frequencies that are not rounded when a model is cast."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor


class Float32Buffers(torch.nn.Module):
    """A module whose buffers stay float32 when the model is cast, and are recomputed when it leaves the meta device.

    Angles from a bfloat16 inv_freq are 1.8 radians off at position 4,095.
    """

    def make_buffers(self, device: torch.device | str | None) -> dict[str, Tensor]:
        raise NotImplementedError

    def read_float32(self, name: str) -> Tensor:
        """Return the buffer, recomputed if it was replaced by a rounded one."""
        buffer: Tensor = getattr(self, name)
        return (
            buffer.float() if buffer.dtype in (torch.float32, torch.float64) else self.make_buffers(buffer.device)[name]
        )

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = {name: buffer for name, buffer in self.named_buffers(recurse=False)}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = getattr(self, name)
            if old.is_meta and not new.is_meta:
                setattr(self, name, self.make_buffers(new.device)[name])
            elif old.dtype != new.dtype:
                setattr(self, name, old.to(new.device))
        return self
