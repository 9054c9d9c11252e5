"""Two models side by side: numbers from their papers and files, the same on the command line and in the picture."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.compare_models import Side, compare_models
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.read_upload import single_axis_upload
from rope_viz.own_files import config_link
from rope_viz.pages import compare
from rope_viz.picture import read_address
from rope_viz.picture.wire_format import columns
from rope_viz.reports.draw import figure
from tests.offenders import for_each

QWEN, LLAMA = (Side(catalog()[name].name, read_catalog_model(name)) for name in ("qwen3-8b", "llama-3.1-8b"))
OWN = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}


def own(**changes):
    return Side("mine", ModelConfig.read(OWN | changes))


def test_qwen3_and_llama_31_differ_in_their_published_numbers():
    found = compare_models(QWEN, LLAMA).as_dict()
    assert found["length"] == 8192
    # The files of both models: Qwen3-8B has 8,190,735,360 weights, Llama 3.1 8B 8,030,261,248.
    assert found["differences"]["parameters"] == [8_190_735_360, 8_030_261_248]
    # Keys and values of 8 heads of 128 numbers of 2 bytes, in 36 and 32 layers.
    assert found["differences"]["kv_cache_bytes"] == [8192 * 2 * 8 * 128 * 2 * layers for layers in (36, 32)]
    assert found["differences"]["base"] == [1_000_000.0, 500_000.0]
    assert found["differences"]["rotating_layers"] == ["36 of 36", "32 of 32"]
    assert found["same"]["head_dim"] == 128


def test_frequency_ratio_of_two_bases_is_the_closed_form():
    found = compare_models(own(rope_theta=10_000.0), own(rope_theta=160_000.0))
    assert found.ratio == pytest.approx(16.0 ** (-np.arange(64) / 64), rel=1e-12)
    assert {fact.key for fact in found.facts if fact.differs} == {"base"}
    assert [side.name for side in found.sides] == ["mine (1)", "mine (2)"]


def test_a_ratio_covers_the_pairs_that_both_have():
    found = compare_models(own(), own(head_dim=64))
    assert len(found.ratio) == 32
    assert found.ratio == pytest.approx(10_000.0 ** (-np.arange(32) / 32 + np.arange(32) / 64), rel=1e-12)


def test_layer_types_of_one_model_are_listed_next_to_the_other():
    found = compare_models(Side("Gemma", read_catalog_model("gemma-3-27b-global")), LLAMA).as_dict()
    assert found["differences"]["full_attention.base"] == [1_000_000.0, 500_000.0]
    assert found["differences"]["sliding_attention.base"] == [10_000.0, None]


@for_each(list(catalog()))
def test_every_model_can_be_compared(model):
    found = compare_models(Side(model, read_catalog_model(model)), QWEN)
    assert json.loads(json.dumps(found.as_dict()))["models"][0]["model"] == model


def test_a_config_without_rope_numbers_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^mine: "):
        compare_models(Side("mine", ModelConfig.read({"model_type": "llama", "rope_theta": "x"})), QWEN)


def write(folder, name, **changes):
    path = folder / name
    path.write_text(json.dumps(OWN | changes))
    return str(path)


def test_command_line_and_page_agree(capsys, tmp_path):
    for first, second in (
        ("qwen3-8b", "llama-3.1-8b"),
        (write(tmp_path, "a.json"), write(tmp_path, "b.json", head_dim=64)),
    ):
        path = tmp_path / "ratio.csv"
        assert main(["compare", first, second, "--json", "-o", str(path)]) == 0
        printed = json.loads(capsys.readouterr().out)
        query = {"model": first, "compare.with": second}
        if first not in catalog():
            uploads = [single_axis_upload(json.loads(Path(name).read_text())) for name in (first, second)]
            first_text, second_text = map(config_link.write_config, uploads)
            query = {"model": "custom", "config": first_text, "compare.with": second_text}
        request = read_address.read_request(compare.PAGE, query)
        both = compare.found(request)
        assert both.as_dict()["differences"] == printed["differences"]
        assert both.as_dict()["memory"] == printed["memory"]
        shown = columns(compare.differences(request))
        assert len(shown["property"]) == len(printed["differences"])
        assert main(["compare", first, second]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 + len(printed["differences"])
        assert b"pair i" in path.read_bytes()


def test_picture_of_the_command_is_that_of_the_address(tmp_path):
    path = tmp_path / "ratio.svg"
    assert main(["compare", "qwen3-8b", "llama-3.1-8b", "-o", str(path)]) == 0
    assert path.read_bytes() == figure("compare/ratio?model=qwen3-8b")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["qwen3-8b", "llama-2-7b", "--base", "1e4"], "--base works with one config"),
        (["qwen3-8b", "-o", "a.svg"], "-o needs two configs"),
        (["qwen3-8b", "llama-2-7b", "-o", "a.doc"], "the file must end in"),
        (["qwen3-8b", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_two_configs_cannot_have_is_refused(capsys, arguments, reason):
    assert main(["compare", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_numbers_without_a_config_are_those_of_a_llama():
    request = read_address.read_request(compare.PAGE, {"model": "custom", "base": "5e5", "compare.with": "llama-2-7b"})
    assert compare.found(request).as_dict()["differences"]["base"] == [500_000.0, 10_000.0]


def test_an_unknown_second_model_is_refused():
    with pytest.raises(ValueError, match=r"compare\.with must be a model"):
        read_address.read_request(compare.PAGE, {"compare.with": "gpt-9"})
