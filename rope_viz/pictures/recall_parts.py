"""In which parts the page Recall evaluates tiny_lm, short texts first, and which pairs it switches."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_choices import BAND, FIRST, HOW, LAST, QUICK, UP_TO
from rope_viz.pictures.recall_queries import is_known, tiny_lm_spec
from rope_viz.tiny_lm.recall import LENGTHS, LONGEST, Switch


def count_parts(now: Now) -> int:
    """Return the number of parts: to 1,024 tokens, 2,048 and each doubling to 8,192; one per seed beyond that."""
    longest = int(now[UP_TO])
    return 1 + sum(longest > tokens for tokens in (1024, 2048, 4096)) + 3 * (longest > 8192)


def list_stages(now: Now) -> list[tuple[int, int]]:
    """Return (longest length, seeds) of the parts up to the current one."""
    stages = [(1024, 3), (2048, 3), (4096, 3), (8192, 3), (LONGEST, 1), (LONGEST, 2), (LONGEST, 3)]
    return stages[: min(now.part + 1, count_parts(now))]


def count_texts(now: Now, tokens: int) -> int:
    """Return the number of texts at a length, with 16 questions each: fewer for long ones and in the first part."""
    many = 4 if tokens <= 512 else 2 if tokens <= 2048 else 1
    return many if now.part else max(1, many // 2)


def count_seeds(now: Now, tokens: int) -> int:
    """Return how many seeds have evaluated this length so far."""
    return max((seeds for longest, seeds in list_stages(now) if tokens <= longest), default=0)


def choose_points(now: Now, spec: RopeSpec) -> list[tuple[int, int, int]]:
    """Return (tokens, texts, seeds) of a line's points so far; few while a knob moves, unless they are cached."""
    full = [(tokens, count_texts(now, tokens), count_seeds(now, tokens)) for tokens in LENGTHS if tokens <= now[UP_TO]]
    full = [each for each in full if each[2]]
    if not now.coarse or all(is_known(spec, *each) for each in full):
        return full
    return [(tokens, 1, 1) for tokens in LENGTHS if tokens <= min(QUICK, now[UP_TO])]


def find_switched_pairs(now: Now) -> tuple[int, ...]:
    """Return the pairs to switch."""
    spec, band = tiny_lm_spec(now), now[BAND]
    if band == "range":
        first, last = sorted((int(now[FIRST]), int(now[LAST])))
        return tuple(range(first, last + 1))
    if band == "none":
        return ()
    if band == "all":
        return tuple(range(spec.pairs))
    if band in ("fast", "slow"):
        return tuple(range(4)) if band == "fast" else tuple(range(spec.pairs - 4, spec.pairs))
    kinds = spectrum.bands(spec, length=spec.target).kind
    return tuple(int(pair) for pair in np.flatnonzero(kinds == ("kept", "blended", "divided").index(band)))


def make_switch(now: Now) -> Switch | None:
    """Return the user's switch, None if the band has no pairs."""
    pairs = find_switched_pairs(now)
    return Switch(pairs, now[HOW]) if pairs and max(pairs) < tiny_lm_spec(now).pairs else None
