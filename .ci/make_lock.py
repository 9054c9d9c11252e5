"""Write requirements.lock: every package of the container but torch, with the SHA-256 of its files.

Run `python .ci/make_lock.py` in an environment with requirements-dev.txt, after requirements.txt has changed. The
versions are those of that environment, which the tests ran with. The files are those that pip chooses for Python 3.11
on Linux, x86_64 and aarch64; nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
MACHINES = ("x86_64", "aarch64")
# The tags of the C libraries that Debian's image has, newest first.
PLATFORMS = (*(f"manylinux_2_{minor}" for minor in range(28, 16, -1)), "manylinux2014")
HEADER = """\
# Every package of the container but torch, for Python 3.11 on Linux (x86_64 and aarch64), with the hashes of its files
# on PyPI. Written by .ci/make_lock.py from requirements.txt: do not edit. torch comes from its CPU index (Dockerfile).
"""


def wanted() -> list[str]:
    """Return the lines of requirements.txt but torch's, and what torch needs on a CPU."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for text in lines if (line := text.partition("#")[0].strip()) and not line.startswith("torch==")]
    needs = [each for each in metadata.requires("torch") or () if ";" not in each]
    return [*pinned, *needs]


def pip_flags(machine: str) -> list[str]:
    """Return the flags that make pip choose files for Python 3.11 on Linux on this machine."""
    platforms = [flag for name in PLATFORMS for flag in ("--platform", f"{name}_{machine}")]
    return ["--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:", *platforms]


def resolve(machine: str, *arguments: str) -> dict[str, tuple[str, str]]:
    """Return {name: (version, SHA-256)} of what pip would install; raise `CalledProcessError` if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), "--target", folder, *pip_flags(machine), *arguments]
        subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {
        each["metadata"]["name"].lower().replace("_", "-"): (
            each["metadata"]["version"],
            each["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for each in found
    }


def main() -> None:
    """Write the file."""
    installed = [f"{each.name}=={each.version}" for each in metadata.distributions() if each.name != "torch"]
    with tempfile.TemporaryDirectory() as folder:
        tested = Path(folder, "tested.txt")
        tested.write_text("\n".join(installed), encoding="utf-8")
        found = [resolve(machine, "-c", str(tested), *wanted()) for machine in MACHINES]
    lines = []
    for name in sorted(found[0] | found[1]):
        entries = [part[name] for part in found if name in part]
        hashes = sorted({digest for _, digest in entries})
        lines.append(" \\\n    ".join([f"{name}=={entries[0][0]}", *(f"--hash=sha256:{digest}" for digest in hashes)]))
    LOCK.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
