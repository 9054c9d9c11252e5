"""What a config of several axes may hold without an exception of Python's own, and without taking the machine's memory.

Each case was met by changing one value of a golden config at random: the answer was a TypeError, an IndexError, a
division by zero, a sentence of NumPy's or some gigabytes.
"""

from typing import Any

import pytest

from rope_viz.multi_axis import positions, read_family


@pytest.mark.parametrize(
    ("family", "config", "says"),
    [
        ("vision/dinov3", {"grid": [5, 3], "tokens": [0, [[]], 14]}, "tokens must be from 0 to 14"),
        ("audio/musicflamingo", {"tokens": [[10], [1, 1]]}, "tokens must be from 0 to 749"),
        ("dit/qwen-image", {"shapes": [[1, 2, 2]], "tokens": [0], "text_tokens": [0]}, "text_tokens must be from 0"),
        ("dit/cogview4", {"grid": [10]}, "grid must be rows and columns"),
        ("vision/timm-mrope", {"grid": [4]}, "grid must be rows and columns"),
        ("dit/hunyuan-dit", {"grid": [6, 8], "crops_coords": [2.0, {"a": 1}]}, "rows of numbers alike"),
        ("dit/hunyuan-dit", {"grid": [6, 8], "crops_coords": [[2.0, 1, 3], [0, 3, 2]]}, "top, left"),
        ("dit/cogvideox", {"grid": [3, 9], "crops_coords": [[], [26, 45]]}, "rows of numbers alike"),
        ("dit/qwen-image-2.1", {"layout": [[1e308, 3]]}, "a piece must be like"),
        ("dit/qwen-image-2.1", {"layout": [["image", "x"]]}, "a grid must be"),
        ("dit/qwen-image", {"shapes": 5}, "shapes must be a list"),
        ("dit/flux", {"positions": [["image", [1, 2, 3]]]}, "rows of numbers alike"),
        ("dit/ltx-video", {"grid": [3, 4, 6], "rope_interpolation_scale": [1, 1, 1], "base": 0}, "greater than 0"),
        ("dit/skyreels-v2", {"latents": [5, 12, 16], "patch_size": 0}, "patch_size must be at least 1"),
        ("dit/hunyuan-video", {"latents": [1], "patch_size": 2}, "latents must be rows and columns"),
        ("dit/hunyuan-video", {"latents": [1, 1, 16], "patch_size": 2}, "at least one patch on every side"),
        ("dit/minimax-h3", {"latents": [8, 12], "patch": [2]}, "patch must be rows and columns"),
        ("vision/pixtral", {"image_size": 8, "patch_size": 16}, "at least one patch on every side"),
        ("vision/efficientloftr", {"features": [2, 9]}, "at least 4"),
    ],
)
def test_invalid_positions_raise_a_clear_error(family: str, config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        positions(family, config)


@pytest.mark.parametrize(
    ("family", "config", "says"),
    [
        ("text/qwen3_vl", {"rope_parameters": {"mrope_section": [float("inf"), 1, 1]}}, "whole numbers"),
        ("text/qwen3_vl", {"rope_parameters": {"mrope_section": [1e308, 1, 1]}}, "whole numbers"),
        ("text/neomme", {"layer_type": ["full_attention"]}, "layer_type must be one of"),
        ("vision/timm-axial", {"dim": 10**9}, "dim must be at most"),
        ("vision/timm-dinov3", {"dim": 10**9}, "dim must be at most"),
        ("vision/rope-mixed", {"dim": 10**9, "num_heads": 1}, "the size of a head must be at most"),
        ("vision/rope-mixed", {"weights": [[[[0.5]]], [[[0.5]]]], "layer": 1}, "layer must be from 0 to 0"),
        ("dit/mochi", {"attention_head_dim": 10**9}, "attention_head_dim must be at most"),
        ("dit/mochi", {"weights": [["a"]]}, "rows of numbers alike"),
        ("dit/ltx-video", {"inner_dim": 10**6, "num_attention_heads": 2}, "heads of 2 to"),
        ("runtime/llama.cpp", {"mode": "VISION", "n_dims": 10**9, "sections": [1]}, "n_dims must be at most"),
    ],
)
def test_invalid_rotation_raises_a_clear_error(family: str, config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_family(family, config)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("dit/cosmos", {"grid": 10**30}),
        ("dit/flux", {"grid": [10**6, 10**6]}),
        ("dit/wan", {"latents": [10**6, 10**5, 10**5]}),
        ("dit/qwen-image", {"shapes": [[1, 10**6, 10**6]]}),
        ("vision/sam3", {"layer_window": 10**6}),
        ("vision/qwen3_vl", {"grid_thw": [[10**6, 10**3, 10**3]]}),
        ("positions/qwen2_vl", {"layout": [["video", [10**6, 10**3, 10**3]]]}),
        ("positions/hunyuan_vl", {"layout": [["image", [1, 10**6, 10**6]]]}),
        ("positions/qwen2_vl", {"layout": [["text", 10**10]]}),
    ],
)
def test_a_size_without_bounds_is_refused_at_once(family: str, config: Any) -> None:
    # Laid out, the smallest of these is a hundred gigabytes.
    with pytest.raises(ValueError, match=r"too large|at most|up to"):
        positions(family, config)
