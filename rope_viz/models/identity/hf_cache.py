"""A model's config.json in the local Hugging Face cache, by the model's id.

The layout is that of huggingface_hub 2.4.0: models--owner--name/snapshots/<commit>/config.json, and in refs the commit
that a branch points to. Nothing is fetched.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from rope_viz.storage.read_file import read_limited_text

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


def is_model_id(text: str) -> bool:
    """Return whether a text is a model id, `owner/name` with an optional revision, or its page on the Hub."""
    id = model_id_of_page(text.strip())
    return "/" in id.partition("@")[0] and len(id) <= LONGEST and ID.fullmatch(id) is not None


def model_id_of_page(text: str) -> str:
    """Return the model id of a page on the Hub, or of a config's page; any other text unchanged."""
    page = PAGE.fullmatch(text)
    if page is None:
        return text
    return page["name"] + (f"@{unquote(page['revision'])}" if page["revision"] else page["at"] or "")


def find_cache_folders() -> list[Path]:
    """Return the folders of the local Hugging Face cache, in the order in which huggingface_hub searches them."""
    home = os.environ.get("HF_HOME")
    base = expand_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    named = [os.environ.get(key) for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    found = [expand_home(name) for name in named if name]
    return [*found, (expand_home(home) if home else base) / "hub"]


def expand_home(name: str) -> Path:
    """Return the path with ~ expanded where the home folder is known."""
    return Path(os.path.expanduser(name))


def find_in_cache(id: str) -> Path | None:
    """Return the config.json of a model in the local cache, by `owner/name` or `owner/name@revision`; None if absent.

    The address of its page on the Hub works as the id.
    """
    id = model_id_of_page(id)
    asked = None if len(id) > LONGEST or ".." in id else ID.fullmatch(id)
    if asked is None:
        return None
    parts, revision = asked["name"].split("/"), asked["revision"]
    for cache in find_cache_folders():
        folder = cache / "--".join(("models", *parts))
        snapshots = folder / "snapshots"
        if not snapshots.is_dir():
            continue
        reference = folder / "refs" / (revision or "main")
        try:
            wanted = read_limited_text(reference).strip() if reference.is_file() else revision
        except UnicodeDecodeError:
            raise ValueError(f"{reference} does not name a commit: delete it, or download the model again") from None
        # Without a reference: the snapshot that was fetched last.
        newest = sorted(snapshots.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True)
        for snapshot in [place for place in newest if place.name == wanted] or ([] if revision else newest):
            if (snapshot / NAME).is_file():
                return snapshot / NAME
    return None
