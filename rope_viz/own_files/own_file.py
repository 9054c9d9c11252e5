"""A file that a user drops or pastes as a config: the config, or why it is none."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.advice.lint.diagnose import Diagnosis, describe_refusal, diagnose
from rope_viz.advice.memory.stored_size import keep_storage
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.read_upload import read_upload
from rope_viz.models.user_config import Upload
from rope_viz.own_files import config_link
from rope_viz.own_files.configs import prove_cheap


def read_file(
    content: str | bytes, current: RopeSpec, name: str, files: Mapping[str, bytes] | None = None
) -> Upload | Diagnosis:
    """Return the config of a file, or why it cannot be read; `current` and `name` are as in `read_upload`.

    `files` are those that were dropped with it, by name.
    """
    try:
        own = read_upload(content, current, name)
    except ValueError:
        found = diagnose(content, current, name)
        _ = found.changes, found.excerpt  # computed here, because comparing lines takes long
        return found
    try:
        return with_link(prove_cheap(keep_storage(own, content, files or {})))
    except ValueError as error:
        return Diagnosis((describe_refusal(error),))


def read_stored(text: str) -> Upload:
    """Return a config that the browser stored or that has no page of its own. Raise `ValueError` if it is none."""
    return with_link(prove_cheap(read_upload(text)))


def with_link(own: Upload) -> Upload:
    """Return a config with its link, which a session needs at once."""
    config_link.write_config(own)
    return own
