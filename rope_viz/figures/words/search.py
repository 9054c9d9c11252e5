"""Sentences and a table of a search for frequencies."""

from __future__ import annotations

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.recall import TEXTS
from rope_viz.figures.scaling import short_label
from rope_viz.figures.words.common import plain
from rope_viz.texts import Sentence, join
from rope_viz.tiny_lm.search_divisors import TINY
from rope_viz.tiny_lm.search_results import Rating, SearchResult


def describe_search(found: SearchResult, *, own: bool) -> Sentence:
    """Give the share of right answers with the found frequencies, and what was searched; `own` is the user's search."""
    best = found.best
    model = "tiny_lm" if found.model == TINY else plain(short_repr(found.model))
    about = TEXTS("search.measured", model=model, length=found.length, trained=found.trained)
    about = about if own else join(about, TEXTS("search.example"))
    if best.interval is None:
        return join(TEXTS("search.so_far", count=found.trials, right=best.right, loss=best.loss), about)
    low, high = best.interval
    return join(TEXTS("search.best", count=found.trials, right=best.right, low=low, high=high), about)


def describe_gain(found: SearchResult) -> Sentence:
    """Give the gain over the best start on held-out texts."""
    if found.gain is None:
        return TEXTS("search.no_gain")
    over, right, low, high = found.gain
    points = {name: format_points(value) for name, value in (("right", right), ("low", low), ("high", high))}
    text = TEXTS("search.gain", over=short_label(over), **points)
    return join(text, TEXTS("search.held_out", texts=found.held_out))


def format_points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.0f}".replace("-", "−")


def list_scores(found: SearchResult) -> dict[str, list[str]]:
    """Return the columns of a table: the found frequencies and each start, right answers, and their loss."""
    rows: dict[str, Rating] = {str(TEXTS("search.found")): found.best}
    rows |= {str(TEXTS("search.start", method=short_label(name))): each for name, each in found.starts.items()}
    return {
        str(TEXTS("search.frequencies")): list(rows),
        str(TEXTS("search.right")): [format_right(each) for each in rows.values()],
        str(TEXTS("search.loss")): [TEXTS("search.nats", loss=each.loss) for each in rows.values()],
    }


def format_right(found: Rating) -> str:
    """Return the share of right answers, with its interval where it is known."""
    if found.interval is None:
        return TEXTS("search.share", right=found.right)
    low, high = found.interval
    return TEXTS("search.share_of", right=found.right, low=low, high=high)
