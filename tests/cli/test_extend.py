"""`rope-viz extend`: the whole answer in a terminal, as text, Markdown and data."""

import json

import pytest

from rope_viz.cli.main import main
from tests.configs import QWEN3_8B


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN3_8B))
    return path


def run(capsys, *arguments):
    code = main(("extend", *map(str, arguments)))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize(("to", "factor"), [("64k", 2.0), ("128k", 4.0)])
def test_stock_qwen3_gets_its_documented_factor(capsys, config, to, factor):
    code, out, _ = run(capsys, config, "--to", to, "--runtime", "vllm", "--runtime", "llama.cpp", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["ways"][0]["rank"] == "documented"
    assert found["config"]["rope_scaling"]["factor"] == factor
    assert found["config"]["rope_scaling"]["original_max_position_embeddings"] == 32_768
    assert found["have"]["trained"]["length"] == 32_768
    assert all(one["faithful"] for one in found["runtimes"].values())
    assert f"--rope-scale {factor}" in found["runtimes"]["llama.cpp"]["command"]


def test_text_and_markdown_hold_the_same_five_parts(capsys, config):
    text = run(capsys, config, "--to", "128k", "--runtime", "vllm,sglang")[1]
    document = run(capsys, config, "--to", "128k", "--runtime", "vllm,sglang", "--format", "markdown")[1]
    for title in (
        "What you have",
        "What you need",
        "What to do, and why",
        "What to write",
        "Verify it worked",
    ):
        assert title in text
        assert f"## {title}" in document
    assert "```" not in text
    assert document.count("```") % 2 == 0
    assert "cos[0] ** 2" in text
    assert "Fits on one 80 GB GPU up to 377,187 tokens" in text


def test_mistakes_are_printed_first(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**QWEN3_8B, "max_position_embeddings": 131_072}))
    out = run(capsys, path, "--to", "128k")[1]
    assert "Probably a mistake: max_position_embeddings is 131,072 without scaling" in out
    assert out.index("Probably a mistake") < out.index("What you need")


def test_written_config_reaches_the_length(capsys, config, tmp_path):
    target = tmp_path / "out.json"
    assert run(capsys, config, "--to", "128k", "-o", target)[0] == 0
    assert json.loads(target.read_text())["max_position_embeddings"] == 131_072
    assert run(capsys, target, "--to", "128k", "--json")[0] == 0


def test_invalid_arguments_are_named(capsys, config):
    assert "--runtime must be one of" in run(capsys, config, "--to", "128k", "--runtime", "tgi")[2]
    assert "--way must be one of" in run(capsys, config, "--to", "128k", "--way", "magic")[2]
    assert "must be" in run(capsys, config, "--to", "128k", "--sequences", "100000")[2]


def test_method_trained_length_and_cache_dtype_flags_work(capsys, config):
    arguments = ("--to", "128k", "--trained", "16k", "--way", "linear", "--dtype", "fp8", "--sequences", "2", "--json")
    found = json.loads(run(capsys, config, *arguments)[1])
    assert found["chosen"] == "linear"
    assert found["config"]["rope_scaling"]["factor"] == 8.0
    assert found["memory"]["cache_bytes"] == 2 * 131_072 * 147_456 / 2


def test_catalog_model_needs_no_file(capsys):
    found = json.loads(run(capsys, "llama-3.1-8b", "--to", "128k", "--json")[1])
    assert found["have"]["how"] == "model"
    assert found["ways"][0]["rank"] == "as it is"


def test_model_without_rope_is_answered_and_writes_no_file(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2", "n_embd": 768}')
    assert main(("extend", str(path), "--to", "128k")) == 0
    assert "gpt2 has no rotary embedding" in capsys.readouterr().out
    assert main(("extend", str(path), "--to", "128k", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["rope"] is False
    assert main(("extend", str(path), "--to", "128k", "-o", str(tmp_path / "longer.json"))) == 2
    assert not (tmp_path / "longer.json").exists()
