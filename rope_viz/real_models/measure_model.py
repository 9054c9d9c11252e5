"""Measure a model of the user's on a text: the jobs of its heads, and its loss by position under each method."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rope_viz import __version__
from rope_viz.models.formats.gguf import read_header
from rope_viz.real_models import head_jobs
from rope_viz.real_models.free_memory import Need, estimate_work, require_device, require_memory
from rope_viz.real_models.gguf_model import make_config
from rope_viz.real_models.measured_file import KIND, LEAST, METHODS, VERSION
from rope_viz.real_models.measured_subjects import load_folder_subject, load_gguf_subject, spec_under
from rope_viz.real_models.text_results import BLOCK, average_blocks

PIECE = 512
"""Tokens of a piece of text and of a random sequence."""
SEED = 43
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def measure_model(
    path: str | Path,
    text: str,
    *,
    tokens: int,
    sequences: int = 6,
    factor: float = 2.0,
    device: str = "cpu",
    tell: Callable[[str], None] = lambda sentence: None,
    progress: Callable[[str, int, int], None] = lambda step, done, of: None,
) -> dict[str, Any]:
    """Return the measurements of a GGUF file or a folder of transformers on a text, as JSON data.

    Losses are on the first `tokens` of the text under methods with `factor`; heads are measured on up to `sequences`
    pieces of it, and on as many random sequences. `tell` gets the memory that is needed before anything is loaded.
    Raises `ValueError` for a model that does not fit or is not supported, and for a short text.
    """
    path = Path(path)
    require_device(device)
    folder = (path / "config.json").is_file()
    need = estimate_folder(path, tokens) if folder else estimate_gguf(path, tokens)
    tell(require_memory(path.name, need, device))
    subject, ids = (load_folder_subject if folder else load_gguf_subject)(path, text, device)
    if len(ids) < LEAST:
        raise ValueError(f"the text must have at least {LEAST} tokens, got {len(ids):,}")
    size = min(PIECE, len(ids))
    pieces = [ids[first : first + size] for first in range(0, len(ids) - size + 1, size)][:sequences]
    rng = np.random.default_rng(SEED)
    halves = head_jobs.random_halves(subject.vocabulary, size, len(pieces), rng)
    rows = head_jobs.measure_heads(subject, pieces, halves, lambda done, of: progress("heads", done, of))
    read = np.concatenate([np.array(subject.prefix, dtype=ids.dtype), ids])
    read = read[: min(len(read), tokens) // BLOCK * BLOCK]
    methods = METHODS if subject.spec.scaling.name == "none" else METHODS[:1]
    losses = {}
    for done, method in enumerate(methods, 1):
        spec = spec_under(subject, method, factor)
        blocks = average_blocks(subject.losses(read, spec), BLOCK)
        losses[method] = [round(float(value), 4) for value in blocks[0]]
        progress("losses", done, len(methods))
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
    loss = {"factor": factor, "tokens": len(read), "block": BLOCK, "methods": losses}
    return {"kind": KIND, "version": VERSION, "about": about, "rows": rows, "loss": loss}


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
