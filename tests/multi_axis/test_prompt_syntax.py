"""Prompts as users write them, and the positions that models and runtimes give them."""

import pytest

from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.prompt_positions import lay_out
from rope_viz.multi_axis.prompt_syntax import USUAL, Wanted, first_difference, lay, pieces, reader, taken


def read(id):
    return reader(axes_catalog()[id].config)


def test_pieces_survive_reading_and_writing():
    found = pieces("Text 12 tokens, image 640 × 480 px; video 1280x720 60s 2fps + sound 1.5 s")
    assert found == (
        Wanted("text", tokens=12),
        Wanted("image", width=640, height=480),
        Wanted("video", width=1280, height=720, seconds=60.0, rate=2.0),
        Wanted("sound", seconds=1.5),
    )
    assert pieces(", ".join(piece.written for piece in found)) == found
    assert pieces("video 64x64 2s")[0].rate == 2.0


@pytest.mark.parametrize(
    "line", ["", "picture 3", "image 640", "text -3", "text 1," * 13, "video 1x1 3s 0fps", "image 0x9"]
)
def test_invalid_prompt_error_names_the_syntax(line):
    with pytest.raises(ValueError, match=r"write pieces|at least one pixel|frames a second"):
        pieces(line)


def test_an_image_costs_its_longer_side():
    laid = lay(pieces("text 12, image 1024x768, text 20"), read("qwen2-vl-7b"))
    assert laid.tokens(1) == 37 * 27
    assert laid.cost(1) == 37
    assert laid.positions.rope_delta == -(37 * 27 - 37)
    assert laid.starts == (0.0, 12.0, 49.0, 69.0)


def test_prompt_positions_match_the_classes():
    laid = lay(pieces("text 3, video 112x56 8s 0.8fps, text 3"), read("qwen2.5-vl-7b"))
    given = {"layout": [["text", 3], ["video", [3, 4, 8]], ["text", 3]], "second_per_grid_ts": [2.5]}
    expected = lay_out("qwen2_5_vl", {**given, "tokens_per_second": 2, "spatial_merge_size": 2})
    assert laid.positions.values.tolist() == expected.values.tolist()
    assert laid.positions.rope_delta == expected.rope_delta


def test_text_after_a_long_video_overlaps_only_in_transformers():
    prompt = pieces(USUAL)
    here, there = (lay(prompt, read("qwen2-vl-7b"), runtime) for runtime in ("transformers", "vllm"))
    film = here.positions.values[here.ends[3] : here.ends[4]]
    assert here.starts[4] <= film.max()
    assert there.starts[4] > film.max() or there.starts[4] == film.max() + 1
    at = first_difference(here, there)
    assert (here.positions.values[:at] == there.positions.values[:at]).all()
    assert (here.positions.values[at] != there.positions.values[at]).any()


def test_timestamped_frames_follow_eight_text_tokens_each():
    laid = lay(pieces("video 64x64 4s 1fps"), read("qwen3-vl-8b"))
    kinds = [(part.kind, part.tokens) for part in laid.positions.segments]
    assert kinds == [("text", 8), ("video", 4), ("text", 8), ("video", 4)]
    assert laid.cost(0) == 2 * (8 + 2)


def test_audio_is_accepted_only_by_audio_models():
    laid = lay(pieces("sound 2s"), read("qwen2.5-omni-7b"))
    assert laid.tokens(0) == 2 + 50  # two markers, 25 tokens a second
    with pytest.raises(ValueError, match="hears no sound"):
        lay(pieces("sound 2s"), read("qwen2-vl-7b"))
    with pytest.raises(ValueError, match="take films"):
        lay(pieces("video 64x64 4s"), read("hunyuan-ocr"))


@pytest.mark.parametrize("id", [id for id in axes_catalog() if read(id) is not None])
def test_offered_pieces_are_those_a_model_accepts(id):
    for piece in pieces("text 2, image 64x64, video 64x64 4s 1fps, sound 2s"):
        if piece.what in taken(read(id)):
            assert lay([piece], read(id)).tokens(0) > 0
        else:
            with pytest.raises(ValueError, match="this model"):
                lay([piece], read(id))


def test_too_long_video_is_refused_before_layout():
    with pytest.raises(ValueError, match="at most 262,144"):
        lay(pieces("video 1920x1080 3600s 2fps"), read("qwen2-vl-7b"))


def test_only_multi_axis_language_models_have_prompts():
    readers = {id: read(id) for id in axes_catalog()}
    assert readers["flux.1-dev"] is None
    assert readers["pixtral-12b"] is None
    assert {readers[id].kind for id in ("qwen3.5-9b", "glm-4.5v", "qwen3-omni-30b-a3b")} == {
        "qwen3_5",
        "glm4v_moe",
        "qwen3_omni_moe",
    }
    for found in readers.values():
        if found is not None:
            laid = lay(pieces("text 3, image 500x300, text 2"), found)
            assert laid.positions.tokens == laid.ends[-1] == 5 + laid.tokens(1)


def test_the_same_prompt_has_no_first_difference():
    prompt = pieces("text 3, image 500x300, text 2")
    one = lay(prompt, read("qwen2-vl-7b"))
    assert first_difference(one, lay(prompt, read("qwen2-vl-7b"), "vllm")) is None
