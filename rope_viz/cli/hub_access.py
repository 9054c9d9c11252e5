"""Whether the command may ask the Hugging Face Hub: only where the user gave --hub."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from rope_viz.models.identity.hf_cache import ID, LONGEST, is_model_id, model_id_of_page

_allowed: ContextVar[bool] = ContextVar("hub", default=False)


def add_hub_flag(command: argparse.ArgumentParser) -> None:
    """Add --hub to a command that takes the name of a config."""
    help = "fetch the config.json of an id such as Qwen/Qwen3-8B from the Hugging Face Hub or HF_ENDPOINT"
    command.add_argument("--hub", action="store_true", help=help)


@contextlib.contextmanager
def allow_hub(allowed: bool) -> Iterator[None]:
    """Allow requests to the Hub inside the block, or forbid them."""
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


def is_asked_of_hub(name: str) -> bool:
    """Return whether --hub was given and the name is owner/name or a page on the Hub, and no file."""
    return _allowed.get() and is_model_id(name) and not Path(name).exists()


def may_be_on_hub(name: str) -> bool:
    """Return whether --hub was given and the name can be a model's id, also one without an owner."""
    id = model_id_of_page(name.strip())
    return _allowed.get() and len(id) <= LONGEST and ".." not in id and ID.fullmatch(id) is not None


def fetch(name: str) -> bytes:
    """Return the config.json of a model on the Hub. Raises `ValueError` with the reason."""
    # The network's modules take a tenth of the time of `check`.
    from rope_viz.cli.fetch_config import fetch_config

    return fetch_config(name)
