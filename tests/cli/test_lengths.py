"""Trained length, original length and limit are the same in every command, on every page and in the report."""

import json

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.evaluation_plan import MOST
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.read_upload import read_upload
from rope_viz.pages import registry
from rope_viz.pages.model import extend
from rope_viz.picture import read_address
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.reports import report
from tests.configs import yarn
from tests.offenders import for_each

SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128}
QWEN3 = {"model_type": "qwen3", **SIZES, "rope_theta": 1e6, "num_hidden_layers": 36, "num_key_value_heads": 8}
QWEN3 |= {"intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 40960}
YARN = yarn(32768)
# {name: (config, trained length, original length)}
OWN = {
    "qwen3 by its numbers": (QWEN3, 32768, None),
    "qwen3 with yarn": ({**QWEN3, "max_position_embeddings": 131072, "rope_scaling": YARN}, 32768, 32768),
    "an unknown llama": ({"model_type": "llama", **SIZES, "max_position_embeddings": 16384}, 16384, None),
    "an unknown qwen3": ({**QWEN3, "hidden_size": 1536, "num_attention_heads": 12}, 32768, None),
    "a type without a record": ({"model_type": "foo", **SIZES, "max_position_embeddings": 8192}, 8192, None),
}


def lengths_of(capsys, *words):
    main([*words, "--json"])
    found = json.loads(capsys.readouterr().out)
    return tuple(found[key] for key in ("trained_length", "original_length", "limit"))


def assert_every_command_agrees(capsys, name, wanted):
    assert lengths_of(capsys, "check", name) == wanted
    assert lengths_of(capsys, "table", name) == wanted
    assert lengths_of(capsys, "export", name, "--to", "transformers") == wanted
    assert main(["extend", name, "--to", "8M", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["have"]["trained"]["length"] == wanted[0]
    main(["table", name])
    line = capsys.readouterr().out.splitlines()[0]
    assert f"trained length {wanted[0]:,} (" in line or f"no trained length documented, {wanted[0]:,} assumed (" in line


def assert_pages_agree(request, wanted):
    trained, original, _ = wanted
    # The sidebar's length: what the file's scaling divides from, else the trained length.
    start = request.subject.start
    assert start.scaling.name != "none" or start.context == trained
    assert extend.trained(request) == trained
    rows = dict(report.about(request))
    assert rows["trained length"].removeprefix("not documented; ").startswith(f"{trained:,} tokens")
    if original is not None:
        assert (start.length_name, start.context) == ("original", original)
        assert rows["original length"] == f"{original:,} tokens"
    for page in registry.PAGES:
        assert (
            read_address.read_request(registry.page(page), spec_url.write_query(request.subject)).spec == request.spec
        )


@for_each(list(catalog()))
def test_catalog_model_has_one_trained_length(id, capsys):
    config = read_catalog_model(id)
    original = config.original_length if config.has_original_length else None
    if catalog()[id].layer is None:
        assert_every_command_agrees(capsys, id, (config.trained_length.length, original, config.limit))
    subject, _ = spec_url.read_query({"model": id})
    assert_pages_agree(PictureRequest(subject), (config.trained_length.length, None, config.limit))


@pytest.mark.parametrize("name", OWN)
def test_user_config_has_one_trained_length(capsys, tmp_path, name):
    config, trained, original = OWN[name]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    wanted = (trained, original, config["max_position_embeddings"])
    assert_every_command_agrees(capsys, str(path), wanted)
    own = read_upload(path.read_text())
    assert own.model_config.trained_length.length == trained


def test_a_new_method_starts_from_the_trained_length(tmp_path):
    out = tmp_path / "yarn.json"
    words = ["figure", "scaling/comparison", "qwen3-8b", "--scaling", "yarn", "--target", "128k", "-o", str(out)]
    assert main(words) == 0
    drawn = json.loads(out.read_text())["spec"]
    assert (drawn["context"], drawn["target"], drawn["scaling"]["factor"]) == (32768, 131072, 4.0)
    spec = spec_url.read_query({"model": "qwen3-8b", "method": "yarn", "target": "131072"})[0].spec
    assert (spec.context, spec.target, spec.scaling.factor) == (32768, 131072, 4.0)
    # An address that names the length draws what it drew.
    named = spec_url.read_query({"model": "qwen3-8b", "method": "yarn", "target": "131072", "trained": "40960"})[0].spec
    assert (named.context, named.scaling.factor) == (40960, 3.2)


def test_only_documented_lengths_are_called_trained_on():
    assert "Trained length: 32,768 tokens" in ModelConfig.read(QWEN3).identity.sentence
    llama = read_catalog_model("llama-3.1-8b")
    assert not llama.trained_length.is_documented
    assert "Trained length:" not in llama.identity.sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ["extend", "llama-2-7b", "--to", "1e999"],
        ["memory", "llama-2-7b", "--length", "1e999"],
        ["table", "llama-2-7b", "--length", "1e999"],
        ["evaluate", "--server", "none=http://127.0.0.1:9/v1", "--dry-run", "--depths", "1e999"],
        ["evaluate", "--server", "none=http://127.0.0.1:9/v1", "--dry-run", "--repeats", "1e999"],
    ],
    ids=" ".join,
)
def test_an_endless_number_is_a_sentence(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "'1e999' is not a whole number of tokens" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--depths", "1e12"], ["--repeats", "1e12"], ["--repeats", "1e300"]], ids=" ".join)
def test_too_many_questions_are_a_sentence(capsys, flags):
    assert main(["evaluate", "--server", "none=http://127.0.0.1:9/v1", "--dry-run", *flags]) == 2
    error = capsys.readouterr().err
    assert f"at most {MOST:,} questions" in error
    assert error.count("\n") == 1
