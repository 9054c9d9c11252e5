"""Prompts as users write them, and the positions that models and runtimes give them."""

import pytest

from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.prompt_positions import lay_out
from rope_viz.multi_axis.prompt_syntax import (
    EXAMPLE,
    Piece,
    find_prompt_rules,
    first_difference,
    lay_out_pieces,
    list_accepted_kinds,
    parse_pieces,
)


def read_model(id):
    return find_prompt_rules(axes_catalog()[id].config)


def test_pieces_survive_reading_and_writing():
    found = parse_pieces("Text 12 tokens, image 640 × 480 px; video 1280x720 60s 2fps + sound 1.5 s")
    assert found == (
        Piece("text", tokens=12),
        Piece("image", width=640, height=480),
        Piece("video", width=1280, height=720, seconds=60.0, rate=2.0),
        Piece("audio", seconds=1.5),
    )
    assert parse_pieces(", ".join(piece.text for piece in found)) == found
    assert parse_pieces("video 64x64 2s")[0].rate == 2.0
    assert parse_pieces("sound 2s") == parse_pieces("audio 2s")


@pytest.mark.parametrize(
    "line", ["", "picture 3", "image 640", "text -3", "text 1," * 13, "video 1x1 3s 0fps", "image 0x9"]
)
def test_a_syntax_error_shows_the_syntax(line):
    with pytest.raises(ValueError, match=r"separated by commas|at least one pixel|frames per second"):
        parse_pieces(line)


def test_an_image_costs_its_longer_side():
    layout = lay_out_pieces(parse_pieces("text 12, image 1024x768, text 20"), read_model("qwen2-vl-7b"))
    assert layout.tokens(1) == 37 * 27
    assert layout.cost(1) == 37
    assert layout.positions.rope_delta == -(37 * 27 - 37)
    assert layout.starts == (0.0, 12.0, 49.0, 69.0)


def test_prompt_positions_match_the_classes():
    layout = lay_out_pieces(parse_pieces("text 3, video 112x56 8s 0.8fps, text 3"), read_model("qwen2.5-vl-7b"))
    given = {"layout": [["text", 3], ["video", [3, 4, 8]], ["text", 3]], "second_per_grid_ts": [2.5]}
    expected = lay_out("qwen2_5_vl", {**given, "tokens_per_second": 2, "spatial_merge_size": 2})
    assert layout.positions.values.tolist() == expected.values.tolist()
    assert layout.positions.rope_delta == expected.rope_delta


def test_text_overlaps_a_long_video_in_transformers_only():
    prompt = parse_pieces(EXAMPLE)
    here, there = (lay_out_pieces(prompt, read_model("qwen2-vl-7b"), runtime) for runtime in ("transformers", "vllm"))
    video = here.positions.values[here.ends[3] : here.ends[4]]
    assert here.starts[4] <= video.max()
    assert there.starts[4] > video.max() or there.starts[4] == video.max() + 1
    at = first_difference(here, there)
    assert (here.positions.values[:at] == there.positions.values[:at]).all()
    assert (here.positions.values[at] != there.positions.values[at]).any()


def test_each_stamped_frame_follows_eight_tokens_of_text():
    layout = lay_out_pieces(parse_pieces("video 64x64 4s 1fps"), read_model("qwen3-vl-8b"))
    kinds = [(part.kind, part.tokens) for part in layout.positions.segments]
    assert kinds == [("text", 8), ("video", 4), ("text", 8), ("video", 4)]
    assert layout.cost(0) == 2 * (8 + 2)


def test_only_models_with_audio_take_audio():
    layout = lay_out_pieces(parse_pieces("sound 2s"), read_model("qwen2.5-omni-7b"))
    assert layout.tokens(0) == 2 + 50  # two markers, 25 tokens a second
    with pytest.raises(ValueError, match="takes no audio"):
        lay_out_pieces(parse_pieces("sound 2s"), read_model("qwen2-vl-7b"))
    with pytest.raises(ValueError, match="take videos"):
        lay_out_pieces(parse_pieces("video 64x64 4s"), read_model("hunyuan-ocr"))


@pytest.mark.parametrize("id", [id for id in axes_catalog() if read_model(id) is not None])
def test_a_model_takes_exactly_the_offered_pieces(id):
    for piece in parse_pieces("text 2, image 64x64, video 64x64 4s 1fps, sound 2s"):
        if piece.what in list_accepted_kinds(read_model(id)):
            assert lay_out_pieces([piece], read_model(id)).tokens(0) > 0
        else:
            with pytest.raises(ValueError, match="this model"):
                lay_out_pieces([piece], read_model(id))


def test_a_prompt_with_too_many_tokens_is_refused():
    with pytest.raises(ValueError, match="at most 262,144"):
        lay_out_pieces(parse_pieces("video 1920x1080 3600s 2fps"), read_model("qwen2-vl-7b"))


def test_only_language_models_with_several_axes_have_prompts():
    readers = {id: read_model(id) for id in axes_catalog()}
    assert readers["flux.1-dev"] is None
    assert readers["pixtral-12b"] is None
    assert {readers[id].kind for id in ("qwen3.5-9b", "glm-4.5v", "qwen3-omni-30b-a3b")} == {
        "qwen3_5",
        "glm4v_moe",
        "qwen3_omni_moe",
    }
    for found in readers.values():
        if found is not None:
            layout = lay_out_pieces(parse_pieces("text 3, image 500x300, text 2"), found)
            assert layout.positions.tokens == layout.ends[-1] == 5 + layout.tokens(1)


def test_the_same_prompt_has_no_first_difference():
    prompt = parse_pieces("text 3, image 500x300, text 2")
    one = lay_out_pieces(prompt, read_model("qwen2-vl-7b"))
    assert first_difference(one, lay_out_pieces(prompt, read_model("qwen2-vl-7b"), "vllm")) is None
