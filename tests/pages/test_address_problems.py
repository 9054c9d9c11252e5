"""The page warns about an unreadable value of its address and says what it expects and shows instead."""

import pytest

from rope_viz.pages import registry, rotation
from rope_viz.picture.choices import Number, Pick, Several, StoredChoice, Switch, TextLine
from rope_viz.ui import controls

READ = [
    choice
    for page in registry.PAGES
    for choice in registry.page(page).choices
    if not isinstance(choice, StoredChoice | TextLine)
]


def warnings(app):
    return [one.value.replace("\\", "") for one in app.warning]


def can_fail(choice):
    return isinstance(choice, Number | Pick | Several | Switch)


@pytest.mark.parametrize("choice", [one for one in READ if can_fail(one)], ids=lambda choice: choice.key)
def test_an_unreadable_value_of_any_choice_is_named(choice):
    (problem,) = controls.find_address_problems({choice.key: "<?>"})
    assert choice.key in problem
    assert "<?>" in problem
    assert problem.endswith("The default is shown.")


@pytest.mark.parametrize(
    ("page", "query", "words"),
    [
        ("rotation", {"rotation.at": "12,x"}, ("rotation.at", "12,x", "one position, or two", "default is shown")),
        ("decay", {"decay.show": "everything"}, ("decay.show", "everything", "one of", "default is shown")),
        ("extend", {"extend.sequences": "many"}, ("extend.sequences", "many", "default is shown")),
        ("extend", {"extend.sequences": "1e30"}, ("extend.sequences", "1e30", "Showing 4096")),
        ("rotation", {"rotation.att": "3"}, ("rotation.att", "Did you mean rotation.at?")),
        ("scaling", {"rotation.zzz": "3"}, ("unknown key", "rotation.zzz")),
    ],
)
def test_page_warns_about_each_unreadable_value(open_page, page, query, words):
    app = open_page(page, is_valid=False, **query)
    assert not app.exception
    (problem,) = warnings(app)
    assert all(word in problem for word in words), problem


def test_page_warns_about_a_pin_beyond_the_pairs(open_page):
    (problem,) = warnings(open_page("scaling", pin="900"))
    assert "900" in problem
    assert "0 to 63" in problem
    assert "No pair is pinned" in problem


def test_unrelated_query_keys_are_ignored(open_page):
    app = open_page("scaling", utm_source="mail", embed="true", **{"a.b": "c", "axes-scaling-comparison": "xmin:1"})
    assert not app.exception
    assert not app.warning


def test_single_position_in_a_link_is_the_query(open_page, picture_requests):
    app = open_page("rotation", **{"rotation.at": "12000"})
    assert not app.warning
    request = next(request for picture, request in picture_requests(app).items() if picture.page == "rotation")
    assert request[rotation.AT] == (12_000, rotation.AT.default(request)[1])
