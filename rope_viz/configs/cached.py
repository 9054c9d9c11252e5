"""A model's config.json in the local Hugging Face cache, by the model's id.

The layout is that of huggingface_hub 2.4.0: models--owner--name/snapshots/<commit>/config.json, and in refs the commit
that a branch stands for. Nothing is fetched.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

NAME = "config.json"
# What a model may be called, and a branch or a commit of it: letters, digits, -, _ and ., and no way up.
ID = re.compile(r"(?P<name>\w[\w.-]*(/\w[\w.-]*)?)(@(?P<revision>\w[\w.-]*(/\w[\w.-]*)*))?", re.ASCII)
LONGEST = 200
HUB = "https://huggingface.co/"


def is_id(text: str) -> bool:
    """Whether a text is a model's id, `owner/name`, perhaps with a revision, or its page's address on the hub."""
    id = text.strip().removeprefix(HUB)
    return "/" in id.partition("@")[0] and len(id) <= LONGEST and ID.fullmatch(id) is not None


def caches() -> list[Path]:
    """The hub folders of the local Hugging Face cache, in the order in which huggingface_hub looks for its own."""
    home = os.environ.get("HF_HOME")
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"
    named = [os.environ.get(key) for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    found = [Path(name).expanduser() for name in named if name]
    return [*found, (Path(home).expanduser() if home else base) / "hub"]


def in_cache(id: str) -> Path | None:
    """The config.json of a model in the cache, by its id, `owner/name` or `owner/name@revision`; None where it is not.

    Its page's address on the hub stands for the id.

    A cache keeps `models--owner--name/snapshots/<commit>/config.json`, and in `refs` the commit that a name stands for.
    """
    id = id.removeprefix(HUB)
    asked = None if len(id) > LONGEST or ".." in id else ID.fullmatch(id)
    if asked is None:
        return None
    parts, revision = asked["name"].split("/"), asked["revision"]
    for cache in caches():
        folder = cache / "--".join(("models", *parts))
        snapshots = folder / "snapshots"
        if not snapshots.is_dir():
            continue
        reference = folder / "refs" / (revision or "main")
        wanted = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
        # Without a reference: the snapshot that was fetched last.
        newest = sorted(snapshots.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True)
        for snapshot in [place for place in newest if place.name == wanted] or ([] if revision else newest):
            if (snapshot / NAME).is_file():
                return snapshot / NAME
    return None
