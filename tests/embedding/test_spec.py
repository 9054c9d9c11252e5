"""RopeSpec accepts possible values, names the others, and gives plain RoPE."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.embedding.scaling import Linear
from rope_viz.embedding.spec import MAX_LENGTH, Knob, RopeSpec, Scaling, knobs, short_repr


def test_default_sizes_are_the_whole_head_and_trained_length() -> None:
    spec = RopeSpec(96, context=2048)
    assert (spec.rotary_dim, spec.target, spec.pairs) == (96, 2048, 48)


@given(st.integers(1, 256), st.floats(1.01, 1e12))
def test_plain_frequencies_fall_from_one_towards_one_over_base(pairs: int, base: float) -> None:
    found = RopeSpec(2 * pairs, base=base).inv_freq()
    assert found[0] == 1.0
    assert (np.diff(found) < 0).all()
    assert found[-1] == pytest.approx(base ** (1 / pairs - 1), rel=1e-12)


def test_an_odd_partial_rotary_dim_is_rounded_up() -> None:
    spec = RopeSpec(100, 35)
    assert spec.pairs == 18
    assert spec.inv_freq()[1] == pytest.approx(10000 ** (-2 / 35), rel=1e-15)


def test_plain_removes_the_scaling() -> None:
    spec = RopeSpec(64, 32, 5e5, 4096, 8192, Linear(2.0), "interleaved")
    assert spec.plain() == RopeSpec(64, 32, 5e5, 4096, 8192, Scaling(), "interleaved")


def test_specs_compare_by_value() -> None:
    assert RopeSpec(64, base=10000) == RopeSpec(64, 64, 1e4)
    assert len({RopeSpec(64), RopeSpec(64), RopeSpec(64, scaling=Linear())}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        RopeSpec(64).base = 2.0  # type: ignore[misc]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"head_dim": 9}, "head_dim must be even, got 9"),
    ({"head_dim": 0}, "head_dim must be at least 2"),
    ({"head_dim": "128"}, "head_dim must be a number, got '128'"),
    ({"head_dim": True}, "head_dim must be a number"),
    ({"head_dim": 64, "rotary_dim": 65}, "rotary_dim must be at most head_dim = 64"),
    ({"head_dim": 9, "rotary_dim": 9}, "head_dim must be even"),
    ({"base": 1.0}, "base must be greater than 1"),
    ({"base": float("inf")}, "base must be finite"),
    ({"base": 10**400}, "base is too large"),
    ({"context": 0.5}, "context must be a whole number"),
    ({"context": MAX_LENGTH + 1}, "context must be at most 2,147,483,648"),
    ({"target": -1}, "target must be at least 1"),
    ({"scaling": "yarn"}, "scaling must be a scaling method, got 'yarn'"),
    ({"pairing": "both"}, "pairing must be 'half' or 'interleaved', got 'both'"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_field_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RopeSpec(**fields)


@pytest.mark.parametrize("length", [0, -5, 1.5, "8", True, float("nan")])
def test_a_wrong_length_is_named(length: Any) -> None:
    with pytest.raises(ValueError, match="length"):
        RopeSpec(64).inv_freq(length)


def test_every_number_of_a_spec_is_a_knob_with_help() -> None:
    found = knobs(RopeSpec)
    assert list(found) == ["head_dim", "rotary_dim", "base", "context", "target"]
    for control in found.values():
        assert isinstance(control, Knob)
        assert control.low < control.high
        assert control.help.endswith(".")


def test_hostile_value_gives_a_short_one_line_error() -> None:
    assert short_repr("x" * 1000).endswith("…")
    assert len(short_repr(["y"] * 1000)) == 40
