"""A diffusion transformer's config, dropped: the model of page Axes, and one axis of it on the other pages."""

import json
from typing import Any

import pytest

from rope_viz.configs import link
from rope_viz.configs.upload import read_upload
from rope_viz.pictures import axes, scenes
from rope_viz.pictures.configs import upload_bytes, upload_of
from rope_viz.pictures.now import Now

FLUX = {"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [16, 56, 56], "attention_head_dim": 128}


def test_each_axis_is_a_ladder_of_its_own() -> None:
    mine = read_upload(json.dumps(FLUX))
    assert mine.name == "FluxTransformer2DModel"
    assert {axis: spec.head_dim for axis, spec in mine.specs.items()} == {"h": 56, "w": 56, "t": 16}
    assert {round(spec.base) for spec in mine.specs.values()} == {10_000}
    assert mine.layer == "h"
    assert "3 axes" in mine.notes[-1]


def test_a_ladder_that_all_axes_share_is_one() -> None:
    mine = read_upload(json.dumps({"_class_name": "Ideogram4Transformer2DModel", "attention_head_dim": 128}))
    assert mine.layer == ""
    assert mine.specs[""].base == pytest.approx(5e6)


def test_page_axes_shows_the_model_that_was_dropped() -> None:
    mine = read_upload(json.dumps(FLUX))
    now = Now(mine.specs["h"], link.CUSTOM, "h", own=mine)
    assert now[scenes.MODEL] == scenes.SIDEBAR
    assert scenes.released(now).spec.axes == ("t", "h", "w")
    assert "FluxTransformer2DModel" in axes.sight(now).sentence


def test_it_is_kept_for_the_pictures_as_it_was_read() -> None:
    mine = read_upload(json.dumps(FLUX))
    kept = upload_of(upload_bytes(mine))
    assert dict(kept.specs) == dict(mine.specs)
    assert kept.name == mine.name


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"_class_name": "UNet2DConditionModel"}, "there is no diffusion transformer"),
        ({"_class_name": "MochiTransformer3DModel"}, "learned"),
        ({"_class_name": "LTXVideoTransformer3DModel"}, "no ladder that a base describes"),
        ({"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [0, 1]}, "at least 2"),
    ],
)
def test_what_is_no_ladder_is_said(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_upload(json.dumps(config))
