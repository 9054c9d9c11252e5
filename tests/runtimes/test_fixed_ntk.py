"""rope_type "ntk" of the GTE models: what vLLM computes, and what the others and the check say of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.models.model_config import from_config
from rope_viz.runtimes import emulate

ROOT = Path(__file__).parents[1]
# Made by make_fixed_ntk.py from the class of vLLM 0.33.0.
ROWS = json.loads((ROOT / "goldens" / "fixed_ntk.json").read_text())["rows"]
# Public numbers of Alibaba-NLP/gte-large-en-v1.5, typed in.
GTE = json.loads((ROOT / "cases" / "gte-large-en-v1.5.json").read_text())


def config_of(row: dict[str, Any], kind: str) -> dict[str, Any]:
    rope = {"type": "ntk", **{key: row[key] for key in ("factor", "mixed_b") if key in row}}
    sizes = {"hidden_size": 16 * row["head_dim"], "num_attention_heads": 16, "max_position_embeddings": 8192}
    return {"model_type": kind, **sizes, "rope_theta": row["rope_theta"], "rope_scaling": rope}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"factor {row['factor']:g}")
def test_fixed_ntk_is_what_vllm_computes(row):
    spec = from_config(config_of(row, "new"))[""]
    np.testing.assert_allclose(spec.inv_freq(), row["inv_freq"], rtol=5e-7)
    np.testing.assert_allclose(spec.inv_freq(100_000), row["inv_freq"], rtol=5e-7)
    assert spec.attention_factor() == 1.0
    found = emulate(config_of(row, "llama"), runtime="vllm")
    np.testing.assert_allclose(found.inv_freq, row["inv_freq"], rtol=5e-7)


@pytest.mark.parametrize("runtime", ["transformers", "sglang", "mlx-lm", "tensorrt-llm"])
def test_other_runtimes_refuse_fixed_ntk(runtime):
    assert emulate(config_of(ROWS[0], "llama"), runtime=runtime).inv_freq is None


def test_gte_is_read_with_a_note_and_no_error():
    found = {one.rule: one for one in check(GTE)}
    assert {one.severity for one in found.values()} == {"note"}
    assert "Only vLLM and a model's own code read rope_type ntk" in found["fixed-ntk"].message


def test_transformers_refuses_fixed_ntk_of_a_listed_type():
    errors = [one.rule for one in check(config_of(ROWS[0], "llama")) if one.severity == "error"]
    assert errors == ["transformers-refuses"]
