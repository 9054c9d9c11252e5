"""One function admits a config, whichever door it comes in by, and reads it once."""

import json
import pickle

import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import model_config
from rope_viz.models.model_config import ModelConfig, as_model_config
from rope_viz.models.read_upload import make_upload
from rope_viz.own_files import admit, config_link, configs, own_file
from rope_viz.own_files.admit import admit_link, admit_stored, admit_text
from rope_viz.own_files.shared_config import read_shown, share_config
from rope_viz.picture import read_address, write_address
from rope_viz.storage.limits import CONFIG_VALUES
from tests.configs import QWEN3_8B
from tests.offenders import for_each
from tests.own_files.test_config_link import CONFIGS, PRIVATE

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
GEMMA = {
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "num_hidden_layers": 34,
    "max_position_embeddings": 131072,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5 + ["sliding_attention"] * 4,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}
INSIDE = {"model_type": "mistral", "hidden_size": 5120, "num_attention_heads": 32, "head_dim": 128}
FILES = {
    "qwen3 with yarn": {**QWEN3_8B, "max_position_embeddings": 131072, "rope_scaling": YARN},
    "gemma with layer types": GEMMA,
    "wrapper": {"model_type": "mistral3", "text_config": {**INSIDE, "max_position_embeddings": 131072}},
    "many labels": {**QWEN3_8B, "id2label": {str(number): "x" for number in range(9000)}},
}
NAMED = {name: {**config, "_name_or_path": "/home/anna/secret"} for name, config in FILES.items()}


@pytest.fixture
def counted(monkeypatch):
    """{"reads": how often a config was read, "specs": how often embeddings were computed}."""
    counts = {"reads": 0, "specs": 0}
    read, build_specs = ModelConfig.read.__func__, model_config.build_specs

    def count_read(cls, *arguments, **options):
        counts["reads"] += 1
        return read(cls, *arguments, **options)

    def count_specs(*arguments, **options):
        counts["specs"] += 1
        return build_specs(*arguments, **options)

    monkeypatch.setattr(ModelConfig, "read", classmethod(count_read))
    monkeypatch.setattr(model_config, "build_specs", count_specs)
    return counts


@pytest.mark.parametrize(
    "config", [*FILES.values(), *NAMED.values()], ids=[*FILES, *(f"{name}, named" for name in NAMED)]
)
@pytest.mark.parametrize("is_served", [False, True], ids=["here", "in a server"])
def test_dropped_config_is_read_once_until_its_pictures(config, is_served, counted):
    own_file.read_file(json.dumps({**config, "rope_theta": 77_777.0}), RopeSpec(), "")  # fills caches of the program
    counted.update(reads=0, specs=0)
    own = own_file.read_file(json.dumps(config).encode(), RopeSpec(), "")
    if is_served:
        own = pickle.loads(pickle.dumps(own))
    assert config_link.write_config(own)
    subject = read_address.Subject(own.specs[own.layer], "custom", own.layer, own)
    write_address.write_model(subject)
    share_config(own)
    admit.summarise_findings(own)
    assert own.model_config.specs
    assert counted["reads"] <= 3, counted
    assert counted["specs"] <= 2, counted


def list_doors(config):
    """Return {door: the upload of the config that comes in by it}."""
    text = json.dumps(config)
    dropped = own_file.read_file(text.encode(), RopeSpec(), "")
    link = config_link.write_config(dropped)
    found = {"dropped": dropped, "pasted": admit_text(text), "stored": admit_stored(configs.upload_bytes(dropped))}
    return found | ({"link": admit_link(link)} if link else {})


def try_to_read(config):
    try:
        return admit_text(json.dumps(config))
    except ValueError as error:
        return error


@pytest.mark.slow
@for_each(CONFIGS)
def test_every_door_admits_the_same_embeddings(config):
    if isinstance(try_to_read(config), ValueError):
        return
    doors = list_doors(config)
    assert all(own.specs == doors["pasted"].specs for own in doors.values())


@pytest.mark.slow
@for_each(CONFIGS)
def test_what_others_see_is_as_if_it_were_read_again(config):
    """The proof of a link takes embeddings over where only private keys differ."""
    own = try_to_read({**config, **PRIVATE, "auto_map": {"AutoConfig": "configuration_x.Config"}})
    if isinstance(own, ValueError):
        return
    shown = read_shown(own).upload
    if shown is None:
        return
    assert shown is not own
    anew = make_upload(shown.config, current=RopeSpec())
    assert (shown.specs, shown.name, shown.notes) == (anew.specs, anew.name, anew.notes)
    assert shown.reading.problems == anew.reading.problems


@pytest.mark.parametrize("door", [admit_text, admit_stored], ids=lambda door: door.__name__)
def test_limits_hold_at_every_door(door):
    def send(**keys):
        return door(json.dumps({**QWEN3_8B, **keys}).encode())

    own = send(junk=[0] * (CONFIG_VALUES + 1), layer="x")
    assert own.config["junk"] == []
    nested = {}
    for _ in range(40):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="nested"):
        send(junk=nested)
    with pytest.raises(ValueError, match="keys"):
        send(**{f"k{number}": number for number in range(1500)})


@pytest.mark.parametrize("door", ["file", "text", "stored", "link"])
def test_a_slow_config_is_refused_at_every_door(door, monkeypatch):
    link, content = config_link.write_config(admit_text(json.dumps(QWEN3_8B))), json.dumps(QWEN3_8B).encode()
    monkeypatch.setattr(admit, "CHECK_SECONDS", -1.0)
    if door == "file":
        found = own_file.read_file(content, RopeSpec(), "")
        assert "takes" in found.problems[0].reason or "long" in found.problems[0].reason
        return
    doors = {"text": (admit_text, content), "stored": (admit_stored, content), "link": (admit_link, link)}
    function, argument = doors[door]
    with pytest.raises(ValueError, match=str(admit.TEXTS("stored.slow"))):
        function(argument)


def test_a_bare_rope_scaling_takes_sizes_of_an_open_model():
    with pytest.raises(ValueError, match=r"."):
        admit_stored(json.dumps(YARN).encode())
    own = own_file.read_file(json.dumps(YARN), RopeSpec(96), "Open model")
    assert own.specs[""].head_dim == 96
    assert any("Open model" in note for note in own.notes)


def test_a_read_config_is_passed_on_as_it_is():
    read = ModelConfig.read(QWEN3_8B)
    assert as_model_config(read) is read
    assert ModelConfig.read(read) is read
