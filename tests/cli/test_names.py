"""Names on the command line: runtimes in any case, layers that exist, and a folder after --from."""

import json

import pytest

from rope_viz.cli.main import main
from tests.configs import llama

CONFIG = llama(max_position_embeddings=32768, rope_theta=1e6)
GEMMA = {"model_type": "gemma3_text", "hidden_size": 640, "num_attention_heads": 4, "head_dim": 256}


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


@pytest.fixture
def layered(tmp_path):
    path = tmp_path / "gemma.json"
    path.write_text(json.dumps(GEMMA))
    return str(path)


def test_runtime_names_may_be_written_in_any_case(plain, capsys):
    assert main(("extend", plain, "--to", "64k", "--runtime", "vLLM,SGLang", "--json")) == 0
    assert list(json.loads(capsys.readouterr().out)["runtimes"]) == ["vllm", "sglang"]
    assert main(("export", plain, "--to", "MLX-LM")) == 0
    assert main(("runtimes", plain, "--release", "vLLM=0.8.5")) == 0
    assert "0.8.5" in capsys.readouterr().out
    assert main(("evaluate", plain, "--flags", "vLLM")) == 0


@pytest.mark.parametrize("command", [["extend", "--to", "64k"], ["runtimes"], ["table"], ["verify", "--from", "."]])
def test_an_unknown_layer_name_is_refused_with_the_list(command, layered, plain, capsys):
    assert main((command[0], layered, *command[1:], "--layer", "sliding")) == 2
    assert "layer must be one of full_attention, sliding_attention, got 'sliding'" in capsys.readouterr().err
    assert main((command[0], plain, *command[1:], "--layer", "sliding")) == 2
    assert "all layers share one embedding: omit the layer 'sliding'" in capsys.readouterr().err


def test_gguf_file_that_is_no_model_is_refused_with_the_reason(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(5 << 20))
    assert main(("check", str(path))) == 3
    assert "the GGUF file does not name an architecture" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("id", "model"),
    [
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("https://huggingface.co/Qwen/Qwen3-8B/tree/main", "qwen3-8b"),
        ("microsoft/Phi-3.5-mini-instruct", "phi-3.5-mini"),
    ],
)
def test_hub_id_of_a_model_of_the_list_needs_no_network(id, model, capsys):
    assert main(("table", id, "--csv")) == 0
    by_id = capsys.readouterr()
    assert f"{id}: read as {model}, a model of the list" in by_id.err
    assert main(("table", model, "--csv")) == 0
    assert by_id.out == capsys.readouterr().out


def test_hub_id_of_another_revision_is_not_the_model_of_the_list(capsys):
    assert main(("table", "Qwen/Qwen3-8B@v2", "--csv")) == 2
    assert "no such model" in capsys.readouterr().err


def test_verify_takes_a_folder_as_a_model_of_transformers(tmp_path, capsys):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32}
    transformers.Qwen3Config(**sizes, head_dim=16, vocab_size=32).save_pretrained(tmp_path)
    assert main(("verify", str(tmp_path), "--from", str(tmp_path))) == 0
    assert "transformers" in capsys.readouterr().out
