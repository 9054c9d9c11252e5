"""A server process that ends together with the command that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 20.0
"""Seconds that a server may take to end after SIGTERM."""

# Run before the server, in its process. On Linux, PR_SET_PDEATHSIG ends it with its parent, and survives exec. This is
# not done between fork and exec, because a thread of the parent may hold a lock then.
TIED = """
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class Served:
    """A running server in its own session, so that signals of the terminal reach this process, which forwards them.

    The first signal asks it to end; a second Ctrl-C kills it. A signal ignored here, as with nohup, stays ignored.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.told = False
        self.process: subprocess.Popen[bytes] | None = None
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.stop)
        self.process = subprocess.Popen(
            tied(command), cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )
        if self.told:
            self.process.terminate()

    def stop(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        if not self.told:
            self.told = True
            if self.process is not None:
                self.process.terminate()
            end = threading.Timer(PATIENCE, self.kill)
            end.daemon = True
            end.start()
        elif number == signal.SIGINT:
            self.kill()

    def kill(self) -> None:
        """Kill the server and its workers at once."""
        if self.process is not None:
            with contextlib.suppress(OSError):  # they have already ended
                os.killpg(self.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()

    def wait(self) -> int:
        """Wait for the end and return the exit code: at least 0 after `stop`, 128 + signal after another kill."""
        assert self.process is not None
        code = self.process.wait()
        if self.told:
            return max(code, 0)
        if code >= 0:
            return code
        # Workers whose supervisor was killed would keep the port in use.
        self.kill()
        print(f"rope-viz: the server was stopped by signal {-code}", file=sys.stderr)
        return 128 - code


def tied(command: Sequence[str]) -> list[str]:
    """Return the command; on Linux wrapped so that it ends with this process, however that ends."""
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-I", "-S", "-c", TIED, str(os.getpid()), *command]
