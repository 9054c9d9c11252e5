"""What `extend` and `export` write says every length that a runtime reads, and nothing that a runtime needs is lost.

The five inputs in tests/cases/limits are cut from published files or are class defaults: qwen3 (Qwen3-8B's sizes), a
Llama with a second limit, RecurrentGemma's class default, GLM-5's file with four layers, MiMo-V2-Flash's class default.
Right values: arithmetic (original length times factor), and the code of vLLM 0.33.0 (config/model.py,
transformers_utils/model_arch_config_convertor.py), SGLang 0.5.23 (srt/utils/hf_transformers/common.py), transformers
(modeling_recurrent_gemma.py) and mlx-lm 0.32.2 (glm_moe_dsa.py, ministral3.py, llama4.py), read.
"""

import json
import shlex
from pathlib import Path

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.plan.export import export
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.cli.main import main
from rope_viz.embedding.scaling import DynamicNtk, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.architecture import find_architecture
from rope_viz.models.edit_config import write_new_keys, write_old_keys
from rope_viz.models.length_keys import LENGTH_KEYS
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.spec_url import with_method
from rope_viz.runtimes import emulate
from rope_viz.runtimes.longest_length import explain_refused_length

CASES = Path(__file__).parents[1] / "cases" / "limits"
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 4096}


def read_case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def read_override(text):
    words = shlex.split(text)
    return json.loads(words[words.index("--hf-overrides") + 1])


def test_a_factor_says_the_limit_too(capsys, tmp_path):
    path = CASES / "export-limit.json"
    assert main(["export", "--to", "transformers", str(path), "--scaling", "yarn", "--factor", "4"]) == 0
    merged = read_case("export-limit") | json.loads(capsys.readouterr().out)
    assert (
        merged["max_position_embeddings"]
        == 131_072
        == 4 * merged["rope_parameters"]["original_max_position_embeddings"]
    )
    assert not [one for one in check(merged, without=("runtimes-differ",)) if one.severity != "note"]


@pytest.mark.parametrize("method", ["linear", "ntk", "ntk-by-parts", "yarn-paper", "yarn", "llama3", "longrope"])
def test_every_method_with_a_factor_says_the_limit(capsys, method):
    path = CASES / "export-limit.json"
    assert main(["export", "--to", "transformers", str(path), "--scaling", method, "--factor", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["max_position_embeddings"] == 131_072


def test_an_embedding_with_a_larger_factor_raises_the_limit():
    """A page sets factor and length apart: the file must not contradict itself."""
    spec = RopeSpec(head_dim=128, base=1e6, context=32_768, target=40_960, scaling=Yarn(4.0))
    made = export(spec, to="transformers", config=read_case("export-limit"))
    assert made.config["max_position_embeddings"] == 131_072


def test_the_file_s_own_contradiction_stays():
    """Only a new scaling brings its limit: the trained one is written back as it is."""
    scaled = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
    model = ModelConfig.read({**LLAMA, "rope_scaling": scaled})
    assert write_old_keys(model, model.specs[""]).whole["max_position_embeddings"] == 4096


@pytest.mark.parametrize("runtime", LENGTH_KEYS)
def test_the_second_limit_is_raised(runtime):
    plan = make_plan(read_case("second-limit"), 16_384, [runtime])
    assert plan.instructions[0].made.faithful
    assert plan.file.config["max_position_embeddings"] == plan.file.config["max_sequence_length"] == 16_384
    made = plan.instructions[0].made
    assert made.config["max_sequence_length"] == 16_384
    if runtime == "vllm":
        assert read_override(made.text)["max_sequence_length"] == 16_384
        assert "--max-model-len 16384" in made.text


@pytest.mark.parametrize("key", [key for key in LENGTH_KEYS["vllm"] if key != "max_position_embeddings"])
def test_every_length_key_below_the_limit_is_raised(key):
    for lower, expected in ((2048, 16_384), (65_536, 65_536)):
        plan = make_plan({**LLAMA, key: lower}, 16_384, ["vllm", "sglang"])
        assert plan.file.config[key] == expected
        assert plan.file.config["max_position_embeddings"] == 16_384
        assert all(one.made.faithful for one in plan.instructions)


def test_a_limit_that_reaches_does_not_hide_a_second_one():
    """The limit is not the least of the keys, so the file has to change although its limit reaches."""
    plan = make_plan({**LLAMA, "max_position_embeddings": 8192, "max_seq_len": 2048}, 8192, ["vllm"])
    assert plan.file.config["max_seq_len"] == 8192
    assert explain_refused_length(ModelConfig.read({**LLAMA, "max_seq_len": 2048}), "vllm", 4096)


def test_a_file_that_vllm_refuses_is_not_called_checked():
    """The factor of dynamic scaling divides from the limit, which stays: only another key says the served length."""
    spec = RopeSpec(head_dim=128, context=4096, target=16_384, scaling=DynamicNtk(1.0))
    model = ModelConfig.read(LLAMA)
    written = write_new_keys(model, spec).whole
    assert written["max_position_embeddings"] == 4096
    assert not explain_refused_length(ModelConfig.read(written), "vllm", 16_384)
    without = {key: value for key, value in written.items() if key != "model_max_length"}
    assert "max_position_embeddings" in explain_refused_length(ModelConfig.read(without), "vllm", 16_384)


def test_the_window_of_recurrent_gemma_stays(tmp_path):
    plan = make_plan(read_case("recurrent-gemma-window"), 4096, ["transformers"])
    assert plan.file.config["attention_window_size"] == 2048
    assert plan.file.config["max_position_embeddings"] == 4096
    assert plan.way.method == "none"
    assert "Distances stay within 2,048 tokens" in plan.way.reasons[0]


@pytest.mark.parametrize("length", [4096, 131_072])
def test_a_window_that_the_file_names_otherwise_stays(length):
    config = {"model_type": "recurrent_gemma", "attention_window_size": 1024, "max_position_embeddings": 8192}
    plan = make_plan(config, length, ["transformers"])
    assert plan.file.config["attention_window_size"] == 1024
    assert ModelConfig.read(plan.file.config).window == 1024


def test_mlx_lm_keeps_the_rope_parameters_that_it_needs():
    config = read_case("glm-moe-dsa")
    assert emulate(config, "mlx-lm").supported
    plan = make_plan(config, 409_600, ["transformers"])
    assert plan.file.config["rope_parameters"]["rope_type"] == "yarn"
    assert "rope_scaling" not in plan.file.config
    assert "mlx-lm 0.32.2" in plan.file.runtimes


@pytest.mark.parametrize("kind", ["glm_moe_dsa", "ministral3", "mistral4", "mellum"])
def test_mlx_lm_refuses_a_file_without_rope_parameters(kind):
    model = ModelConfig.read({"model_type": kind})
    layer = model.main_layer or None
    written = write_old_keys(model, model.specs[model.main_layer], layer).whole
    reason = emulate(written, "mlx-lm", layer_type=layer).reason
    assert "has no default for" in reason
    assert "rope_parameters" in reason
    plan = make_plan({**write_new_keys(model, model.specs[model.main_layer], layer).whole}, 4 * model.limit, ["vllm"])
    assert "rope_parameters" in plan.file.config


@pytest.mark.parametrize("write", [write_new_keys, write_old_keys])
def test_a_null_rope_scaling_stays(write):
    """llama4.py of mlx-lm has no default for rope_scaling."""
    config = {
        "model_type": "llama4_text",
        "rope_theta": 5e5,
        "rope_scaling": None,
        "max_position_embeddings": 1_048_576,
    }
    model = ModelConfig.read(config)
    spec = model.specs[""]
    longer = RopeSpec(**{**vars(spec), "target": 2 * spec.target})
    written = write(model, longer).whole
    assert written["rope_scaling"] is None
    assert written["max_position_embeddings"] == 2_097_152


def test_a_recognised_model_with_a_smaller_limit_is_raised():
    plan = make_plan(read_case("limit-below-target"), 262_144, ["vllm"])
    assert plan.file.config["max_position_embeddings"] == 262_144
    assert read_override(plan.instructions[0].text)["max_position_embeddings"] == 262_144
    assert plan.instructions[0].made.faithful
    assert "Keep the config" not in plan.way.title


@pytest.mark.parametrize("kind", ["gptj", "codegen", "baichuan", "qwen", "telechat"])
@pytest.mark.parametrize("target", ["transformers", "mlx-lm"])
def test_a_class_that_reads_no_scaling_is_refused(kind, target):
    assert not find_architecture(kind).rope.reads_scaling
    model = ModelConfig.read({"model_type": kind})
    made = export(with_method(model.specs[""], "linear"), to=target, config=model)
    longer = RopeSpec(**{**vars(model.specs[""]), "target": 4 * model.limit})
    made = export(with_method(longer, "linear"), to=target, config=model)
    assert not made.faithful
    assert made.reason


@pytest.mark.parametrize("name", ["k1-gpt-j"])
def test_the_command_refuses_gpt_j(capsys, tmp_path, name):
    """create_sinusoidal_positions of transformers has base 10,000 in its code, and no key."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gptj"}))
    for size in (["--factor", "4"], ["--target", "8192"]):
        assert main(["export", str(tmp_path), "--to", "transformers", "--scaling", "yarn", *size]) == 1
        assert "no key for yarn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "runtime", "key"), [("step3p5", "sglang", "max_seq_len"), ("chatglm", "vllm", "seq_length")]
)
def test_a_server_s_own_default_is_raised_for_that_server(kind, runtime, key):
    """The configuration classes that vLLM and SGLang bring along have defaults that no file shows."""
    config = {"model_type": kind, "max_position_embeddings": 131_072}
    model = ModelConfig.read(config)
    spec = with_method(RopeSpec(**{**vars(model.specs[model.main_layer]), "target": 262_144}), "ntk")
    made = export(spec, to=runtime, config=config, layer_type=model.main_layer or None)
    assert made.faithful, made.reason
    assert made.config[key] == 262_144
    assert f'"{key}": 262144' in made.text
    file = make_plan(config, 262_144, [runtime], way="ntk").file
    assert file.config[key] == 262_144
    assert runtime in " ".join((*file.runtimes, *file.unverified))
    assert key not in export(spec, to="transformers", config=config, layer_type=model.main_layer or None).config
