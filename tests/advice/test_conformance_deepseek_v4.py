"""The kit's cases of DeepSeek V4: the class of transformers passes, and each planted mistake is named.

DeepSeek V4 rotates the last channels of a head, and turns the output of attention back at the position of the query.
"""

import numpy as np
import pytest

from rope_viz.advice.verify import check_rope
from rope_viz.advice.verify.conformance import COMPRESS_RATIOS, build_case, list_configs
from rope_viz.advice.verify.identify_rotation import identify
from rope_viz.kernels.reference import rotate

pytestmark = pytest.mark.float32_products

CASES = {layer: build_case(layer, list_configs()[f"deepseek-v4-{layer}"]) for layer in COMPRESS_RATIOS}
PLANTED = (
    check_rope.NOT_BACK,
    check_rope.FORWARD,
    check_rope.LEADING,
    check_rope.PAIRING,
    "frequencies of the other layers",
)


def turn(config, vectors, positions, mistake="", inverse=False):
    """Rotate as the published code does, from the kit's frequencies, with a mistake planted."""
    layer = "main" if config["compress_ratios"] == [0] else "compress"
    if mistake == "frequencies of the other layers":
        layer = "compress" if layer == "main" else "main"
    if mistake == check_rope.NOT_BACK and inverse:
        return vectors
    inv_freq = np.asarray(CASES[layer]["inv_freq"])
    start = 0 if mistake == check_rope.LEADING else config["head_dim"] - config["qk_rope_head_dim"]
    out = vectors.copy()
    tail = slice(start, start + 2 * len(inv_freq))
    pairing = "half" if mistake == check_rope.PAIRING else "interleaved"
    back = inverse and mistake != check_rope.FORWARD
    out[:, tail] = rotate(vectors[:, None, tail], positions, inv_freq, pairing=pairing, inverse=back)[:, 0]
    return out


@pytest.mark.parametrize("mistake", PLANTED)
@pytest.mark.parametrize("layer", CASES)
def test_a_planted_mistake_in_the_output_is_named(layer, mistake):
    def turn_back(config, output, positions):
        return turn(config, output, positions, mistake, inverse=True)

    (found,) = check_rope.check({"turn_back": turn_back}, [CASES[layer]])
    assert (found.mistake, found.function, found.is_wrong) == (mistake, "turn_back", True)


@pytest.mark.parametrize("mistake", PLANTED[2:])
def test_a_planted_mistake_in_q_is_named(mistake):
    def rotated(config, q, k, positions):
        return turn(config, q, positions, mistake), turn(config, k, positions, mistake)

    found = check_rope.check({"rotate": rotated}, list(CASES.values()))
    assert [one.mistake for one in found] == [mistake, mistake]


@pytest.mark.parametrize(("wrong", "mistake"), [(1.6313902269, "softmax multiplier of DeepSeek-V3"), (1.0, "")])
def test_multiplier_of_the_softmax_is_that_of_no_yarn(wrong, mistake):
    """(0.1 · ln 16 + 1)² is what code of DeepSeek V3 multiplies by."""
    found = check_rope.check({"softmax_scale": lambda _: wrong / 128**0.5}, [CASES["compress"]])
    assert [one.mistake for one in found] == [mistake] * bool(mistake)


def test_factor_of_yarn_on_cos_and_sin_is_named():
    values = np.asarray(CASES["compress"]["inv_freq"])
    (found,) = check_rope.check_inv_freq(CASES["compress"], (values, 0.1 * np.log(16) + 1))
    assert found.mistake == "default attention factor"


@pytest.mark.parametrize("layer", CASES)
def test_frequencies_of_a_rotated_vector_are_identified(layer):
    case = CASES[layer]
    q, positions = np.asarray(case["q"]), np.arange(64.0)
    rotated = turn(case["config"], np.tile(q, (64, 1)), positions.astype(int))
    found = identify({"q": q, "rotated_q": rotated.ravel(), "positions": positions}, case["config"])
    assert (found.findings, found.layout, found.rotary_dim) == ((), "interleaved", 64)


class Transformers:
    """The rotary module and functions of transformers' class for DeepSeek V4."""

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        pytest.importorskip("transformers")
        from transformers.models.deepseek_v4 import configuration_deepseek_v4, modeling_deepseek_v4

        self.model, self.config = modeling_deepseek_v4, configuration_deepseek_v4.DeepseekV4Config

    def cos_sin(self, config, positions):
        built = self.config(**config)
        layer = "main" if built.layer_types == ["sliding_attention"] else "compress"
        rows = self.torch.tensor(np.asarray(positions))[None]
        return self.model.DeepseekV4RotaryEmbedding(built)(self.torch.zeros(1), rows, layer_type=layer)

    def apply(self, config, vectors, positions, sign=1):
        cos, sin = self.cos_sin(config, positions)
        rows = self.torch.tensor(vectors, dtype=self.torch.float32)[None, None]
        return self.model.apply_rotary_pos_emb(rows, cos, sign * sin)[0, 0].numpy()


def test_the_functions_of_transformers_pass():
    engine = Transformers()
    functions = {
        "cos_sin": lambda config, positions: [one[0].numpy() for one in engine.cos_sin(config, positions)],
        "rotate": lambda config, q, k, at: (engine.apply(config, q, at), engine.apply(config, k, at)),
        "turn_back": lambda config, output, at: engine.apply(config, output, at, -1),
        "softmax_scale": lambda config: engine.model.DeepseekV4Attention(engine.config(**config), 0).scaling,
    }
    findings = check_rope.check(functions, list(CASES.values()))
    assert not [str(one) for one in findings if one.is_wrong]
    assert {one.function for one in findings} == {"cos_sin", "rotate", "turn_back"}


def test_the_attention_of_transformers_turns_its_output_back(monkeypatch):
    """What its layer without compression does with the output of attention is the kit's inverse rotation."""
    engine = Transformers()
    torch = engine.torch
    config = {**CASES["main"]["config"], "hidden_size": 64, "num_attention_heads": 2, "o_groups": 2, "o_lora_rank": 4}
    built = engine.config(**config, attn_implementation="eager")
    torch.manual_seed(0)
    attention = engine.model.DeepseekV4Attention(built, 0)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    calls = []
    real = engine.model.apply_rotary_pos_emb

    def apply(x, cos, sin, *more, **options):
        calls.append((x, real(x, cos, sin, *more, **options)))
        return calls[-1][1]

    monkeypatch.setattr(engine.model, "apply_rotary_pos_emb", apply)
    positions = np.arange(5, 12)
    rows = torch.tensor(positions)[None]
    embeddings = {"main": engine.cos_sin(config, positions)}
    with torch.no_grad():
        attention(torch.randn(1, len(positions), 64), embeddings, rows, None)
    # It rotates q, the shared keys and values, and last the output.
    assert len(calls) == 3
    before, after = (one[0].double().numpy() for one in calls[-1])
    for head in range(2):
        np.testing.assert_allclose(turn(config, before[head], positions, inverse=True), after[head], atol=1e-5)
