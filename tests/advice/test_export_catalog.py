"""`export --scaling` with every method, for every unscaled model of the list and every runtime.

What is written is either faithful, and the check finds no error or warning in it that it does not find in the model's
own file, or the command exits with 1 and says why.
"""

import argparse

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.lint.lint_context import KNOWN_KEYS
from rope_viz.advice.plan.export import TARGETS, export
from rope_viz.cli.main import main
from rope_viz.cli.runtimes import add_export, find_new_mistakes, read_export_spec
from rope_viz.embedding.scaling import METHODS
from rope_viz.models.catalog import catalog
from rope_viz.models.formats import without_source
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from tests.offenders import for_each

UNSCALED = [id for id in catalog() if not any(spec.is_scaled for spec in read_catalog_model(id).specs.values())]
WITH_FACTOR = [name for name, method in METHODS.items() if hasattr(method(), "factor")]
PARSER = argparse.ArgumentParser()
add_export(PARSER.add_subparsers())


def read_request(id, target, *words):
    parsed = PARSER.parse_args(["export", id, "--to", target, *words])
    spec, config, layer = read_export_spec(parsed)
    return config, export(spec, to=target, config=config, layer_type=layer)


def list_findings(config):
    config = {key: value for key, value in without_source(config).items() if key != "_about"}
    return {one.rule for one in check(config, without=("runtimes-differ", "base-too-small")) if one.severity != "note"}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@for_each(UNSCALED)
def test_an_export_brings_no_finding_or_is_refused(id, target):
    sizes = [(method, "--factor", "4") for method in WITH_FACTOR]
    longer = str(4 * read_catalog_model(id).trained_length.length)
    sizes += [(method, "--target", longer) for method in METHODS]
    for method, flag, size in sizes:
        config, made = read_request(id, target, "--scaling", method, flag, size)
        if not made.faithful:
            assert made.reason, (method, flag)
        elif not find_new_mistakes(config, made, None):
            assert list_findings(made.config) <= list_findings(config), (method, flag, made.text)
        else:
            assert method == "none", (method, flag, made.text)  # a longer limit without scaling


@for_each(UNSCALED[::8])
def test_linear_writes_no_unread_key(id):
    for flag, size in (("--factor", "4"), ("--target", str(4 * read_catalog_model(id).trained_length.length))):
        _, made = read_request(id, "transformers", "--scaling", "linear", flag, size)
        written = ModelConfig.read(made.config)
        rope = written.part.config.get("rope_parameters", {})
        for part in (rope, *(value for value in rope.values() if isinstance(value, dict))):
            if part.get("rope_type") == "linear":
                assert part.keys() <= {*KNOWN_KEYS["by_type"]["linear"], *KNOWN_KEYS["by_type"][""]}, part


def test_a_longer_limit_without_scaling_is_refused(capsys):
    """The check warns: beyond the trained length the angles are new."""
    request = ["export", "glm-5", "--to", "transformers", "--target", "800k"]
    assert main([*request, "--scaling", "none"]) == 1
    assert "does not extend the context" in capsys.readouterr().err
    assert main(request) == 0  # nobody asked for a scaling method


def test_the_exit_code_is_that_of_the_check(capsys):
    assert main(["export", "phi-4", "--to", "vllm", "--scaling", "yarn", "--factor", "4"]) == 0
    assert main(["export", "phi-4", "--to", "mlx-lm", "--scaling", "yarn", "--factor", "4"]) == 1
    assert "cos and sin" in capsys.readouterr().err
