"""A page's address shows the same model and numbers in another browser on another server."""

import re

from tests.configs import QWEN3_8B, yarn

OWN = {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)}


def read_page(view, path):
    """Return the sentences of the page and the values of its sliders, once the page is settled."""
    view.open(path)
    view.until("[...document.querySelectorAll('.rv-says')].some((each) => each.innerText)")
    view.settle()
    sentences = view.page.locator(".rv-says").all_inner_texts()
    recognised = view.page.locator("main").get_by_text(re.compile("^Recognised")).all_inner_texts()
    knobs = {name: view.knob(name).first.input_value() for name in ("base", "factor") if view.knob(name).count()}
    return sentences, recognised, knobs


def test_address_shows_the_same_numbers_on_another_server(visit, second_server):
    here, there = visit(), visit(second_server)
    here.open("/model")
    here.drop(OWN)
    here.page.wait_for_url("**model=custom**")
    here.settle()
    query = here.page.url.partition("?")[2]
    for page in ("model", "scaling", "frequencies"):
        tab = "&extend.tab=why" if page == "model" else ""
        mine, theirs = (read_page(view, f"/{page}?{query}{tab}") for view in (here, there))
        assert (page, theirs) == (page, mine)
        sentences, recognised, _ = mine
        if page == "model":
            assert "Qwen3 8B" in recognised[0]
            assert "Trained length: 32,768 tokens" in recognised[0]
        if page == "scaling":
            assert "factor s = 4" in sentences[0]
    assert here.errors == there.errors == []
