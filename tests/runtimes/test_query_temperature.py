"""What runtimes do with the attention temperature, as read in vLLM 0.33.0, SGLang 0.5.23 and mlx-lm 0.32.2."""

import pytest

from rope_viz.cli.main import main
from rope_viz.models.model_config import ModelConfig
from rope_viz.pages import registry
from rope_viz.picture import read_address
from rope_viz.runtimes import RUNTIMES
from rope_viz.runtimes.compare import describe_temperature

COLUMN = "attention temperature by position"
PAGE, MATRIX = registry.page("runtimes"), registry.picture("runtimes", "matrix")


def answers(model):
    rows = MATRIX(read_address.read_request(PAGE, {"model": model})).columns
    return {row["runtime"].split(" ")[0]: row.get(COLUMN) for row in rows if not row["runtime"].endswith("4.57.6")}


@pytest.mark.parametrize(
    ("model", "runtime", "words"),
    [
        ("llama-4-scout", "vLLM", "max_model_len is above 32,768"),  # vllm/model_executor/models/llama4.py
        ("llama-4-scout", "SGLang", "its formula was executed"),  # sglang/srt/models/llama4.py
        ("ministral-3-3b", "vLLM", "llama_4_scaling"),  # vllm/model_executor/models/mistral.py
        ("ministral-3-3b", "SGLang", "16,384 tokens"),  # sglang/srt/models/ministral3.py
        ("ministral-3-3b", "mlx-lm", "Computed (read"),  # mlx_lm/models/ministral3.py
        ("ministral-3-3b", "llama.cpp", "Not known."),
    ],
)
def test_column_says_what_was_read(model, runtime, words):
    assert words in answers(model)[runtime]


def test_a_backend_computes_what_transformers_computes():
    # vllm/model_executor/models/registry.py of 0.33.0 and the EntryClass of SGLang 0.5.23 have no such model: both run
    # it with the code of transformers, whose factor is in the weights (modeling_mistral_large4.py of 5.23.0).
    model = ModelConfig.read({"model_type": "mistral_large4_text"})
    kinds = {name: describe_temperature(model, name, release) for name, release in reversed(RUNTIMES)}
    assert (kinds["vllm"], kinds["sglang"], kinds["transformers"]) == ("backend", "backend", "learned")


def test_command_prints_a_line_for_each_runtime_that_is_known(capsys):
    assert main(["runtimes", "llama-4-scout"]) == 0
    printed = capsys.readouterr().out.split("attention temperature by position")[1]
    assert "max_model_len is above 32,768" in printed
    assert "(formula executed; this condition was read)" in printed
    assert main(["runtimes", "llama-3.1-8b"]) == 0
    assert "temperature" not in capsys.readouterr().out


def test_models_without_it_have_no_column():
    assert set(answers("llama-3.1-8b").values()) == {None}
