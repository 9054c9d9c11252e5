"""`check --trainer` adds what a trainer computes otherwise, and the keys that it needs in the file."""

import json

import pytest

from rope_viz.advice.lint.training_rules import find_training_differences
from rope_viz.cli.main import main
from tests.configs import QWEN3, yarn

QWEN3_YARN = {**QWEN3, "max_position_embeddings": 131072, "rope_scaling": yarn(32768)}


def findings(config, trainer, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    main(["check", str(path), "--trainer", trainer, "--json"])
    return [one for one in json.loads(capsys.readouterr().out)["findings"] if one["rule"] == "trained-otherwise"]


def test_a_trainer_that_needs_keys_gets_them_as_a_repair(tmp_path, capsys):
    config = {**QWEN3_YARN, "model_type": "deepseek_v3", "qk_rope_head_dim": 64, "kv_lora_rank": 512}
    config["rope_scaling"] = yarn(32768, mscale=1.0, mscale_all_dim=1.0)
    (shown,) = findings(config, "nemo-automodel", tmp_path, capsys)
    assert "State beta_fast, beta_slow, truncate and the original length" in shown["message"]
    (finding,) = find_training_differences(config, "nemo-automodel")
    assert finding.repaired["rope_scaling"].items() >= {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}.items()
    assert not find_training_differences(finding.repaired, "nemo-automodel")


@pytest.mark.parametrize(("trainer", "count"), [("megatron-core", 0), ("litgpt=0.5.13", 1), ("megatron-bridge", 1)])
def test_a_trainer_that_agrees_is_not_mentioned(trainer, count, tmp_path, capsys):
    assert len(findings(QWEN3_YARN, trainer, tmp_path, capsys)) == count


def test_an_unknown_trainer_is_named(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_YARN))
    assert main(["check", str(tmp_path / "config.json"), "--trainer", "megatrom"]) == 2
    assert "trainer must be one of" in capsys.readouterr().err


def test_other_pairs_are_a_note(tmp_path, capsys):
    """glm4 rotates adjacent pairs, litgpt halves."""
    config = {**QWEN3, "model_type": "glm4", "partial_rotary_factor": 1.0}
    (shown,) = findings(config, "litgpt", tmp_path, capsys)
    assert (shown["severity"], "permute q and k" in shown["message"]) == ("note", True)
