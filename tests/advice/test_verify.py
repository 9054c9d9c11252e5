"""The frequencies of running models and GGUF files are read and compared with the config."""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.cli.verify import LoadedFrequencies, read_gguf, read_numbers, verify
from rope_viz.embedding.scaling import Linear, LongRope, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import from_config

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "verify.json").read_text())
ROWS = GOLDEN["rows"]
SPEC = RopeSpec(head_dim=128, base=1e6, context=32768, target=131072, scaling=Yarn(4.0))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["config"]["model_type"])
def test_real_models_with_random_weights_apply_their_config(row):
    spec = next(iter(from_config(row["config"]).values()))
    found = verify(spec, read_numbers(json.dumps(row["held"]), "the model"))
    assert found.matches, found.sentence
    assert found.sentence.startswith("Matches")


@pytest.mark.parametrize("row", ROWS[1:], ids=lambda row: row["config"]["model_type"])
def test_model_without_the_scaling_is_reported(row):
    plain = {key: value for key, value in row["config"].items() if key != "rope_scaling"}
    meant = next(iter(from_config(row["config"]).values()))
    before = next(iter(from_config(plain).values()))
    found = verify(meant, LoadedFrequencies(before.inv_freq(), before.attention_factor(), "the model"))
    assert not found.matches
    assert "without any scaling" in found.sentence


def test_wrong_attention_factor_is_found_with_right_frequencies():
    found = verify(SPEC, LoadedFrequencies(SPEC.inv_freq(), 1.0, "a server"))
    assert not found.matches
    assert found.effect is None
    assert found.attention_ratio == pytest.approx(1.0 / SPEC.attention_factor())
    assert verify(SPEC, LoadedFrequencies(SPEC.inv_freq(), None, "a server")).matches


def test_zero_frequencies_are_reported_only_where_they_differ():
    frequencies = SPEC.inv_freq()
    zeroed = verify(
        SPEC, LoadedFrequencies(np.where(np.arange(64) < 60, frequencies, 0.0), SPEC.attention_factor(), "a server")
    )
    assert not zeroed.matches
    assert zeroed.sentence == "Does not match in a server: other pairs have zero frequency."
    halved = verify(SPEC, LoadedFrequencies(frequencies / 2.0, SPEC.attention_factor(), "a server"))
    assert not halved.matches
    assert "zero frequency" not in halved.sentence


def test_different_number_of_pairs_is_reported():
    assert "32 pairs rotate" in verify(SPEC, LoadedFrequencies(SPEC.inv_freq()[:32], 1.0, "a server")).sentence


def gguf_file(folder, name):
    """One of the files that the gguf package wrote."""
    path = folder / "model.gguf"
    path.write_bytes(zlib.decompress(base64.b64decode(GOLDEN["files"][name])))
    return path


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("plain", RopeSpec(head_dim=128, base=1e6, context=40960)),
        ("yarn", SPEC),
        ("linear", RopeSpec(head_dim=64, base=1e4, context=4096, target=8192, scaling=Linear(2.0))),
    ],
)
def test_gguf_written_by_the_gguf_package_is_read_back(tmp_path, name, spec):
    found = verify(spec, read_gguf(gguf_file(tmp_path, name)))
    assert found.matches, found.sentence


def test_the_flags_of_llama_cpp_win_over_the_file(tmp_path):
    path = gguf_file(tmp_path, "plain")
    assert not verify(SPEC, read_gguf(path)).matches
    assert verify(SPEC, read_gguf(path, "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072")).matches
    without = read_gguf(path, "--rope-scaling yarn --rope-scale 4 -c 131072")
    assert not verify(SPEC, without).matches


def test_a_tensor_of_divisors_is_read(tmp_path):
    divisors = tuple(1.0 + 0.25 * i for i in range(32))
    meant = RopeSpec(head_dim=64, base=1e4, context=4096, scaling=LongRope(divisors, divisors, attention=1.0))
    assert verify(meant, read_gguf(gguf_file(tmp_path, "divisors"))).matches


def test_truncated_gguf_raises_a_clear_error(tmp_path):
    whole = gguf_file(tmp_path, "divisors").read_bytes()
    path = tmp_path / "short.gguf"
    for size in (5, 30, 200, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="GGUF"):
            read_gguf(path)


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 64, b"GGUF\x09\0\0\0" + b"\0" * 32, b"{}"]
)
def test_file_that_is_no_gguf_raises_a_clear_error(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="GGUF"):
        read_gguf(path)


@pytest.mark.parametrize(
    "text", ["", "[1]", "{}", '{"inv_freq": "x"}', '{"inv_freq": [1, null]}', '{"inv_freq": [-1]}']
)
def test_numbers_that_no_snippet_wrote_are_refused(text):
    with pytest.raises(ValueError, match=r"inv_freq|snippets"):
        read_numbers(text, "inv_freq.json")


def test_the_command_says_by_its_exit_code_whether_it_matches(tmp_path, capsys):
    row = ROWS[1]
    config, numbers = tmp_path / "config.json", tmp_path / "inv_freq.json"
    config.write_text(json.dumps(row["config"]))
    numbers.write_text(json.dumps(row["held"]))
    assert main(("verify", str(config), "--from", str(numbers))) == 0
    assert capsys.readouterr().out.startswith("Matches: all 16 frequencies")
    config.write_text(json.dumps({**row["config"], "rope_theta": 5e5}))
    assert main(("verify", str(config), "--from", str(numbers), "--json")) == 1
    assert json.loads(capsys.readouterr().out)["effect"]["ratio"] > 1.0
    assert main(("verify", str(config), "--from", str(tmp_path / "none.json"))) == 2
    assert main(("verify", str(config), "--from", str(numbers), "--flags", "-c 4")) == 2
