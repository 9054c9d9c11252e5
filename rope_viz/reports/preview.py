"""Link previews: the picture of a page with our name below it, and the Open Graph tags (https://ogp.me)."""

from __future__ import annotations

import html

from rope_viz.figures.files import Style
from rope_viz.picture import export
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest

NAME = "RoPE Viz"
ADDRESS_TAG = "rope-viz:address"
"""The name of the tag with the public address, which web/mark.js reads."""
WIDTH, HEIGHT = 1200, 630
"""The size that the large previews of most sites have."""


def write_mark(public: str) -> str:
    """Return our name, and the address without its scheme if there is one: "RoPE Viz · example.org/rope"."""
    return f"{NAME} · {public.partition('://')[2]}" if public else NAME


def preview_style(picture: Picture, public: str) -> Style:
    """Return the style of a picture's link preview."""
    size = "15px" if picture.crowded else "20px"
    return Style(width=f"{WIDTH}px", height=f"{HEIGHT}px", font_size=size, dpi=96, mark=write_mark(public))


def render_preview(picture: Picture, request: PictureRequest, public: str) -> bytes:
    """Return a picture as the PNG of a link preview."""
    return export.render(picture, picture.finished(request), "png", preview_style(picture, public))


def format_tags(title: str, description: str, *, url: str = "", image: str = "", public: str = "") -> str:
    """Return the tags of a page. `url` is the page's address, `image` that of its preview, "" for none."""
    values = {"og:type": "website", "og:site_name": NAME, "og:title": title, "og:description": description}
    values |= {"og:url": url} if url else {}
    if image:
        size = {"og:image:width": str(WIDTH), "og:image:height": str(HEIGHT)}
        values |= {"og:image": image, **size, "twitter:card": "summary_large_image"}
    tags = "".join(f'<meta property="{name}" content="{html.escape(value)}">' for name, value in values.items())
    return tags + (f'<meta name="{ADDRESS_TAG}" content="{html.escape(public)}">' if public else "")
