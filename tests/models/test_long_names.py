"""Names longer than any name are cut once, and the check says so; nothing compares or repeats the whole."""

import json

import pytest

from rope_viz.advice.lint import check
from rope_viz.models import no_rope_types
from rope_viz.models.architecture import listed_types
from rope_viz.models.long_names import cut_long_names
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.no_rope_types import reasons
from rope_viz.models.read_upload import read_upload
from rope_viz.storage.limits import NAME_CHARACTERS
from tests.configs import llama, yarn

LONG = "a" * 200_000
PLACES = {
    "model_type": llama(model_type=LONG),
    "architectures": llama(architectures=[LONG]),
    "layer_types": llama(layer_types=[LONG], num_hidden_layers=1),
    "rope_scaling.rope_type": llama(rope_scaling={"rope_type": LONG, "factor": 4.0}),
    "text_config.model_type": {"model_type": "other", "text_config": llama(model_type=LONG)},
    "rope_parameters": llama(rope_parameters={LONG: {"rope_type": "default", "rope_theta": 1e4}}),
}


@pytest.mark.parametrize("place", PLACES)
def test_long_name_is_a_finding_and_a_note(place):
    found = [one for one in check(PLACES[place]) if one.rule == "long-names"]
    assert [one.key for one in found] == [place]
    assert "200,000 characters" in found[0].message
    assert len(json.dumps(ModelConfig.read(PLACES[place]).mapping)) < 2000
    assert max(len(one.message) for one in check(PLACES[place])) < 1000


@pytest.mark.parametrize("place", ["model_type", "architectures", "layer_types"])
def test_config_with_a_long_name_is_read_with_a_note(place):
    own = read_upload(json.dumps(PLACES[place]))
    assert own.specs[own.layer].head_dim == 128
    assert any("200,000 characters" in note for note in own.notes)
    assert len(json.dumps(own.config)) < 2000


def test_long_model_type_is_spelled_out_once(monkeypatch):
    asked = []
    letters_of = no_rope_types.letters_of
    monkeypatch.setattr(no_rope_types, "letters_of", lambda kind: asked.append(len(kind)) or letters_of(kind))
    check(llama(model_type=LONG))
    read_upload(json.dumps(llama(model_type=LONG)))
    known = sum(map(len, listed_types()))
    assert sum(asked) <= 4 * (known + NAME_CHARACTERS)


def test_no_published_name_is_cut():
    assert max(map(len, {*listed_types(), *reasons()})) < NAME_CHARACTERS


def test_names_of_models_are_no_finding():
    config = llama(_name_or_path="/".join(["folder"] * 20_000), rope_scaling=yarn(2048))
    assert cut_long_names(config) == (config, {})
    assert len(read_upload(json.dumps(config)).name) <= 48


def test_small_config_is_not_copied():
    config = llama(layer_types=["full_attention"], rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    assert cut_long_names(config)[0] is config


def test_long_architecture_of_a_gguf_file_is_cut_in_sentences():
    keys = {"general.architecture": LONG, f"{LONG}.embedding_length": 4096}
    with pytest.raises(ValueError, match=r"the GGUF file has no a{100}\.context_length$"):
        read_upload(json.dumps({"gguf": {"keys": keys, "divisors": {}}}))


def header(**changes):
    """Return the summary of a small GGUF file."""
    sizes = {"embedding_length": 4096, "context_length": 8192, "attention.head_count": 32, "block_count": 32}
    keys = {f"llama.{key}": value for key, value in {**sizes, **changes}.items()}
    return {"gguf": {"keys": {"general.architecture": "llama", **keys}, "divisors": {}}}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (header(embedding_length=0), "llama.embedding_length must be at least 1, got 0"),
        (header(**{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": {}}), "number"),
        (header(**{"attention.head_count": 10**400}), "llama.attention.head_count is too large"),
    ],
    ids=["width", "attention factor", "heads"],
)
def test_header_from_which_nothing_can_be_computed_is_a_sentence(config, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_upload(json.dumps(config))


@pytest.mark.parametrize(
    "config",
    [
        llama(model_type="qwen2_vl", rope_scaling={"type": "mrope", "mrope_section": [16, 10**400, 24]}),
        llama(model_type="qwen2_vl", rope_scaling={"type": "mrope", "mrope_section": [16, float("nan"), 24]}),
        llama(architectures=-1),
    ],
    ids=["section", "no number", "architectures"],
)
def test_value_that_rope_does_not_need_is_no_error(config):
    own = read_upload(json.dumps(config))
    assert own.specs[own.layer].head_dim == 128
    assert all(one.message for one in check(config))


def test_long_lists_are_read_as_empty_with_a_note():
    own = read_upload(json.dumps(llama(y=[[]] * 80_000, z={"inner": [[1] * 100] * 100})))
    assert own.config["y"] == []
    assert own.config["z"] == {"inner": []}
    assert any("y, inner" in note for note in own.notes)
