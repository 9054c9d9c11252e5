"""What `evaluate --ray` gives its actors, without Ray."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from rope_viz.advice.plan.export import export
from rope_viz.cli.evaluate import find_overrides, scale_by_methods
from rope_viz.cli.spec import read_config
from rope_viz.models.model_config import ModelConfig

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "rope_viz" / "tiny_lm" / "checkpoints" / "seed-0"


def test_vllm_on_a_cluster_gets_what_export_prints():
    """The keys that an actor overrides are the --hf-overrides of `rope-viz export --to vllm`."""
    config = read_config(str(FOLDER / "config.json"))
    read = ModelConfig.read(config)
    for spec in scale_by_methods(read, "linear,ntk,yarn", 4.0, 1024).values():
        exported = export(spec, to="vllm", config=config, layer_type=read.main_layer)
        flags = shlex.split(exported.text)
        assert find_overrides(FOLDER, exported) == json.loads(flags[flags.index("--hf-overrides") + 1])


def test_ray_is_not_imported_without_its_flag():
    code = "import sys, rope_viz.cli.evaluate; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
