"""Everything that the screen shows is from the text files: in a language of brackets, no words are outside of them."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rope_viz.advice.lint import check
from rope_viz.models import spec_url
from rope_viz.models.identity.local_models import FOLDER_VARIABLE
from rope_viz.models.read_upload import read_upload
from rope_viz.pages import registry
from rope_viz.picture import read_address
from rope_viz.picture.choices import Pick
from rope_viz.texts import languages, use_language
from tests.configs import QWEN3_8B
from tests.example_models import example_model
from tests.texts import pseudo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MODELS = (
    *("llama-3.1-8b", "qwen3-8b", "qwen3-8b-yarn", "mistral-7b-v0.3", "gemma-3-27b-global", "phi-3.5-mini"),
    *("deepseek-v3.2", "gpt-oss-20b", "kimi-k2-thinking", "smollm2-135m"),
)
WRONG = {
    **{**QWEN3_8B, "head_dim": 96, "rope_thta": 1e6, "max_position_embeddings": 131_072},
    "rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 131_072},
}
"""A config with several mistakes."""
PICTURES = registry.pictures()


@pytest.fixture(scope="module", autouse=True)
def pseudo_language():
    with pseudo.add_pseudo_language():
        yield


def find_in_pictures(model, **given):
    """Return what pictures show outside brackets, by picture."""
    found = {}
    for picture in PICTURES:
        request = pseudo.read_model_request(picture.page, example_model(picture, model), **given)
        if words := pseudo.check_picture(picture, request):
            found[picture.address] = words
    return found


@pytest.mark.parametrize("model", MODELS)
def test_pictures_show_texts_of_the_files_alone(model):
    assert find_in_pictures(model) == {}


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3.2"])
def test_sentences_have_the_same_entries_in_every_language(model):
    other = {}
    for picture in PICTURES:
        found = []
        for language in (languages.ENGLISH, pseudo.LANGUAGE):
            query = {"model": example_model(picture, model), "lang": language}
            request = read_address.read_request(registry.page(picture.page), query)
            with use_language(language):
                shown = picture.refuses(request) or picture(picture.finished(request)).sentence
            found.append(getattr(shown, "entries", ()))
        if found[0] != found[1]:
            other[picture.address] = found
    assert other == {}


def test_pictures_of_an_own_config_show_texts_of_the_files_alone():
    own = read_upload(json.dumps(WRONG))
    found = {}
    for picture in PICTURES:
        if picture.config:
            query = {"model": "custom", "lang": pseudo.LANGUAGE}
            request = read_address.read_request(registry.page(picture.page), query, own)
            if words := pseudo.check_picture(picture, request):
                found[picture.address] = words
    assert found == {}


def test_findings_are_texts_of_the_files():
    with use_language(pseudo.LANGUAGE):
        found = check(WRONG)
    assert len(found) > 2
    assert [words for one in found if (words := pseudo.find_outside(one.message))] == []


@pytest.mark.parametrize("page", registry.ORDER)
def test_pages_show_texts_of_the_files_alone(page, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    app = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=60)
    app.query_params.update({"lang": pseudo.LANGUAGE, "model": "llama-3.1-8b"})
    if page != "home":
        app.switch_page(f"{page}.py")
    app.run()
    assert not app.exception
    assert pseudo.find_page_words(app) == {}


@pytest.mark.parametrize(
    "query",
    [
        {"model": "nothing"},
        {"base": "0"},
        {"no_key": "1"},
        {"pin": "999"},
        {"view": "a,b"},
        {"decay.show": "nothing"},
        {"decay.length": "3"},
        {"scaling": "yarn", "factor": "-1"},
    ],
    ids=str,
)
def test_errors_of_addresses_are_texts_of_the_files(query):
    with pytest.raises(ValueError, match=r".") as caught:
        read_address.read_request(registry.page("decay"), {**query, "lang": pseudo.LANGUAGE})
    page = registry.page("decay")
    options = (name for choice in page.choices if isinstance(choice, Pick) for name in choice.options)
    names = {*spec_url.KEYS, *(part for name in options for part in name.split("-"))}  # English in every language
    assert {*pseudo.find_outside(caught.value)} - names == set()
