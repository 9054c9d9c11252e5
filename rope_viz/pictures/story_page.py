"""The story of Learn as one HTML page that needs no session and no network: all scenes, or one in a frame."""

from __future__ import annotations

import functools
import html
import json
from typing import Any

from rope_viz import __version__
from rope_viz.figures import learn, theme
from rope_viz.pictures.export import script

STYLE = """
body { margin: 0; background: var(--st-background-color); color: var(--st-text-color); }
main { max-width: 1216px; margin: 0 auto; padding: 16px 32px 32px; }
h1 { font: 600 17px/24px var(--st-font); margin: 0 0 12px; }
footer { margin-top: 32px; font: 14px/20px var(--st-font); }
a { color: inherit; }
@media (max-width: 760px) { main { padding: 12px 16px; } footer { padding-bottom: 72px; } }
"""
FONT = "'Source Sans 3', 'Source Sans Pro', system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


@functools.lru_cache(maxsize=learn.SCENES + 1)
def story_page(only: int = 0, app: str | None = None) -> bytes:
    """Return the page: all scenes, or one scene (`only`, 1 to 8) with a link to the whole story.

    `app` is the address of the app, which links begin with; None for a page without such links.
    """
    data: dict[str, Any] = learn.message(only or 1) | {"only": only, "app": app, "outside": True}
    data["whole"] = f"{app or ''}/learn?learn.scene={only}"
    title = data["scenes"][only - 1]["texts"]["title"] if only else data["title"]
    light, dark = (_colours(dark=each) for each in (False, True))
    body = json.dumps(data).replace("<", "\\u003c")
    start = f'show({{ root: document.querySelector(".rv-learn"), memory: {{}} }}, {body});'
    # The story reads its colours when it is shown, so a changed theme shows it again.
    again = 'matchMedia("(prefers-color-scheme: dark)").addEventListener("change", run);'
    footer = "" if only else f"<footer>RoPE Viz {__version__}</footer>"
    text = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)} · RoPE Viz</title><style>:root {{ {light}; --st-font: {FONT} }}"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}{STYLE}</style></head>"
        f'<body><main><h1>{html.escape(str(data["title"]))}</h1><div class="rv-learn"></div>{footer}</main>'
        f'<script type="module">{script("learn")}\nconst run = () => {start}\nrun();\n{again}</script></body></html>'
    )
    return text.encode()


def _colours(*, dark: bool) -> str:
    named = {"background": theme.BACKGROUND, "text": theme.TEXT}
    shown = {name: theme.DARK[colour] if dark else colour for name, colour in named.items()}
    return "; ".join(
        [
            *(f"--st-{name}-color: {colour}" for name, colour in shown.items()),
            f"color-scheme: {'dark' if dark else 'light'}",
        ]
    )
