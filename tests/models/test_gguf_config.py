"""The header of a GGUF file is read as the config.json that means the same, without its tensors."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.cli.main import main
from rope_viz.embedding.scaling import LongRope
from rope_viz.models.formats.gguf import read_header, summarise_header
from rope_viz.models.formats.gguf_config import config_from_gguf, find_model_type
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.probe.write_gguf import pack_text, pack_value
from rope_viz.runtimes import emulate
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "converted.json").read_text())
HEADERS = json.loads((Path(__file__).parents[1] / "goldens" / "gguf_headers.json").read_text())
ARCHITECTURES = {row["config"]["model_type"]: row["architecture"] for row in HEADERS["rows"]}
# bamba is converted to the architecture granitehybrid, whose record is another type's. A file of granitemoehybrid says
# that no layer rotates.
ROWS = [row for row in GOLDEN["rows"] if row["config"]["model_type"] not in ("bamba", "granitemoehybrid")]
SIZES = {
    "block_count": 36, "context_length": 40960, "embedding_length": 4096, "feed_forward_length": 12288,
    "attention.head_count": 32, "attention.head_count_kv": 8, "attention.key_length": 128, "rope.freq_base": 1e6,
}  # fmt: skip
QWEN3 = {"general.architecture": "qwen3", "general.name": "Qwen3 8B"} | {f"qwen3.{k}": v for k, v in SIZES.items()}


def write_sparse(path, keys, tensors, size):
    """Write a header, and make the file as long as the model without writing its weights."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(pack_text(name) + pack_value(value) for name, value in keys.items())
    first = 0
    for name, shape in tensors.items():
        head += pack_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], 1, first)
        first += 2 * int(np.prod(shape))
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


@pytest.fixture
def large_file(tmp_path):
    """A file of 40 GiB with the vocabulary of Qwen3 8B."""
    path, tokens = tmp_path / "qwen3-8b.gguf", [f"token {i}" for i in range(151_936)]
    words = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": [f"{word} x" for word in tokens]}
    write_sparse(path, QWEN3 | words, dict.fromkeys(("token_embd.weight", "output.weight"), (151_936, 4096)), 40 << 30)
    return path


def read_row(row):
    """The config that is read from what llama.cpp's converter wrote for a config."""
    kind = row["config"]["model_type"]
    name = ARCHITECTURES.get(kind, kind.removesuffix("_text").replace("_", ""))
    keys = {"attention.head_count": 16} | row["written"]
    divisors = {"rope_freqs.weight": row["factors"]} if "factors" in row else {}
    named = {"general.architecture": name} | {f"{name}.{key}": value for key, value in keys.items()}
    return config_from_gguf({"keys": named, "divisors": divisors})


@for_each(sorted({row["config"]["model_type"] for row in ROWS}))
def test_header_means_what_the_converter_was_given(kind):
    # What llama.cpp computes from the config itself was checked against its loader: test_gguf_converter.py.
    for row in (one for one in ROWS if one["config"]["model_type"] == kind):
        layer = find_main_layer(from_config(row["config"])) or None
        meant = emulate(row["config"], "llama.cpp", layer_type=layer)
        config = read_row(row)
        model = ModelConfig.read(config)
        found = emulate(model, "llama.cpp", layer_type=model.main_layer or None)
        np.testing.assert_allclose(found.inv_freq, meant.inv_freq, rtol=1e-5, atol=1e-29)
        assert found.attention_factor == pytest.approx(meant.attention_factor, rel=1e-6)
        # Its class does not round the range of YaRN as llama.cpp does.
        if kind != "gpt_oss":
            spec = model.specs[model.main_layer]
            np.testing.assert_allclose(spec.inv_freq(), meant.inv_freq, rtol=1e-5, atol=1e-29)


def test_sparse_file_of_40_gib_is_read_without_its_weights(large_file, capsys):
    assert large_file.stat().st_size == 40 << 30
    model = ModelConfig.read(large_file)
    assert (model.model_type, model.fields.head_dim(), model.limit) == ("qwen3", 128, 40960)
    assert (model.fields.config["vocab_size"], model.fields.config["tie_word_embeddings"]) == (151_936, False)
    assert model.identity.model.id == "qwen3-8b"
    for command in (["check"], ["table", "--csv"], ["runtimes"], ["memory", "--length", "32k"]):
        assert main((command[0], str(large_file), *command[1:])) == 0, command
    assert main(("extend", str(large_file), "--to", "128k", "--runtime", "llama.cpp")) == 0
    written = capsys.readouterr().out
    assert "--override-kv qwen3.context_length=int:131072" in written
    assert "PARAMETER num_ctx 131072" in written


def test_written_config_has_nothing_of_the_gguf_file(large_file, tmp_path):
    out = tmp_path / "config.json"
    assert main(("extend", str(large_file), "--to", "128k", "-o", str(out))) == 0
    written = json.loads(out.read_text())
    assert not [key for key in written if key.startswith("_source")]
    assert written["rope_scaling"]["factor"] == 4.0
    assert not check(written, without=("base-too-small",))


def test_weights_take_the_bytes_of_the_gguf_file(large_file):
    found = memory(large_file, length=1024)
    assert found["weight_bytes"] == (40 << 30) - read_header(large_file).start
    assert found["parameters"] == pytest.approx(8.19e9, rel=0.001)


def test_divisors_are_read_as_llama_3_or_as_longrope():
    base = {"general.architecture": "llama"} | {f"llama.{key}": value for key, value in SIZES.items()}
    meant = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    sizes = {"model_type": "llama", "head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32}
    scaled = meant | {"original_max_position_embeddings": 8192}
    spec = from_config({**sizes, "rope_theta": 1e6, "max_position_embeddings": 131072, "rope_scaling": scaled})[""]
    divisors = (spec.plain_inv_freq / spec.inv_freq()).astype(np.float32).tolist()
    assert config_from_gguf({"keys": base, "divisors": {"rope_freqs.weight": divisors}})["rope_scaling"] == scaled
    divisors[7] *= 1.5
    found = from_config(config_from_gguf({"keys": base, "divisors": {"rope_freqs.weight": divisors}}))[""]
    assert isinstance(found.scaling, LongRope)
    np.testing.assert_allclose(found.plain_inv_freq / found.inv_freq(), divisors, rtol=1e-6)


def test_one_part_of_a_split_model_does_not_tell_its_weights(tmp_path):
    path = tmp_path / "model-00001-of-00003.gguf"
    write_sparse(path, QWEN3 | {"split.count": 3}, {"token_embd.weight": (151_936, 4096)}, 1 << 31)
    assert "tensor_bytes" not in summarise_header(read_header(path))["gguf"]
    assert memory(path, length=1024)["weight_dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"general.architecture": 3}, "does not name an architecture"),
        ({"qwen3.embedding_length": None}, r"has no qwen3\.embedding_length"),
        ({"qwen3.context_length": -1}, r"qwen3\.context_length must"),
        ({"qwen3.rope.freq_base": 0.5}, r"qwen3\.rope\.freq_base must"),
        ({"qwen3.rope.dimension_count": 10**9}, r"qwen3\.rope\.dimension_count must"),
        ({"qwen3.rope.scaling.factor": "x"}, r"qwen3\.rope\.scaling\.factor must"),
    ],
)
def test_header_without_what_rope_needs_is_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        config_from_gguf({"keys": QWEN3 | change})


@pytest.mark.parametrize(
    "change", [{"format": 3}, {"keys": None}, {"keys": {"context_length": "x"}}, {"rotary_dim": 1e9}, {"divisors": 1}]
)
def test_broken_entry_of_a_gguf_file_is_ignored(change):
    config = config_from_gguf({"keys": QWEN3 | {"qwen3.rope.scaling.type": "linear", "qwen3.rope.scaling.factor": 2.0}})
    source = config["_source_file"]
    assert emulate(config, "llama.cpp").inv_freq[0] == 0.5
    assert emulate({**config, "rope_scaling": None}, "llama.cpp").inv_freq[0] == 0.5
    for entry in (3, source | change):
        broken = {**config, "rope_scaling": None, "_source_file": entry}
        assert emulate(broken, "llama.cpp").inv_freq[0] == 1.0


def test_names_of_llama_cpp_lead_to_model_types():
    pairs = {"llama": "llama", "qwen3moe": "qwen3_moe", "gpt-oss": "gpt_oss", "qwen3vl": "qwen3_vl_text"}
    assert {name: find_model_type(name) for name in pairs} == pairs
    assert find_model_type("tomorrow") == "tomorrow"


def test_unlisted_architecture_has_a_sliding_base():
    sizes = {"block_count": 8, "context_length": 4096, "embedding_length": 1024, "attention.head_count": 16}
    sizes |= {"attention.sliding_window": 512, "rope.freq_base": 1e6}
    keys = {"general.architecture": "plamo3"} | {f"plamo3.{key}": value for key, value in sizes.items()}
    model = ModelConfig.read(config_from_gguf({"keys": keys}))
    assert {layer: spec.base for layer, spec in model.specs.items()} == {
        "full_attention": 1e6,
        "sliding_attention": 1e4,
    }
    assert emulate(model, "llama.cpp", layer_type="sliding_attention").inv_freq[1] == pytest.approx(1e4 ** (-1 / 32))
