"""A folder is read with what lies next to its config.json; a file that is named alone is read alone."""

import json

import pytest

from rope_viz.cli.main import main
from rope_viz.models.formats.side_files import add_side_files

LLAMA = {
    **{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192},
    **{"rope_theta": 500000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": False},
}
LAYERS = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
OTHERS = 2 * 128256 * 4096 + 65 * 4096
FP8 = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes files into a folder and returns it."""

    def write(**files):
        for name, content in {"config": LLAMA, **files}.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / f"{name}.json").write_text(text)
        return tmp_path

    return write


def measure(path, capsys, *flags):
    """Return the JSON of the command memory for 8,192 tokens."""
    assert main(["memory", str(path), "--length", "8k", "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)


def test_hf_quant_config_gives_the_types_of_weights_and_cache(folder, capsys):
    place = folder(hf_quant_config={"producer": {"name": "modelopt"}, "quantization": FP8})
    found = measure(place, capsys)
    assert found["weight_bytes"] == LAYERS + 2 * OTHERS
    assert found["dtype"] == "fp8"
    assert found["kv_cache_bytes"] == 8192 * 32 * 2 * 8 * 128
    assert found["assumed"] == {}
    alone = measure(place / "config.json", capsys)
    assert alone["weight_bytes"] == 2 * (LAYERS + OTHERS)
    assert alone["assumed"] == {"dtype": "bfloat16"}


def test_the_config_goes_before_the_file_next_to_it(folder, capsys):
    own = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}
    place = folder(config={**LLAMA, "quantization_config": own}, hf_quant_config={"quantization": FP8})
    found = measure(place, capsys)
    assert found["weight_bytes"] == LAYERS * 4.5 / 8 + 2 * OTHERS
    assert found["dtype"] == "fp8"  # which the config does not say


def test_mixed_precision_finds_its_layers_in_the_file_next_to_it(folder, capsys):
    own = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    layers = {f"model.layers.{index}.mlp.up_proj": {"quant_algo": "FP8"} for index in range(32)}
    place = folder(
        config={**LLAMA, "quantization_config": own},
        hf_quant_config={"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}},
    )
    assert measure(place, capsys)["weight_bytes"] == 2 * (LAYERS + OTHERS) - 32 * 4096 * 14336
    assert measure(place / "config.json", capsys)["weight_bytes"] is None


@pytest.mark.parametrize(("name", "method"), [("quantize_config", "gptq"), ("quant_config", "awq")])
def test_older_files_of_gptq_and_awq_are_read(folder, capsys, name, method):
    place = folder(**{name: {"bits": 4, "group_size": 128, "q_group_size": 128, "w_bit": 4}})
    found = measure(place, capsys)
    order = 32 * (6 * 4096 + 14336) * 4 if method == "gptq" else 0
    assert found["weight_bytes"] == LAYERS * 4.15625 / 8 + order + 2 * OTHERS
    assert found["weight_dtype"] == f"{method}, 4 bits"


def test_shorter_lengths_of_generation_config_are_named(folder, capsys):
    place = folder(generation_config={"max_length": 4096, "max_new_tokens": 2048, "temperature": 0.6})
    notes = " ".join(measure(place, capsys)["notes"])
    assert "max_length is 4,096" in notes
    assert "max_new_tokens is 2,048" in notes
    for usual in ({"max_length": 20}, {"max_length": 8192}, {"max_length": "long"}):
        assert measure(folder(generation_config=usual), capsys)["notes"] == []


def test_a_broken_file_next_to_the_config_is_named(folder, capsys):
    assert main(["memory", str(folder(hf_quant_config="{")), "--length", "8k"]) == 3
    assert "hf_quant_config.json" in capsys.readouterr().err


def test_side_files_are_never_written_into_a_config(folder, tmp_path, capsys):
    place = folder(hf_quant_config={"quantization": FP8}, generation_config={"max_length": 4096})
    assert main(["extend", str(place), "--to", "32k", "-o", str(tmp_path / "out.json")]) == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert not [key for key in written if key.startswith("_")]
    assert "quantization_config" not in written


@pytest.mark.parametrize("command", [["check"], ["table"], ["runtimes"], ["memory", "--length", "8k"]])
def test_every_command_reads_the_folder(folder, capsys, command):
    place = folder(hf_quant_config={"quantization": FP8}, generation_config={"max_length": 4096})
    main([command[0], str(place), *command[1:]])
    assert "_side_files" not in capsys.readouterr().out


def test_experts_of_a_layer_are_one_entry():
    names = [f"model.layers.{index}.mlp.experts.{expert}.up_proj" for index in range(2) for expert in range(64)]
    quantization = {"exclude_modules": names, "quantized_layers": {name: {"quant_algo": "FP8"} for name in names}}
    found = add_side_files(LLAMA, {"hf_quant_config.json": json.dumps({"quantization": quantization})})
    kept = found["_side_files"]["quantization"]
    assert kept["exclude_modules"] == [f"model.layers.{index}.mlp.experts.up_proj" for index in range(2)]
    assert list(kept["quantized_layers"]) == kept["exclude_modules"]
