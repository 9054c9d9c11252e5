"""A server as a process of its own: who stops the command stops the server, and it does not outlive the command."""

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
"""Seconds that a server has to end in once it was told to."""

# Run before the server, in its process: Linux then ends it with whoever started it (PR_SET_PDEATHSIG, which a program
# that is run in place keeps). Done here and not between fork and exec, where threads of the parent may hold a lock.
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
    """A server that runs, in a session of its own: a terminal's Ctrl-C and its closing come here, and are handed on.

    The first asks it to end, a second Ctrl-C ends it at once. What is ignored here, as with nohup, stays ignored.
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
        """A signal came."""
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
        """End it and its workers at once."""
        if self.process is not None:
            with contextlib.suppress(OSError):  # nobody is left
                os.killpg(self.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()

    def wait(self) -> int:
        """Its exit code once it has ended: 0 where it was told to, 128 and the signal where another ended it."""
        assert self.process is not None
        code = self.process.wait()
        if self.told:
            return max(code, 0)
        if code >= 0:
            return code
        # Workers whose supervisor was killed would keep the port.
        self.kill()
        print(f"rope-viz: the server was ended by signal {-code}", file=sys.stderr)
        return 128 - code


def tied(command: Sequence[str]) -> list[str]:
    """The same command; on Linux it ends where this process is gone, however that went."""
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-I", "-S", "-c", TIED, str(os.getpid()), *command]
