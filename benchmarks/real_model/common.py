"""What the scripts of this folder share: the model, the texts, and a results file that an interrupted run continues."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.real_models.torch_forward import TorchLm
from rope_viz.storage.write_file import write_file
from rope_viz.tiny_lm.numpy_model import TinyLm

ROOT = Path(__file__).resolve().parents[2]
NOVELS = ("northangerabbey", "persuasion", "prideprejudice", "emma", "mansfieldpark", "sensesensibility")
TEXT_SOURCE = "Jane Austen's novels (public domain) as in the R package janeaustenr 1.0.0 (Debian's r-cran-janeaustenr)"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the flags that all scripts have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("model", help="a GGUF file, such as `rope-viz get-model smollm2` takes out")
    made.add_argument("--texts", required=True, type=Path, help="folder of NAME.txt, as write_texts.R makes it")
    made.add_argument("-o", "--output", required=True, type=Path, help="results file; its rows are not repeated")
    made.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of weights and states")
    made.add_argument("--device", default="cpu")
    return made


@dataclass
class Results:
    """A JSON file {"about": {...}, "rows": {key: row}}, written after every row."""

    path: Path
    about: dict[str, Any]
    rows: dict[str, Any] = field(default_factory=dict)

    def add(self, key: str, row: Any) -> None:
        """Keep a row and write the file."""
        self.rows[key] = row
        self.save()
        print(f"{self.path.name}: {key}", flush=True)

    def save(self) -> None:
        """Write the file whole."""
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in self.rows.items())
        text = f'{{\n "about": {json.dumps(self.about)},\n "rows": {{\n{rows}\n }}\n}}\n'
        write_file(self.path, text.encode())


class Bench:
    """The model, its tokenizer, and the results file of one script."""

    def __init__(self, parsed: argparse.Namespace, **about: Any) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.folder: Path = parsed.texts
        self.model: TinyLm = load_gguf(parsed.model)
        self.tokenizer = make_tokenizer(read_header(parsed.model, long_arrays=True))
        self.torch = TorchLm(self.model, parsed.device, getattr(torch, parsed.dtype))
        described = describe(parsed.model, versions=("numpy", "torch", "tokenizers")) | {
            "texts": TEXT_SOURCE,
            "text_sha256": {},
            "dtype": parsed.dtype,
            **about,
        }
        rows = {}
        if parsed.output.is_file():
            old = json.loads(parsed.output.read_text(encoding="utf-8"))
            same = [name for name in described if name not in ("commit", "text_sha256")]
            if any(old["about"].get(name) != described[name] for name in same):
                raise SystemExit(f"{parsed.output} was made with other settings: choose another file")
            rows, described = old["rows"], old["about"]
        self.results = Results(parsed.output, described, rows)

    def tokens(self, name: str, count: int, first: int = 0) -> np.ndarray:
        """Return tokens of a text from number `first` on."""
        raw = (self.folder / f"{name}.txt").read_bytes()
        self.results.about["text_sha256"][name] = sha256(raw)
        ids = self.tokenizer.encode(raw.decode("utf-8"), add_special_tokens=False).ids[first : first + count]
        if len(ids) < count:
            raise SystemExit(f"{name} has fewer than {first + count:,} tokens")
        return np.asarray(ids)


def describe(model: str, *, versions: tuple[str, ...], commit: str = "") -> dict[str, Any]:
    """Return what a results file says of its script, model, commit and these packages.

    `commit` is for a copy of the files without their repository.
    """
    return {
        "script": Path(sys.argv[0]).name,
        "model": {"file": Path(model).name, "sha256": sha256(Path(model).read_bytes())},
        "commit": find_commit() or commit,
        "versions": {name: importlib.metadata.version(name) for name in versions},
    }


def find_commit() -> str:
    """Return the commit of this checkout, "" without Git or a repository."""
    try:
        return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def sha256(raw: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(raw).hexdigest()
