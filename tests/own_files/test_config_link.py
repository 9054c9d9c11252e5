"""A link to a user's config: it carries what the project reads, and nothing else."""

import base64
import json
import zlib
from pathlib import Path

import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.own_files import config_link
from rope_viz.own_files.config_keys import cut_config, list_keys
from rope_viz.pages import registry
from rope_viz.picture import read_address, write_address
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.runtimes.axes import axes_answers
from rope_viz.runtimes.compare import compare
from tests.configs import LONGROPE, QWEN3_8B
from tests.offenders import for_each

CASES = Path(__file__).parents[1] / "cases"
PUBLISHED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.rglob("*.json"))}
LISTED = {
    name: {key: value for key, value in model.config.items() if key != "_about"} for name, model in catalog().items()
}
CONFIGS = PUBLISHED | LISTED
PRIVATE = {
    "_name_or_path": "/home/anna/secret-model",
    "project_codename": "ultramarine",
    "budget": 4,
    "tokenizer_file": "/srv/anna/tokenizer.json",
    "task_specific_params": {"prompt": "Dear Anna"},
}


def upload(config):
    return read_upload(json.dumps(config))


def text_of(content):
    return base64.urlsafe_b64encode(zlib.compress(content)).decode().rstrip("=")


def outcome(function, *arguments, **options):
    try:
        return repr(function(*arguments, **options))
    except ValueError as error:
        return str(error)


def answers(config):
    """Return what the project says about a config: model, lengths, check, runtimes, axes, memory, the best way."""
    read = ModelConfig.read(config)
    try:
        plan = make_plan(read, 1 << 20, ("vllm", "llama.cpp"))
    except ValueError:
        plan = None  # the page says why
    compared = {layer: compare(read, layer_type=layer or None) for layer in (() if read.problems else read.specs)}
    return {
        "specs": outcome(lambda: read.start_specs),
        "model": outcome(lambda: read.identity.model),
        "trained": outcome(lambda: read.identity.trained),
        "check": [(one.rule, one.severity, one.key, one.message) for one in check(config)],
        "runtimes": {layer: [(one.emulation, one.effect) for one in found] for layer, found in compared.items()},
        "axes": outcome(axes_answers, config),
        "memory": plan and plan.memory,
        "way": plan and (plan.way.id, plan.way.spec),
        "proofs": plan and [one.proof for one in plan.instructions],
    }


@for_each(list(CONFIGS))
def test_config_of_a_link_gives_the_same_answers(name):
    try:
        own = upload(CONFIGS[name])
    except ValueError:
        return  # no upload, so no link
    text = config_link.write_config(own)
    assert 0 < len(text) <= 4000
    opened = config_link.read_config(text)
    assert config_link.write_config(opened) == text
    before, after = answers(own.config), answers(opened.config)
    for key in before:
        assert repr(after[key]) == repr(before[key]), key


def test_link_carries_no_names_paths_or_unknown_keys():
    own = upload({**QWEN3_8B, **PRIVATE})
    found = config_link.read_config(config_link.write_config(own)).config
    assert not set(PRIVATE) - {"_name_or_path"} & set(found)
    assert not any(word in json.dumps(found) for word in ("anna", "Anna", "secret", "ultramarine"))


def test_list_has_keys_of_readers_and_records_and_no_other_words():
    assert {"rope_theta", "layer_types", "n_embd", "kv_lora_rank", "quant_method", "per_layer_config"} <= list_keys()
    words = {"token", "user", "run", "path", "name", "because", "All", "_name_or_path", "ignore_mismatched_sizes"}
    assert not words & list_keys()


@for_each([id for id in catalog() if not id.startswith("rope-viz")])
def test_model_known_by_its_name_alone_stays_recognised(name):
    own = upload(LISTED[name] | {"_name_or_path": f"/home/anna/{catalog()[name].name.replace(' ', '-')}"})
    found = config_link.read_config(config_link.write_config(own))
    assert found.model_config.identity.model == own.model_config.identity.model
    assert found.model_config.identity.how == own.model_config.identity.how
    assert found.model_config.trained_length == own.model_config.trained_length
    assert "anna" not in json.dumps(found.config)


def test_lists_of_unquantised_layers_are_not_carried():
    skipped = [f"model.layers.{layer}.mlp.experts.{expert}" for layer in range(64) for expert in range(64)]
    config = {**QWEN3_8B, "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": skipped}}
    text = config_link.write_config(upload(config))
    assert len(text) < 1000
    assert config_link.read_config(text).config["quantization_config"] == {"quant_method": "fp8"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "damaged or cut off"),
        ("abc", "damaged or cut off"),
        ("é" * 9, "damaged or cut off"),
        (config_link.write_config(read_upload(json.dumps(QWEN3_8B)))[:-9], "damaged or cut off"),
        ("A" * 4001, "longer than 4,000 characters"),
        (text_of(b'{"a": "' + b"0" * (300 << 10) + b'"}'), "larger than 32 KiB"),
        (text_of(b"[" * 5000), "cannot be read"),
        (text_of(b"null"), "cannot be read"),
        (text_of(b'{"model_type": "qwen3", "head_dim": NaN}'), "cannot be read"),
        (text_of(b'{"model_type": "bert"}'), "cannot be read"),
    ],
    ids=lambda each: each[:12],
)
def test_hostile_config_in_a_link_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        config_link.read_config(text)


def test_decompression_stops_at_32_kib():
    bomb = text_of(b"0" * (2 << 20))
    assert len(bomb) < 4000
    with pytest.raises(ValueError, match="larger than 32 KiB"):
        config_link.read_config(bomb)


def test_config_too_large_for_a_link_has_none():
    layers = {str(index): {"head_dim": 64 + (index * index * 7919) % 4093} for index in range(900)}
    assert config_link.write_config(upload({**QWEN3_8B, "per_layer_config": layers})) == ""


@pytest.mark.parametrize("address", [one.address for one in registry.pictures() if one.config])
def test_picture_link_carries_the_config(address):
    picture = registry.picture(*address.split("/"))
    own = upload(LONGROPE)
    request = PictureRequest(Subject(own.specs[""], own=own), held={"own": "A" * 43})
    query = write_address.link_query(request, picture)
    assert query["config"] == config_link.write_config(own)
    assert not {"own", "base", "short", "long"} & set(query)
    opened = read_address.read_request(registry.page(picture.page), query)
    assert opened.spec == request.spec
    assert opened.subject.model_config.identity.model == request.subject.model_config.identity.model


def test_changed_numbers_are_in_the_link_with_the_config():
    own = upload(QWEN3_8B)
    spec = own.specs[""]
    resting = PictureRequest(Subject(spec, own=own))
    changed = read_address.moved(registry.page("scaling"), resting, "base", "20000").subject
    query = write_address.write_model(changed)
    assert query == {"model": "custom", "base": "20000", "config": config_link.write_config(own)}
    found, _ = read_address.read_model(query)
    assert found.spec == changed.spec
    assert found.own.specs == own.specs


def test_config_needs_the_custom_model():
    query = {"model": "qwen3-8b", "config": config_link.write_config(upload(QWEN3_8B))}
    with pytest.raises(ValueError, match="needs model=custom"):
        read_address.read_request(registry.page("scaling"), query)


def test_a_link_carries_the_keys_that_formulas_read():
    published = PUBLISHED["01-deepseek-v4-flash"]
    config = {**published, "compress_rate_hca": 64}
    carried = cut_config(config)
    assert carried["compress_rate_hca"] == 64
    found = {
        name: memory(each, length=3000) for name, each in (("link", carried), ("file", config), ("as is", published))
    }
    for key in ("kv_cache_bytes", "parameters"):
        assert found["link"][key] == found["file"][key]
    assert found["file"]["kv_cache_bytes"] != found["as is"]["kv_cache_bytes"]
