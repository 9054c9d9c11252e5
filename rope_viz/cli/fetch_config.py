"""Fetch a model's config.json from the Hugging Face Hub, only where the user gave --hub.

As in huggingface_hub, HF_ENDPOINT names another server, HF_TOKEN is sent to it, and HF_HUB_OFFLINE forbids the network.
Unlike there, the token is not sent unencrypted to another machine.
"""

from __future__ import annotations

import functools
import http.client
import os
import re
import sys
import urllib.error
from urllib.parse import quote, urlsplit

from rope_viz.embedding.spec import short_repr
from rope_viz.evaluation.completion_clients import choose_key
from rope_viz.models.identity.hf_cache import ID, NAME, model_id_of_page
from rope_viz.storage.fetch import LargeError, fetch
from rope_viz.storage.limits import CONFIG_FILE_BYTES

DEFAULT_ENDPOINT = "https://huggingface.co"
TIMEOUT = 30.0
"""Seconds for the whole request, redirects and content included."""
TRUE = ("1", "on", "yes", "true")
MISSING = {
    "EntryNotFound": "this model has no config.json",
    "RevisionNotFound": "this model has no such revision",
    "RepoNotFound": "there is no such model",
}
"""{error code in an answer of the Hub: what it means}."""


def find_endpoint() -> str:
    """Return the address of the Hub. Raise `ValueError` if HF_ENDPOINT is none."""
    endpoint = (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"HF_ENDPOINT must be an address such as {DEFAULT_ENDPOINT}, got {short_repr(endpoint)}")
    return endpoint


def fetch_config(name: str) -> bytes:
    """Return the config.json of a model on the Hub, and say on stderr where it is from.

    Raises `ValueError` with one sentence that names the reason if there is none.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in TRUE:
        raise ValueError("HF_HUB_OFFLINE is set, so nothing is fetched: unset it, or name a file")
    asked = ID.fullmatch(model_id_of_page(name.strip()))
    if asked is None:
        raise ValueError(f"{short_repr(name)} is not a model id such as Qwen/Qwen3-8B")
    revision = quote(asked["revision"] or "main", safe="")
    return request_config(f"{find_endpoint()}/{asked['name']}/resolve/{revision}/{NAME}")


@functools.cache
def request_config(address: str) -> bytes:
    """Return the content of an address. Raises `ValueError` as `fetch_config` does."""
    host = urlsplit(address).hostname
    token = choose_key(address, "HF_TOKEN", remedy="let HF_ENDPOINT begin with https")
    headers = {"User-Agent": "rope-viz"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        answer = fetch(address, seconds=TIMEOUT, most=CONFIG_FILE_BYTES, headers=headers)
    except LargeError:
        raise ValueError(f"{host} sent more than {CONFIG_FILE_BYTES >> 20} MiB, which no config.json is") from None
    except urllib.error.HTTPError as error:
        raise ValueError(f"{host} {describe_status(error, has_token=bool(token))}") from None
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise ValueError(f"{host} cannot be reached ({reason}): name a file, or a model of rope-viz models") from None
    content = answer.content
    commit = answer.headers.get("X-Repo-Commit") or ""
    if re.match(rb"(\xef\xbb\xbf)?\s*<", content):
        raise ValueError(f"{host} sent a web page instead of config.json: download the file and name it")
    at = f" at commit {commit[:12]}" if commit else ""
    print(f"rope-viz: fetched {address}{at}", file=sys.stderr)
    return content


def describe_status(error: urllib.error.HTTPError, *, has_token: bool) -> str:
    """Return what a refusal of the Hub means, and what to do."""
    answered = f"answered {error.code}"
    if error.code in (401, 403):
        if has_token:
            return f"{answered}: there is no such model, or the token in HF_TOKEN has no access to it"
        return f"{answered}: there is no such model, or it is private or gated: set HF_TOKEN to a token with access"
    if error.code == 404:
        unnamed = "there is no such model, revision or config.json"
        return f"{answered}: {MISSING.get(error.headers.get('X-Error-Code', ''), unnamed)}"
    if error.code == 429:
        return f"{answered}: too many requests, try again later"
    return f"{answered} ({error.reason}): try again later, or name a file"
