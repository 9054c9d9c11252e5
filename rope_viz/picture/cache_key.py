"""The cache key of a picture's request."""

from __future__ import annotations

from collections.abc import Hashable

from rope_viz.picture import config_link
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest


def key(request: PictureRequest, picture: Picture) -> tuple[Hashable, ...]:
    """Return the cache key: equal for all requests that lead to the same picture."""
    return (
        picture.address,
        *request.subject[:3],
        _own_key(request) if picture.config else None,
        request.pin if picture.pin else None,
        tuple(request.variants.items()) if picture.variants else None,
        request.view if picture.zooms else None,
        request.coarse,
        min(request.part, picture.parts(request) - 1),
        # Of the needed choices too: the value of a used one may be the same while they differ.
        *(choice.text(request[choice]) for choice in picture.choices if choice.key in picture.depends),
    )


def _own_key(request: PictureRequest) -> str | None:
    return request.held.get("own") or (None if request.own is None else config_link.write_config(request.own))
