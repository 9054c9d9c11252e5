"""Positions along a prompt and over grids; what published functions gave is in tests/multi_axis/test_families.py."""

import numpy as np
import pytest

from rope_viz.embedding.position_ids import (
    Manner,
    Positions,
    PromptSegment,
    centred_positions,
    interleave_audio,
    lay_out_grid,
    merge_order,
    patch_counts,
    place_prompt,
    spaced_positions,
)


def test_an_image_costs_its_longer_side_in_positions() -> None:
    laid = place_prompt([PromptSegment("text", 4), PromptSegment("image", grid=(1, 64, 64)), PromptSegment("text", 1)])
    assert laid.tokens == 4 + 32 * 32 + 1
    assert laid.values[-1].tolist() == [36.0, 36.0, 36.0]
    assert laid.rope_delta == 37 - laid.tokens
    assert [(part.kind, part.tokens) for part in laid.segments] == [("text", 4), ("image", 1024), ("text", 1)]


def test_text_alone_counts_on_every_axis() -> None:
    laid = place_prompt([PromptSegment("text", 3), PromptSegment("audio", 2)])
    assert laid.values.tolist() == [[n, n, n] for n in range(5)]
    assert laid.rope_delta == 0


def test_tokens_of_an_image_count_from_the_text_before_it() -> None:
    laid = place_prompt([PromptSegment("text", 2), PromptSegment("image", grid=(1, 4, 6))])
    assert laid.values[2:].tolist() == [[2, row, column] for row in (2, 3) for column in (2, 3, 4)]


@pytest.mark.parametrize("chunk", [None, 2])
def test_text_next_to_a_video_with_audio_is_counted_on(chunk: int | None) -> None:
    video = PromptSegment("video", grid=(2, 4, 4), pace=(1.0, 1.0))
    alone = interleave_audio([(video, 3)], Manner(), chunk).values
    laid = interleave_audio(
        [PromptSegment("text", 3), PromptSegment("text", 2), (video, 3), PromptSegment("text", 2)], Manner(), chunk
    ).values
    assert laid[:5].tolist() == [[n, n, n] for n in range(5)]
    np.testing.assert_array_equal(laid[5:-2], alone + 5)
    following = alone[-1].max() + 6
    assert laid[-2:].tolist() == [[following] * 3, [following + 1] * 3]


def test_runtimes_differ_where_time_exceeds_the_grid() -> None:
    pieces = [PromptSegment("text", 1), PromptSegment("video", grid=(9, 4, 4)), PromptSegment("text", 1)]
    overlaps = place_prompt(pieces, Manner(resume="side"))
    behind = place_prompt(pieces, Manner(resume="largest"))
    assert overlaps.values[-1, 0] == 3.0 < overlaps.values[-2, 0] == 9.0
    assert behind.values[-1, 0] == 10.0
    np.testing.assert_array_equal(overlaps.values[:-1], behind.values[:-1])


def test_a_floor_in_float32_is_not_a_floor_in_float64() -> None:
    video = PromptSegment("video", grid=(11, 2, 2), pace=(0.7, 10.0))
    wide = place_prompt([video], Manner(narrow=False)).values[:, 0]
    narrow = place_prompt([video], Manner()).values[:, 0]
    # 3·0.7·10 is 21 − 4e-15 in float64 and 21 exactly in float32.
    assert wide.tolist() == [int(f * 0.7 * 10.0) for f in range(11)]
    assert narrow.tolist() == [int(np.float32(f) * np.float32(0.7) * np.float32(10.0)) for f in range(11)]
    assert np.any(wide != narrow)


def test_separate_frames_are_numbered_like_images() -> None:
    pieces = [PromptSegment("video", grid=(2, 4, 6)), PromptSegment("text", 1)]
    apart = place_prompt(pieces, Manner(separate_frames=True)).values
    assert apart[:6, 0].tolist() == [0.0] * 6
    assert apart[6:12, 0].tolist() == [3.0] * 6
    assert apart[-1, 0] == 6.0
    gap = place_prompt(pieces, Manner(separate_frames=True, gap=2))
    assert [part.kind for part in gap.segments] == ["video", "marker", "video", "text"]


def test_an_image_from_zero_costs_one_position() -> None:
    pieces = [PromptSegment("text", 5), PromptSegment("image", grid=(1, 8, 12)), PromptSegment("text", 2)]
    laid = place_prompt(pieces, Manner(origin="zero")).values
    assert laid[5].tolist() == [5.0, 0.0, 0.0]
    assert laid[-2].tolist() == [6.0, 6.0, 6.0]


def test_grids_count_as_their_names_say() -> None:
    assert lay_out_grid(2, 2, start=1.0).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert centred_positions(5).tolist() == [-3, -2, -1, 0, 1]
    assert centred_positions(4).tolist() == [-2, -1, 0, 1]
    np.testing.assert_allclose(spaced_positions(4.0, 26.0, 2), [4.0, 13.0])
    assert merge_order(2, 4, 2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3], [1, 2], [1, 3]]


def test_pixels_become_whole_blocks_of_patches() -> None:
    assert patch_counts(448, 896, 14, 2) == (32, 64)
    assert patch_counts(450, 10, 14, 2) == (32, 2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PromptSegment("picture"), "a piece must be one of"),  # type: ignore[arg-type]
        (lambda: PromptSegment("text", -1), "tokens"),
        (lambda: PromptSegment("image", grid=(1, 0, 4)), "a grid's sides"),
        (lambda: PromptSegment("image", grid=(4, 4)), "frames, rows and columns"),  # type: ignore[arg-type]
        (lambda: place_prompt([PromptSegment("image", grid=(1, 1, 4))]), "smaller than one token"),
        (lambda: place_prompt([PromptSegment("text", 1 << 22), PromptSegment("text", 1)]), "up to"),
        (lambda: merge_order(3, 4, 2), "does not divide"),
        (lambda: Positions(np.zeros((2, 2))), "positions must have shape"),
        (lambda: patch_counts(0, 4, 14), "height"),
    ],
)
def test_inconsistent_layout_raises_a_clear_error(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        make()
