"""A presented page contains only the picture that the address names."""

import pytest

from rope_viz.pages import decay, rotation


@pytest.mark.parametrize(
    ("page", "name", "picture"),
    [("decay", "1", decay.curves), ("decay", "pairs", decay.pairs), ("conversion", "1", rotation.permutation)],
)
def test_a_presented_page_has_one_picture(page, name, picture, open_page, picture_requests):
    app = open_page(page, present=name, base="20000")
    assert not app.exception
    assert list(picture_requests(app)) == [picture]
    assert picture_requests(app)[picture].spec.base == 20_000
    assert not app.sidebar.selectbox


def test_an_unknown_picture_is_refused_and_the_page_shown(open_page, picture_requests):
    app = open_page("decay", is_valid=False, present="nothing")
    assert any("has no picture 'nothing' to present" in each.value for each in app.warning)
    assert len(picture_requests(app)) > 1


def test_page_without_pictures_warns_when_presented(open_page):
    app = open_page("gallery", present="1")
    assert any("no picture" in each.value for each in app.warning)
    assert not app.exception
