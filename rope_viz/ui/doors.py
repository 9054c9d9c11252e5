"""The four doors of the header, and the pages behind each of them."""

from __future__ import annotations

DOORS: dict[str, tuple[str, ...]] = {
    "learn": ("learn",),
    "explore": ("rotation", "frequencies", "scaling", "decay", "attention", "axes"),
    "model": ("extend", "runtimes"),
    "lab": ("recall", "heads", "precision", "kernels"),
}
"""{door: its pages in the order of the tabs}; the door opens its first page. Home belongs to none."""


def door_of(page: str) -> str:
    """Return the door of a page, "" for Home."""
    return next((door for door, pages in DOORS.items() if page in pages), "")
