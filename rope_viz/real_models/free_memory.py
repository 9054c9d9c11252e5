"""How much memory is free on this machine or device, and whether a model and its measurement fit into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GB, MB = 1e9, 1e6
PROC, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Need:
    """Estimated bytes of a model's weights and of the largest intermediate results of a measurement."""

    weights: int
    work: int

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.weights + self.work


def free_memory() -> int | None:
    """Return the free bytes of main memory, within the limit of a container; None where the system does not tell."""
    if sys.platform != "linux":
        return physical_memory()
    try:
        lines = PROC.read_text(encoding="ascii").splitlines()
    except OSError:
        return physical_memory()
    found = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    limit = container_memory()
    known = [each for each in (found, limit) if each is not None]
    return min(known) if known else physical_memory()


def container_memory() -> int | None:
    """Return the free bytes within this container's limit (cgroup v2), None without one."""
    try:
        most = (CGROUP / "memory.max").read_text(encoding="ascii").strip()
        if most == "max":
            return None
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        rows = (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        # The kernel gives up cached files before it refuses memory.
        cached = sum(int(row.split()[1]) for row in rows if row.split()[0] == "inactive_file")
        return max(int(most) - used + cached, 0)
    except (OSError, ValueError, IndexError):
        return None


def physical_memory() -> int | None:
    """Return the bytes of main memory, an upper limit where the system does not tell what is free; None if unknown."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(name: str, need: Need, device: str = "cpu") -> str:
    """Return the sentence that a model fits, with both numbers. Raises `ValueError` if it does not.

    On a GPU the weights must fit into main memory, too, because they are loaded there first.
    """
    bytes_of = {"main memory": need.total if device == "cpu" else need.weights}
    free = {"main memory": free_memory()}
    if device != "cpu":
        import torch

        bytes_of[device] = need.total
        free[device] = int(torch.cuda.mem_get_info(device)[0])
    parts = []
    for place, wanted in bytes_of.items():
        there = free[place]
        if there is None:
            parts.append(f"about {format_size(wanted)} of {place}; how much is free is unknown")
        elif wanted > there:
            free_there = format_size(there)
            raise ValueError(
                f"{name} does not fit: it needs about {format_size(wanted)} of {place}, and {free_there} are free"
            )
        else:
            parts.append(f"about {format_size(wanted)} of {place}, of which {format_size(there)} are free")
    return f"{name} needs {' and '.join(parts)}"


def format_size(count: float) -> str:
    """Return bytes as GB, or as MB below a tenth of one."""
    return f"{count / GB:.1f} GB" if count >= 0.1 * GB else f"{max(count / MB, 0.1):.1f} MB"


def require_device(device: str) -> None:
    """Raise `ValueError` for a device that is neither the CPU nor a CUDA GPU of this machine."""
    if device == "cpu":
        return
    import torch

    kind, _, number = device.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"--device must be cpu, cuda or cuda:NUMBER, got {device}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        there = "no CUDA GPU" if not count else f"{count} CUDA GPU{'s' if count > 1 else ''}"
        raise ValueError(f"--device {device} is not there: PyTorch finds {there} on this machine")


def estimate_work(config: Mapping[str, Any], piece: int, tokens: int, bytes_per_number: int) -> int:
    """Return the bytes of the largest intermediate results: of one piece's heads, or of one text's losses.

    `config` has the names of transformers. A piece keeps q and k of all layers, and a few (tokens, tokens) of a head; a
    text keeps its logits, and the states of one layer.
    """
    heads, width = int(config["num_attention_heads"]), int(config["hidden_size"])
    keys = int(config.get("num_key_value_heads") or heads)
    dim = int(config.get("head_dim") or width // heads)
    heads_bytes = 4 * piece * int(config["num_hidden_layers"]) * (heads + 2 * keys) * dim + 12 * 4 * piece**2
    logits = tokens * int(config["vocab_size"]) * bytes_per_number
    states = tokens * (8 * width + 3 * int(config.get("intermediate_size") or 4 * width)) * 4
    return max(heads_bytes, logits + states)
