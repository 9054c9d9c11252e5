"""Users can name the release that they run, and see since when a difference exists."""

import json

import pytest

from rope_viz.cli.main import main
from rope_viz.runtimes import RUNTIMES, emulate
from rope_viz.runtimes.compare import compare, list_releases
from rope_viz.runtimes.history import histories
from rope_viz.runtimes.releases import MINORS
from tests.configs import llama, yarn

YARN = yarn(1024)
# What tests/goldens/older.json shows of a Llama: {rope_scaling: sentence}.
SINCE = [
    ({**YARN, "attention_factor": 0.7}, "vllm: cos and sin ×1.627 in 0.6.6, 0.8.5 and 0.10.2, agrees since 0.33.0"),
    ({**YARN, "attn_factor": 0.7}, "vllm: cos and sin ×0.7 in 0.6.6, 0.8.5 and 0.10.2, agrees since 0.33.0"),
]


def config(scaling):
    return llama(max_position_embeddings=4096, rope_theta=10000.0, rope_scaling=scaling)


@pytest.mark.parametrize(("scaling", "sentence"), SINCE, ids=["attention_factor", "attn_factor"])
def test_history_names_the_release_of_a_difference(scaling, sentence):
    found = {history.runtime: history for history in histories(config(scaling))}
    assert found["vllm"].sentence("vllm") == sentence


def test_no_history_when_all_releases_agree():
    assert histories(config(None)) == []
    assert histories(config(YARN)) == []


def test_a_model_that_a_release_does_not_have_is_refused_there():
    qwen3 = llama(model_type="qwen3", head_dim=64, max_position_embeddings=4096, rope_theta=1e6)
    (found,) = [history for history in histories(qwen3) if history.runtime == "vllm"]
    assert found.sentence("vLLM") == "vLLM: refuses in 0.6.6, agrees since 0.8.5"


def test_older_release_replaces_the_current_one():
    found = compare(config({**YARN, "attention_factor": 0.7}), releases={"vllm": "0.8.5"})
    assert len(found) == len(RUNTIMES)
    (vllm,) = [one for one in found if one.emulation.runtime == "vllm"]
    assert (vllm.emulation.version, vllm.agrees, vllm.how) == ("0.8.5", False, "executed")
    assert vllm.attention_ratio == pytest.approx(1.627, rel=1e-3)


def test_older_releases_are_named_newest_first():
    assert list_releases() == {
        "transformers": ("5.24.0", "4.57.6", "4.52.4", "4.43.4", *MINORS),
        "vllm": ("0.33.0", "0.10.2", "0.8.5", "0.6.6"),
        "sglang": ("0.5.23", "0.4.6"),
    }


def test_older_transformers_lacks_the_newest_types():
    found = compare(config(YARN), releases={"transformers": "5.23.0"})
    versions = [one.emulation.version for one in found if one.emulation.runtime == "transformers"]
    assert versions == ["5.23.0", "4.57.6", "4.52.4", "4.43.4"]
    assert (found[0].agrees, found[0].how) == (True, "executed")
    sarvam = emulate({"model_type": "sarvam_mla"}, runtime="transformers", version="5.23.0")
    assert (sarvam.supported, sarvam.reason) == (False, "model type sarvam_mla does not exist in transformers 5.23.0")


@pytest.mark.parametrize("release", ["0.10.2", "0.8.5", "0.6.6"])
def test_types_not_executed_in_a_release_are_not_known(release):
    assert emulate(config(YARN), runtime="vllm", version=release).known.how == "executed"
    aria = {**config(YARN), "model_type": "internlm2"}
    assert emulate(aria, runtime="vllm", version=release).known.how == "not known"
    mistral = {**config(None), "model_type": "internlm3", "head_dim": 64}
    found = emulate(mistral, runtime="vllm", version=release)
    assert found.known.how == "by rule"
    assert not found.supported or "uses llama of vllm" in found.known.source


def test_command_line_accepts_a_release_and_prints_the_history(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config({**YARN, "attention_factor": 0.7})))
    assert main(["runtimes", str(path), "--release", "vllm=0.6.6"]) == 0
    out = capsys.readouterr().out
    assert "vllm          0.6.6" in out
    assert "vllm: cos and sin x1.627 in 0.6.6, 0.8.5 and 0.10.2, agrees since 0.33.0" in out
    for wrong in ("vllm", "vllm=1.0", "mlx-lm=0.1"):
        assert main(["runtimes", str(path), "--release", wrong]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
