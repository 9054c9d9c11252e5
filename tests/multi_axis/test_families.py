"""Every family gives what its published class computed: rotations, positions, speeds.

axes.json: 57 cases; axes_more.json and layouts.json: further ones, made by make_axes.py and make_layouts.py. Each names
the class, and tolerances are float32's at the positions of the case.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import AxesSpec
from rope_viz.embedding.spec import RopeSpec, Scaling
from rope_viz.models.architecture import Axes
from rope_viz.models.config_reader import ConfigReader
from rope_viz.models.several_axes.diffusion import ALSO, RULES, read_diffusion, require_rule
from rope_viz.models.several_axes.learned_directions import draw_uniform
from rope_viz.models.several_axes.text import all_axes, text_layers, text_name
from rope_viz.models.several_axes.vision import SPECIAL, TOWERS, ladder, tower_name
from rope_viz.multi_axis import positions, read_family
from rope_viz.multi_axis.prompt_positions import RUNTIMES, lay_out
from rope_viz.runtimes.axes import VERSIONS
from rope_viz.studies.axis_extrapolation import ImageYarn, slow_pair
from tests.offenders import for_each

FOLDER = Path(__file__).parents[1] / "goldens"


def cases(name: str) -> list[Any]:
    loaded: list[Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cases"]
    return loaded


GOLDEN, MORE, LAYOUTS = cases("axes.json"), cases("axes_more.json"), cases("layouts.json")


def name_case(case: dict[str, Any]) -> str:
    return str(case["id"])


ROTARY = [case for case in GOLDEN if case["kind"] == "rotary"]


def tables_agree(spec: AxesSpec, table: dict[str, Any], places: np.ndarray, tolerance: float) -> None:
    index = {tuple(pair): row for row, pair in enumerate(spec.dims.tolist())}
    rows = [index[tuple(pair)] for pair in table["dims"]]
    for (cos, sin), end in ((spec.cos_sin(places), ""), (spec.cos_sin_second(places), "_second")):
        if f"cos{end}" in table:
            np.testing.assert_allclose(cos[:, rows], table[f"cos{end}"], rtol=0, atol=tolerance)
            np.testing.assert_allclose(sin[:, rows], table[f"sin{end}"], rtol=0, atol=tolerance)
    others = np.setdiff1d(np.arange(spec.pairs), rows)
    assert not np.any(spec.angles(places)[:, others]), "a pair turns that stands still in the class"
    if "axis" in table:
        assert spec.owner[rows].tolist() == table["axis"]
        np.testing.assert_allclose(spec.weights[rows, table["axis"]], table["inv_freq"], rtol=5e-7)
    if "weights" in table:
        np.testing.assert_allclose(spec.weights[rows], table["weights"], rtol=0, atol=5e-7)


@for_each(ROTARY, name_case)
def test_rotation_matches_its_class(case: dict[str, Any]) -> None:
    spec, places = read_family(case["family"], case["config"]), np.array(case["positions"])
    if "heads" in case:
        assert isinstance(spec, list)
        for table in case["heads"]:
            tables_agree(spec[int(table["head"])], table, places, case["tolerance"])
        return
    assert isinstance(spec, AxesSpec)
    tables_agree(spec, case, places, case["tolerance"])
    assert spec.is_rotation == case["rotation"]
    assert spec.axes == tuple(case["axes"])
    assert spec.head_dim == case["head_dim"]
    np.testing.assert_allclose(spec.factor, case.get("factor", 1.0), rtol=1e-8)


GRIDDED = [case for case in ROTARY if {"grid", "tokens"} & case["config"].keys()]


@for_each(GRIDDED, name_case)
def test_a_grid_has_the_positions_its_class_used(case: dict[str, Any]) -> None:
    found, delta = positions(case["family"], case["config"])
    np.testing.assert_allclose(found, case["positions"], rtol=1e-6, atol=1e-6)
    assert delta is None


def test_latents_are_divided_by_the_patch_in_time_too() -> None:
    """diffusers 0.42.1: HunyuanVideoRotaryPosEmbed(2, 2, …) lays out latents of 6 × 6 × 4 as 18 tokens."""
    config = {"latents": [6, 6, 4], "patch_size": 2, "patch_size_t": 2}
    found, _ = positions("dit/hunyuan-video", config)
    assert found.shape == (18, 3)
    assert found[-1].tolist() == [2, 2, 1]
    assert len(positions("dit/cogvideox", {**config, "patch_size_t": None, "grid_type": "slice"})[0]) == 36


PLACED = [case for case in GOLDEN if case["kind"] == "positions"]


@for_each(PLACED, name_case)
def test_positions_are_those_of_the_published_function(case: dict[str, Any]) -> None:
    found, delta = positions(case["family"], case["config"])
    if "tokens" in case:
        assert len(found) == case["count"]
        found = found[case["tokens"]]
    np.testing.assert_allclose(found, case["positions"], rtol=1e-8, atol=1e-7)
    if "rope_delta" in case:
        assert delta == pytest.approx(case["rope_delta"], abs=1e-7)


EXTENDED = [case for case in GOLDEN if case["kind"] == "frequencies"]


def extended_axis(name: str, given: ConfigReader) -> RopeSpec:
    """One axis with its extent as context and target, extended by the method of a golden case."""
    trained = given.size("trained_patches", "trained_frames", "repeats", "trained", default=64)
    target = given.size("patches", "latent_frames", "frames", "target", "L_test", default=trained)
    method = ImageYarn() if name == "image-yarn" else Scaling()
    plain = ladder(given.required("dim", "head_dim"), given.base(10_000.0))
    return dataclasses.replace(plain, context=trained, target=target, scaling=method)


@for_each(EXTENDED, name_case)
def test_an_axis_is_extended_as_published(case: dict[str, Any]) -> None:
    spec = extended_axis(case["family"].split("/")[1], ConfigReader(case["config"]))
    found = spec.inv_freq()
    if case["family"] == "extension/riflex":
        # The published function counts pairs from 1.
        found = slow_pair(found, case["config"]["k"] - 1, spec.target)
    np.testing.assert_allclose(found, case["inv_freq"], rtol=1e-8)
    np.testing.assert_allclose(spec.plain_inv_freq, case["plain"], rtol=1e-8)
    assert spec.attention_factor() == pytest.approx(case.get("factor", 1.0), rel=1e-8)


@for_each({f"{k} {case['family']}": case for k, case in enumerate(MORE)})
def test_vector_is_rotated_as_by_its_class(case: dict[str, Any]) -> None:
    spec, places = read_family(case["family"], case["config"]), np.array(case["positions"])
    specs = spec if isinstance(spec, list) else [spec]
    outs = case["out"] if case.get("heads") else [case["out"]]
    for one, out in zip(specs, outs, strict=True):
        wanted = np.array(out)
        vector = np.cos(1.7 * np.arange(wanted.shape[1]) + 0.3)
        found = one.rotate(np.broadcast_to(vector, wanted.shape), places)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=case["tolerance"])
    if case.get("grid"):
        np.testing.assert_allclose(positions(case["family"], case["config"])[0], places, rtol=1.2e-7, atol=1e-6)


@for_each({f"{k} {case['source']}": case for k, case in enumerate(LAYOUTS)})
def test_a_prompt_is_numbered_as_published(case: dict[str, Any]) -> None:
    found, delta = positions(case["family"], case["config"])
    np.testing.assert_allclose(found, case["positions"], rtol=0, atol=2e-6)
    assert delta == pytest.approx(case["rope_delta"], abs=2e-6)


def test_random_numbers_match_torch() -> None:
    # torch.manual_seed(7); torch.rand(5), torch 2.13.0
    np.testing.assert_allclose(
        draw_uniform(7, 5), [0.53492254, 0.19880319, 0.6592117, 0.65689027, 0.23276156], atol=5e-8
    )


def test_text_class_holds_its_frequencies_in_float32() -> None:
    config = {"hidden_size": 3584, "num_attention_heads": 28, "rope_parameters": {"rope_theta": 1e6}}
    held, formula = read_family("text/qwen2_vl", config), text_layers("qwen2_vl", config)[""]
    assert isinstance(held, AxesSpec)
    np.testing.assert_array_equal(held.weights, held.weights.astype(np.float32))
    np.testing.assert_allclose(held.weights, formula.weights, rtol=1.2e-7)
    np.testing.assert_allclose(formula.weights.sum(axis=1), 1e6 ** (-np.arange(64) / 64.0), rtol=1e-14)


@for_each(sorted({*TOWERS} - {"llama4"}))
def test_every_tower_has_a_default_of_its_class(kind: str) -> None:
    spec = read_family(f"vision/{kind}", {})
    assert isinstance(spec, AxesSpec)
    assert spec.is_rotation
    assert set(spec.axes) == {"h", "w"}


@for_each(sorted(all_axes()))
def test_every_language_model_is_read_from_a_plain_config(kind: str) -> None:
    config = {"hidden_size": 1024, "num_attention_heads": 8, "head_dim": 128, "rope_theta": 1e6}
    if kind == "bailing_moe_v3_vl":
        config["rope_parameters"] = {"rope_theta": 1e6, "partial_rotary_factor": 0.5}  # type: ignore[assignment]
    sections = all_axes()[kind].sections
    if kind in ("glm4v", "glm46v", "glm4v_moe", "glm_image", "glm_ocr", "qwen3_5", "qwen3_5_moe", "qwen4_exp"):
        config["rope_parameters"] = {"rope_theta": 1e6, "partial_rotary_factor": 0.5}  # type: ignore[assignment]
    spec = read_family(f"text/{kind}", config)
    assert isinstance(spec, AxesSpec)
    assert len(spec.axes) >= 2
    assert not sections or len(spec.axes) in (3, 4)


@for_each(sorted(all_axes()))
def test_axes_records_name_only_known_values(kind: str) -> None:
    axes = all_axes()[kind]
    assert axes.pattern in get_args(get_type_hints(Axes)["pattern"])
    assert set(axes.runtimes) <= set(VERSIONS)
    assert set(axes.prompt) <= {
        *("side", "largest", "stamped", "seconds", "merged time", "gap", "still", "audio", "from zero", "own")
    }


@for_each(sorted(RULES))
def test_every_diffusion_transformer_is_read_from_nothing(name: str) -> None:
    spec = read_diffusion(name, {})
    for one in spec if isinstance(spec, list) else [spec]:
        assert one.pairs * 2 <= one.head_dim
        assert np.isfinite(one.weights).all()


def test_classes_and_pipelines_name_the_same_rules() -> None:
    assert set(ALSO.values()) <= set(RULES)
    for written in ("Flux2PosEmbed", "flux.2", "Flux2Transformer2DModel", "flux-2", "FLUX_2"):
        assert require_rule(written) == "flux2"
    assert require_rule("QwenEmbedLayer3DRope") == "qwenimagelayered"
    assert require_rule("QwenEmbedRope") == "qwenimage"
    assert require_rule("ZImageTransformer2DModel") == "zimage"
    with pytest.raises(ValueError, match="there is no diffusion transformer"):
        require_rule("unet")


def test_runtimes_number_a_long_video_differently() -> None:
    layout = {"layout": [["text", 3], ["video", [6, 4, 4]], ["text", 1]], "spatial_merge_size": 2}
    next_text = {name: lay_out("qwen2_vl", layout, name).values[-1, 0] for name in RUNTIMES}
    assert next_text["transformers"] == 5.0
    assert next_text["vllm"] == next_text["sglang"] == next_text["mlx-vlm"] == next_text["transformers-4.57"] == 9.0
    assert next_text["llama.cpp"] == 15.0


def test_seconds_were_truncated_until_transformers_5() -> None:
    config = {"layout": [["video", [4, 4, 4]]], "second_per_grid_ts": [1.5], "tokens_per_second": 2}
    times = {name: lay_out("qwen2_5_vl", config, name).values[::4, 0].tolist() for name in RUNTIMES}
    assert times["transformers"] == times["vllm"] == times["sglang"] == [0, 3, 6, 9]
    assert times["transformers-4.57"] == [0, 2, 4, 6]


def test_servers_decide_by_the_key_and_transformers_by_the_class() -> None:
    config = {
        **{"model_type": "qwen3_vl", "hidden_size": 512, "num_attention_heads": 8, "head_dim": 64},
        "rope_parameters": {"rope_theta": 5e6, "mrope_section": [12, 10, 10]},
    }
    by_class, by_key = read_family("text/qwen3_vl", config), read_family("runtime/vllm", config)
    assert isinstance(by_class, AxesSpec)
    assert isinstance(by_key, AxesSpec)
    assert by_class.owner[:3].tolist() == [0, 1, 2]
    assert by_key.owner[:3].tolist() == [0, 0, 0]
    config["rope_parameters"]["mrope_interleaved"] = True  # type: ignore[index]
    assert read_family("runtime/vllm", config) == by_class


def test_sglang_rescales_sections_that_others_refuse() -> None:
    config = {"head_size": 64, "rotary_dim": 64, "base": 1e6, "mrope_section": [16, 24, 24]}
    with pytest.raises(ValueError, match="add up to the 32 pairs"):
        read_family("runtime/vllm", config)
    spec = read_family("runtime/sglang", config)
    assert isinstance(spec, AxesSpec)
    assert [int((spec.owner == axis).sum()) for axis in range(3)] == [8, 12, 12]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Qwen2VLVisionRotaryEmbedding", "qwen2_vl"),
        ("qwen2.5-vl", "qwen2_5_vl"),
        ("Kimi_K25VisionRotaryEmbedding", "kimi_k25"),
        ("DINOv3ViTRopePositionEmbedding", "dinov3_vit"),
        ("LightGluePositionalEncoder", "lightglue"),
        ("RotaryEmbeddingMixed", "rope-mixed"),
        ("EVA-02", "timm-axial"),
        ("clip", "clip"),
    ],
)
def test_a_tower_is_known_by_its_model_and_by_its_class(written: str, plain: str) -> None:
    assert tower_name(written) == plain


def test_a_language_model_and_a_runtime_are_known_by_other_names() -> None:
    assert [text_name(name) for name in ("Qwen3VLTextRotaryEmbedding", "qwen3.5", "glm-4.5v", "llama")] == [
        *("qwen3_vl", "qwen3_5", "glm4v_moe", "llama")
    ]
    config = {"layout": [["video", [4, 4, 4]]], "second_per_grid_ts": [1.5], "tokens_per_second": 2}
    assert positions("runtime/tf 4.57", config)[0][::4, 0].tolist() == [0, 2, 4, 6]
    assert positions("runtime/vLLM", config)[0][::4, 0].tolist() == [0, 3, 6, 9]
    clip = {"crop_size": 32, "frames_per_clip": 4}
    np.testing.assert_array_equal(positions("positions/vjepa2", clip)[0], positions("vision/vjepa2", clip)[0])


def test_a_page_of_neomme_excludes_other_content() -> None:
    grid, layout = {"grid": [2, 3]}, {"layout": [["image", [1, 2, 3]]]}
    np.testing.assert_array_equal(positions("positions/neomme", layout)[0], positions("positions/neomme", grid)[0])
    with pytest.raises(ValueError, match="a page or a question"):
        positions("positions/neomme", {"layout": [["text", 2], ["image", [1, 2, 3]]]})


def test_latents_of_a_scene_are_divided_by_the_patch() -> None:
    config = {"text": 2, "latents": [4, 6]}
    assert len(positions("positions/flux2", config)[0]) == 2 + 24
    assert len(positions("positions/z-image", {**config, "patch_size": 2})[0]) == 32 + 6


def test_keypoints_start_as_the_published_projection_does() -> None:
    # torch.manual_seed(3); LightGluePositionalEncoder(LightGlueConfig(descriptor_dim=32, num_attention_heads=2))
    spec = read_family("vision/lightglue", {"descriptor_dim": 32, "num_attention_heads": 2, "seed": 3})
    assert isinstance(spec, AxesSpec)
    wanted = [[-0.7010772, -0.5578092], [-0.3028646, -0.6689869], [-0.0401434, -0.6220895], [0.3844764, 0.3446429]]
    np.testing.assert_allclose(spec.weights[:4], wanted, rtol=0, atol=2e-7)
    assert spec.axes == ("w", "h")


def test_a_class_that_reads_no_head_dim_takes_the_width() -> None:
    config = {"hidden_size": 1408, "num_attention_heads": 16, "head_dim": 64}
    for kind, size in (("llama4", 88), ("dinov3", 88), ("qwen3_vl", 64)):
        spec = read_family(f"vision/{kind}", config)
        assert isinstance(spec, AxesSpec)
        assert spec.head_dim == size


@pytest.mark.parametrize(
    ("family", "config", "says"),
    [
        ("qwen2_vl", {}, "family must begin with"),
        ("vision/qwen3_vl", {"hidden_size": 90, "num_heads": 1}, "a head must divide by 4"),
        ("vision/minimax_m3_vl", {"head_dim": 4}, "the size of a head must be at least 6"),
        ("vision/vjepa2", {"hidden_size": 4, "num_attention_heads": 1}, "the pairs of an axis"),
        ("vision/rope-mixed", {"weights": [[1, 2], [3]]}, "rows of numbers alike"),
        ("vision/lightglue", {"weights": [1, 2]}, "shape"),
        ("dit/chronoedit", {"attention_head_dim": 64}, "cuts its table inside a pair"),
        ("sound/qwen2_vl", {}, "family must begin with"),
        ("text/qwen2_vl", [], "a config must be an object"),
        ("text/qwen2_vl", {"rope_parameters": {"mrope_section": [1, 2, 3]}}, "mrope_section must add up"),
        ("text/qwen3_vl", {"rope_parameters": {"mrope_section": [1, 2]}}, "three numbers"),
        ("text/ernie4_5_vl_moe", {"rope_parameters": {"mrope_section": [20, 24, 20]}}, "as many pairs each"),
        ("text/hunyuan_vl", {"rope_parameters": {"mrope_section": [1, 2, 3, 4]}}, "half of the head"),
        ("text/neomme", {"layer_type": "linear"}, "layer_type must be one of"),
        ("vision/internvl", {}, "there is no vision tower"),
        ("vision/qwen3_vl", {"num_heads": 0}, "num_heads must be at least 1"),
        ("vision/qwen3_vl", {"rope_parameters": {"rope_theta": "big"}}, "rope_theta must be a number"),
        ("vision/timm-axial", {}, "dim is missing"),
        ("vision/rope-mixed", {"dim": 64, "num_heads": 2, "depth": 1, "layer": 1}, "layer must be from 0 to 0"),
        ("vision/efficientloftr", {"hidden_size": 250}, "over all heads"),
        ("dit/flux", {"axes_dim": [0, 2]}, "at least 2"),
        ("dit/cosmos", {"rope_scale": [1, 2]}, "must have 3 numbers"),
        ("dit/mochi", {"weights": [1, 2]}, "shape"),
        ("runtime/llama.cpp", {"n_dims": 64, "sections": [0, 0, 0, 0]}, "not all be 0"),
        ("runtime/llama.cpp", {"n_dims": 64, "mode": "YROPE"}, "mode must be one of"),
    ],
)
def test_unreadable_config_is_named(family: str, config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_family(family, config)


@pytest.mark.parametrize(
    ("family", "config", "says"),
    [
        ("positions/qwen2_vl", {}, "layout must be a list"),
        ("positions/qwen2_vl", {"layout": [["film", 3]]}, "a piece must be like"),
        ("positions/qwen2_vl", {"layout": [["image", [1, 4]]], "tokens": [99]}, "smaller than one token"),
        ("positions/qwen2_vl", {"layout": [["text", 3]], "tokens": [3]}, "tokens must be from 0 to 2"),
        ("positions/qwen2_5_vl", {"layout": [["video", [1, 4, 4]]], "second_per_grid_ts": []}, "one number per video"),
        ("positions/unknown", {}, "there is no diffusion transformer"),
        ("vision/qwen2_vl", {}, "grid is missing"),
        ("vision/patch-order", {"grid_thw": [[1, 3, 4]], "spatial_merge_size": 2}, "does not divide"),
        ("dit/flux", {"text": 3}, "grid is missing"),
        ("runtime2/riflex", {"dim": 16}, "family must begin with"),
    ],
)
def test_unplaceable_prompt_is_named(family: str, config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        positions(family, config)


def test_special_towers_are_listed() -> None:
    assert not set(SPECIAL) & set(TOWERS)
