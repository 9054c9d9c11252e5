"""The dials of the usual head sizes fill their rows, on a wide and on a narrow screen."""

import pytest

from rope_viz.figures.clocks import arranged


@pytest.mark.parametrize("pairs", [32, 64, 128])
@pytest.mark.parametrize("room", [(1180, 490), (860, 490), (358, 465)])
def test_dials_fill_their_rows(pairs, room):
    columns, _ = arranged(pairs, *room)
    assert pairs % columns == 0
    assert columns in (4, 8, 16)
