"""Two checkouts in one measurement: the pages of each, which of them show the same, and ratios by round.

Pages may be renamed, split or new between two commits. Each checkout lists its own pages and their pictures, and a page
of one is that of the other that has its name or, if none has, the one that shares most of its pictures.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
ROOT = Path(__file__).resolve().parents[1]

LIST_PAGES = """
import json
try:
    from rope_viz.pages import registry
    PAGES = registry.titles()
except ImportError:  # an older checkout
    from rope_viz.pictures import registry
    try:
        from rope_viz.pictures.doors import TITLES as PAGES
    except ImportError:
        PAGES = registry.PAGES
# A page that shows pictures of others is listed without any.
print(json.dumps({name: list(registry.page(name).pictures) if name in registry.PAGES else [] for name in PAGES}))
"""


@dataclass(frozen=True)
class Checkout:
    """A checkout: its folder, and the names of its pages, each with the names of its pictures. The first is at "/"."""

    root: Path
    pages: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        """Return how it is called in a report."""
        return "this checkout" if self.root == ROOT else str(self.root)

    def path(self, page: str) -> str:
        """Return the path of a page's address."""
        return "/" if page == next(iter(self.pages)) else f"/{page}"


def read_checkout(root: Path) -> Checkout:
    """Return the checkout in a folder, with its own list of pages. Raise `ValueError` if there is none."""
    if not (root / "app.py").is_file():
        raise ValueError(f"there is no checkout at {root}: it has no app.py")
    command = [sys.executable, "-c", LIST_PAGES]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the checkout at {root} does not list its pages: {done.stderr.strip()[-300:]}")
    return Checkout(root, json.loads(done.stdout))


def read_checkouts(parser: ArgumentParser, others: Sequence[Path]) -> list[Checkout]:
    """Return this checkout and the others that the user named. An unusable one ends the script with a message."""
    try:
        return [read_checkout(root) for root in (ROOT, *others)]
    except ValueError as error:
        parser.error(str(error))


def find_same_page(page: str, ours: Checkout, other: Checkout) -> str | None:
    """Return the page of another checkout that shows what `page` of `ours` shows, None if there is none."""
    if page in other.pages:
        return page
    pictures = set(ours.pages[page])
    # A page that has its name in both checkouts cannot be the one that was renamed.
    shared = {name: len(pictures & set(found)) for name, found in other.pages.items() if name not in ours.pages}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and 2 * shared[best] > len(pictures) else None


def match_pages(pages: Sequence[str], ours: Checkout, other: Checkout) -> dict[str, str]:
    """Return {our page: the same page of the other checkout}, and print which pages exist in one of them only."""
    found = {page: find_same_page(page, ours, other) for page in pages}
    matched = {page: name for page, name in found.items() if name is not None}
    for page in pages:
        if page not in matched:
            print(f"{page}: a page of {ours.name} only", flush=True)
    everywhere = {find_same_page(page, ours, other) for page in ours.pages}
    for page in other.pages:
        if page not in everywhere:
            print(f"{page}: a page of {other.name} only", flush=True)
    return matched


def in_turns(items: Sequence[Item], turn: int) -> list[Item]:
    """Return the items in the order of this round: every other round begins with the last one."""
    return [*items] if turn % 2 == 0 else [*reversed(items)]


def format_ratios(values: Sequence[float], bases: Sequence[float]) -> str:
    """Return the median ratio of values to bases of the same round, and those of all rounds, as "1.02 (0.99 1.05)"."""
    ratios = [value / base for value, base in zip(values, bases, strict=True)]
    return f"{statistics.median(ratios):.2f} ({' '.join(f'{ratio:.2f}' for ratio in ratios)})"
