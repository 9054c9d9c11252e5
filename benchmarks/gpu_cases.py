"""The cases that are measured on GPUs, and the file of a card that they fill."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from rope_viz.kernels.card_files import CardCase, CardMeasurement, CardTime
from rope_viz.kernels.measure import Measurement, Workload, measure

ROOT = Path(__file__).resolve().parents[1]

HEADLINE = Workload(batch=4, tokens=8192, heads=32, k_heads=8, head_dim=128, dtype="bfloat16", device="cuda")
CASES = {
    "32 + 8 heads of 128": HEADLINE,
    "32 + 8 heads of 128, interleaved": replace(HEADLINE, pairing="interleaved"),
    "131,072 tokens": replace(HEADLINE, batch=1, tokens=131_072),
    "16 + 4 heads of 64": replace(HEADLINE, batch=8, heads=16, k_heads=4, head_dim=64),
    "32 of 80 rotate": replace(HEADLINE, k_heads=32, head_dim=80, rotary_dim=32),
    "16 + 8 heads of 256": replace(HEADLINE, heads=16, head_dim=256),
    "one head of 64": replace(
        HEADLINE, batch=16, tokens=65_536, heads=1, k_heads=0, head_dim=64, pairing="interleaved"
    ),
    "40 + 40 heads of 128": replace(HEADLINE, tokens=4096, heads=40, k_heads=40),
    "float32": replace(HEADLINE, batch=2, dtype="float32"),
    "decode": replace(HEADLINE, batch=64, tokens=1),
    "prefill": replace(HEADLINE, batch=1, tokens=4096),
    "32 + 8 heads of 128, backward": replace(HEADLINE, backward=True),
    "32 + 8 heads of 128, interleaved, backward": replace(HEADLINE, pairing="interleaved", backward=True),
}

# The names of a card's file for those of `measure`.
NAMES = {
    "copy": "copy",
    "ours, out=": "rope_viz, out=",
    "ours": "rope_viz",
    "ours, float32 table, out=": "rope_viz, table, out=",
    "ours, float32 table": "rope_viz, table",
    "flash-attention": "flash-attention",
    "flash-attention, float32 table": "flash-attention, float32 table",
    "FLA": "FLA",
    "Liger, in place": "Liger, in place",
    "torch.compile": "torch.compile",
    "eager rotate_half": "eager",
    "eager interleaved": "eager",
}


def measure_cases(
    cases: Sequence[str] = tuple(CASES), *, rounds: int = 25, only: Sequence[str] = tuple(NAMES)
) -> Iterator[tuple[str, dict[str, Measurement]]]:
    """Yield each case with the results by the names of `measure`."""
    for name in cases:
        results: dict[str, Measurement] = {}
        ways = measure(CASES[name], rounds=rounds, only=tuple(only), compiled="torch.compile" in only)
        for way, _, result in ways:
            results[way] = result
        torch.cuda.empty_cache()
        yield name, results


def describe_case(name: str, results: dict[str, Measurement]) -> CardCase:
    """Return a case for the file of a card."""
    load = CASES[name]
    ways = {}
    for way, result in results.items():
        if result.seconds:
            host = 1e6 * sorted(result.host_seconds)[len(result.host_seconds) // 2]
            share = round(result.fraction_of_copy, 4)
            error = None if result.relative_error is None else float(f"{result.relative_error:.3g}")
            ways[NAMES[way]] = CardTime(round(1e6 * result.median, 2), share, error, round(host, 1))
    shapes = [[load.batch, load.tokens, heads, load.head_dim] for heads in (load.heads, load.k_heads) if heads]
    return CardCase(
        name.removesuffix(", backward").removesuffix(", interleaved"),
        "backward" if load.backward else "forward",
        load.pairing,
        load.dtype,
        shapes[0],
        shapes[1] if len(shapes) > 1 else None,
        2 * load.pairs,
        dict(sorted(ways.items(), key=lambda item: -item[1].share_of_copy)),
    )


def describe_card(cases: list[CardCase], rounds: int, missing: Sequence[str]) -> CardMeasurement:
    """Return the file of this machine's card. missing: ways that ran in no case."""
    import triton

    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    today = datetime.date.today().isoformat()
    versions = str(torch.__version__), str(triton.__version__)
    not_measured = ["other cards", "FlashInfer", "Transformer Engine's own kernel", *missing]
    return CardMeasurement(torch.cuda.get_device_name(), today, commit, *versions, rounds, not_measured, cases)
