"""`rope-viz check FOLDER` finds configs by content, and common notes are one line of counts."""

import json
import os
from pathlib import Path

import pytest

from rope_viz.cli import find_configs
from rope_viz.cli.main import main
from tests.configs import llama

LLAMA = llama(max_position_embeddings=32768, rope_theta=5e6)
ERROR = {**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
NOTE = {**LLAMA, "rope_theta": 10000.0, "head_dim": 64}
PARAMS = {"dim": 4096, "n_layers": 32, "head_dim": 128, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 1e6}
PARAMS |= {"max_position_embeddings": 16384}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    code = main(("check", *arguments))
    out, err = capsys.readouterr()
    return code, out, err


def put(name, content):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_configs_of_any_name_are_found_by_content(capsys):
    put("models/llama-70b.json", LLAMA)
    put("models/deep/er/broken-one.txt", ERROR)
    put("models/mistral/params.json", PARAMS)
    put("models/tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "model_max_length": 8192})
    put("models/generation_config.json", {"eos_token_id": 2, "max_length": 4096})
    put("models/adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "llama", "r": 8})
    put("models/model.safetensors.index.json", {"weight_map": {"a": "b"}})
    put("models/preprocessor_config.json", {"image_processor_type": "CLIP", "hidden_size": 3, "num_heads": 4})
    put("models/notes.md", "# notes")
    put("models/broken.json", "{")
    code, out, err = run(capsys, "models")
    assert code == 2
    names = [os.path.relpath(line.split(": ")[0], "models") for line in out.splitlines()]
    assert list(dict.fromkeys(names)) == ["llama-70b.json", "deep/er/broken-one.txt", "mistral/params.json"]
    assert "skipped 7 files that are no configs: models/adapter_config.json" in err
    assert "(-v: all names)" in err
    assert "preprocessor_config.json" in run(capsys, "models", "-v")[2]


def test_a_folder_without_any_config_says_so(capsys):
    put("empty/readme.md", "text")
    code, out, err = run(capsys, "empty")
    assert code == 3
    assert "no other file that is a model's config" in out
    assert "skipped 1 file that is no config: empty/readme.md" in err


def test_files_that_are_read_with_the_config_are_not_skipped(capsys):
    put("model/config.json", {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32})
    put("model/generation_config.json", {"max_length": 4096})
    put("model/hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})
    assert "skipped" not in run(capsys, "model")[2]


def test_the_search_stops_after_a_number_of_files(capsys, monkeypatch):
    monkeypatch.setattr(find_configs, "MOST_FILES", 3)
    for number in range(5):
        put(f"many/{number}.json", LLAMA)
    code, out, err = run(capsys, "many")
    assert (code, len(out.splitlines())) == (0, 3)
    assert "stopped after 3 files" in err


def test_other_commands_take_a_folder_with_another_file_name(capsys):
    put("one/model.json", LLAMA)
    assert main(("table", "one")) == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_pipe_in_a_folder_does_not_block(capsys):
    put("models/a.json", LLAMA)
    os.mkfifo("models/pipe")
    assert run(capsys, "models")[0] == 0


def test_common_notes_are_one_line_of_counts(capsys):
    put("a.json", NOTE)
    put("b.json", NOTE)
    code, out, _ = run(capsys, "a.json", "b.json")
    assert code == 0
    assert out.splitlines() == [
        "a.json: No problems found.",
        "b.json: No problems found.",
        "Common notes, shown by --all-notes: head-dim-derived in 2 files, base-too-small in 2 files.",
    ]
    for asked in (["--all-notes"], ["--fail-on", "note"]):
        assert "(base-too-small)" in run(capsys, "a.json", *asked)[1]
    rules = {one["rule"] for one in json.loads(run(capsys, "a.json", "--json")[1])["findings"]}
    assert rules == {"head-dim-derived", "base-too-small"}


def test_extend_counts_common_notes_in_one_line(capsys):
    put("a.json", NOTE)
    assert main(("extend", "a.json", "--to", "64k")) == 0
    out = capsys.readouterr().out
    assert "common notes, shown by rope-viz check --all-notes: head-dim-derived, base-too-small" in out
    assert "first negative at distance" not in out.partition("What you need")[0]
