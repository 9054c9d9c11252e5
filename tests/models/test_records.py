"""Every record of a model type names only known values, and is formatted as the scripts write it."""

import ast
import json
import sys
from pathlib import Path

import pytest

from rope_viz.models import TEXTS
from rope_viz.models.architecture import FOLDER, all_architectures, find_architecture, parse_record
from rope_viz.models.config_reader import LAYER_SIZES
from rope_viz.models.no_rope_types import reasons
from rope_viz.models.rope_parameters import RULES
from rope_viz.runtimes.releases import OLDER, RELEASES, RUNTIMES
from rope_viz.runtimes.trainers import TRAINERS
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "goldens"
COLUMNS = (
    {name for name, _ in RUNTIMES}
    | {f"{name} {version.split(chr(32))[0]}" for name, version in (*RUNTIMES, *OLDER)}
    | {"transformers 4", "transformers 5", *TRAINERS}
)


def strings_of(folder):
    """Every string in the Python files of a folder."""
    return {
        node.value
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


FACTS = strings_of(ROOT / "rope_viz" / "runtimes") | strings_of(ROOT / "rope_viz" / "advice")
FACTS |= strings_of(ROOT / "rope_viz" / "advice" / "lint") | strings_of(ROOT / "rope_viz" / "models")


@for_each(all_architectures())
def test_record_names_only_known_values(record):
    assert record.source
    assert record.since in (*RELEASES["transformers"].releases, "")
    assert record.rope.rule in RULES
    assert record.rope.layer_sizes in ("", *LAYER_SIZES)
    assert record.layers.rotating in ("", "sliding_if_window", *TEXTS.group("rotating.which"))
    if record.vectors is not None:
        assert record.vectors.part in ("first", "last")
        assert record.vectors.index in ("", "first", "last")
        assert record.vectors.index_pairing in ("", "half", "interleaved")
    assert record.twin == "" or find_architecture(record.twin) is not None
    if record.text is not None:
        assert record.text.path
        assert find_architecture(record.text.type) is not None or record.text.type in reasons()
    for runtime, facts in record.runtimes.items():
        assert runtime in COLUMNS
        assert set(facts) - {"file"} <= FACTS, (runtime, set(facts) - FACTS)
    for at, goldens in record.executed.items():
        own = {f"{name} {one}" for name, known in RELEASES.items() for one in known.list_for(record.model_type)}
        assert at in COLUMNS | own
        assert all((GOLDENS / name).is_file() for name in goldens)
    if record.text is None and not record.not_text:
        assert {"hidden_size", "num_attention_heads", "max_position_embeddings"} <= record.defaults.keys()


def test_every_type_has_a_record_or_a_reason():
    assert not all_architectures().keys() & reasons().keys()
    assert len(all_architectures()) > 380


def test_record_files_are_formatted_as_the_scripts_write_them(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(GOLDENS))
    import records

    monkeypatch.setattr(records, "FOLDER", tmp_path)
    for path in FOLDER.glob("*.json"):
        records.write_record(path.stem, json.loads(path.read_text(encoding="utf-8")))
        assert (tmp_path / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), path.name
    sys.modules.pop("records")


def test_misspelt_record_key_is_refused():
    with pytest.raises(TypeError, match="pairring"):
        parse_record("x", {"pairring": "half"})
    with pytest.raises(TypeError, match="windw"):
        parse_record("x", {"layers": {"windw": 4096}})
