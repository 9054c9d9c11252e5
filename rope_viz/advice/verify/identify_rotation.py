"""Which rotary embedding a list of frequencies, or a vector before and after its rotation, came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from rope_viz.advice.verify import check_rope
from rope_viz.advice.verify.check_rope import Difference
from rope_viz.advice.verify.conformance import build_case
from rope_viz.embedding.spec import FloatArray
from rope_viz.storage.decode_json import decode_json
from rope_viz.studies.vectors import MAX_TEXT, parse_vector, read_vectors, require_size

Values: TypeAlias = Mapping[str, Any]
LONGEST = 1 << 13
NAMES = {"before": "q", "after": "rotated_q", "position": "positions"}
EXAMPLE = '{"inv_freq": [1, 0.8, …]} or {"q": […], "rotated_q": […], "position": 1}'
LAYOUTS = (("half", "half"), ("interleaved", "interleaved"), ("interleaved", "half"))
"""How pairs lie in q before and after. DeepSeek's code takes adjacent pairs and returns two halves."""


@dataclass(frozen=True)
class Method:
    """A method that gives a list of frequencies: its base, factor, and the pairs between which it blends.

    `name` is "plain", "linear", "llama3" or "yarn", "" where none of them gives the list. `kept` is the last pair that
    is unscaled, `divided` the first that is divided by the whole factor. `still` counts the pairs of frequency zero.
    """

    name: str
    base: float = 0.0
    factor: float = 1.0
    kept: int = 0
    divided: int = 0
    still: int = 0


@dataclass(frozen=True)
class Identified:
    """What the values are: their layout, rotated dimensions and method, and how they differ from a config.

    `layout` and `attention_factor` are known from rotated vectors only, `method` only where the frequencies are.
    `layout` is None for a list of frequencies, and "" where no pairing fits.
    `findings` are those of the conformance kit; none means that transformers computes the same.
    """

    rotary_dim: int
    method: Method | None
    findings: tuple[Difference, ...]
    layout: str | None = None
    attention_factor: float = 1.0


def read_values(name: str, data: bytes) -> Values:
    """Read frequencies, or vectors with positions, from a file. Raise `ValueError` that says what to write."""
    require_size(len(data), "the file", MAX_TEXT)
    if PurePath(name).suffix.lower() == ".json":
        found = decode_json(data, f"the file is not JSON; write {EXAMPLE}")
    else:
        arrays = read_vectors(name, data)
        found = dict(arrays) if {"q", "before"} & set(arrays) else next(iter(arrays.values())) if arrays else []
    if not isinstance(found, dict):
        found = {"inv_freq": found}
    found = {NAMES.get(key, key): value for key, value in found.items()}
    if "inv_freq" in found:
        return {"inv_freq": as_vector(found["inv_freq"], "inv_freq")}
    missing = [key for key in ("q", "rotated_q", "positions") if key not in found]
    if missing:
        raise ValueError(f"the file has no {missing[0]!r}; write {EXAMPLE}")
    values = {key: as_vector(found[key], key) for key in ("q", "rotated_q", "positions")}
    size, count = len(values["q"]), len(values["positions"])
    if len(values["rotated_q"]) != size * count:
        got = len(values["rotated_q"])
        raise ValueError(f"rotated_q needs {count} x {size} numbers, one row per position, got {got}")
    if (values["positions"] < 0).any() or (values["positions"] != np.round(values["positions"])).any():
        raise ValueError("positions must be whole numbers from 0 on")
    return values


def as_vector(values: Any, name: str) -> FloatArray:
    """Return a list of numbers as float64, whatever its shape. Raise `ValueError` for anything else."""
    try:
        array = np.asarray(values, np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a list of numbers of one length") from None
    if not 1 <= array.size <= LONGEST:
        raise ValueError(f"{name} must have 1 to {LONGEST:,} numbers, got {array.size:,}")
    return parse_vector(array.tolist(), array.size)


def identify(values: Values, config: dict[str, Any], layer: str = "") -> Identified:
    """Identify values that `read_values` read, and compare them with a config. Raise `ValueError` if it has none."""
    case = build_case("config", config, layer)
    if "inv_freq" in values:
        frequencies = values["inv_freq"]
        findings = check_rope.check_inv_freq(case, frequencies)
        return Identified(2 * len(frequencies), find_method(frequencies), tuple(findings))
    q, positions = values["q"], values["positions"]
    rotated = values["rotated_q"].reshape(len(positions), len(q))
    if len(q) != case["head_dim"]:
        raise ValueError(f"q has {len(q)} numbers where a head of this config has {case['head_dim']}")
    own = {**case, "q": q.tolist(), "k": q.tolist(), "positions": positions.tolist()}
    start = case["rotary_start"]
    layout, size, turn = find_layout(q[start:], rotated[:, start:], (case["rotary_dim"], len(q) - start))
    frequencies = find_frequencies(turn, positions)
    return Identified(
        rotary_dim=size,
        method=None if frequencies is None else find_method(frequencies, 1e-3),
        findings=tuple(check_rope.check_rotate(own, rotated, rotated)),
        layout=layout,
        attention_factor=float(np.median(np.abs(turn))) if layout else 1.0,
    )


def find_layout(q: FloatArray, rotated: FloatArray, sizes: tuple[int, ...]) -> tuple[str, int, Any]:
    """Return (layout, rotary size, turn of each position and pair) of rotated vectors; "" if no layout fits.

    In the right layout every pair keeps its length, up to one common factor, and the other numbers are unchanged.
    """
    changed = np.flatnonzero((np.abs(rotated - q) > 1e-6 * np.abs(q).max()).any(axis=0))
    if not changed.size:
        raise ValueError("rotated_q equals q, so no rotation shows; give a position above 0 and a q that is not zero")
    last = int(changed.max()) + 1
    for size in (*sizes, last + last % 2):
        if size < last:
            continue
        for layout in LAYOUTS:
            before, after = join_pairs(q[None], size, layout[0]), join_pairs(rotated, size, layout[1])
            if not np.abs(before).all():
                raise ValueError("q has a pair of zeros, whose rotation does not show; use other numbers")
            lengths = np.abs(after / before)
            if np.abs(lengths - np.median(lengths)).max() <= 1e-2 * np.median(lengths):
                return layout[0] if layout[0] == layout[1] else "split", size, after / before
    return "", last, np.ones((len(rotated), 1))


def join_pairs(vectors: FloatArray, size: int, layout: str) -> Any:
    """Return each pair of the leading `size` numbers as one complex number."""
    if layout == "half":
        return vectors[:, : size // 2] + 1j * vectors[:, size // 2 : size]
    return vectors[:, 0:size:2] + 1j * vectors[:, 1:size:2]


def find_frequencies(turn: Any, positions: FloatArray) -> FloatArray | None:
    """Return the frequencies that give these turns; None without position 1, where no angle passes a half turn."""
    order = np.argsort(positions)
    if 1.0 not in positions or turn.shape[1] < 2:
        return None
    found = np.angle(turn[int(np.flatnonzero(positions == 1.0)[0])])
    if np.median(found) < 0:
        found, turn = -found, np.conj(turn)
    at = 1.0
    for row in order:
        # Larger positions make frequencies more exact, as long as the angle's whole turns are known.
        position = float(positions[row])
        if at < position <= 100 * at:
            angle = np.angle(turn[row])
            found = (angle + 2 * math.pi * np.round((found * position - angle) / (2 * math.pi))) / position
            at = position
    result: FloatArray = np.where(np.abs(found) < 2e-7 / at, 0.0, found)
    return result


def find_method(frequencies: FloatArray, tolerance: float = 1e-4) -> Method | None:
    """Return the base, method and factor that give these frequencies; None for fewer than four."""
    pairs = len(frequencies)
    still = int(np.count_nonzero(frequencies == 0))
    moving = frequencies[frequencies > 0]
    if len(moving) < 4 or len(moving) + still != pairs or (frequencies[: len(moving)] == 0).any():
        return None
    base = find_base(moving / moving[0], pairs, tolerance)
    slowed = base ** (-np.arange(len(moving)) / pairs) / moving
    kept, factor = float(slowed[0]), float(slowed[-1])
    if np.abs(slowed / kept - 1.0).max() <= tolerance:
        is_plain = abs(kept - 1.0) <= tolerance
        return Method("plain" if is_plain else "linear", base, 1.0 if is_plain else kept, still=still)
    blended = np.flatnonzero((slowed > 1.0 + tolerance) & (slowed < factor * (1.0 - tolerance)))
    if abs(kept - 1.0) > tolerance or len(blended) < 3 or factor <= 1.0 or blended[-1] - blended[0] >= len(blended):
        return Method("", base, still=still)
    share = (1.0 / slowed[blended] - 1.0 / factor) / (1.0 - 1.0 / factor)
    plain = base ** (-blended / pairs)
    # YaRN's ramp is a line over pairs, Llama 3's over frequencies.
    misses = {"yarn": miss_of_line(blended, share), "llama3": miss_of_line(plain, share)}
    name = min(misses, key=lambda each: misses[each])
    if misses[name] > 1e-3:
        return Method("", base, still=still)
    return Method(name, base, factor, int(blended[0]) - 1, int(blended[-1]) + 1, still)


def find_base(relative: FloatArray, pairs: int, tolerance: float) -> float:
    """Return the base of frequencies relative to the first, from the longest run that falls evenly."""
    steps = -np.log(relative[1:]) * pairs / np.arange(1, len(relative))
    run = 1
    while run < len(steps) and abs(steps[run] - steps[run - 1]) * (run + 1) / pairs <= tolerance:
        run += 1
    base = math.exp(min(float(steps[run - 1]), 700.0))
    rounded = float(f"{base:.4g}")
    return rounded if abs(base / rounded - 1.0) <= 1e-4 else base


def miss_of_line(at: Any, values: FloatArray) -> float:
    """Return by how much values miss the line that fits them best, at most."""
    line: Callable[[Any], Any] = np.poly1d(np.polyfit(at, values, 1))
    return float(np.abs(line(at) - values).max())
