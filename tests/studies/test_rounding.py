"""Rounding to bf16, fp16 and fp8 is that of torch and of ml_dtypes, bit for bit."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rope_viz.studies.precision import FORMATS, round_to

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "rounding_ml_dtypes.json").read_text())
TORCH = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8-e4m3": torch.float8_e4m3fn,
    "fp8-e5m2": torch.float8_e5m2,
}


@pytest.mark.parametrize("form", FORMATS)
def test_rounding_is_torchs_bit_for_bit(form):
    # Every upper half of a float32, with lower halves on, beside and between the ties, and random ones.
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    random = np.random.default_rng(1).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    bits = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)] + [random])
    values = bits.astype(np.uint32).view(np.float32)
    ours, theirs = round_to(values, form), torch.from_numpy(values.copy()).to(TORCH[form]).float().numpy()
    number = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(ours), ~number)
    np.testing.assert_array_equal(ours.view(np.uint32)[number], theirs.view(np.uint32)[number])


@pytest.mark.parametrize("form", FORMATS)
def test_rounding_is_that_of_ml_dtypes(form):
    ours = round_to(GOLDEN["values"], form)
    theirs = np.array(GOLDEN["rounded"][form], dtype=np.float32)
    np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))


@pytest.mark.parametrize(
    ("position", "nearest"), [(256, 256), (257, 256), (4095, 4096), (15962, 15936), (131071, 131072)]
)
def test_bf16_holds_whole_numbers_only_to_256(position, nearest):
    assert round_to(position, "bf16") == nearest


def test_rounding_preserves_the_shape_of_its_input():
    assert round_to(np.ones((2, 3)), "bf16").shape == (2, 3)
    assert round_to(1.0, "bf16").shape == ()


def test_an_unknown_format_is_named():
    with pytest.raises(ValueError, match="fp4"):
        round_to([1.0], "fp4")
