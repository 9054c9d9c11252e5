"""The Scaling page: maps of the methods that change distances instead of frequencies."""

from playwright.sync_api import expect


def test_distance_maps_are_drawn_beyond_the_trained_length(visit):
    view = visit(watched=True).open("/scaling?model=qwen3-8b-yarn")
    view.scroll_to("scaling/maps")
    sentence = view.page.locator('[data-says="scaling/maps"]')
    expect(sentence).to_contain_text("each chunk of 20,480 tokens, and never gives more than 24,576")
    assert view.errors == []
