"""Kills and full disks while a command writes its file: the old file or the new one must be there, whole.

Run by hand: python benchmarks/abuse_writes.py --times 20. `figure -o` and `report -o` each run again and again over the
same file. This script waits for the temporary file that they write, and kills them at a random moment after it is
there. Then each command runs on a disk that is too small (a tmpfs, where this user may mount one) and under a limit of
file size. A report has the pictures of one page only, because all of them take a minute. Linux only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "figure": ["figure", "frequencies/heatmap", "-o", "out.html"],
    "report": ["report", "llama-2-7b", "-o", "out.html"],
    "report.md": ["report", "llama-2-7b", "-o", "out.md"],
}
# Runs a command; a report gets one page's pictures.
COMMAND = """
import sys
from rope_viz.cli.main import main
from rope_viz.pages import registry
pictures = [each for each in registry.pictures() if each.page == "frequencies"]
registry.pictures = lambda: pictures
sys.exit(main(sys.argv[1:]))
"""
# Mounts a tmpfs over the folder given first and runs the rest there, with the old file put on it.
FULL = 'cp "$1/$2" /tmp/old.$$; mount -t tmpfs -o size=64k none "$1" && cd "$1" && cp /tmp/old.$$ "$2"; shift; '
FULL += 'rm /tmp/old.$$; name=$1; shift; "$@"; code=$?; cat "$name"; exit $code'
OLD = b"the old content\n" * 100
Running: TypeAlias = "subprocess.Popen[bytes]"


def start(command: list[str], folder: Path, *, most: int | None = None, before: tuple[str, ...] = ()) -> Running:
    """Start a command of this checkout in a folder; `most` limits the size of its files."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    line = [*before, sys.executable, "-c", COMMAND, *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        line, cwd=folder, env=environment, preexec_fn=limit, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def temporaries(folder: Path) -> list[Path]:
    """Return the temporary files in a folder and below."""
    return list(folder.rglob("*.tmp"))


def kill_in_the_write(command: list[str], folder: Path, chance: random.Random) -> bool:
    """Kill a command after its temporary file is there; return whether the file was still there after the kill."""
    with start(command, folder) as process:
        while process.poll() is None and not temporaries(folder):
            time.sleep(0.0002)
        # A file takes some milliseconds to write, and a report in Markdown has several.
        time.sleep(chance.random() * chance.choice([0.0, 0.01, 0.2]))
        process.kill()
    left = temporaries(folder)
    for path in left:
        path.unlink()
    return bool(left)


def digest(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def measure_kills(name: str, times: int, chance: random.Random) -> bool:
    """Kill a command some times and print what was left; return whether the file was always whole."""
    command, outcomes, within = COMMANDS[name], Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / command[-1]
        with start(command, path.parent) as process:
            process.communicate()
        new = digest(path)
        pictures = {each: digest(each) for each in path.parent.rglob("*") if each.is_file() and each != path}
        for _ in range(times):
            path.write_bytes(OLD)
            within += kill_in_the_write(command, path.parent, chance)
            found = path.read_bytes()
            whole = "old" if found == OLD else "new" if digest(path) == new else "broken"
            if any(digest(each) != content for each, content in pictures.items()):
                whole = "broken"
            outcomes[whole] += 1
    print(f"{name:10s} {times} kills, {within} with the temporary file left: {dict(outcomes)}", flush=True)
    return not outcomes["broken"]


def measure_full_disk(name: str) -> bool:
    """Run a command on a full disk and under a limit of file size, and print whether the old file stayed."""
    command, unchanged = COMMANDS[name], []
    may_mount = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
    )
    for way in ("limit", "tmpfs"):
        if way == "tmpfs" and (shutil.which("unshare") is None or may_mount.returncode):
            print(f"{name:10s} no tmpfs can be mounted", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / command[-1]
            path.write_bytes(OLD)
            if way == "limit":
                with start(command, path.parent, most=8192) as process:
                    problem, found = process.communicate()[1], path.read_bytes()
            else:
                inside = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL, "sh", folder, path.name)
                with start(command, path.parent, before=inside) as process:
                    found, problem = process.communicate()
            unchanged.append(found == OLD and process.returncode == 2)
            last = problem.decode(errors="replace").strip().rpartition("\n")[2]
            print(f"{name:10s} {way}: {'the old file stayed' if unchanged[-1] else 'broken'} ({last})", flush=True)
    return all(unchanged)


def main() -> int:
    """Kill and starve each command; return 1 if a file was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="kills of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smallest", action="store_true", help="one kill of one command")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if options.smallest:
        return 0 if measure_kills("figure", 1, chance) else 1
    whole = [measure_kills(name, options.times, chance) for name in COMMANDS]
    whole += [measure_full_disk(name) for name in COMMANDS]
    print("all files whole" if all(whole) else "a file was broken")
    return 0 if all(whole) else 1


if __name__ == "__main__":
    sys.exit(main())
