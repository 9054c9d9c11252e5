"""A model's config.json in the local Hugging Face cache, by the model's id.

The layout is that of huggingface_hub 2.4.0: models--owner--name/snapshots/<commit>/config.json, and in refs the commit
that a branch stands for. Nothing is fetched.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

NAME = "config.json"
# What a model may be called, and a branch or a commit of it: letters, digits, -, _ and ., and no way up.
ID = re.compile(r"(?P<name>\w[\w.-]*(/\w[\w.-]*)?)(@(?P<revision>\w[\w.-]*(/\w[\w.-]*)*))?", re.ASCII)
LONGEST = 200
HUB = "https://huggingface.co/"
# As a browser shows them: owner/name/, owner/name/tree/main, owner/name/blob/main/config.json.
PAGE = re.compile(
    re.escape(HUB) + r"(?P<name>[^/@?#]+(/[^/@?#]+)?)"
    r"((?P<at>@[^?#]+?)|/(blob|tree|raw|resolve)/(?P<revision>[^?#]+?)(/config\.json)?)?/?([?#].*)?"
)


def is_id(text: str) -> bool:
    """Whether a text is a model's id, `owner/name`, perhaps with a revision, or its page's address on the hub."""
    id = id_of(text.strip())
    return "/" in id.partition("@")[0] and len(id) <= LONGEST and ID.fullmatch(id) is not None


def id_of(text: str) -> str:
    """The id, perhaps with a revision, whose page on the hub this is, or its config's page; other text as it is."""
    page = PAGE.fullmatch(text)
    if page is None:
        return text
    return page["name"] + (f"@{unquote(page['revision'])}" if page["revision"] else page["at"] or "")


def caches() -> list[Path]:
    """The hub folders of the local Hugging Face cache, in the order in which huggingface_hub looks for its own."""
    home = os.environ.get("HF_HOME")
    base = expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    named = [os.environ.get(key) for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    found = [expanded(name) for name in named if name]
    return [*found, (expanded(home) if home else base) / "hub"]


def expanded(name: str) -> Path:
    """The path with ~ written out, as far as it is known whose: a user of a number alone has no home."""
    return Path(os.path.expanduser(name))


def in_cache(id: str) -> Path | None:
    """The config.json of a model in the cache, by its id, `owner/name` or `owner/name@revision`; None where it is not.

    Its page's address on the hub stands for the id.

    A cache keeps `models--owner--name/snapshots/<commit>/config.json`, and in `refs` the commit that a name stands for.
    """
    id = id_of(id)
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
        try:
            wanted = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
        except UnicodeDecodeError:
            raise ValueError(f"{reference} names no commit: delete it, or fetch the model again") from None
        # Without a reference: the snapshot that was fetched last.
        newest = sorted(snapshots.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True)
        for snapshot in [place for place in newest if place.name == wanted] or ([] if revision else newest):
            if (snapshot / NAME).is_file():
                return snapshot / NAME
    return None
