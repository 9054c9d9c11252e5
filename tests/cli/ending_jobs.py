"""A job of `site` whose process is killed while it writes the page called "bad"."""

import os
import signal

from rope_viz.cli.model_pages import write_page


def write_or_end(job, site):
    """Write a page, or end this process as the kernel does for lack of memory."""
    if job.label == "bad":
        os.kill(os.getpid(), signal.SIGKILL)
    return write_page(job, site)
