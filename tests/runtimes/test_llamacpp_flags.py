"""The command line of llama.cpp changes the kernel's operands as recorded."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.runtimes import emulate
from rope_viz.runtimes.llamacpp import parse_flags

GOLDENS = Path(__file__).parents[1] / "goldens"
ROWS = json.loads((GOLDENS / "llamacpp_flags.json").read_text())["rows"]
CONFIGS = json.loads((GOLDENS / "runtimes.json").read_text())["configs"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']}: {row['flags']}")
def test_every_captured_command_line_is_reproduced(row):
    result = emulate(CONFIGS[row["id"]], runtime="llama.cpp", version="0c1e57098", flags=row["flags"])
    np.testing.assert_allclose(result.inv_freq, row["inv_freq"], rtol=1e-5)
    assert result.attention_factor == pytest.approx(row["attention_factor"], rel=1e-5)


def test_flags_may_be_a_mapping():
    config = CONFIGS["qwen3-8b"]
    text = emulate(config, runtime="llama.cpp", flags="--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx=32768")
    named = {"rope_scaling": "yarn", "rope_scale": 4, "--yarn-orig-ctx": 32768}
    mapping = emulate(config, runtime="llama.cpp", flags=named)
    assert np.array_equal(text.inv_freq, mapping.inv_freq)


def test_a_scale_is_the_inverse_of_a_frequency_scale():
    config = CONFIGS["qwen3-8b"]
    scale, freq_scale = (
        emulate(config, runtime="llama.cpp", flags=flags) for flags in ("--rope-scale 8", "--rope-freq-scale 0.125")
    )
    assert np.array_equal(scale.inv_freq, freq_scale.inv_freq)


def test_the_context_is_padded_before_longrope_chooses():
    config = CONFIGS["phi-4-mini"]
    short, padded, long = (emulate(config, runtime="llama.cpp", flags=f"-c {n}").inv_freq for n in (4096, 4097, 131072))
    assert np.array_equal(padded, long)
    assert not np.array_equal(short, long)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--rope-scaling", "needs a value"),
        ("--rope-scaling ntk", "must be none, linear or yarn"),
        ("--rope-scale four", "must be a number"),
        ("--rope-factor 4", "unknown llama.cpp flag"),
        ("--rope-scale nan", "must be finite"),
        ("--rope-scale -2", "greater than 0"),
    ],
)
def test_a_bad_flag_is_one_clear_sentence(flags, message):
    with pytest.raises(ValueError, match=message):
        parse_and_run(flags)


def parse_and_run(flags):
    parse_flags(flags)
    emulate(CONFIGS["qwen3-8b"], runtime="llama.cpp", flags=flags)


def test_flags_are_for_llama_cpp_only():
    with pytest.raises(ValueError, match="flags are for"):
        emulate(CONFIGS["qwen3-8b"], runtime="vllm", flags="--rope-scale 4")
