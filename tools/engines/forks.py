"""Answer many tasks by one engine's script of `rope_viz/probe/engines`: packages are imported once, then it forks.

    python forks.py SCRIPT PACKAGE...

Run by the engine's own Python. Each line of the input is {"task": that of the script, "out": file, "timeout": seconds}.
The last line that the script prints is written to `out`, or {"error": sentence}. Then one line is printed per task.
"""

import importlib
import io
import json
import os
import runpy
import signal
import sys


def main() -> None:
    """Answer every task of the input."""
    script, *packages = sys.argv[1:]
    for name in packages:
        importlib.import_module(name)
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(int(task.get("timeout", 600)))
            answer(script, task)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"status": status}), flush=True)


def answer(script: str, task: dict) -> None:
    """Run the script on one task, and write what it printed last."""
    sys.stdin, sys.stdout = io.StringIO(json.dumps(task["task"])), io.StringIO()
    try:
        runpy.run_path(script, run_name="__main__")
        found = sys.stdout.getvalue().splitlines()[-1]
    except BaseException as error:
        found = json.dumps({"error": f"{type(error).__name__}: {error}"[:400]})
    with open(task["out"] + ".part", "w") as file:
        file.write(found)
    os.rename(task["out"] + ".part", task["out"])


if __name__ == "__main__":
    main()
