"""`match` compares a trainer with a server, prints what to change, and its exit code is the verdict."""

import json

import pytest

from rope_viz.cli.main import main
from tests.configs import LLAMA_3_1_8B, QWEN3, llama, llama3, yarn

LLAMA_3_2 = {**LLAMA_3_1_8B, "head_dim": 64, "rope_scaling": llama3(8192, 32.0)}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a config and returns its path."""

    def write_config(config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return str(path)

    return write_config


def as_json(capsys, *arguments):
    """Return the exit code and the JSON of one run."""
    code = main(["match", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("config", "trainer", "code"),
    [
        (LLAMA_3_1_8B, "megatron-core", 0),
        (LLAMA_3_2, "megatron-lm", 1),
        ({**QWEN3, "rope_scaling": yarn(32768)}, "megatron-bridge", 2),
        ({"model_type": "llama"}, "torchtitan", 0),
        ({**llama(), "rope_theta": "many"}, "torchtitan", 3),
        ({"model_type": "gpt2"}, "torchtitan", 2),
    ],
)
def test_the_exit_code_is_the_verdict(write, config, trainer, code, capsys):
    assert main(["match", write(config), "--trainer", trainer]) == code
    capsys.readouterr()


def test_a_missing_file_is_unreadable(capsys):
    assert main(["match", "/tmp/no-such-config.json", "--trainer", "torchtitan"]) == 3
    assert "no-such-config" in capsys.readouterr().err


def test_json_has_the_keys_that_scripts_read(write, capsys):
    code, found = as_json(capsys, write(LLAMA_3_2), "--trainer", "megatron-lm=d98e8a64", "--server", "vllm=0.33.0")
    assert code == 1
    assert (found["trainer"], found["trainer_version"]) == ("megatron-lm", "d98e8a64")
    assert (found["server"], found["server_version"], found["same"]) == ("vllm", "0.33.0", False)
    assert found["worst_ratio"] == pytest.approx(4.0)
    assert (found["score_ratio"], found["score_ratio_unrotated"]) == (1.0, 1.0)
    assert (found["attention_factor"], found["softmax_scale_multiplier"]) == (1.0, 1.0)
    assert (found["factor_place"], found["pairing"], found["evidence"]) == ("none", "half", "executed")
    assert len(found["inv_freq"]) == 32


def test_the_far_position_is_where_angles_part_by_a_radian(write, capsys):
    _, found = as_json(capsys, write(LLAMA_3_2), "--trainer", "megatron-lm")
    _, served = as_json(capsys, write(LLAMA_3_2), "--trainer", "megatron-core")
    gap = max(abs(ours - theirs) for ours, theirs in zip(found["inv_freq"], served["inv_freq"], strict=True))
    assert (found["far_position"] - 1) * gap <= 1 < found["far_position"] * gap


@pytest.mark.parametrize(
    "options", ['{"rotary_base": 500000, "rope_scaling": true}', "--rotary-base 500000 --use-rope-scaling"]
)
def test_options_are_json_or_flags_or_a_file_of_them(write, capsys, tmp_path, options):
    path = write({**LLAMA_3_1_8B, "head_dim": 128})
    (tmp_path / "options").write_text(options)
    for given in (options, str(tmp_path / "options")):
        code, found = as_json(capsys, path, "--trainer", "megatron-core", "--trainer-args", given)
        assert (code, found["same"]) == (0, True)


def test_a_word_without_a_flag_is_named(write, capsys):
    assert main(["match", write(llama()), "--trainer", "megatron-lm", "--trainer-args", "--a 1 2"]) == 2
    assert "'2' belongs to no flag" in capsys.readouterr().err


def test_the_remedy_makes_the_server_compute_what_was_trained(write, capsys, tmp_path):
    path = write({**QWEN3, "head_dim": 128})
    recipe = {
        **{"scaling_factor": 3.2, "original_max_position_embeddings": 40960, "mscale": 1.0, "mscale_all_dim": 1.0},
        **{"rotary_base": 1000000, "correction_range_round_to_int": False},
    }
    arguments = ("--trainer", "megatron-bridge", "--trainer-args", json.dumps(recipe))
    code, found = as_json(capsys, path, *arguments)
    assert (code, found["not_expressible"]) == (1, "")
    changes = json.loads(found["make_it_match"])
    assert changes["rope_parameters"]["truncate"] is False
    code, found = as_json(capsys, write({**QWEN3, **changes}), *arguments)
    assert (code, found["same"]) == (0, True)


def test_a_float_limit_is_a_finding_and_no_refusal(write, capsys):
    code, found = as_json(capsys, write(llama(max_position_embeddings=16384.0)), "--trainer", "llama-factory")
    assert (code, found["same"]) == (0, True)
    assert "transformers 5 refuses a float" in found["notes"][0]


@pytest.mark.parametrize(
    ("trainer", "option"), [("nanotron", "rope_interleaved"), ("megatron-core", "rotary_interleaved")]
)
def test_other_pairs_differ_unless_the_checkpoint_was_permuted(trainer, option, capsys):
    """huggingface/nanotron#427 and #241: adjacent pairs, served by a class that rotates halves."""
    asked = ["llama-2-7b", "--trainer", trainer, "--trainer-args", json.dumps({option: True})]
    code, found = as_json(capsys, *asked)
    assert (code, found["same"], found["same_values"], found["same_pairs"]) == (1, False, True, False)
    assert found["sentence"].startswith("Same frequencies, other pairs: permute q and k.")
    assert "channels i and i + 64" in found["sentence"]
    assert (found["worst_ratio"], found["score_ratio"]) == (1.0, 1.0)
    code, found = as_json(capsys, *asked, "--permuted")
    assert (code, found["same"]) == (0, True)


def test_pairs_and_frequencies_are_both_named(capsys):
    options = json.dumps({"rope_interleaved": True})
    assert main(["match", "llama-3.1-8b", "--trainer", "nanotron", "--trainer-args", options]) == 1
    shown = capsys.readouterr().out
    assert "is off by x8" in shown
    assert "other pairs rotate, so permute q and k too" in shown


def test_trainer_whose_converter_permutes_is_the_same(capsys):
    assert main(["match", "llama-2-7b", "--trainer", "torchtune"]) == 0
    capsys.readouterr()
