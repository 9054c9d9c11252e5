"""Values that are computed from a tensor and cached while it lives unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

T = TypeVar("T")


def cache_last(make: Callable[[Tensor], T]) -> Callable[[Tensor], T]:
    """Cache `make(tensor)` while that tensor lives unchanged: every layer of a model passes the same one."""
    cache: Any = WeakTensorKeyDictionary()

    def make_savable(tensor: Tensor) -> T:
        # A value made in inference mode could not be saved for a gradient later.
        with torch.inference_mode(False):
            return make(tensor)

    def cached_make(tensor: Tensor) -> T:
        if tensor.is_inference():
            return make_savable(tensor)
        version, value = cache.get(tensor, (None, None))
        if version != tensor._version:
            value = make_savable(tensor)
            cache[tensor] = tensor._version, value
        return value  # type: ignore[no-any-return]

    return cached_make


@cache_last
def copy_to_host(tensor: Tensor) -> Tensor:
    """Return the tensor on the CPU. Waits for the device, once for each tensor."""
    return tensor.cpu()
