"""Pages whose link or pasted config holds a letter that no text can hold: no error, also in later runs."""

import json
import random

import pytest

from rope_viz.texts.outside_text import HIDDEN
from tests.configs import QWEN3_8B
from tests.hostile_text import LETTERS, NO_TEXT, make_config, write_link

PAGES = ("model", "scaling", "decay", "home", "runtimes")
BAD = "\ud800"
PASTED = {
    "model_type": QWEN3_8B | {"model_type": BAD},
    "architectures": QWEN3_8B | {"architectures": [BAD]},
    "key": QWEN3_8B | {BAD: 1, "rope\0x": {BAD: BAD}},
    "dtype": QWEN3_8B | {"torch_dtype": BAD, "dtype": BAD},
    "quant_method": QWEN3_8B | {"quantization_config": {"quant_method": BAD}},
    "class": {"_class_name": BAD},
    "gguf": {"gguf": {"keys": {"general.architecture": BAD}}},
    "name": QWEN3_8B | {"_name_or_path": f"org/{BAD}"},
    "rope type": QWEN3_8B | {"rope_scaling": {"rope_type": BAD, "factor": 2.0}},
    "layer type": QWEN3_8B | {"rope_parameters": {BAD: {"rope_type": "default", "rope_theta": 1e4}}},
}


def find_faults(app):
    """Return the exceptions of a page, and the texts that it shows with a character that nothing shows."""
    texts = [item.value for kind in ("html", "markdown", "warning", "caption", "title") for item in app.get(kind)]
    texts += [option for box in app.selectbox for option in box.options]
    return [each.message for each in app.exception] + [text[:300] for text in texts if HIDDEN.search(text)]


def paste(app, config):
    """Paste a config into the sidebar's field, as a person does."""
    text = config if isinstance(config, str) else json.dumps(config)
    field = next(each for each in app.text_area if each.key.startswith("upload.text."))
    field.set_value(text)
    next(each for each in app.button if each.label == "Use this config").click()
    return app.run()


@pytest.mark.parametrize("page", ["model", "scaling", pytest.param("decay", marks=pytest.mark.slow)])
def test_a_link_with_a_lone_surrogate_opens(open_page, page):
    app = open_page(page, is_valid=True, model="custom", config=write_link({"_class_name": BAD}))
    assert find_faults(app) == []
    assert find_faults(app.run()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", PASTED)
def test_a_pasted_config_with_a_lone_surrogate_breaks_no_page(open_page, page, name):
    if page != "home":  # which has no field for a config
        app = paste(open_page(page), PASTED[name])
        assert find_faults(app) == []
        for _ in range(2):
            assert find_faults(app.run()) == []
    link = open_page(page, model="custom", config=write_link(PASTED[name]))
    assert find_faults(link) == []


@pytest.mark.parametrize("letter", [BAD, "\0", "\x1b[31m", "\u202e"])
def test_a_pasted_config_with_a_bad_letter_is_used(open_page, letter):
    app = paste(open_page("model"), QWEN3_8B | {"model_type": f"qwen3{letter}", letter: letter})
    assert app.query_params["model"] == "custom"
    assert find_faults(app) == []
    assert find_faults(app.run()) == []


@pytest.mark.parametrize("text", ["{\0", '{"a": "\\ud800', "\x1b[31m", "{'a': \u202e}", '{"a": 1,\r\n "\x7f": \u202e}'])
def test_a_pasted_text_that_is_no_config_is_refused_with_a_card(open_page, text):
    assert find_faults(paste(open_page("scaling"), text)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_configs_break_no_page(open_page, seed):
    chance = random.Random(f"page {seed}")
    page = chance.choice([name for name in PAGES if name != "home"])
    app = paste(open_page(page), make_config(chance))
    assert find_faults(app) == []
    assert find_faults(app.run()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_hostile_values_in_an_address_break_no_page(open_page, page):
    app = open_page(page)
    for number, letter in enumerate((*NO_TEXT, *LETTERS)):
        key = ("base", "model", "layer", "pin", "view", "vs1", "lang", "present", "decay.show")[number % 9]
        app.query_params.clear()
        app.query_params.update({key: f"x{letter}".encode("utf-8", "replace").decode()})
        assert find_faults(app.run()) == []
