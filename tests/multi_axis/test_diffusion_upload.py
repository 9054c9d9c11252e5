"""A dropped diffusion transformer: the model of the Axes page, and one of its axes on the other pages."""

import json
from typing import Any

import pytest

from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.multi_axis import from_model
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import add_all_heads
from rope_viz.own_files.configs import upload_bytes, upload_of
from rope_viz.pages import axes, frequencies
from rope_viz.pages.axes import choices
from rope_viz.pages.model import extend, runtimes
from rope_viz.picture import axis_choice
from rope_viz.picture.picture_request import PictureRequest

FLUX = {"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [16, 56, 56], "attention_head_dim": 128}


def test_each_axis_is_read_as_its_own_ladder() -> None:
    mine = read_upload(json.dumps(FLUX))
    assert mine.name == "FluxTransformer2DModel"
    assert {axis: spec.head_dim for axis, spec in mine.specs.items()} == {"h": 56, "w": 56, "t": 16}
    assert {round(spec.base) for spec in mine.specs.values()} == {10_000}
    assert mine.layer == "h"
    assert "3 axes" in mine.notes[-1]


def test_shared_ladder_is_read_as_one() -> None:
    mine = read_upload(json.dumps({"_class_name": "Ideogram4Transformer2DModel", "attention_head_dim": 128}))
    assert mine.layer == ""
    assert mine.specs[""].base == pytest.approx(5e6)


def test_axes_page_shows_the_dropped_model() -> None:
    mine = read_upload(json.dumps(FLUX))
    request = PictureRequest(Subject(mine.specs["h"], layer="h", own=mine))
    assert request[choices.MODEL] == choices.SIDEBAR
    assert choices.released_scene(request).spec.axes == ("t", "h", "w")
    assert "FluxTransformer2DModel" in axes.sight(request).sentence


def test_upload_survives_storing_for_the_pictures() -> None:
    mine = read_upload(json.dumps(FLUX))
    kept = upload_of(upload_bytes(mine))
    assert dict(kept.specs) == dict(mine.specs)
    assert kept.name == mine.name


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"_class_name": "UNet2DConditionModel"}, "there is no diffusion transformer"),
        ({"_class_name": "MochiTransformer3DModel"}, "learned"),
        ({"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [0, 1]}, "at least 2"),
    ],
)
def test_config_without_a_ladder_raises_a_clear_error(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_upload(json.dumps(config))


@pytest.mark.parametrize("id", ["ltx-video", "ernie-image", "v-jepa2-vit-l", "dinov3-vit-b"])
def test_model_without_a_ladder_is_plain_outside_the_axes_page(id: str) -> None:
    mine = read_upload(json.dumps(dict(axes_catalog()[id].config)))
    assert "No base describes its frequencies: the other pages show plain RoPE" in mine.notes[-1]
    request = PictureRequest(Subject(mine.specs[""], layer="", own=mine))
    assert request[choices.MODEL] == choices.SIDEBAR
    released = from_model(axes_catalog()[id].config)
    assert choices.released_scene(request).spec in [*released.values(), *add_all_heads(released).values()]


def test_dropped_encoder_has_a_ladder_for_each_axis() -> None:
    mine = read_upload(json.dumps(dict(axes_catalog()["sam3"].config)))
    assert {axis: spec.head_dim for axis, spec in mine.specs.items()} == {"w": 32, "h": 32}
    assert "an encoder with 2 axes" in mine.notes[-1]
    assert dict(upload_of(upload_bytes(mine)).specs) == dict(mine.specs)
    request = PictureRequest(Subject(mine.specs["h"], layer="h", own=mine))
    assert "an encoder without a language model" in runtimes.diffusion(request)
    assert "no context in tokens" in extend.problem(request)
    sentence = axis_choice.axis_sentence(request, frequencies.AXIS)
    assert sentence.entries[0] == "own"
    assert (sentence.values["axis"], sentence.values["pairs"], sentence.values["others"]) == ("row", 16, "column")


def test_encoder_without_rotation_is_refused() -> None:
    with pytest.raises(ValueError, match="rotat"):
        read_upload(json.dumps({"model_type": "siglip_vision_model", "hidden_size": 64, "num_attention_heads": 4}))
