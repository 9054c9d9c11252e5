"""Load Matplotlib without the lines that it prints where its own folder cannot be written."""

from __future__ import annotations

import functools
import logging


@functools.cache
def load_matplotlib() -> None:
    """Import Matplotlib and its list of fonts. Raises `ImportError` without it.

    With a read-only or full home folder it makes a folder for the time of the process, which works, and warns about it
    in several lines. They would come before our own output. What Matplotlib logs later is not touched.
    """
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib
        import matplotlib.font_manager

        # The folder is chosen when it is first asked for.
        matplotlib.get_configdir()
        matplotlib.get_cachedir()
    finally:
        log.setLevel(before)
