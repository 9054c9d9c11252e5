"""`table` and `export` show what DeepSeek's attention multiplies its softmax scale by."""

import json
import math

import pytest

from rope_viz.cli.main import main

# (0.1 · mscale_all_dim · ln factor + 1)²: the scaling of transformers' DeepseekV3Attention.
SHIPPED = {"deepseek-v2-lite": (0.1 * 0.707 * math.log(40.0) + 1) ** 2, "deepseek-v3": (0.1 * math.log(40.0) + 1) ** 2}


def as_json(capsys, *arguments):
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("model", SHIPPED)
def test_table_has_the_multiplier(model, capsys):
    _, found = as_json(capsys, "table", model)
    assert found["softmax_multiplier"] == pytest.approx(SHIPPED[model], rel=1e-12)
    assert main(["table", model]) == 0
    assert f"factor on the softmax scale: {SHIPPED[model]:.8g}" in capsys.readouterr().out


def test_table_follows_another_factor(capsys):
    _, found = as_json(capsys, "table", "deepseek-v3", "--scaling", "yarn", "--factor", "80")
    assert found["softmax_multiplier"] == pytest.approx((0.1 * math.log(80.0) + 1) ** 2, rel=1e-12)


def test_a_model_without_it_has_one(capsys):
    _, found = as_json(capsys, "table", "llama-3.1-8b")
    assert found["softmax_multiplier"] == 1.0


def test_export_has_what_the_runtime_computes(capsys):
    code, found = as_json(capsys, "export", "deepseek-v3", "--to", "vllm")
    assert (code, found["softmax_multiplier"]) == (0, pytest.approx(SHIPPED["deepseek-v3"], rel=1e-12))
