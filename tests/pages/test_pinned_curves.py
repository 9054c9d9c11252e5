"""Curves are pinned by a button and by the address; some cannot be pinned."""

import pytest

from rope_viz.pages import decay, frequencies

PIN = "pin.curve"


def read_texts(app):
    return " ".join(each.value for kind in ("warning", "markdown", "caption", "html") for each in app.get(kind))


def find_button(app, key):
    return next(each for each in app.button if each.key == key)


def test_the_button_pins_the_curve_that_is_shown(open_page, picture_requests):
    app = open_page("frequencies", base="20000")
    find_button(app, PIN).click().run()
    assert app.query_params["variant1"] == "model=llama-3.1-8b,base=20000"
    assert find_button(app, PIN).disabled
    request = picture_requests(app)[frequencies.wavelengths]
    assert request.variants[1].subject.spec == request.spec
    find_button(app, "unpin.1").click().run()
    assert "variant1" not in app.query_params
    assert not picture_requests(app)[frequencies.wavelengths].variants


def test_number_of_a_removed_pin_is_used_again(open_page):
    app = open_page("decay", variant1="base=1e4", variant3="base=3e4")
    find_button(app, PIN).click().run()
    assert app.query_params["variant2"] == "model=llama-3.1-8b"


def test_a_fifth_curve_cannot_be_pinned(open_page):
    app = open_page("scaling", **{f"variant{number}": f"base={number}e4" for number in range(1, 5)})
    assert find_button(app, PIN).disabled
    assert "Four curves are pinned" in read_texts(app)


def test_an_unusable_variant_is_named_and_the_others_are_shown(open_page, picture_requests):
    app = open_page("decay", variant1="base=1e4", variant2="bass=1e4")
    assert "variant2 was ignored" in read_texts(app)
    assert [*picture_requests(app)[decay.curves].variants] == [1]


def test_compared_models_of_an_older_address_are_pinned(open_page, picture_requests):
    models = ["llama-2-7b", "llama-3-8b", "qwen3-8b", "gpt-neox-20b", "phi-4"]
    app = open_page("decay", **{"decay.models": ",".join(models)})
    assert [each.subject.model for each in picture_requests(app)[decay.curves].variants.values()] == models[:4]
    assert "Not shown: phi-4" in read_texts(app)


@pytest.mark.parametrize("show", ["random", "bound", "softmax"])
def test_views_of_one_spec_have_no_pin(open_page, show):
    app = open_page("decay", variant1="base=1e4", **{"decay.show": show})
    assert not [each for each in app.button if each.key == PIN]
