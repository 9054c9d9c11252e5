"""Models seen from the patches of an image: directions, sides, steps, and directions beyond training."""

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import ladder_per_axis
from rope_viz.embedding.axis_sections import block_means
from rope_viz.embedding.scaling import NtkAware, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import model_scenes, own_scenes, read_merge
from rope_viz.studies.axis_extrapolation import (
    ImageYarn,
    available_methods,
    count_unturned_pairs,
    extend_axis,
    false_peaks,
    find_peaks,
    find_recurrence,
    slow_pair,
)
from tests.mean_cosines import mean_cosine, mean_cosine_map
from tests.offenders import for_each

HUNYUAN = model_scenes("hunyuan-video")["transformer"]


@for_each(list(axes_catalog()))
def test_every_part_of_every_model_has_rows_and_columns(id):
    for part, scene in model_scenes(id).items():
        assert {"row", "column"} <= set(scene.roles), part
        assert all(scene.sides[role] >= 1 for role in ("row", "column"))
        assert scene.role_spec.pairs == scene.spec.pairs


def test_axes_have_common_names_across_models():
    llama = model_scenes("llama-4-scout")["vision"]
    assert llama.spec.axes == ("w", "h")
    np.testing.assert_array_equal(llama.role_spec.along("column"), llama.spec.along("w"))
    neomme = model_scenes("neomme")["text sliding_attention"]
    np.testing.assert_array_equal(neomme.role_spec.along("row"), neomme.spec.along("row"))


def test_axis_without_an_image_retains_its_name():
    seen = model_scenes("flux.2-dev")["transformer"].role_spec
    assert seen.axes == ("time", "row", "column", "l")
    assert int(np.sum(seen.owner == 3)) == 16


def test_row_step_equals_image_width_when_tokens_are_counted():
    scene = model_scenes("pixtral-12b")["text"]
    np.testing.assert_array_equal(scene.role_spec.along("row"), 64 * scene.role_spec.along("column"))
    page = model_scenes("hunyuan-ocr")["text"]
    assert page.steps["row"] == {"height": 1.0, "position": 33.0}


def test_tokens_are_merged_patches():
    both = model_scenes("qwen2-vl-7b")
    assert (both["text"].sides["row"], both["vision"].sides["row"]) == (36, 72)
    both = model_scenes("gemma-4")
    assert (both["text full_attention"].sides["row"], both["vision"].sides["row"]) == (20, 60)
    assert read_merge(axes_catalog()["qwen2.5-omni-7b"].config) == 2


def test_compressed_positions_are_converted_to_patches():
    sam = model_scenes("sam3")["vision"]
    assert sam.sides["row"] == 72
    np.testing.assert_allclose(sam.role_spec.along("row"), sam.spec.along("h") / 3)
    dino = model_scenes("dinov3-vit-b")["vision"]
    assert dino.sides["row"] == 14
    # The whole image is −1 … 1, however many patches it has.
    np.testing.assert_allclose(dino.with_sides({"row": 28}).role_spec.along("row"), dino.role_spec.along("row") / 2)


def test_all_heads_together_are_the_mean_over_the_heads():
    parts = model_scenes("rope-vit-mixed-b")
    away = np.arange(-5, 6)

    def mean_map(part):
        seen = parts[part].role_spec
        return mean_cosine_map(seen, away, away, ("row", "column"))

    heads = [mean_map(f"vision head {k}") for k in range(12)]
    np.testing.assert_allclose(mean_map("vision all heads"), np.mean(heads, axis=0), atol=1e-12)


def test_user_config_determines_its_image_size():
    parts = own_scenes(dict(axes_catalog()["llama-4-scout"].config), "mine")
    assert parts["vision"].sides["row"] == 24
    assert parts["text"].sides["row"] == 12
    parts = own_scenes({"model_type": "qwen2_vl", "max_position_embeddings": 4096, "vision_config": {}}, "mine")
    assert (parts["text"].sides["row"], parts["vision"].sides["row"], parts["text"].context) == (32, 64, 4096)
    dino = own_scenes(dict(axes_catalog()["dinov3-vit-b"].config), "mine")["vision"]
    assert dino.role_spec == model_scenes("dinov3-vit-b")["vision"].role_spec


def test_a_block_of_displacements_is_the_mean_of_its_scores():
    seen = model_scenes("qwen3-vl-8b")["text"].role_spec
    edges = np.arange(-40, 41, 5)
    places = np.arange(-40, 40)
    each = mean_cosine_map(seen, places, places, ("row", "column")).reshape(16, 5, 16, 5).mean(axis=(1, 3))
    np.testing.assert_allclose(block_means(seen, edges, edges, axes=("row", "column")), each, atol=1e-12)


def test_sheared_table_uses_the_mean_over_equal_query_and_key():
    scene = model_scenes("v-jepa2-vit-l")["vision"]
    rng, seen = np.random.default_rng(0), scene.role_spec
    found = block_means(seen, [3, 4], [5, 6], axes=("row", "column"))[0, 0]
    scores = []
    for origin in ((0, 0, 0), (4, 9, 2)):
        for _ in range(250):
            q = rng.standard_normal(seen.head_dim)
            q[np.setdiff1d(np.arange(seen.head_dim), seen.dims)] = 0.0
            key = np.array(origin, dtype=np.float64)
            key[[seen.index("row"), seen.index("column")]] += (3, 5)
            turned = seen.rotate(np.stack([q, q]), np.stack([origin, key]))
            scores.append(turned[0] @ turned[1] / (2 * seen.pairs))
    assert np.mean(scores) == pytest.approx(found, abs=0.02)


def test_sections_have_the_published_weakness_in_numbers():
    def at_32(id):
        seen = model_scenes(id)["text"].role_spec
        return [round(float(mean_cosine(seen, role, [32.0])[0]), 3) for role in ("time", "row", "column")]

    assert at_32("qwen2-vl-7b") == [0.739, 0.978, 1.0]
    assert at_32("qwen3-vl-8b") == [0.9, 0.95, 0.91]


def test_riflex_removes_hunyuan_videos_repetition_at_50_frames():
    plain, riflex = extend_axis(HUNYUAN, "time", growth=2.0), extend_axis(HUNYUAN, "time", "riflex", 2.0)
    frames = np.array([25.0, 33.0, 50.0])
    assert np.round(plain.score(frames), 2).tolist() == [0.58, 0.03, 0.57]
    assert round(float(riflex.score(frames)[2]), 2) == 0.40
    assert riflex.changed.tolist() == [3]  # k = 4, counted from 1
    assert extend_axis(model_scenes("cogvideox-5b")["transformer"], "time", "riflex", 2.0).changed.tolist() == [
        1
    ]  # k = 2
    assert next(peak.at for peak in find_peaks(plain) if peak.at > 33) == 50


def test_riflex_is_the_published_function():
    plain = RopeSpec(16, 16, 256.0).inv_freq()
    np.testing.assert_allclose(
        extend_axis(HUNYUAN, "time", "riflex", 2.0).extended, slow_pair(plain, 3, 66), rtol=1e-12
    )


def test_axis_ntk_and_yarn_use_its_own_ladder_and_side():
    flux = model_scenes("flux.1-dev")["transformer"]
    for method, scaling in (("ntk", NtkAware(4.0)), ("yarn", ImageYarn())):
        done = extend_axis(flux, "row", method, 4.0)
        spec = RopeSpec(56, 56, 10_000.0, 64, 256, scaling)
        np.testing.assert_allclose(done.extended, spec.inv_freq(), rtol=1e-12)
        assert done.factor == pytest.approx(spec.attention_factor())
    assert (count_unturned_pairs(done), len(done.pair)) == (20, 28)


def test_shared_ladder_is_scaled_by_pair_index():
    scene = model_scenes("qwen2.5-vl-7b")["text"]
    done = extend_axis(scene, "column", "yarn", 4.0)
    spec = RopeSpec(128, 128, 1e6, scene.context, scene.context * 4, Yarn(factor=4.0))
    np.testing.assert_allclose(done.extended, spec.inv_freq()[done.pair], rtol=1e-12)


def test_methods_are_offered_only_where_meaningful():
    assert set(available_methods(HUNYUAN, "time")) == {"none", "stretch", "ntk", "yarn", "riflex"}
    assert "riflex" not in available_methods(HUNYUAN, "row")
    assert "riflex" not in available_methods(model_scenes("qwen3-vl-8b")["text"], "time")
    mixed = model_scenes("rope-vit-mixed-b")["vision head 0"]
    assert set(available_methods(mixed, "row")) == {"none", "stretch"}
    np.testing.assert_allclose(extend_axis(mixed, "row", "stretch", 2.0).extended * 2, mixed.role_spec.along("row"))
    with pytest.raises(ValueError, match="method must be one of none, stretch"):
        extend_axis(mixed, "row", "riflex")
    with pytest.raises(ValueError, match="no time here"):
        extend_axis(mixed, "time")


def test_false_peaks_are_where_a_curve_rises_again():
    curve = np.array([1.0, 0.5, 0.1, 0.6, 0.2, 0.0, 0.3, 0.9, 0.4, 0.1, 0.24, 0.0])
    assert [(peak.at, peak.score) for peak in false_peaks(curve, 1)] == [(7, 0.9), (3, 0.6)]
    assert [peak.at for peak in false_peaks(curve, 5)] == [7]
    assert false_peaks(np.linspace(1, 0, 20), 2) == []
    assert find_recurrence(ladder_per_axis([RopeSpec(16, 16, 256.0)], ("t",)).along("t"), 33) == 50
