"""Compare your rotary embedding with known values. Needs NumPy and the files next to this one, nothing else.

    python check_rope.py my_module          # my_module.py has one or more of these functions
    ROPE_MODULE=my_module pytest check_rope.py

    inv_freq(config)             frequencies, radians per position, shape (pairs,); or (frequencies, attention factor)
    cos_sin(config, positions)   cos and sin with the factor, shapes (positions, pairs) or (positions, 2 * pairs)
    rotate(config, q, k, positions)  rotated q and k, shape (positions, head_dim)
    turn_back(config, output, positions)  DeepSeek V4: output of attention, rotated back at the position of the query
    softmax_scale(config)        the factor on q·k before the softmax, DeepSeek's multiplier included

`config` is a config.json of Hugging Face as a dict. Where a value is off, the typical mistake is named.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Case: TypeAlias = Mapping[str, Any]

FREQUENCY_TOLERANCE = 3e-6
TIE = 2e-6  # of several pairs that are off by the same ratio, the first is named
FLOAT32_STEP, BFLOAT16_STEP = 2.0**-24, 2.0**-8
WIDEST_FLOAT32 = 1 << 24
PAIRING, POSITIONS, ANGLES = "pairing", "float32 positions", "bfloat16 angles"
ROUNDED = "frequencies rounded to bfloat16"
ACROSS = "pairs across the halves of the head"
LEADING = "first channels of the head for the last"
NOT_BACK, FORWARD = "output not turned back", "output turned forward"
FUNCTIONS = ("inv_freq", "cos_sin", "rotate", "turn_back", "softmax_scale")


@dataclass(frozen=True)
class Difference:
    """One difference: in which case and function, the mistake that gives this value ("" if none does), and how far off.

    `is_wrong` is False for a remark: the function is as exact as float32 can be, and no more.
    """

    case: str
    function: str
    mistake: str
    detail: str
    is_wrong: bool = True

    def __str__(self) -> str:
        named = self.mistake or "no known mistake gives these values"
        return f"{'WRONG' if self.is_wrong else 'note '} {self.case} {self.function}: {named} ({self.detail})"


def check_inv_freq(case: Case, found: Any) -> list[Difference]:
    """Return what is wrong with frequencies, or with (frequencies, attention factor), of a case."""
    values, factor = found if isinstance(found, tuple) else (found, None)
    values = np.asarray(values, np.float64).ravel()
    findings = [*compare_frequencies(case, values)]
    if factor is not None and not close(float(factor), case["attention_factor"]):
        mistake = name_factor(case["factor_mistakes"], float(factor))
        detail = f"factor {factor:.6g}, not {case['attention_factor']:.6g}"
        findings.append(Difference(case["id"], "inv_freq", mistake, detail))
    return findings


def compare_frequencies(case: Case, values: Array) -> Iterator[Difference]:
    """Yield the finding of frequencies that differ, with the mistake that gives them."""
    right = np.asarray(case["inv_freq"])
    if values.shape == right.shape and is_near(values, right):
        return
    detail = f"{len(values)} pairs, not {len(right)}"
    if values.shape == right.shape:
        apart = np.abs(values - right) / np.where(right == 0, 1.0, right)
        largest = (1 + np.fmax.reduce(apart)) * (1 - TIE)
        pair = int(np.argmax(~(1 + apart < largest)))
        detail = f"pair {pair} is {values[pair]:.6g}, not {right[pair]:.6g}"
    yield Difference(case["id"], "inv_freq", name_frequencies(case, values), detail)


def name_frequencies(case: Case, values: Array) -> str:
    """Return the mistake that gives these frequencies; "" if none does."""
    for name, wrong in case["mistakes"]:
        if len(wrong) == len(values) and is_near(values, np.asarray(wrong)):
            return str(name)
    right = np.asarray(case["inv_freq"])
    if len(right) == len(values) and is_near(values, right, 2.0**-8):
        return ROUNDED
    return ""


def name_factor(mistakes: Mapping[str, float], factor: float) -> str:
    """Return the mistake that gives this factor; "" if none does."""
    return next((name for name, value in mistakes.items() if close(factor, value)), "")


def check_softmax_scale(case: Case, scale: float) -> list[Difference]:
    """Return what is wrong with the factor on q·k."""
    right = case["softmax_scale"]
    if close(scale, right):
        return []
    mistake = name_factor(case["scale_mistakes"], scale)
    return [Difference(case["id"], "softmax_scale", mistake, f"{scale:.6g}, not {right:.6g}")]


def check_cos_sin(case: Case, cos: Any, sin: Any) -> list[Difference]:
    """Return what is wrong with cos and sin, shape (positions, pairs) or (positions, 2 * pairs)."""
    pairs = len(case["inv_freq"])
    cos, sin = (np.asarray(one, np.float64).reshape(len(case["positions"]), -1) for one in (cos, sin))
    if cos.shape[1] == 2 * pairs:
        # Both orders are in use for both pairings, so the order alone is no mistake.
        adjacent = np.array_equal(cos[:, ::2], cos[:, 1::2]) and np.array_equal(sin[:, ::2], sin[:, 1::2])
        cos, sin = (cos[:, ::2], sin[:, ::2]) if adjacent else (cos[:, :pairs], sin[:, :pairs])
    if cos.shape[1] != pairs:
        wrong = [name for name, values in case["mistakes"] if len(values) in (cos.shape[1], cos.shape[1] / 2)]
        return [
            Difference(case["id"], "cos_sin", (wrong or [""])[0], f"{cos.shape[1]} values per position, not {pairs}")
        ]
    return judge(case, "cos_sin", lambda turn: turn, cos + 1j * sin)


def check_rotate(case: Case, q: Any, k: Any) -> list[Difference]:
    """Return what is wrong with rotated q and k, shape (positions, head_dim).

    Adjacent pairs may come out as two halves, as in DeepSeek's code: then q and k have the same dot products.
    """
    for name, rotated in (("q", q), ("k", k)):
        vectors = np.tile(np.asarray(case[name]), (len(case["positions"]), 1))
        rotated = np.asarray(rotated, np.float64).reshape(vectors.shape)
        shows = [lambda turn, v=vectors: turn_vectors(v, turn, case["pairing"], start=case["rotary_start"])]
        if case["pairing"] == "interleaved":
            shows.append(lambda turn, show=shows[0]: split_pairs(show(turn), case["rotary_dim"], case["rotary_start"]))
        found = min((judge(case, "rotate", show, rotated) for show in shows), key=rank)
        if found and not found[0].mistake:
            found = name_rotation(case, "rotate", rotated, rotations(case, vectors), f"rotated {name}") or found
        if found:
            return found
    return []


def check_turn_back(case: Case, found: Any) -> list[Difference]:
    """Return what is wrong with an output of attention that was rotated back, shape (positions, head_dim)."""
    vectors = np.tile(np.asarray(case["output"]), (len(case["positions"]), 1))
    values = np.asarray(found, np.float64).reshape(vectors.shape)
    start, pairing = case["rotary_start"], case["pairing"]
    findings = judge(case, "turn_back", lambda turn: turn_vectors(vectors, np.conj(turn), pairing, start=start), values)
    if findings and not findings[0].mistake:
        right = turns(case, np.asarray(case["inv_freq"]), case["attention_factor"])
        others = (
            (NOT_BACK, vectors),
            (FORWARD, turn_vectors(vectors, right, pairing, start=start)),
            (LEADING, turn_vectors(vectors, np.conj(right), pairing)),
            (PAIRING, turn_vectors(vectors, np.conj(right), other_pairing(case), start=start)),
        )
        findings = name_rotation(case, "turn_back", values, others, "output") or findings
    return findings


def name_rotation(
    case: Case, function: str, values: Array, others: Iterable[tuple[str, Array]], detail: str
) -> list[Difference]:
    """Return the finding with the first of these mistakes that gives the values; [] if none does."""
    early = np.asarray(case["positions"]) <= 4096
    for mistake, other in others:
        if np.allclose(values[early], other[early], atol=2e-3, rtol=0):
            return [Difference(case["id"], function, mistake, detail)]
    return []


def other_pairing(case: Case) -> str:
    """Return the pairing that is not that of the case."""
    return "half" if case["pairing"] == "interleaved" else "interleaved"


def rank(findings: list[Difference]) -> int:
    """Return 0 for no finding, 1 for a remark, 2 for a known mistake and 3 for an unknown one."""
    if not findings:
        return 0
    return 1 if not findings[0].is_wrong else 2 if findings[0].mistake else 3


def split_pairs(vectors: Array, size: int, start: int) -> Array:
    """Return vectors whose `size` numbers from `start` are the first of each pair, then the second of each."""
    stop = start + size
    order = [*range(start), *range(start, stop, 2), *range(start + 1, stop, 2), *range(stop, vectors.shape[1])]
    result: Array = vectors[:, order]
    return result


def rotations(case: Case, vectors: Array) -> Iterator[tuple[str, Array]]:
    """Yield (mistake, rotated vectors) of mistakes that only a rotation shows."""
    turn = turns(case, np.asarray(case["inv_freq"]), case["attention_factor"])
    start = case["rotary_start"]
    yield PAIRING, turn_vectors(vectors, turn, other_pairing(case), start=start)
    if start:
        yield LEADING, turn_vectors(vectors, turn, case["pairing"])
    if case["pairing"] == "half" and 2 * turn.shape[1] < vectors.shape[1]:
        yield ACROSS, turn_vectors(vectors, turn, "half", vectors.shape[1] // 2)
    yield "rotated the other way", turn_vectors(vectors, np.conj(turn), case["pairing"], start=start)
    moving = np.asarray(case["inv_freq"]) > 0
    if not moving.all():
        yield "p-RoPE's pairing", turn_vectors(vectors, turn[:, moving], case["pairing"])


def judge(case: Case, function: str, show: Callable[[Any], Any], found: Any) -> list[Difference]:
    """Return the finding of values that differ from those that `show` makes of the right turns of each pair."""
    right, factor = np.asarray(case["inv_freq"]), case["attention_factor"]
    expected = np.asarray(show(turns(case, right, factor)))
    values = np.asarray(found).reshape(expected.shape)
    positions = np.asarray(case["positions"], np.float64)
    size = size_of(case, function) * max(1.0, abs(factor))
    # Four roundings of float32 on the way to the largest angle, and one of cos and sin.
    room = (4 * FLOAT32_STEP * positions * right.max() + 1e-5) * size
    apart = np.abs(values - expected).max(axis=1)
    if (apart <= room).all():
        last = positions == WIDEST_FLOAT32
        if last.any() and np.array_equal(values[last], values[positions == WIDEST_FLOAT32 + 1]):
            detail = f"position {WIDEST_FLOAT32 + 1:,} has the angles of the one before"
            return [Difference(case["id"], function, POSITIONS, detail, is_wrong=False)]
        return []
    where = int(np.argmax(apart - room))
    detail = f"at position {int(positions[where]):,} off by {apart[where]:.3g}"
    early = positions <= 4096
    for mistake, turn in wrong_turns(case):
        other = np.asarray(show(turn))
        if other.shape == values.shape and (np.abs(values - other).max(axis=1) <= room)[early].all():
            return [Difference(case["id"], function, mistake, detail)]
    is_coarse = (apart <= BFLOAT16_STEP * positions * right.max() * size + room).all()
    return [Difference(case["id"], function, ANGLES if is_coarse else "", detail)]


def wrong_turns(case: Case) -> Iterator[tuple[str, NDArray[np.complex128]]]:
    """Yield (mistake, turns) of every mistake of a case, shape (positions, pairs)."""
    right, factor = np.asarray(case["inv_freq"]), case["attention_factor"]
    for name, values in case["mistakes"]:
        if 2 * len(values) <= case["head_dim"]:
            yield name, turns(case, np.asarray(values), factor)
    for name, value in case["factor_mistakes"].items():
        yield name, turns(case, right, value)


def turns(case: Case, inv_freq: Array, factor: float) -> NDArray[np.complex128]:
    """Return factor * exp(i * angle) of every position and pair, shape (positions, pairs)."""
    angles = np.asarray(case["positions"], np.float64)[:, None] * inv_freq
    result: NDArray[np.complex128] = factor * np.exp(1j * angles)
    return result


def turn_vectors(
    vectors: Array, turn: NDArray[np.complex128], pairing: str, half: int | None = None, start: int = 0
) -> Array:
    """Return vectors, shape (positions, head_dim), whose pairs from the channel `start` are turned.

    `half` is from a channel to its partner. Pairs beyond the head are left out.
    """
    pairs = min(turn.shape[1], (vectors.shape[1] - start) // 2)
    turn = turn[:, :pairs]
    first, second = slice(start, start + 2 * pairs, 2), slice(start + 1, start + 2 * pairs, 2)
    if pairing == "half":
        partner = start + (pairs if half is None else half)
        first, second = slice(start, start + pairs), slice(partner, partner + pairs)
    result = vectors.copy()
    moved = (vectors[:, first] + 1j * vectors[:, second]) * turn
    result[:, first], result[:, second] = moved.real, moved.imag
    return result


def size_of(case: Case, function: str) -> float:
    """Return the largest number that is rotated, which multiplies an error of cos and sin; 1 for cos and sin."""
    rotated = {"rotate": ("q", "k"), "turn_back": ("output",)}.get(function)
    return 1.0 if rotated is None else 2.0 * float(np.max(np.abs([case[name] for name in rotated])))


def is_near(values: Array, right: Array, tolerance: float = FREQUENCY_TOLERANCE) -> bool:
    """Return whether two lists of frequencies are the same, and zero at the same pairs."""
    return bool(np.array_equal(values == 0, right == 0) and np.all(np.abs(values - right) <= tolerance * np.abs(right)))


def close(one: float, other: float) -> bool:
    """Return whether two factors are the same."""
    return abs(one - other) <= 4e-6 * abs(other)


def load_cases(folder: Path | None = None) -> list[dict[str, Any]]:
    """Return the cases of cases.json, from the folder of this file unless another is named."""
    path = (folder or Path(__file__).parent) / "cases.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


def check(functions: Mapping[str, Callable[..., Any]], cases: list[dict[str, Any]]) -> list[Difference]:
    """Return all findings of the given functions, those of `FUNCTIONS` or some of them."""
    findings: list[Difference] = []
    for case in cases:
        config, positions = case["config"], np.asarray(case["positions"])
        if "inv_freq" in functions:
            takes_length = "length" in inspect.signature(functions["inv_freq"]).parameters
            if takes_length or case["length"] is None:
                more = {"length": case["length"]} if takes_length else {}
                findings += check_inv_freq(case, functions["inv_freq"](config, **more))
        if "cos_sin" in functions:
            findings += check_cos_sin(case, *functions["cos_sin"](config, positions))
        if "rotate" in functions:
            q, k = (np.tile(np.asarray(case[name]), (len(positions), 1)) for name in "qk")
            findings += check_rotate(case, *functions["rotate"](config, q, k, positions))
        if "turn_back" in functions and "output" in case:
            output = np.tile(np.asarray(case["output"]), (len(positions), 1))
            findings += check_turn_back(case, functions["turn_back"](config, output, positions))
        if "softmax_scale" in functions:
            findings += check_softmax_scale(case, float(functions["softmax_scale"](config)))
    return findings


def functions_of(module: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module that can be checked. Raise `ValueError` where it has none."""
    found = {name: getattr(module, name) for name in FUNCTIONS if hasattr(module, name)}
    if not found:
        raise ValueError(f"{module.__name__} needs one of the functions {', '.join(FUNCTIONS)}")
    return found


def main(arguments: list[str]) -> int:
    """Check the module of the command line and return the exit code: 0 if nothing is wrong, else 1, or 2 for misuse."""
    if len(arguments) != 1:
        print("python check_rope.py MODULE", file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path.cwd()))
    try:
        functions = functions_of(importlib.import_module(arguments[0].removesuffix(".py")))
    except (ImportError, ValueError) as error:
        print(f"check_rope: {error}", file=sys.stderr)
        return 2
    cases = load_cases()
    findings = check(functions, cases)
    for one in findings:
        print(one)
    wrong = [one for one in findings if one.is_wrong]
    print(f"{', '.join(functions)}: {len(cases)} cases, {len(wrong)} wrong values")
    return 1 if wrong else 0


def test_my_rope() -> None:
    """Check the module that the environment variable ROPE_MODULE names, under pytest."""
    functions = functions_of(importlib.import_module(os.environ["ROPE_MODULE"]))
    wrong = [str(one) for one in check(functions, load_cases()) if one.is_wrong]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
