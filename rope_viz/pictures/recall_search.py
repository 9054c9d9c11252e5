"""Pictures of the page Recall: the frequencies that a search found, and how the demo models answer with them."""

from __future__ import annotations

import functools

from rope_viz.figures import search as figures
from rope_viz.figures.recall import TEXTS
from rope_viz.figures.words import search as words
from rope_viz.pictures.outputs import ROW, Figure, Table
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_choices import PAGE, SEARCH_FILE, SEARCHED
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


@PAGE.picture(SEARCH_FILE, SEARCHED)
def searched(now: Now) -> Figure:
    """The frequencies that a search found for a longer text, next to YaRN's; without one of yours, as measured."""
    result, name = find_search(now)
    fig = figures.compare_with_yarn(result.spec)
    return Figure(fig, figures.make_title(result), words.describe_search(result, own=bool(name)), variant=name)


@PAGE.picture(SEARCH_FILE, SEARCHED, height=lambda now: ROW * (2 + len(find_search(now)[0].starts)))
def searched_scores(now: Now) -> Table:
    """Right answers and their loss with the frequencies that a search found, and with those that it started from."""
    result, name = find_search(now)
    title = TEXTS("search.scores_title")
    return Table(words.list_scores(result), title, words.describe_gain(result), words=True, variant=name)
