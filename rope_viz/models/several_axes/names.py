"""Match names that users and classes spell in different ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def plain_name(name: str) -> str:
    """Reduce a name to its letters and digits, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def find_known_name(name: str, known: Mapping[str, str], endings: Sequence[str]) -> str | None:
    """Look a name up in `known`, with or without a class ending; None if it is unknown.

    >>> find_known_name("FLUX.2-PosEmbed", {"flux2": "flux2"}, ["posembed"])
    'flux2'
    """
    plain = plain_name(name)
    candidates = [plain, *(plain.removesuffix(ending) for ending in endings if plain.endswith(ending))]
    return next((known[candidate] for candidate in candidates if candidate in known), None)
