"""Every runtime computes what its own code computed when it was run."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.models.model_config import from_config
from rope_viz.runtimes import RUNTIMES, emulate, resolve_release
from tests.configs import llama, yarn
from tests.offenders import for_each

GOLDENS = Path(__file__).parents[1] / "goldens"
RUN = json.loads((GOLDENS / "runtimes.json").read_text())
RELEASES = json.loads((GOLDENS / "releases.json").read_text())["rows"]
SERVERS = json.loads((GOLDENS / "servers.json").read_text())["rows"]
OLDER = json.loads((GOLDENS / "older.json").read_text())["rows"]
MODEL_FILES = [
    row for name in ("model_files", "glue") for row in json.loads((GOLDENS / f"{name}.json").read_text())["rows"]
]
TELECHAT3 = [
    {**row, "runtime": "vllm", "version": "0.33.0", "length": None}
    for row in json.loads((GOLDENS / "telechat3.json").read_text())["rows"]
]
SERVED = [*SERVERS, *MODEL_FILES, *TELECHAT3, *OLDER]
MLX = json.loads((GOLDENS / "mlx.json").read_text())["rows"]
TOLERANCE = {"llama.cpp": 1e-5}  # its kernel multiplies float32 pair by pair
LLAMA = llama(max_position_embeddings=32768)
YARN = yarn(8192)


def largest_ratio(ours, theirs):
    """max over pairs of max(a/b, b/a) - 1; a pair that stands still must stand still in both."""
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert np.array_equal(ours == 0, theirs == 0)
    turning = theirs != 0
    return float(np.max(np.abs(np.log(ours[turning] / theirs[turning]))))


def name(row):
    return "-".join(str(row.get(key)) for key in ("id", "runtime", "version", "layer_type", "seq_len"))[:70]


@for_each(RUN["rows"], name)
def test_every_executed_row_is_reproduced(row):
    result = emulate(
        RUN["configs"][row["id"]],
        runtime=row["runtime"],
        version=row["version"],
        length=row["seq_len"],
        layer_type=row["layer_type"],
    )
    assert result.supported == row["supported"], result.reason
    if not row["supported"]:
        assert result.reason
        return
    tolerance = TOLERANCE.get(row["runtime"], 2e-6)
    assert largest_ratio(result.inv_freq, row["inv_freq"]) <= tolerance
    assert result.attention_factor == pytest.approx(row["attention_factor"], rel=tolerance)
    if row["softmax_scale_multiplier"] is not None:
        assert result.softmax_multiplier == pytest.approx(row["softmax_scale_multiplier"], rel=tolerance)


@for_each(RELEASES, lambda row: f"{row['version']}-{row['config']['model_type']}")
def test_releases_of_transformers_compute_or_raise_as_recorded(row):
    result = emulate(
        row["config"],
        runtime="transformers",
        version=row["version"],
        length=row["length"],
        layer_type=row["layer_type"],
    )
    assert result.supported == ("error" not in row), result.reason or row
    if result.supported:
        assert largest_ratio(result.inv_freq, row["inv_freq"]) <= 2e-6
        assert result.attention_factor == pytest.approx(row["attention_factor"], rel=2e-6)


@for_each(SERVED, lambda row: f"{row['runtime']}-{row['version']}-{row['config']['model_type']}")
def test_a_server_computes_or_raises_as_its_rotary_package_does(row):
    result = emulate(row["config"], runtime=row["runtime"], version=row["version"], length=row["length"])
    assert result.supported == ("error" not in row), result.reason or row["error"]
    if result.supported:
        np.testing.assert_allclose(result.inv_freq, row["inv_freq"], rtol=2e-6, atol=1e-9)
        assert result.attention_factor == pytest.approx(row["attention_factor"], rel=2e-6)


@for_each(MLX, lambda row: row["config"]["model_type"])
def test_mlx_computes_or_raises_as_its_model_files_do(row):
    result = emulate(row["config"], runtime="mlx-lm", length=row["length"])
    # Two model files insist on the old key "type"; the emulation says so and computes what follows.
    lenient = "must contain keys" in row.get("error", "") and result.supported
    assert lenient or result.supported == ("error" not in row), result.reason or row["error"]
    if lenient:
        assert "legacy-type" in {rule.key for rule in result.rules}
    elif result.supported:
        # The angles come from float32 cosines and sines: absolute, not relative.
        np.testing.assert_allclose(result.inv_freq, row["inv_freq"], rtol=1e-5, atol=1e-9)
        assert result.attention_factor == pytest.approx(row["attention_factor"], rel=2e-6)


@for_each(RUN["configs"])
def test_newest_transformers_defines_the_meaning_of_a_config(config):
    for layer, spec in from_config(config).items():
        for length in (None, 4096, 8 * spec.context):
            result = emulate(config, runtime="transformers", length=length, layer_type=layer or None)
            np.testing.assert_allclose(result.inv_freq, spec.inv_freq(length), rtol=1e-15)
            assert result.attention_factor == spec.attention_factor(length)


def test_attention_factor_is_used_or_ignored_per_runtime():
    config = {**LLAMA, "rope_scaling": {**YARN, "attention_factor": 1.0}}
    factors = {name: emulate(config, runtime=name).attention_factor for name in ("transformers", "vllm", "paper")}
    assert factors["transformers"] == factors["vllm"] == 1.0
    for runtime in ("sglang", "llama.cpp", "mlx-lm", "tensorrt-llm", "paper"):
        assert emulate(config, runtime=runtime).attention_factor == pytest.approx(1.13862944, rel=1e-8)


def test_mscale_alone_has_an_effect_in_two_runtimes():
    config = {**LLAMA, "rope_scaling": {**YARN, "mscale": 1.5}}
    for runtime in ("transformers", "vllm", "sglang", "llama.cpp"):
        assert emulate(config, runtime=runtime).attention_factor == pytest.approx(1.13862944, rel=1e-8)
    for runtime in ("mlx-lm", "tensorrt-llm"):
        assert emulate(config, runtime=runtime).attention_factor == pytest.approx(1.0 + 0.15 * np.log(4.0), rel=1e-12)


def test_a_missing_trained_length_is_read_five_ways():
    config = {**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}

    def like(runtime, original):
        told = {**LLAMA, "rope_scaling": {**YARN, "original_max_position_embeddings": original}}
        ours, theirs = (emulate(case, runtime=runtime).inv_freq for case in (config, told))
        return np.array_equal(ours, theirs)

    assert like("transformers", 32768)
    assert like("vllm", 32768)
    assert like("sglang", 32768)
    assert like("mlx-lm", 4096)
    assert like("tensorrt-llm", 1024)
    assert not emulate(config, runtime="llama.cpp").supported


def test_a_json_integer_factor_crashes_two_runtimes():
    config = {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 2}}
    refused = {name for name, version in RUNTIMES if not emulate(config, runtime=name, version=version).supported}
    assert refused == {"vllm", "sglang"}


def test_dynamic_scaling_depends_on_the_length_only_if_dynamic():
    config = {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}

    def last(runtime, length):
        return emulate(config, runtime=runtime, length=length).inv_freq[-1]

    plain = emulate(LLAMA, runtime="transformers").inv_freq[-1]
    for runtime in ("transformers", "mlx-lm"):
        assert last(runtime, 32768) == pytest.approx(plain)
        assert last(runtime, 65536) == pytest.approx(plain / 3.0)
    for length in (32768, 65536):
        assert last("vllm", length) == pytest.approx(plain)
        assert last("llama.cpp", length) == pytest.approx(plain)
        assert last("sglang", length) == pytest.approx(plain / 3.0)
        assert last("paper", length) == pytest.approx(plain * 32768 / length)


def test_sglang_switches_longrope_one_token_late():
    config = RUN["configs"]["phi-4-mini"]
    short, late, long = (emulate(config, runtime="sglang", length=n).inv_freq for n in (4096, 4097, 4098))
    assert np.array_equal(short, late)
    assert np.array_equal(long, emulate(config, runtime="transformers", length=4097).inv_freq)


def test_the_rules_that_changed_something_are_named():
    config = {**LLAMA, "rope_scaling": {**YARN, "truncate": False}}
    keys = {rule.key for rule in emulate(config, runtime="llama.cpp").rules}
    assert "truncate-ignored" in keys
    assert emulate(LLAMA, runtime="llama.cpp").rules == ()


def test_versions_may_be_shortened():
    assert resolve_release("llama.cpp", "0c1e57098") == resolve_release("llama.cpp")
    assert resolve_release("transformers") == ("transformers", "5.24.0")


@pytest.mark.parametrize(("runtime", "version"), [("pytorch", None), ("vllm", "0.1"), ("llama.cpp", "")])
def test_unknown_runtime_error_lists_the_known_ones(runtime, version):
    with pytest.raises(ValueError, match="must be one of"):
        emulate(LLAMA, runtime=runtime, version=version)


def test_an_unknown_layer_type_is_named():
    with pytest.raises(ValueError, match="layer_type must be one of full_attention, sliding_attention"):
        emulate(RUN["configs"]["gemma-3-1b"], runtime="vllm", layer_type="global")


def test_the_paper_runs_its_own_ramp():
    """YaRN eq. 17, 18 and 22 at d = 128, b = 10000, L = 4096, s = 8, against the released ramp."""
    config = {**LLAMA, "max_position_embeddings": 32768, "rope_theta": 10000.0}
    config["rope_scaling"] = yarn(4096, 8.0)
    paper, released = (emulate(config, runtime=name) for name in ("paper", "transformers"))
    np.testing.assert_allclose(paper.inv_freq[[16, 32, 44]], [0.1, 2.807778439e-3, 2.302786191e-4], rtol=1e-9)
    np.testing.assert_allclose(released.inv_freq[[16, 32, 44]], [0.1, 5.961538462e-3, 3.419768096e-4], rtol=1e-9)
    assert paper.attention_factor == pytest.approx(1.2079441542, rel=1e-10)


def test_custom_mappings_are_not_cached():
    """A mapping of somebody's own may say something else the next time."""

    class Mine(dict):
        pass

    config = {**LLAMA, "rope_scaling": Mine(rope_type="linear", factor=4.0)}
    first = emulate(config, runtime="transformers")
    again = emulate(config, runtime="transformers")
    assert again is not first
    assert np.array_equal(again.inv_freq, first.inv_freq)


def test_every_runtime_applies_yarn_to_short_texts_too():
    # Recall says so of short texts; the rows of runtimes.json, servers.json and mlx.json execute single lengths.
    config = llama(max_position_embeddings=32768, rope_scaling=YARN)
    for name, version in RUNTIMES:
        short, long = (emulate(config, runtime=name, version=version, length=length) for length in (256, 32768))
        np.testing.assert_array_equal(short.inv_freq, long.inv_freq)
        assert short.attention_factor == long.attention_factor == pytest.approx(1.1386294, rel=1e-6)


def test_telechat3_yarn_has_another_weight_in_mlx_lm():
    # mlx_lm/models/rope_utils.py of 0.32.2 lists telechat3-yarn next to yarn; it was read, not executed.
    config = llama(max_position_embeddings=32768, rope_scaling={**YARN, "rope_type": "telechat3-yarn"})
    found = {name: emulate(config, runtime=name, version=version) for name, version in reversed(RUNTIMES)}
    assert found["vllm"].attention_factor == pytest.approx(1.0970406, rel=1e-7)
    assert found["mlx-lm"].attention_factor == pytest.approx(1.1386294, rel=1e-7)
    assert not any(found[name].supported for name in ("transformers", "sglang", "tensorrt-llm"))
