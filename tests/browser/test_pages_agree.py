"""A page's address shows the same model and numbers in another browser on another server."""

import re

import pytest

from tests.configs import QWEN3_8B, yarn

OWN = {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)}
# A config or the name of a model, with its known name, trained length and factor.
CASES = {
    "own Qwen3 with YaRN": (OWN, "Qwen3 8B", "32,768", "4"),
    "DeepSeek-V3": ("deepseek-v3", "DeepSeek-V3", "4,096", "40"),
}


def read_page(view, path):
    """Return the sentences of the page and the values of its sliders, once the page is settled."""
    view.open(path)
    view.until("[...document.querySelectorAll('.rv-says')].some((each) => each.innerText)")
    view.settle()
    sentences = view.page.locator(".rv-says").all_inner_texts()
    recognised = view.page.locator("main").get_by_text(re.compile("^Recognised")).all_inner_texts()
    knobs = {name: view.knob(name).first.input_value() for name in ("base", "factor") if view.knob(name).count()}
    return sentences, recognised, knobs


@pytest.mark.parametrize("name", CASES)
def test_address_shows_the_same_numbers_on_another_server(visit, second_server, name):
    config, model, trained, factor = CASES[name]
    here, there = visit(), visit(second_server)
    if isinstance(config, str):
        here.open(f"/model?model={config}")
    else:
        here.open("/model")
        here.drop(config)
        here.page.wait_for_url("**model=custom**")
        here.settle()
    query = here.page.url.partition("?")[2]
    for page in ("model", "scaling", "frequencies"):
        tab = "&extend.tab=why" if page == "model" else ""
        mine, theirs = (read_page(view, f"/{page}?{query}{tab}") for view in (here, there))
        assert (page, theirs) == (page, mine)
        sentences, recognised, _ = mine
        if page == "model":
            assert model in recognised[0]
            assert (
                f"Trained length: {trained} tokens" in recognised[0] or f"{trained} tokens are assumed" in recognised[0]
            )
        if page == "scaling":
            assert f"factor s = {factor}" in sentences[0]
    assert here.errors == there.errors == []
