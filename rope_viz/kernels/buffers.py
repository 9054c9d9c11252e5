"""What the drop-in modules share: frequencies that a cast of the model does not round."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor


class Float32Buffers(torch.nn.Module):
    """A module whose buffers stay float32 when the model is cast, and are made anew when it leaves the meta device.

    Angles by a bfloat16 inv_freq are 1.8 radians off at position 4,095.
    """

    def fresh(self, device: torch.device | str | None) -> dict[str, Tensor]:
        """Every buffer by its name, float32, as the arguments of the module say."""
        raise NotImplementedError

    def in_float32(self, name: str) -> Tensor:
        """The buffer; made anew where it was replaced by a rounded one."""
        buffer: Tensor = getattr(self, name)
        return buffer.float() if buffer.dtype in (torch.float32, torch.float64) else self.fresh(buffer.device)[name]

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = {name: buffer for name, buffer in self.named_buffers(recurse=False)}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = getattr(self, name)
            if old.is_meta and not new.is_meta:
                setattr(self, name, self.fresh(new.device)[name])
            elif old.dtype != new.dtype:
                setattr(self, name, old.to(new.device))
        return self
