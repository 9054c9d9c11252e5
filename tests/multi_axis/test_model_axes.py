"""Rotations of whole configs, and the catalog of multi-axis models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rope_viz.embedding.axes_spec import THW, AxesSpec
from rope_viz.models.several_axes.model_axes import is_diffusion
from rope_viz.multi_axis import from_model, read_family
from rope_viz.multi_axis.catalog import axes_catalog, model_parts
from tests.offenders import for_each

GOLDEN: list[Any] = json.loads((Path(__file__).parents[1] / "goldens" / "axes.json").read_text(encoding="utf-8"))[
    "cases"
]
MODELS = sorted(axes_catalog())


def one(spec: Any) -> AxesSpec:
    assert isinstance(spec, AxesSpec)
    return spec


TEXTS = [case for case in GOLDEN if case["kind"] == "rotary" and case["family"].startswith("text/")]


@pytest.mark.parametrize("case", TEXTS, ids=[case["id"] for case in TEXTS])
def test_text_config_is_read_as_its_class_reads_it(case: dict[str, Any]) -> None:
    kind = case["family"].removeprefix("text/")
    config = {key: value for key, value in case["config"].items() if key != "layer_type"}
    whole = config if kind == "neomme" else {"model_type": kind, "text_config": config}
    parts = from_model({"model_type": kind, **whole})
    part = f"text {case['config']['layer_type']}" if "layer_type" in case["config"] else "text"
    held = one(read_family(case["family"], case["config"]))
    np.testing.assert_allclose(parts[part].weights, held.weights, rtol=1.3e-7)
    np.testing.assert_array_equal(parts[part].dims, held.dims)
    assert parts[part].is_rotation == held.is_rotation


VISIONS = [
    case
    for case in GOLDEN
    if case["kind"] == "rotary" and case["family"].startswith("vision/") and case["source"]["package"] == "transformers"
]


@pytest.mark.parametrize("case", VISIONS, ids=[case["id"] for case in VISIONS])
def test_a_vision_config_is_found_in_a_whole_one(case: dict[str, Any]) -> None:
    kind = case["family"].removeprefix("vision/")
    if kind in ("dinov3", "vjepa2", "efficientloftr", "sam3"):
        names = {"dinov3": "dinov3_vit", "sam3": "sam3_vit_model"}
        parts = from_model({"model_type": names.get(kind, kind), **case["config"]})
    else:
        whole = {"model_type": kind, "text_config": {"model_type": "llama"}, "vision_config": case["config"]}
        parts = from_model({**whole, "model_type": "llava"} | {"vision_config": {"model_type": kind, **case["config"]}})
    expected = read_family(case["family"], case["config"])
    if isinstance(expected, list):
        assert [parts[f"vision head {k}"] for k in range(len(expected))] == expected
    else:
        assert parts["vision"] == expected


CLASSES = {
    "dit/FluxPosEmbed": "FluxTransformer2DModel",
    "dit/Flux2PosEmbed": "Flux2Transformer2DModel",
    "dit/hunyuan-video": "HunyuanVideoTransformer3DModel",
    "dit/wan": "WanTransformer3DModel",
    "dit/qwen-image": "QwenImageTransformer2DModel",
    "dit/z-image": "ZImageTransformer2DModel",
    "dit/ernie-image": "ErnieImageTransformer2DModel",
    "dit/minimax-h3": "MiniMaxH3Transformer3DModel",
    "dit/cosmos": "CosmosTransformer3DModel",
}


@pytest.mark.parametrize("family", CLASSES)
def test_a_diffusers_config_is_read_by_its_class_name(family: str) -> None:
    case = next(case for case in GOLDEN if case["family"] == family and case["kind"] == "rotary")
    config = {"_class_name": CLASSES[family], "_diffusers_version": "0.42.1"}
    assert is_diffusion(config)
    # The released model is the class' default, so a config that names nothing must come to the same.
    assert from_model(config)["transformer"] == one(read_family(family, case["config"]))


def test_two_bases_by_layer_type_are_two_parts() -> None:
    layers = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 5e4, "mrope_section": [24, 20, 20]},
        "full_attention": None,
    }
    text = {"rope_parameters": layers, "hidden_size": 2048, "num_attention_heads": 16}
    config = {"model_type": "cohere_compass", "text_config": text, "vision_config": {}}
    # The full layers have no rotation at all.
    text["layer_types"] = ["sliding_attention", "full_attention"]
    assert set(from_model(config)) == {"text", "vision"}
    both = model_parts("neomme")
    assert set(both) == {"text full_attention", "text sliding_attention"}


def test_a_language_model_alone_has_one_axis() -> None:
    parts = from_model({"model_type": "llama"})
    assert parts["text"].axes == ("position",)
    np.testing.assert_allclose(parts["text"].along("position")[[0, -1]], [1.0, 1e4 ** (-126 / 128)])


def test_unlisted_type_is_read_by_its_keys() -> None:
    config = {"model_type": "new_vl", "hidden_size": 1024, "num_attention_heads": 8, "max_position_embeddings": 4096}
    sections = {"mrope_section": [16, 24, 24]}
    assert from_model({**config, "rope_scaling": sections})["text"].owner[:17].tolist() == [0] * 16 + [1]
    mixed = from_model({**config, "rope_scaling": {**sections, "mrope_interleaved": True}})["text"]
    assert mixed.axes == THW
    assert mixed.owner[:3].tolist() == [0, 1, 2]


def test_vision_tower_is_read_without_a_rotating_text_part() -> None:
    parts = from_model(
        {"model_type": "llava", "text_config": {"model_type": "opt"}, "vision_config": {"model_type": "pixtral"}}
    )
    assert set(parts) == {"vision"}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ([], "a config must be an object"),
        ({"model_type": "gpt2"}, "no rotary embedding"),
        ({"_class_name": "UNet2DConditionModel"}, "there is no diffusion transformer"),
        ({"_class_name": "MochiTransformer3DModel"}, "Mochi's directions are learned"),
        (
            {"_class_name": "CogVideoXTransformer3DModel", "use_rotary_positional_embeddings": False},
            "rotates nothing",
        ),
        ({"model_type": "qwen2_vl", "vision_config": 3}, "vision_config must be an object"),
        ({"model_type": "qwen2_vl", "rope_scaling": {"mrope_section": [1, 2, 3]}}, "mrope_section must add up"),
    ],
)
def test_unreadable_config_raises_a_clear_error(config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_model(config)


@for_each(MODELS)
def test_catalog_entry_names_its_source(id: str) -> None:
    model = axes_catalog()[id]
    assert model.name
    assert model.source
    assert model.status in ("V1", "V2")
    assert model.grid
    assert model.grid_note
    axes = {axis for spec in model_parts(id).values() for axis in spec.axes}
    assert set(model.grid) <= axes
    assert all(extent > 0 for extent in model.grid.values())
    assert any(len(spec.axes) > 1 for spec in model_parts(id).values())


def test_catalog_covers_every_kind_of_model() -> None:
    assert len(MODELS) >= 25
    parts = [part.split(" ")[0] for id in MODELS for part in model_parts(id)]
    assert {"text", "vision", "transformer"} <= set(parts)
    assert any(not spec.is_rotation for spec in model_parts("hunyuan-ocr").values())
    assert all(not spec.is_aligned for spec in model_parts("rope-vit-mixed-b").values())


def test_an_unknown_entry_is_named() -> None:
    with pytest.raises(ValueError, match="there is no model 'gpt-9'"):
        model_parts("gpt-9")
