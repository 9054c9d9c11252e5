"""The search for frequencies that the page Recall shows: from a file, started on the page, or as measured."""

from __future__ import annotations

import functools

from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_choices import SEARCH_FILE, SEARCHED
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.search_results import SearchResult, read_search


@functools.cache
def load_example() -> SearchResult:
    """Return the search of docs/scaling.md with seed 0, as measured."""
    return read_search((checkpoints.FOLDER / "searched.json").read_bytes())


def find_search(now: Now) -> tuple[SearchResult, str]:
    """Return the user's file, else the search started on the page, else the measured one, and the name of its content.

    The name is "" for the measured one.
    """
    held = now[SEARCH_FILE] or now[SEARCHED]
    return (load_example(), "") if held is None else (held.value, held.name)
