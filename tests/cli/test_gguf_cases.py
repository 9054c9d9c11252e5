"""GGUF files as people have them, on the command line. The headers are those of public reports.

What is right was counted by hand from the layers that src/models/*.cpp of llama.cpp 0c1e57098 makes of each header.
"""

import json
from pathlib import Path

import pytest

from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.cli.main import main
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from tests.gguf_files import write_gguf

CASES = json.loads((Path(__file__).parents[1] / "cases" / "gguf_headers.json").read_text())
# Bytes of a key and a value of one layer and token in float16, and tokens of a full window of the cache.
HAND_COUNTED = {
    "gemma4-12b": (131_072, 2 * (8 * 1 * (512 + 512) * 131_072 + 40 * 8 * (256 + 256) * 1023)),
    "olmo3-32b": (65_536, 2 * 8 * (128 + 128) * (16 * 65_536 + 48 * 4095)),
    "laguna-xs2": (131_072, 2 * 8 * (128 + 128) * (10 * 131_072 + 30 * 511)),
}


@pytest.fixture
def run(tmp_path, capsys):
    """Run a command on the file of a case, and return its exit code and what it printed."""

    def run(command, name, *options, more=None):
        case = CASES[name]
        path = write_gguf(tmp_path / f"{name}.gguf", case["architecture"], case["keys"] | (more or {}))
        code = main((command, str(path), *options))
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", HAND_COUNTED)
def test_cache_counts_windows_and_kv_heads_layer_by_layer(run, name):
    length, right = HAND_COUNTED[name]
    code, out = run("memory", name, "--length", str(length), "--dtype", "float16", "--json")
    assert (code, json.loads(out)["kv_cache_bytes"]) == (0, right)


def test_deepseek_v4_has_the_cache_of_its_config(run):
    ratios = CASES["deepseek-v4-flash"]["keys"]["attention.compress_ratios"]
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 43, "compress_ratios": ratios, "sliding_window": 128}
    config |= {"head_dim": 512, "index_head_dim": 128, "hidden_size": 4096, "num_attention_heads": 64}
    right = memory(config, length=131_072, dtype="float16")["kv_cache_bytes"]
    code, out = run("memory", "deepseek-v4-flash", "--length", "131072", "--dtype", "float16", "--json")
    assert (code, json.loads(out)["kv_cache_bytes"]) == (0, right)
    code, out = run("runtimes", "deepseek-v4-flash", "--json")
    row = next(row for row in json.loads(out) if row["runtime"] == "llama.cpp")
    assert (code, row["verdict"]) == (0, "agrees")


@pytest.mark.parametrize("name", ["gemma4-12b", "gemma3-12b", "laguna-xs2"])
def test_llama_cpp_rotates_sliding_layers_as_the_file_says(run, name):
    code, out = run("runtimes", name, "--layer", "sliding_attention", "--json")
    row = next(row for row in json.loads(out) if row["runtime"] == "llama.cpp")
    assert (code, row["verdict"].removesuffix(" (by rule)")) == (0, "agrees")


@pytest.mark.parametrize(("name", "pairs"), [("gemma4-12b", 128), ("laguna-xs2", 64), ("gemma3-12b", 128)])
def test_table_has_the_pairs_of_the_sliding_layers(run, name, pairs):
    code, out = run("table", name, "--layer", "sliding_attention", "--csv")
    rows = [line.split(",") for line in out.splitlines() if line[:1].isdigit()]
    assert (code, len(rows)) == (0, pairs)
    assert float(rows[1][1]) == pytest.approx(10_000.0 ** (-1 / pairs), rel=1e-6)


@pytest.mark.parametrize("name", sorted(CASES))
def test_check_gives_no_advice_on_keys_of_a_config(run, name):
    code, out = run("check", name, "--all-notes")
    assert code == 0
    assert not [word for word in ("transformers 4", "mlx-lm", "keys from before", "spelling") if word in out], out


def test_unread_key_is_named_and_what_depends_on_it_is_not_known(run):
    unread = {"attention.window_of_tomorrow": 7}
    out = run("memory", "gemma3-12b", "--length", "1000", more=unread)[1]
    assert "not known" in out
    assert "gemma3.attention.window_of_tomorrow" in out
    for command in ("check", "table", "runtimes"):
        assert "gemma3.attention.window_of_tomorrow" in run(command, "gemma3-12b", more=unread)[1]


def test_unread_rope_key_leaves_no_frequency(tmp_path, capsys):
    case = CASES["gemma3-12b"]
    path = write_gguf(tmp_path / "a.gguf", "gemma3", case["keys"] | {"rope.new.freq_base": 5000.0})
    assert ModelConfig.read(path).problems
    for command in ("check", "table", "runtimes"):
        assert main((command, str(path))) != 0
        printed = capsys.readouterr()
        assert "gemma3.rope.new.freq_base" in printed.out + printed.err
    assert main(("memory", str(path), "--length", "1000")) == 0
    assert "gemma3.rope.new.freq_base" in capsys.readouterr().out


def test_factor_of_ollama_is_the_whole_factor(tmp_path):
    case = CASES["olmo3-32b"]
    keys = case["keys"] | {"rope.scaling.attn_factor": 1.2079442}
    model = ModelConfig.read(write_gguf(tmp_path / "a.gguf", "olmo3", keys))
    assert model.specs["full_attention"].attention_factor() == pytest.approx(1.2079442)
    assert model.specs["sliding_attention"].attention_factor() == 1.0
    assert not model.problems
    assert not emulate(model, "llama.cpp", layer_type="full_attention").supported


def test_keys_of_ollama_have_their_meaning(tmp_path):
    keys = {key: value for key, value in CASES["gemma3-12b"]["keys"].items() if not key.startswith("rope.")}
    keys |= {"rope.global.freq_base": 2e6, "rope.local.freq_base": 5000.0}
    specs = ModelConfig.read(write_gguf(tmp_path / "a.gguf", "gemma3", keys)).specs
    assert (specs["full_attention"].base, specs["sliding_attention"].base) == (2e6, 5000.0)
    keys = {key: value for key, value in CASES["gpt-oss-20b"]["keys"].items() if key != "rope.scaling.type"}
    found = ModelConfig.read(write_gguf(tmp_path / "b.gguf", "gptoss", keys))
    whole = ModelConfig.read(write_gguf(tmp_path / "c.gguf", "gpt-oss", CASES["gpt-oss-20b"]["keys"]))
    assert found.specs == whole.specs
