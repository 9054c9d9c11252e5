"""What runtimes do with the attention temperature, as read in vLLM 0.33.0, SGLang 0.5.23 and mlx-lm 0.32.2."""

import pytest

from rope_viz.pictures import registry

COLUMN = "attention temperature by position"
PAGE, MATRIX = registry.page("runtimes"), registry.picture("runtimes", "matrix")


def answers(model):
    rows = MATRIX(registry.read_request(PAGE, {"model": model})).columns
    return {row["runtime"].split(" ")[0]: row.get(COLUMN) for row in rows if not row["runtime"].endswith("4.57.6")}


@pytest.mark.parametrize(
    ("model", "runtime", "words"),
    [
        ("llama-4-scout", "vLLM", "max_model_len is above 32,768"),  # vllm/model_executor/models/llama4.py
        ("llama-4-scout", "SGLang", "Computed (read"),  # sglang/srt/models/llama4.py
        ("ministral-3-3b", "vLLM", "llama_4_scaling"),  # vllm/model_executor/models/mistral.py
        ("ministral-3-3b", "SGLang", "16,384 tokens"),  # sglang/srt/models/ministral3.py
        ("ministral-3-3b", "mlx-lm", "Computed (read"),  # mlx_lm/models/ministral3.py
        ("ministral-3-3b", "llama.cpp", "Not known."),
    ],
)
def test_column_says_what_was_read(model, runtime, words):
    assert words in answers(model)[runtime]


def test_models_without_it_have_no_column():
    assert set(answers("llama-3.1-8b").values()) == {None}
