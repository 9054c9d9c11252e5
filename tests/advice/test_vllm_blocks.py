"""What vLLM reserves: its arithmetic against the sizes in its log, and against a public log."""

import json
from pathlib import Path

import pytest

import rope_viz
from rope_viz.advice.memory.kv_cache import cache
from rope_viz.advice.memory.vllm_blocks import PagedLayers, VllmSettings, count_request_bytes, count_reserved_bytes
from rope_viz.models.model_config import ModelConfig
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
# tools/engines/lab.py wrote the answers of vLLM 0.32.0 on a processor.
LOGGED = [row for row in json.loads((ROOT / "tests/goldens/caches.json").read_text())["rows"] if "tokens" in row]
CONFIGS = json.loads((ROOT / "tools/engines/caches.json").read_text())["configs"]
ON_PROCESSORS = VllmSettings(block=32, batches=1, float_states=True)
QWEN = {
    **{"model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2},
    **{"head_dim": 256, "num_hidden_layers": 40, "vocab_size": 248320, "intermediate_size": 512, "dtype": "bfloat16"},
    **{"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 10, "mamba_ssm_dtype": "float32"},
    **{"linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_conv_kernel_dim": 4},
    **{"linear_value_head_dim": 128, "linear_num_value_heads": 32, "max_position_embeddings": 262144},
}


NOT_KNOWN = ("jamba-like", "nemotron-nano-9b-v2")
"""Types without RoPE have no record, so nothing says how many states vLLM keeps of them."""


@for_each([row for row in LOGGED if row["config"] in NOT_KNOWN])
def test_recurrent_layers_without_a_record_are_not_known(row):
    found = rope_viz.memory(CONFIGS[row["config"]], length=row["length"], runtime="vllm")
    assert found["reserved_bytes"] is None
    assert found["reasons"]["reserved_bytes"]


@for_each([row for row in LOGGED if row["config"] not in NOT_KNOWN])
def test_blocks_are_those_that_the_engine_says(row):
    model = ModelConfig.read(CONFIGS[row["config"]])
    ours = count_reserved_bytes(model, cache(model, dtype="bfloat16"), row["length"], ON_PROCESSORS)
    assert ours == pytest.approx(row["bytes"] * row["length"] / row["tokens"], rel=0.01), row["config"]


@pytest.mark.parametrize(("length", "blocks"), [(131_072, 63), (8_192, 4)])
def test_a_hybrid_takes_the_pages_of_the_public_log(length, blocks):
    # club-3090, issue 612: blocks of 2,096 tokens in fp8, 10 pages of 2,146,304 bytes in each; 5.98 GiB hold 4.33
    # requests of 131,072 tokens. Two states for each of three groups of 10 recurrent layers.
    found = rope_viz.memory(QWEN, length=length, dtype="fp8", runtime="vllm")
    page = 2_096 * 2 * 2 * 256
    assert page == 2_146_304
    assert found["reserved_bytes"] == (blocks + 3 * 2) * 10 * page
    if length == 131_072:
        assert found["reserved_bytes"] == pytest.approx(5.98 * 2**30 / 4.33, rel=0.002)


def test_a_state_fills_its_page_and_sets_the_block():
    # The convolution's three columns in the type of the model, and the recurrence in float32.
    state = 3 * (2 * 16 + 32) * 128 * 2 + 32 * 128 * 128 * 4
    assert state == 2_146_304
    layers = [PagedLayers(30, 0.0, state=state), PagedLayers(10, 1024.0)]
    assert count_request_bytes(layers, 2_096, VllmSettings()) == (1 + 6) * 10 * state
    assert count_request_bytes(layers, 2_097, VllmSettings()) == (2 + 6) * 10 * state


def test_windows_take_the_tokens_in_flight_and_a_block_more():
    layers = [PagedLayers(32, 4096.0, window=4096)]
    in_blocks = {
        tokens: count_request_bytes(layers, 100_000, VllmSettings(batched_tokens=tokens)) for tokens in (2048, 8192)
    }
    page = 16 * 4096 * 32
    assert in_blocks == {2048: (512 + 1) * page, 8192: (1280 + 1) * page}
    found = rope_viz.memory(CONFIGS["mistral-7b-v0.1"], length=100_000, runtime="vllm", batched_tokens=2048)
    assert found["reserved_bytes"] == in_blocks[2048]
    assert "max_num_batched_tokens" not in found["assumed"]
    assumed = rope_viz.memory(CONFIGS["mistral-7b-v0.1"], length=100_000, runtime="vllm")["assumed"]
    assert assumed["max_num_batched_tokens"] == "8,192"


def test_what_was_not_run_is_not_known():
    for config, word in (
        ({**QWEN, "model_type": "kimi_linear", "kv_lora_rank": 512, "qk_rope_head_dim": 64}, "recurrent"),
        ({**CONFIGS["deepseek-v3"], "model_type": "deepseek_v32", "index_head_dim": 128}, "an index"),
    ):
        found = rope_viz.memory(config, length=4096, runtime="vllm")
        assert found["reserved_bytes"] is None
        assert word in found["reasons"]["reserved_bytes"]
    assert rope_viz.memory(QWEN, length=4096, runtime="sglang")["reserved_bytes"] is None
