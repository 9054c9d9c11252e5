"""`extend --runtime X` writes and shows first what X accepts, and its exit code is that of -o."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.cli.extend import format_text
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import from_config
from rope_viz.runtimes import emulate
from tests.configs import llama

CASES = Path(__file__).parents[1] / "cases" / "extend"
# Mixtral 8x7B's numbers as transformers 5 saves them.
MIXTRAL = {
    **{"model_type": "mixtral", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32},
    **{"num_key_value_heads": 8, "num_hidden_layers": 32, "max_position_embeddings": 32768},
    "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"},
}


def test_the_file_has_keys_that_the_asked_runtime_reads():
    plan = make_plan(MIXTRAL, 65_536, ["mlx-lm"])
    assert plan.is_file_read
    assert np.allclose(emulate(plan.file.config, "mlx-lm").inv_freq, plan.way.spec.inv_freq())


def test_flags_come_first_where_a_runtime_does_not_read_the_file():
    config = dict(catalog()["gemma-2-9b"].config)
    flags = format_text(make_plan(config, 16_384, ["llama.cpp"]))
    assert flags.index("llama-server") < flags.index("config.json (to write)")
    file = format_text(make_plan(config, 16_384, ["transformers"]))
    assert file.index("config.json (to write)") < file.index("Start it")


@pytest.mark.parametrize("runtime", ["transformers", "vllm", "llama.cpp", "mlx-lm"])
@pytest.mark.parametrize("config", [MIXTRAL, llama(num_key_value_heads=7), dict(catalog()["gemma-2-9b"].config)])
def test_the_exit_code_is_the_same_with_and_without_output(config, runtime, tmp_path, capsys):
    given, written = tmp_path / "config.json", tmp_path / "out.json"
    given.write_text(json.dumps(config))
    command = ("extend", str(given), "--to", "64k", "--runtime", runtime)
    code = main(command)
    assert main((*command, "-o", str(written))) == code
    assert written.exists() or code == 1


def test_an_encoder_is_extended_by_a_method_that_configs_know():
    config = json.loads((CASES / "06-t5gemma.json").read_text())
    plan = make_plan(config, 65_536, ["mlx-lm"], way="ntk")
    for name in ("encoder", "decoder"):
        spec = from_config({**plan.file.config[name], "model_type": "t5_gemma_module"})[""]
        assert np.allclose(spec.inv_freq(), plan.way.spec.inv_freq())
