"""Megatron's and NeMo's arguments are read as the config.json that means the same.

Expected numbers: the rows of goldens/training.json that megatron-core's own classes computed, and the rules of
Megatron-LM's command line, which were compared with its executed code (tests/runtimes/test_trainers.py).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.models.formats.argument_text import parse_yaml
from rope_viz.models.formats.json_source import NotJsonError, read_raw
from rope_viz.models.formats.megatron_config import find_arguments
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.runtimes import emulate
from rope_viz.runtimes.trainers import train

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "training.json").read_text())
CORE = [row for row in GOLDEN["rows"] if row["id"].startswith("megatron-core-0.20.0")]
SIZES = {
    **{"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "ffn_hidden_size": 14336},
    **{"num_query_groups": 8, "group_query_attention": True, "seq_length": 8192, "normalization": "RMSNorm"},
}
LLAMA = """# Llama 3.2, as slime writes it
MODEL_ARGS=(
   --swiglu
   --num-layers 28
   --hidden-size 3072
   --ffn-hidden-size 8192
   --num-attention-heads 24
   --group-query-attention
   --num-query-groups 8
   --max-position-embeddings 131072
   --use-rotary-position-embeddings
   --disable-bias-linear
   --normalization "RMSNorm"
   --rotary-base 500000
   --vocab-size 128256
   --kv-channels 128
   --use-rope-scaling
   --rope-scaling-factor 32.0   # of the published config
)
"""
NEMO = """name: megatron_gpt
trainer:
  devices: 8
model:
  # sizes
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  position_embedding_type: 'rope' # learned_absolute, rope
  rotary_percentage: 0.5
  rotary_base: 1e6
  seq_len_interpolation_factor: null
  window_size: [512, 0]
  normalization: rmsnorm
  share_embeddings_and_output_weights: false
  optim:
    name: distributed_fused_adam
"""


def as_config(row):
    """Return a row's call with the sizes of a model, as MLA where its softmax scale was changed."""
    if row["softmax_scale_multiplier"] == 1.0:
        return {**SIZES, **row["call"]}
    call = {key: value for key, value in row["call"].items() if key != "kv_channels"}
    return {**SIZES, **call, "multi_latent_attention": True, "qk_pos_emb_head_dim": row["dim"]}


@pytest.mark.parametrize("row", CORE, ids=lambda row: row["id"].partition(":")[2])
def test_arguments_mean_what_megatron_core_computed(row):
    config = {**as_config(row)}
    found = emulate(config, "transformers")
    np.testing.assert_allclose(found.inv_freq, row["inv_freq"], rtol=3e-6)
    assert found.attention_factor == pytest.approx(row["attention_factor"], rel=4e-6)
    assert found.softmax_multiplier == pytest.approx(row["softmax_scale_multiplier"], rel=4e-6)


def test_flags_of_a_script_mean_what_megatron_lm_computes(tmp_path, capsys):
    found = ModelConfig.read(read_raw(LLAMA).config)
    flags = {"--rotary-base": 500000, "--use-rope-scaling": True, "--rope-scaling-factor": 32.0, "--kv-channels": 128}
    sizes = {"model_type": "llama", "hidden_size": 3072, "num_attention_heads": 24, "head_dim": 128}
    trained = train({**sizes, "max_position_embeddings": 131072}, "megatron-lm", arguments=flags)
    np.testing.assert_allclose(found.specs[""].inv_freq(), trained.inv_freq, rtol=1e-12)
    assert found.specs[""].scaling.factor == 8.0
    assert "32 does not reach Megatron-LM's model: the factor is 8" in " ".join(found.notes)
    path = tmp_path / "model.sh"
    path.write_text(LLAMA)
    for command in (["check"], ["table"], ["runtimes"], ["memory", "--length", "32k"], ["extend", "--to", "256k"]):
        assert main((command[0], str(path), *command[1:])) in (0, 1), command
        assert "Traceback" not in capsys.readouterr().err
    assert main(("memory", str(path), "--length", "1k", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == pytest.approx(3.2e9, rel=0.01)


def test_a_yaml_of_nemo_is_read_and_what_is_not_read_is_named():
    found = ModelConfig.read(read_raw(NEMO.encode()).config)
    spec = found.specs[""]
    assert (spec.base, spec.rotary_dim, spec.head_dim) == (1e6, 64, 128)
    assert "Not read: window_size." in " ".join(found.notes)
    own = read_upload(NEMO)
    assert "Read from Megatron arguments." in " ".join(own.notes)


def test_arguments_may_be_in_a_part_of_the_file():
    for place in ("args", "model", "config"):
        found = ModelConfig.read({place: SIZES | {"rotary_base": 7e5}, "iteration": 3})
        assert (found.model_type, found.specs[""].base, found.limit) == ("llama", 7e5, 8192)
    interleaved = ModelConfig.read(SIZES | {"rotary_base": 1e4, "rotary_interleaved": True}).specs[""]
    assert interleaved.pairing == "interleaved"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "learned_absolute"}, "only rope and yarn are read"),
        ({"seq_length": None}, "no max_position_embeddings or seq_length or encoder_seq_length"),
        ({"hidden_size": "$HIDDEN"}, "hidden_size must be a number, got '\\$HIDDEN'"),
        ({"rotary_base": "many"}, "rotary_base must be a number"),
        ({"use_rope_scaling": True, "rotary_seq_len_interpolation_factor": 2}, "cannot be written"),
    ],
)
def test_wrong_arguments_get_a_sentence(change, message):
    arguments = {**SIZES, "rotary_base": 1e4, **change}
    with pytest.raises(ValueError, match=message):
        ModelConfig.read({key: value for key, value in arguments.items() if value is not None})


def test_other_texts_are_no_arguments():
    for text in ("name: x\nmodel:\n  a: 1\n", "--port 8000 --host 0.0.0.0", '{"hidden_size": 4096', "just words"):
        with pytest.raises(NotJsonError):
            read_raw(text)
    assert find_arguments({"model_type": "chatglm", "kv_channels": 128, "ffn_hidden_size": 1, "rotary_base": 1}) is None


def test_lines_of_yaml_that_are_not_understood_are_left_out():
    text = "a: 1\nlist:\n  - x: 2\n  - y\nb: |\n  some: text\nc: 'it # is'\n\td: 3\nflow: {x: 1}\n? e\n"
    found = parse_yaml(text.replace("flow: {x: 1}\n", ""))
    assert (found["a"], found["list"], found["c"]) == (1, {}, "it")
