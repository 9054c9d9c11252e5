"""Scripts that are made of values instead of read from a file."""

from __future__ import annotations

import json
from typing import Any

from rope_viz.texts import Texts

BROWSER_GROUPS = ("picture", "share", "knob", "banner", "present", "verdicts", "widget")
FILL_IN = b"export const text = (key, values = {}) => TEXTS[key].replace(/\\{(\\w+)\\}/g, (_, name) => values[name]);\n"


def texts() -> bytes:
    """Make a script with `text(key, values)`: an entry of app.toml or export.toml with its values filled in."""
    app, export = Texts("app"), Texts("export")
    found = {f"{group}.{key}": entry for group in BROWSER_GROUPS for key, entry in app.group(group).items()}
    found |= {f"export.{key}": entry for key, entry in export.entries.items()}
    return module(TEXTS={"loading_picture": app("loading_picture"), **found}) + FILL_IN


def module(**values: Any) -> bytes:
    """Return a script that exports these values."""
    return "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in values.items()).encode()
