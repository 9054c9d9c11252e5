"""The gallery has every picture, or names the rule by which it is left out; its cards open the right pages."""

from pathlib import Path
from urllib.parse import parse_qsl

from rope_viz.figures.files import Style
from rope_viz.figures.table_figure import sheet
from rope_viz.pages import registry
from rope_viz.pages.registry import titles
from rope_viz.picture import read_address
from rope_viz.picture.outputs import Table
from rope_viz.reports import gallery
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
CARDS = gallery.list_cards()


@for_each(registry.pictures(), lambda each: each.address)
def test_a_picture_is_in_the_gallery_or_left_out_by_a_rule(picture):
    rule = gallery.why_left_out(picture)
    assert ([card.picture for card in CARDS].count(picture) == 1) is (rule == "")
    assert rule in ("", "repeated", "no data")
    assert (rule == "repeated") is (
        picture.address in ("home/turning", "learn/story", "learn/arrow", "runtimes/models")
    )
    if rule == "no data":
        assert picture.refuses(read_address.read_request(registry.page(picture.page), {}))


@for_each(CARDS, lambda card: card.picture.address)
def test_a_card_opens_the_page_that_shows_its_picture(card):
    assert card.page in titles()
    if card.page == "learn":  # one picture shows the scenes
        assert card.query == f"learn.scene={card.picture.name.removeprefix('scene')}"
        return
    path = ROOT / "pages" / f"{card.page}.py"
    assert f".{card.picture.name}" in path.read_text(encoding="utf-8")


def test_cards_have_names_of_their_own_and_no_ids():
    names = [card.title for card in CARDS]
    assert len(set(names)) == len(names)
    for card in CARDS:
        assert 2 <= len(card.title.split()) <= 9, card.title
        assert card.picture.name.replace("_", " ") != card.title.lower()
        assert not card.title.startswith(f"{titles()[card.page]}:")


def test_pictures_come_before_tables_in_each_door():
    for door in registry.doors():
        tables = [card.picture.kind is Table for card in CARDS if card.door == door]
        assert tables == sorted(tables)
    assert {card.door for card in CARDS} == set(registry.doors())


def test_a_card_of_my_model_opens_the_tab_of_its_picture():
    tabs = {card.picture.address: card.query for card in CARDS if card.page == "model"}
    assert tabs["runtimes/training"] == "extend.tab=training"
    assert tabs["runtimes/matrix"] == "extend.tab=runtimes"
    assert tabs["extend/layers"] == ""
    assert tabs["extend/memory"] == "extend.tab=why"


def test_a_thumbnail_has_a_valid_style_and_is_a_first_part():
    for card in CARDS:
        query = dict(parse_qsl(card.as_dict()["thumbnail"]))
        slow = card.picture.parts(gallery.default_request(card.picture)) > 1
        assert ("part" in query) is slow
        assert Style.read(query).width == "224px"


def test_a_small_table_shows_whole_first_rows_and_columns():
    columns = {f"column-{number}": [f"value-{number}-{row}" for row in range(30)] for number in range(12)}
    small = sheet(columns, 408.0, 267.0)
    texts = [note["text"] for note in small.to_plotly_json()["layout"]["annotations"]]
    assert "<b>column-0</b>" in texts
    assert "<b>column-11</b>" not in texts
    assert "value-0-0" in texts
    assert "value-0-29" not in texts
    assert small.layout.height <= 267
    assert {note["font"]["size"] for note in small.to_plotly_json()["layout"]["annotations"]} == {12.0}
    # A file of the usual width keeps everything.
    whole = sheet(columns, 920.0, 267.0).to_plotly_json()["layout"]["annotations"]
    assert "value-11-29" in [note["text"] for note in whole]
