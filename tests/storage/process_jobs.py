"""Functions that the tests of `storage.processes` run in other processes.

It imports little, because each of those processes loads it.
"""

import os
import signal
import subprocess
import sys
import threading
import time

from rope_viz.storage.decode_json import ContentError
from rope_viz.texts import current_language

PREPARED = []


def prepare(value):
    PREPARED.append(value)


def add(a, b):
    return a + b


def read_prepared():
    return os.getpid(), PREPARED


def read_language():
    """Return the language of this thread and of another one."""
    languages = [current_language()]
    thread = threading.Thread(target=lambda: languages.append(current_language()))
    thread.start()
    thread.join()
    return languages


def refuse(problem):
    raise ContentError(problem)


class OddError(ValueError):
    """An error that is pickled, and cannot be unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def refuse_oddly():
    raise OddError(1, 2)


def fail():
    raise KeyError("a")


def return_a_function():
    return lambda: None


def work_for(seconds):
    """Keep a core busy, outside any system call."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def sleep(seconds):
    time.sleep(seconds)


def allocate(size):
    return len(bytes(size))


KEPT = []


def keep(size):
    KEPT.append(bytearray(size))
    return os.getpid()


def end(code):
    os._exit(code)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def count(most, tell):
    for number in range(most):
        tell({"number": number})
    return "done"


def print_and_read():
    """Print as libraries and the programs that they start do; return what is left of the input."""
    print("printed")
    os.write(1, b"written\n")
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    return sys.stdin.read()


def start_child_and_tell(tell):
    """Tell the numbers of this process and of one that it starts, and work."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    tell((os.getpid(), child.pid))
    work_for(60)


def read_niceness():
    return os.nice(0)


def read_variables(*names):
    return [os.environ.get(name) for name in names]


def read_path():
    return sys.path[0], os.getcwd()


def allocate_and_tell(arguments, tell):
    """Allocate twice this number of bytes, without touching them."""
    tell({"size": len(bytes(2 * arguments["number"]))})


def tell_environment(arguments, tell):
    threads = read_variables("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    tell({"niceness": read_niceness(), "threads": threads})


def tell_and_sleep(arguments, tell):
    tell({"fraction": 0.5})
    time.sleep(60)


class Content:
    """A content whose end the tests can see."""


def end_with(content, code):
    os._exit(code)


def refuse_with(content, code):
    raise ContentError(f"it is refused with {code}")
