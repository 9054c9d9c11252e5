"""The defaults of the Axes page."""

import pytest

from rope_viz.multi_axis.image_layouts import model_scenes
from rope_viz.pages import axes


@pytest.mark.parametrize(
    ("model", "part", "role"),
    [
        ("hunyuan-video", "transformer", "time"),
        ("flux.1-dev", "transformer", "row"),
        ("qwen2-vl-7b", "text", "row"),
        ("qwen2-vl-7b", "vision", "row"),
    ],
)
def test_time_is_extended_for_video_and_rows_for_images(model, part, role):
    assert axes.direction(model_scenes(model)[part]) == role
