"""A button that copies a text."""

from __future__ import annotations

from rope_viz.ui.components.component import component


def copy_button(key: str, label: str, text: str) -> None:
    """Show the page's main button, which copies a text."""
    data = {"label": label, "text": text}
    component("copy", root_class="rv-copy", height=40)(key, data)
