"""Write a SHA-256 of everything that a user gets from a checkout, to compare before and after files move.

    python tools/manifest.py --root CHECKOUT -o before.json
    python tools/manifest.py --compare before.json after.json

It hashes each picture for twelve models in four formats, each page's choices with their defaults, `figure --list` and
the help of every command. Pictures of times that this computer measured are left out. Slow pictures, such as those of
a real model or of tiny_lm, are drawn for one model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODELS = tuple(
    """
    llama-2-7b llama-3.1-8b qwen3-8b-yarn internlm2.5-7b phi-3.5-mini gemma-3-27b-global gemma-4-full gpt-j-6b
    pythia-160m deepseek-v2-lite qwen3.5-9b llama-4-scout
    """.split()
)
"""No scaling, Llama 3, YaRN, dynamic NTK, LongRoPE, linear with layer types, proportional, adjacent pairs, a quarter
rotated, latent attention, M-RoPE, layers without RoPE."""
FORMS = ("packed", "csv", "json", "svg")
MEASURED = ("kernels/speeds", "kernels/ways", "rotation/forms")
"""Pictures of measured times."""
SLOW = ("recall", "heads", "learn", "attention/maps", "attention/lengths", "runtimes/models")
"""Pages and pictures that are slow or hardly depend on the model."""
VERSION = re.compile(rb"RoPE Viz \d[\w.]*")
"""The version in a file, which is replaced by one for all: a new release alone changes no picture."""


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    parser.add_argument("-o", "--output", type=Path, help="the JSON file; default: standard output")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="FILE", help="print what differs between two files")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compare:
        sys.exit(compare(*(json.loads(path.read_text(encoding="utf-8")) for path in given.compare)))
    if given.part is not None:
        sys.path.insert(0, str(Path.cwd()))
        print(json.dumps(hash_part(given.part)))
        return
    text = json.dumps(read_checkout(given.root.resolve()), indent=1, sort_keys=True, ensure_ascii=False)
    if given.output:
        given.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Print which entries differ, are gone or are new; return 1 if there are any."""
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    for key in sorted(changed):
        print("gone:" if key not in after else "new:" if key not in before else "differs:", key)
    print(f"{len(changed)} of {len(before.keys() | after.keys())} entries differ")
    return bool(changed)


def read_checkout(root: Path) -> dict[str, str]:
    """Return {what: its hash} of a checkout, computed by two processes at once."""
    parts = [[str(Path(__file__).resolve()), "--part", str(part)] for part in range(2)]
    with ThreadPoolExecutor(2) as pool:
        found = [json.loads(output) for output in pool.map(lambda command: run_python(root, command), parts)]
        command_line = read_commands(root, lambda commands: list(pool.map(lambda one: run_python(root, one), commands)))
    return dict(sorted({**found[0], **found[1], **command_line}.items()))


def run_python(root: Path, arguments: Sequence[str]) -> str:
    """Return what Python prints when it runs in a checkout."""
    environment = os.environ | {"COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def read_commands(root: Path, run: Callable[[list[list[str]]], list[str]]) -> dict[str, str]:
    """Return the hashes of what the command line says about itself."""
    start = ["-m", "rope_viz"]
    listed = run_python(root, [*start, "--help"])
    names = re.findall(r"^    ([a-z-]+)(?: |$)", listed, re.MULTILINE)
    commands = {"--help": [*start, "--help"], "figure --list": [*start, "figure", "--list"]}
    commands |= {f"{name} --help": [*start, name, "--help"] for name in names}
    return {f"rope-viz {name}": digest(text) for name, text in zip(commands, run([*commands.values()]), strict=True)}


def digest(content: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


class Kit:
    """What of a checkout's package is needed, wherever it is."""

    def __init__(self) -> None:
        """Import it from the current folder."""
        try:
            from rope_viz.pages import registry
            from rope_viz.picture import export, read_address
        except ImportError:  # an older checkout
            from rope_viz.pictures import export, registry
            from rope_viz.pictures import registry as read_address
        self.groups: Mapping[str, Any] = {name: registry.page(name) for name in registry.PAGES}
        self.render, self.read_request = export.render, read_address.read_request


def hash_part(part: int) -> dict[str, str]:
    """Return the hashes of every other picture, and of the choices of its page, for the package in this folder."""
    kit = Kit()
    pictures = [picture for page in kit.groups.values() for picture in page.pictures.values()]
    found = {}
    for name, page in [*kit.groups.items()][part::2]:
        for choice in page.choices:
            found[f"choice {choice.key}"] = digest(describe_choice(kit, name, choice))
    for picture in pictures[part::2]:
        for model, form in list_files(picture.address):
            request = kit.read_request(kit.groups[picture.page], {"model": model})
            try:
                content = kit.render(picture, picture.finished(request), form)
            except ValueError as error:
                content = f"refused: {error}".encode()
            found[f"{picture.address} {model} {form}"] = digest(VERSION.sub(b"RoPE Viz 0.2.0", content))
    return found


def list_files(address: str) -> Iterator[tuple[str, str]]:
    """Yield the models and formats in which a picture is hashed."""
    if address in MEASURED:
        return
    slow = address in SLOW or address.partition("/")[0] in SLOW
    for model in MODELS[2:3] if slow else MODELS:
        yield from ((model, form) for form in FORMS)


def describe_choice(kit: Kit, group: str, choice: Any) -> str:
    """Return a choice's key, label and options, with its default for each model."""
    defaults = []
    for model in MODELS:
        request = kit.read_request(kit.groups[group], {"model": model})
        try:
            defaults.append(choice.text(choice.default(request)))
        except (ValueError, KeyError) as error:
            defaults.append(f"{type(error).__name__}: {error}")
    return json.dumps([choice.key, choice.label, choice.help, type(choice).__name__, choice.describe(), defaults])


if __name__ == "__main__":
    main()
