"""The numbers of the assistant match the mathematics."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.extend import extend, first_negative_distance, measure_methods
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import write_new_keys
from rope_viz.models.model_config import from_config

CATALOG = Path(__file__).parents[2] / "rope_viz" / "models" / "catalog"


# Published: Men et al. and facts recomputed in float64, first integer distance with a negative mean cosine.
@pytest.mark.parametrize(
    ("head_dim", "base", "distance"),
    [(32, 1e4, 474), (64, 1e4, 725), (128, 1e4, 1707), (256, 1e4, 2653), (128, 5e5, 18438), (128, 1e7, 144660)],
)
def test_first_negative_distance_matches_the_known_value(head_dim, base, distance):
    spec = RopeSpec(head_dim=head_dim, base=base, context=4096)
    assert first_negative_distance(spec, 200_000) == distance
    assert first_negative_distance(spec, distance) is None


def test_half_rotated_heads_never_turn_negative():
    assert first_negative_distance(RopeSpec(head_dim=64, rotary_dim=32, context=4096), 100_000) is None


def test_a_method_that_extends_nothing_is_not_offered():
    spec = RopeSpec(head_dim=128, base=1e6, context=32768)
    offered = [option.method for option in measure_methods(spec, 131072)]
    assert offered == [name for name in METHODS if name != "resonance"]


@pytest.mark.parametrize("method", [name for name, kind in METHODS.items() if kind.extends])
def test_every_method_has_its_counts(method):
    spec = RopeSpec(head_dim=128, base=1e6, context=32768)
    found = next(option for option in measure_methods(spec, 131072) if option.method == method)
    assert found.kept + found.blended + found.divided + found.sped + found.still == 64
    assert found.factor == 4.0
    assert found.logit_factor == found.attention_factor**2
    if found.config is not None:
        theirs = from_config({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, **found.config})[
            ""
        ]
        np.testing.assert_allclose(theirs.inv_freq(131072), found.spec.inv_freq(131072), rtol=1e-12)


def test_division_by_the_whole_factor_leaves_no_unseen_angles():
    spec = RopeSpec(head_dim=128, base=1e6, context=32768)
    unseen = {option.method: option.unseen for option in measure_methods(spec, 131072)}
    # Pairs that did not complete a turn in training: those above (d/2)·log_b(L / 2π) = 39.65.
    assert unseen["none"] == 24
    assert unseen["linear"] == unseen["yarn"] == unseen["llama3"] == 0


def test_dynamic_reaches_the_target_as_plain_ntk_does():
    spec = RopeSpec(head_dim=128, base=1e6, context=32768)
    dynamic, ntk = (extend(spec, method, 131072) for method in ("dynamic", "ntk"))
    np.testing.assert_allclose(dynamic.inv_freq(131072), ntk.inv_freq(), rtol=1e-12)
    assert dynamic.inv_freq(131072)[-1] == pytest.approx(spec.inv_freq()[-1] / 4, rel=1e-12)


def test_a_target_inside_the_context_changes_nothing():
    spec = RopeSpec(head_dim=64, context=8192)
    for found in measure_methods(spec, 4096):
        # A method without a factor changes frequencies whatever the target, and so does the share of p-RoPE.
        if hasattr(found.spec.scaling, "factor") and found.method != "proportional":
            np.testing.assert_allclose(found.spec.inv_freq(4096), spec.inv_freq(), rtol=1e-12)
            assert found.attention_factor == 1.0


def test_written_config_matches_the_documented_one():
    config = json.loads((CATALOG / "qwen3-8b.json").read_text())
    spec = dataclasses.replace(from_config(config)[""], context=32768)
    written = write_new_keys(config, extend(spec, "yarn", 131072)).whole
    published = json.loads((CATALOG / "qwen3-8b-yarn.json").read_text())
    ours, theirs = from_config(written)[""], from_config(published)[""]
    np.testing.assert_array_equal(ours.inv_freq(), theirs.inv_freq())
    assert written["max_position_embeddings"] == published["max_position_embeddings"]
    assert ours.attention_factor() == pytest.approx(0.1 * math.log(4.0) + 1.0)


@pytest.mark.parametrize("target", [0, -1, 1.5, float("nan"), "128k", None])
def test_bad_target_raises_a_clear_error(target):
    with pytest.raises(ValueError, match="target"):
        measure_methods(RopeSpec(), target)


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="method must be one of"):
        extend(RopeSpec(), "xpos", 8192)


def test_a_method_that_needs_more_pairs_is_left_out():
    names = {option.method for option in measure_methods(RopeSpec(4, rotary_dim=2), 8192)}
    assert "linear" in names
    assert "ntk" not in names
