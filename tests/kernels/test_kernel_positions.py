"""Every layout of the field is a list of positions."""

import numpy as np
import pytest

from rope_viz.kernels import balanced_order, context_parallel_positions, offset_positions, packed_positions

pytestmark = pytest.mark.float32_products

torch = pytest.importorskip("torch")


def test_offsets_shift_all_or_each():
    assert offset_positions(3, 10).tolist() == [10, 11, 12]
    assert offset_positions(3, np.array([0, 5])).tolist() == [[0, 1, 2], [5, 6, 7]]
    assert offset_positions(3, torch.tensor([0, -5], dtype=torch.int32)).tolist() == [[0, 1, 2], [-5, -4, -3]]


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_packed_sequences_count_from_their_start(kind):
    assert packed_positions(kind([0, 2, 2, 5]), 5).tolist() == [0, 1, 0, 1, 2]
    assert packed_positions(kind([0, 2, 2, 5]), 5, kind([10, 20, 30])).tolist() == [10, 11, 30, 31, 32]


def test_no_tokens_have_no_positions():
    assert packed_positions(np.array([0]), 0).tolist() == []
    assert packed_positions(np.array([0, 0]), 0).tolist() == []
    assert context_parallel_positions(0, 2, 1).tolist() == []


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_ranks_hold_first_and_last_chunk(size):
    chunks = np.arange(24 * size).reshape(2 * size, 12) if size > 1 else np.arange(24).reshape(2, 12)
    for rank in range(size):
        want = np.concatenate([chunks[rank], chunks[2 * size - 1 - rank]])
        assert context_parallel_positions(24, size, rank).tolist() == want.tolist()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_together_hold_every_token_once(size):
    assert sorted(balanced_order(32, size)) == list(range(32))


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_packed_ranks_hold_chunks_of_every_sequence(kind):
    lengths, size = [8, 16, 4], 2
    bounds = kind(np.concatenate([[0], np.cumsum(lengths)]).tolist())
    for rank in range(size):
        want = np.concatenate([context_parallel_positions(n // size, size, rank) for n in lengths])
        assert packed_positions(bounds, 14, size=size, rank=rank).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: context_parallel_positions(3, 2, 0), "even"),
        (lambda: context_parallel_positions(4, 2, 2), "rank"),
        (lambda: balanced_order(6, 2), "chunks"),
    ],
)
def test_impossible_shares_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
