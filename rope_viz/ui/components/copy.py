"""Buttons that copy a text or the page's address."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.ui.components.component import component


def copy_buttons(key: str, texts: Mapping[str, str | None], *, primary: bool = False) -> None:
    """Show one button per entry, label -> text; None copies the page's address. `primary`: filled."""
    data = {"texts": dict(texts), "primary": primary}
    component("copy", root_class="rv-copy", height=48 * len(texts) - 8)(key, data)
