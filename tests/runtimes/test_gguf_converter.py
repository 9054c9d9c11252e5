"""The rules of llama.cpp give what its converter wrote for every architecture."""

import json
from pathlib import Path

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn, blend
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.runtimes import emulate
from rope_viz.runtimes.provenance import executed_counts, executed_types
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "converted.json").read_text())
KINDS = sorted({row["config"]["model_type"] for row in GOLDEN["rows"]})


def loaded(row):
    """Radians per position as src/llama-model.cpp and src/llama-context.cpp take them from these keys."""
    written = row["written"]
    rotary = written.get("rope.dimension_count") or written.get("attention.key_length")
    rotary = rotary or written["embedding_length"] // written["attention.head_count"]
    base, kind = written.get("rope.freq_base", 10_000.0), written.get("rope.scaling.type", "linear")
    factor = 1.0 if kind == "none" else written.get("rope.scaling.factor", 1.0)
    length = written.get("rope.scaling.original_context_length", written["context_length"])
    values = base ** (-np.arange(0, rotary, 2) / rotary) / factor
    if kind == "yarn":
        yarn = Yarn(factor)
        spec = RopeSpec(head_dim=rotary, base=base, context=length, scaling=yarn)
        low, high = yarn.correction_range(spec)
        kept = 1.0 - np.clip((np.arange(spec.pairs) - low) / max(0.001, high - low), 0.0, 1.0)
        values = blend(spec, factor, kept)
    return values / np.asarray(row.get("factors", 1.0))


@for_each(KINDS)
def test_the_rules_give_what_the_converter_wrote(kind):
    for row in GOLDEN["rows"]:
        if row["config"]["model_type"] == kind:
            layer = find_main_layer(from_config(row["config"]))
            found = emulate(row["config"], runtime="llama.cpp", version="0c1e57098", layer_type=layer or None)
            assert found.supported, found.reason
            # A divisor of 1e30 in the GGUF stands for no rotation.
            np.testing.assert_allclose(found.inv_freq, loaded(row), rtol=1e-5, atol=1e-29)
            assert found.known.how == "executed"


RAISED = ("ValueError: Missing <MODEL_TENSOR.ROPE_FREQS", "AssertionError")


@pytest.mark.parametrize("asked", [key for key, why in GOLDEN["refused"].items() if why.startswith(RAISED)])
def test_configs_refused_by_the_converter_are_refused(asked):
    kind, method = asked.split(" ")
    scaled = {"rope_type": method, "factor": 2.0, "original_max_position_embeddings": 1024, "rope_theta": 1e4}
    if method == "llama3":
        scaled |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    nested = {"full_attention": scaled, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    config = {"model_type": kind, "rope_parameters": nested if kind.startswith("gemma4") else scaled}
    assert not emulate(config, runtime="llama.cpp").supported


def test_architecture_count_includes_the_converter():
    counts = {name: count for name, _, count in executed_counts()}
    assert counts["llama.cpp"] >= len(KINDS) > 100
    assert set(KINDS) == executed_types()["llama.cpp 0c1e57098"]["converted.json"]
