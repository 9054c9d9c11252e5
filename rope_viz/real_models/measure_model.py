"""Measure a model of the user's on a text: the jobs of its heads, and its loss by position under each method.

The memory that this takes is estimated first, and compared with what is free.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from rope_viz import __version__
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models import head_jobs
from rope_viz.real_models.gguf_model import make_config
from rope_viz.real_models.measure_bands import BandRequest, describe_bands, describe_change, measure_bands
from rope_viz.real_models.measured_file import KIND, LEAST, METHODS, VERSION
from rope_viz.real_models.measured_subjects import load_folder_subject, load_gguf_subject, spec_under
from rope_viz.real_models.text_results import BLOCK, average_blocks

PIECE = 512
"""Tokens of a piece of text and of a random sequence."""
SEED = 43
PlanBands: TypeAlias = Callable[[RopeSpec, Mapping[str, Any]], BandRequest]
"""A function that plans a change from the model's embedding and its measured heads."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def measure_model(
    path: str | Path,
    text: str,
    *,
    tokens: int,
    sequences: int = 6,
    factor: float = 2.0,
    device: str = "cpu",
    bands: PlanBands | None = None,
    more_texts: Sequence[str] = (),
    before: Mapping[str, Any] = MappingProxyType({}),
    save: Callable[[Mapping[str, Any]], None] = lambda measured: None,
    tell: Callable[[str], None] = lambda sentence: None,
    progress: Callable[[str, int, int], None] = lambda step, done, of: None,
) -> dict[str, Any]:
    """Return the measurements of a GGUF file or a folder of transformers on a text, as JSON data.

    Losses are on the first `tokens` of the text under methods with `factor`; heads are measured on up to `sequences`
    pieces of it, and on as many random sequences. `bands` plans a change of some pairs, which is measured on pieces of
    this text and `more_texts`. Measurements `before` that say the same of themselves are continued, and `save` gets
    them after each step. `tell` gets the memory that is needed before anything is loaded. Raises `ValueError` for a
    model that does not fit or is not supported, and for a short text.
    """
    path = Path(path)
    require_device(device)
    folder = (path / "config.json").is_file()
    need = estimate_folder(path, tokens) if folder else estimate_gguf(path, tokens)
    tell(require_memory(path.name, need, device))
    subject, encode = load_folder_subject(path, device) if folder else load_gguf_subject(path, device)
    ids = encode(text)
    if len(ids) < LEAST:
        raise ValueError(f"the text must have at least {LEAST} tokens, got {len(ids):,}")
    size = min(PIECE, len(ids))
    pieces = [ids[first : first + size] for first in range(0, len(ids) - size + 1, size)][:sequences]
    read = np.concatenate([np.array(subject.prefix, dtype=ids.dtype), ids])
    read = read[: min(len(read), tokens) // BLOCK * BLOCK]
    packages = ("numpy", "torch", *(("transformers",) if folder else ("tokenizers",)))
    about = {
        "model": subject.name,
        "config": subject.config,
        "kinds": {str(layer): kind for layer, kind in subject.kinds.items()},
        "dtype": subject.dtype,
        "device": device,
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "text_tokens": len(ids),
        "tokens": size,
        "sequences": len(pieces),
        "seed": SEED,
        "thresholds": head_jobs.THRESHOLDS,
        "prefix": len(subject.prefix),
        "versions": {"rope-viz": __version__} | {name: importlib.metadata.version(name) for name in packages},
    }
    loss = {"factor": factor, "tokens": len(read), "block": BLOCK}
    if is_same(before, about, loss):
        measured = dict(before)
    else:
        rng = np.random.default_rng(SEED)
        halves = head_jobs.random_halves(subject.vocabulary, size, len(pieces), rng)
        rows = head_jobs.measure_heads(subject, pieces, halves, lambda done, of: progress("heads", done, of))
        methods = METHODS[:1] if subject.spec.is_scaled else METHODS
        losses = {}
        for done, method in enumerate(methods, 1):
            spec = spec_under(subject, method, factor)
            blocks = average_blocks(subject.losses(read, spec), BLOCK)
            losses[method] = [round(float(value), 4) for value in blocks[0]]
            progress("losses", done, len(methods))
        measured = {"kind": KIND, "version": VERSION, "about": about, "rows": rows, "loss": loss | {"methods": losses}}
    if bands is not None:
        request = bands(subject.spec, measured["rows"])
        texts_sha256 = [hashlib.sha256(each.encode()).hexdigest() for each in (text, *more_texts)]
        described = describe_bands(request) | {"text_sha256": texts_sha256}
        table = measured.get("bands") or {"about": {}, "rows": {}}
        if {name: table["about"].get(name) for name in described} != described:
            table = {"about": described, "rows": {}}
        table["about"].setdefault("changes", {})[request.condition] = describe_change(request.change)
        measured["bands"] = table
        save(measured)
        texts = [ids, *(encode(each) for each in more_texts)]
        measure_bands(subject, encode, texts, request, table, lambda: save(measured), progress)
    return measured


def is_same(before: Mapping[str, Any], about: Mapping[str, Any], loss: Mapping[str, Any]) -> bool:
    """True if measurements of heads and losses say this of themselves, in JSON's types."""
    wanted = json.loads(json.dumps({"kind": KIND, "version": VERSION, "about": about}, default=str))
    described = {name: before.get("loss", {}).get(name) for name in loss}
    return described == loss and all(before.get(name) == value for name, value in wanted.items())


def estimate_gguf(path: Path, tokens: int) -> Need:
    """Estimate the memory for the model of a GGUF file, which is computed in float32, from its header."""
    header = read_header(path)
    sizes = [math.prod(place.shape) for place in header.tensors.values()]
    work = estimate_work(make_config(header), PIECE, tokens, 4)
    # While a tensor is read, its stored numbers and intermediate ones are in memory, too.
    return Need(4 * sum(sizes), max(work, 8 * max(sizes)))


def estimate_folder(folder: Path, tokens: int) -> Need:
    """Estimate the memory for the model in a folder from the size of its files. Raises `ValueError` without files."""
    try:
        import transformers
    except ImportError:
        raise ValueError("measuring a folder needs transformers: pip install 'rope-viz[transformers]'") from None
    found = next((files for pattern in WEIGHTS if (files := sorted(folder.glob(pattern)))), None)
    if found is None:
        raise ValueError(f"{folder} has no weights: {' or '.join(WEIGHTS)}")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config().to_dict()
    return Need(sum(file.stat().st_size for file in found), estimate_work(config, PIECE, tokens, 4))


GB, MB = 1e9, 1e6

PROC, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Need:
    """Estimated bytes of a model's weights and of the largest intermediate results of a measurement."""

    weights: int
    work: int

    @property
    def total(self) -> int:
        return self.weights + self.work


def free_memory() -> int | None:
    """Return the free bytes of main memory, within the limit of a container; None where the system does not tell."""
    if sys.platform != "linux":
        return physical_memory()
    try:
        lines = PROC.read_text(encoding="ascii").splitlines()
    except OSError:
        return physical_memory()
    found = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    limit = container_memory()
    known = [each for each in (found, limit) if each is not None]
    return min(known) if known else physical_memory()


def container_memory() -> int | None:
    """Return the free bytes within this container's limit (cgroup v2), None without one."""
    try:
        most = (CGROUP / "memory.max").read_text(encoding="ascii").strip()
        if most == "max":
            return None
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        rows = (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        # The kernel gives up cached files before it refuses memory.
        cached = sum(int(row.split()[1]) for row in rows if row.split()[0] == "inactive_file")
        return max(int(most) - used + cached, 0)
    except (OSError, ValueError, IndexError):
        return None


def physical_memory() -> int | None:
    """Return the bytes of main memory, an upper limit where the system does not tell what is free; None if unknown."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(name: str, need: Need, device: str = "cpu") -> str:
    """Return the sentence that a model fits, with both numbers. Raises `ValueError` if it does not.

    On a GPU the weights must fit into main memory, too, because they are loaded there first.
    """
    bytes_of = {"main memory": need.total if device == "cpu" else need.weights}
    free = {"main memory": free_memory()}
    if device != "cpu":
        import torch

        bytes_of[device] = need.total
        free[device] = int(torch.cuda.mem_get_info(device)[0])
    parts = []
    for place, wanted in bytes_of.items():
        there = free[place]
        if there is None:
            parts.append(f"about {format_size(wanted)} of {place}; how much is free is unknown")
        elif wanted > there:
            free_there = format_size(there)
            raise ValueError(
                f"{name} does not fit: it needs about {format_size(wanted)} of {place}, and {free_there} are free"
            )
        else:
            parts.append(f"about {format_size(wanted)} of {place}, of which {format_size(there)} are free")
    return f"{name} needs {' and '.join(parts)}"


def format_size(count: float) -> str:
    """Return bytes as GB, or as MB below a tenth of one."""
    return f"{count / GB:.1f} GB" if count >= 0.1 * GB else f"{max(count / MB, 0.1):.1f} MB"


def require_device(device: str) -> None:
    """Raise `ValueError` for a device that is neither the CPU nor a CUDA GPU of this machine."""
    if device == "cpu":
        return
    import torch

    kind, _, number = device.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f"--device must be cpu, cuda or cuda:NUMBER, got {device}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        there = "no CUDA GPU" if not count else f"{count} CUDA GPU{'s' if count > 1 else ''}"
        raise ValueError(f"--device {device} is not there: PyTorch finds {there} on this machine")


def estimate_work(config: Mapping[str, Any], piece: int, tokens: int, bytes_per_number: int) -> int:
    """Return the bytes of the largest intermediate results: of one piece's heads, or of one text's losses.

    `config` has the names of transformers. A piece keeps q and k of all layers, and a few (tokens, tokens) of a head; a
    text keeps its logits, and the states of one layer.
    """
    heads, width = int(config["num_attention_heads"]), int(config["hidden_size"])
    keys = int(config.get("num_key_value_heads") or heads)
    dim = int(config.get("head_dim") or width // heads)
    heads_bytes = 4 * piece * int(config["num_hidden_layers"]) * (heads + 2 * keys) * dim + 12 * 4 * piece**2
    logits = tokens * int(config["vocab_size"]) * bytes_per_number
    states = tokens * (8 * width + 3 * int(config.get("intermediate_size") or 4 * width)) * 4
    return max(heads_bytes, logits + states)
