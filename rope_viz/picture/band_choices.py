"""Choices of a change of some pairs among those that a table of band changes has or plans, for any page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rope_viz.figures.band_words import TEXTS, name_change, name_pairs
from rope_viz.picture.choices import Menu
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.real_models.band_table import BandTable

TableOf = Callable[[PictureRequest], BandTable]
NAME = re.compile(r"[^/\x00-\x1f]{1,200}")


def make_pairs_menu(page: str, table_of: TableOf, needs: tuple[Choice[Any], ...]) -> Menu:
    """Return the choice of a group of pairs, by default the measured one of the lowest frequencies."""

    def list_pairs(request: PictureRequest) -> dict[str, str]:
        groups = dict.fromkeys(each.pairs for each in table_of(request).planned)
        return {pairs: str(name_pairs(pairs)) for pairs in groups}

    def choose_usual(request: PictureRequest) -> str:
        table = table_of(request)
        return (table.conditions or table.planned)[-1].pairs

    return Menu(
        key=f"{page}.group",
        label=TEXTS("choices.pairs"),
        entries=list_pairs,
        usual=choose_usual,
        check=lambda text: NAME.fullmatch(text) is not None,
        needs=needs,
        width=160,
    )


def make_change_menu(page: str, table_of: TableOf, needs: tuple[Choice[Any], ...], pairs: Menu | None = None) -> Menu:
    """Return the choice of what happens to the pairs, among the changes of the chosen pairs or of any."""

    def list_changes(request: PictureRequest) -> dict[str, str]:
        chosen = None if pairs is None else request[pairs]
        planned = dict.fromkeys(each.how for each in table_of(request).planned if chosen in (None, each.pairs))
        return {how: str(name_change(how)) for how in planned}

    return Menu(
        key=f"{page}.change",
        label=TEXTS("choices.change"),
        entries=list_changes,
        usual=lambda request: "zero",
        check=lambda text: NAME.fullmatch(text) is not None,
        needs=(*needs, *((pairs,) if pairs else ())),
        width=220,
    )
