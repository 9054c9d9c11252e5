"""--hf-overrides, --rope-scaling and `emulate(overrides=…)`. How loaders merge: tests/models/test_overrides.py."""

import json

import pytest

import rope_viz
from rope_viz.cli.main import main

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
WHOLE = YARN | {"rope_theta": 1e6}


def test_check_tells_that_vllm_loses_the_base(capsys):
    assert main(["check", "qwen3-8b", "--hf-overrides", json.dumps({"rope_scaling": YARN})]) == 2
    vllm, *sglang = capsys.readouterr().out.splitlines()
    assert "(vllm): error" in vllm
    assert "1,000,000 of the file is lost" in vllm
    assert all("(sglang)" in line and "error" not in line for line in sglang)


def test_runtimes_shows_each_loader(capsys):
    assert main(["runtimes", "llama-3.1-8b", "--hf-overrides", json.dumps({"rope_parameters": YARN}), "--json"]) == 0
    vllm, sglang = json.loads(capsys.readouterr().out)
    assert "takes 10,000 in place of the file's 500,000" in vllm["notes"][0]
    assert sglang["notes"] == []
    assert vllm["effect"]["ratio"] > sglang["effect"]["ratio"]


def test_table_is_of_the_merged_config(capsys):
    assert main(["table", "qwen3-8b", "--rope-scaling", json.dumps(WHOLE), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    own = rope_viz.from_config({**rope_viz.catalog()["qwen3-8b"].config, "rope_parameters": WHOLE})[""]
    assert found["inv_freq"] == own.inv_freq().tolist()


def test_a_lost_base_is_one_sentence(capsys):
    assert main(["table", "qwen3-8b", "--rope-scaling", json.dumps(YARN)]) == 2
    assert "Add rope_theta to the override" in capsys.readouterr().err


def test_extend_uses_the_loader_of_the_asked_runtime(capsys):
    words = ["extend", "qwen3-8b", "--to", "128k", "--hf-overrides", json.dumps({"rope_scaling": YARN})]
    assert main([*words, "--runtime", "sglang"]) in (0, 1)
    assert "vllm merges this override otherwise" in capsys.readouterr().err
    assert main([*words, "--runtime", "vllm"]) == 2


@pytest.mark.parametrize("text", ["{", "[1]", "yarn", ""])
def test_a_wrong_override_is_one_sentence(text, capsys):
    assert main(["table", "qwen3-8b", "--hf-overrides", text]) == 2
    assert "--hf-overrides must be a JSON object" in capsys.readouterr().err


def test_rope_scaling_takes_the_dict_itself(capsys):
    assert main(["table", "qwen3-8b", "--rope-scaling", json.dumps({"rope_scaling": YARN})]) == 2
    assert "takes the rope dict itself" in capsys.readouterr().err


def test_emulate_takes_overrides():
    lost = rope_viz.emulate("qwen3-8b", "vllm", overrides={"rope_scaling": YARN})
    assert not lost.supported
    merged = rope_viz.emulate("qwen3-8b", "sglang", overrides={"rope_scaling": YARN})
    own = rope_viz.emulate("qwen3-8b", "vllm", overrides={"rope_parameters": WHOLE})
    assert merged.inv_freq.tolist() == own.inv_freq.tolist()
    with pytest.raises(ValueError, match=r"not for 'llama\.cpp'"):
        rope_viz.emulate("qwen3-8b", "llama.cpp", overrides={})


def test_vllm_needs_the_original_length_in_the_override():
    """get_rope of vLLM 0.33.0 reads rope_parameters["original_max_position_embeddings"]; SGLang's takes the limit."""
    overrides = {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}}
    assert rope_viz.emulate("qwen3-8b", "vllm", overrides=overrides).reason.startswith("KeyError")
    for runtime in ("sglang", "transformers"):
        assert rope_viz.emulate("qwen3-8b", runtime, overrides=overrides).supported
