"""A file that a user drops or pastes as a config: the config, or why it is none."""

from __future__ import annotations

from collections.abc import Mapping

from rope_viz.advice.lint.diagnose import Diagnosis, describe_refusal, diagnose
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.user_config import Upload
from rope_viz.own_files.admit import UnfitError, admit_text


def read_file(
    content: str | bytes, current: RopeSpec, name: str, files: Mapping[str, bytes] | None = None
) -> Upload | Diagnosis:
    """Return the config of a file, or why it cannot be read; `current` and `name` are as in `admit`.

    `files` are those that were dropped with it, by name.
    """
    try:
        return admit_text(content, current, name, files=files or {})
    except UnfitError as error:
        return Diagnosis((describe_refusal(error),))
    except ValueError:
        found = diagnose(content, current, name)
        _ = found.changes, found.excerpt  # computed here, because comparing lines takes long
        return found
