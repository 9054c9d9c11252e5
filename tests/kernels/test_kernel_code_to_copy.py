"""The code on the Kernels page runs as shown and gives the stated result."""

import re
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rope_viz.kernels.transformers as ours  # noqa: E402
from rope_viz.kernels import reference  # noqa: E402
from rope_viz.texts import Texts  # noqa: E402

pytestmark = pytest.mark.float32_products

CODE = re.findall(r"```python\n(.*?)```", Texts("kernels/code").entries["explain.text"], re.DOTALL)
INV_FREQ = 10_000.0 ** (-np.arange(64) / 64)


@pytest.fixture
def run():
    """run("flash_attn") executes the block that mentions it and gives its names."""

    def block(mark):
        (code,) = [code for code in CODE if mark in code]
        torch.manual_seed(0)
        names = {}
        exec(code, names)
        return names

    return block


# What tests before this one left open is not its own, and is found whenever memory is swept.
@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_rotate_qk_is_the_rotation_at_a_million(run):
    names = run("rotate_qk")
    torch.manual_seed(0)
    q, k = torch.randn(1, 64, 8, 128), torch.randn(1, 64, 2, 128)
    inv_freq = 500_000.0 ** (-np.arange(64) / 64)
    for x, y in ((q, names["q"]), (k, names["k"])):
        want = reference.rotate(x.double().numpy(), 1_000_000 + np.arange(64), inv_freq, pairing="half")
        np.testing.assert_allclose(y.numpy(), want, atol=2e-6)


def test_flash_attention_s_name_rotates_adjacent_pairs(run):
    names = run("flash_attn")
    want = reference.rotate(names["x"].double().numpy(), 100 + np.arange(16), INV_FREQ, pairing="interleaved")
    np.testing.assert_allclose(names["y"].numpy(), want, atol=2e-6)


def test_transformer_engine_s_name_rotates_tokens_first(run):
    names = run("transformer_engine")
    x = names["x"].double().numpy().swapaxes(0, 1)
    want = reference.rotate(x, np.arange(16), INV_FREQ, pairing="half").swapaxes(0, 1)
    # Its angles are float32, as there: 15 radians have a spacing of 1e-6.
    np.testing.assert_allclose(names["y"].numpy(), want, atol=1e-5)


def test_the_function_of_a_transformers_model_is_replaced(run, monkeypatch):
    model = types.ModuleType("transformers.models.llama.modeling_llama")
    parents = ["transformers", "transformers.models", "transformers.models.llama"]
    for name in parents:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, model.__name__, model)
    sys.modules[parents[-1]].modeling_llama = model
    run("modeling_llama")
    assert model.apply_rotary_pos_emb is ours.apply_rotary_pos_emb
