"""Releases of vLLM and SGLang answer for DeepSeek V4 what their code computed.

The golden is tests/goldens/deepseek_v4_releases.json.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.runtimes import emulate
from rope_viz.runtimes.history import histories
from rope_viz.runtimes.releases import RELEASES
from tests.offenders import for_each

ROWS = json.loads((Path(__file__).parents[1] / "goldens" / "deepseek_v4_releases.json").read_text())["rows"]
SIZES = {"hidden_size": 4096, "num_attention_heads": 64}


def find_error(row):
    """Return what a release raises for a file: a model that one of its layers refuses does not load."""
    same = [one for one in ROWS if (one["version"], one["config"]) == (row["version"], row["config"])]
    return next((one["error"] for one in reversed(same) if "error" in one), "")


@for_each(ROWS)
def test_each_release_computes_what_it_computed(row):
    found = emulate(row["config"] | SIZES, row["runtime"], version=row["version"], layer_type=row["layer"])
    error = find_error(row)
    assert found.known.how == "executed"
    assert (found.supported, error in found.reason) == (not error, True)
    if not error:
        np.testing.assert_allclose(found.inv_freq, row["inv_freq"], rtol=3e-6)
        assert found.attention_factor == pytest.approx(row["attention_factor"])


def test_every_release_that_is_offered_was_run():
    for name in ("vllm", "sglang"):
        offered = RELEASES[name].of_one_type["deepseek_v4"]
        run = {row["version"] for row in ROWS if row["runtime"] == name}
        assert {*offered, RELEASES[name].today[0]} == run


@pytest.mark.parametrize("id", ["deepseek-v4-flash-compress", "deepseek-v4-pro-compress"])
def test_history_names_the_releases_that_scaled_the_main_layers(id):
    found = {one.runtime: one.sentence(one.runtime) for one in histories(catalog()[id].config, layer_type="main")}
    assert "×4.837 at pair 31 in 0.20.0 to 0.29.0, agrees since 0.30.0" in found["vllm"]
    assert "agrees in 0.5.12 to 0.5.13.post1, ×4.837 at pair 31 in 0.5.14 to 0.5.17, agrees since" in found["sglang"]


def test_other_models_are_not_known_in_these_releases(capsys):
    assert main(["runtimes", "llama-3.1-8b", "--release", "vllm=0.29.0"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("vllm ")]
    assert line.split()[1:4] == ["0.29.0", "not", "known"]
    assert "of vllm 0.29.0 only the code of deepseek_v4 was run" in line


def test_refused_release_is_answered_with_those_that_ran(capsys):
    assert main(["runtimes", "deepseek-v4-flash-compress", "--release", "vllm=0.19.1"]) == 2
    assert "for deepseek_v4 also 0.20.0 to 0.32.0" in capsys.readouterr().err
