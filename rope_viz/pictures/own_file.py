"""A file that a user drops or pastes as a config: the config, or why it is none."""

from __future__ import annotations

import time

from rope_viz.advice.diagnose import Diagnosis, describe_refusal, diagnose
from rope_viz.advice.lint import check
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.read_upload import read_upload
from rope_viz.pictures import config_link
from rope_viz.texts import Texts

TEXTS = Texts("app")
MOST_SECONDS = 2.0
"""Processor time of what each page computes from a config."""


def read_file(content: str | bytes, current: RopeSpec, name: str) -> Upload | Diagnosis:
    """Return the config of a file, or why it cannot be read; `current` and `name` are as in `read_upload`."""
    try:
        return prove_cheap(read_upload(content, current, name))
    except ValueError as error:
        found = diagnose(content, current, name)
        return found if found.problems else Diagnosis((describe_refusal(error),))


def read_stored(text: str) -> Upload:
    """Return the config that a browser stored. Raise `ValueError` if it is none."""
    return prove_cheap(read_upload(text))


def prove_cheap(own: Upload) -> Upload:
    """Return a config whose pages can be computed quickly. Raise `ValueError` for others.

    The link is computed here, because a session needs it at once.
    """
    began = time.process_time()
    check(own.config)
    config_link.write_config(own)
    if time.process_time() - began > MOST_SECONDS:
        raise ValueError(TEXTS("stored.slow"))
    return own
