"""--override-kv is as if the GGUF file had these keys; how files are read: tests/models/test_gguf_config.py."""

import numpy as np
import pytest

from rope_viz import emulate
from tests.configs import QWEN3_8B
from tests.models.test_gguf_config import QWEN3, write_sparse


@pytest.fixture
def gguf(tmp_path):
    def write(**keys):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.gguf"
        write_sparse(path, QWEN3 | keys, {"token_embd.weight": (151_936, 4096)}, 4096)
        return path

    return write


@pytest.mark.parametrize(
    ("flag", "keys"),
    [
        ("qwen3.rope.freq_base=float:5000000", {"qwen3.rope.freq_base": 5e6}),
        ("qwen3.context_length=int:131072", {"qwen3.context_length": 131072}),
        ("qwen3.rope.scaling.type=str:linear,qwen3.rope.scaling.factor=float:4",
         {"qwen3.rope.scaling.type": "linear", "qwen3.rope.scaling.factor": 4.0}),
    ],
)  # fmt: skip
def test_override_kv_is_as_if_the_key_were_in_the_file(gguf, flag, keys):
    found = emulate(gguf(), "llama.cpp", flags=f"-c 65536 --override-kv {flag}")
    meant = emulate(gguf(**keys), "llama.cpp", flags="-c 65536")
    np.testing.assert_array_equal(found.inv_freq, meant.inv_freq)
    assert found.attention_factor == meant.attention_factor


def test_context_length_alone_changes_no_frequency(gguf):
    path = gguf()
    found = emulate(path, "llama.cpp", flags="--override-kv qwen3.context_length=int:131072")
    np.testing.assert_array_equal(found.inv_freq, emulate(path, "llama.cpp").inv_freq)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("qwen3.rope.freq_base", "must be KEY=TYPE:VALUE"),
        ("llama.rope.freq_base=float:1e7", "changes nothing in the RoPE of this file"),
        ("qwen3.rope.freq_base=float:x", "must be a number"),
        ("qwen3.context_length=int:1.5", "must be a whole number"),
        # validate_override of src/llama-model-loader.cpp: "Bad metadata override type", and the file's value stays.
        ("qwen3.rope.freq_base=int:5000000", "llama.cpp ignores qwen3.rope.freq_base as int"),
    ],
)
def test_a_wrong_key_is_one_sentence(gguf, flag, message):
    with pytest.raises(ValueError, match=message):
        emulate(gguf(), "llama.cpp", flags=f"--override-kv {flag}")


def test_a_config_has_no_keys_to_override():
    with pytest.raises(ValueError, match="changes keys of a GGUF file"):
        emulate(QWEN3_8B, "llama.cpp", flags="--override-kv qwen3.context_length=int:131072")
