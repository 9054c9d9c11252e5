"""The choice of a trainer and a server on the tab Training of My model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rope_viz.advice.training_matrix import SERVERS, TrainingMatrix
from rope_viz.figures.words.training import TEXTS
from rope_viz.pictures.choices import Menu
from rope_viz.pictures.picture_request import Choice, Now
from rope_viz.runtimes.trainers import TRAINERS


@functools.cache
def list_cells() -> dict[str, str]:
    """Return {id: label} of every trainer with every server, row by row."""
    return {f"{trainer}_{server}": f"{one.label}, {server}" for trainer, one in TRAINERS.items() for server in SERVERS}


def make_cell_choice(find_matrix: Callable[[Now], TrainingMatrix], needs: tuple[Choice[Any], ...]) -> Menu:
    """Return the choice of a cell; the default is the one with the largest difference. `needs` decide the matrix."""
    return Menu(
        key="runtimes.cell",
        label=TEXTS("cell"),
        entries=lambda now: list_cells(),
        usual=lambda now: "_".join(find_matrix(now).worst or ()),
        check=lambda name: name in list_cells(),
        needs=needs,
    )
