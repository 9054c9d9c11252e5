"""The frame of a process that runs the demo models or a GGUF model for the pages Recall and Heads.

The process reads one JSON object from its standard input and prints one JSON object per line.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from rope_viz.texts import Texts
from rope_viz.texts.languages import set_process_language

Write: TypeAlias = Callable[[dict[str, Any]], None]
"""Writes one line of the process; threads may call it at once."""
MEMORY = 3 << 30
"""Bytes that the process may allocate (Linux; elsewhere nothing is limited)."""
NICENESS = 10
"""Lower priority of the process, so that the server answers other users first."""
# Threads of NumPy's own wait for each other in a loop, which on a busy machine takes most of the time.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def limit_process() -> None:
    """Lower the priority of this process and limit its memory, where the system can."""
    if sys.platform != "win32":
        os.nice(NICENESS)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def run_worker(work: Callable[[dict[str, Any], Write], None], texts: Texts, group: str) -> None:
    """Call `work` with the arguments and a function that prints a line; redirect all other output to stderr.

    `group` of `texts` has the sentences for too little memory and for another error.
    """
    limit_process()
    set_process_language(sys.argv[1])
    # A broken pipe means that the server has ended: end too.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def write(line: dict[str, Any]) -> None:
            print(json.dumps(line, allow_nan=False), file=out, flush=True)

        try:
            work(json.load(sys.stdin), write)
        except MemoryError:
            write({"problem": texts(f"{group}.memory", most=MEMORY >> 30)})
        except (OSError, ValueError) as error:
            write({"problem": texts(f"{group}.problem", error=error)})
