"""On every page, sources are footnotes and code blocks name their language."""

import ast
import json
import re
from pathlib import Path

import pytest

from rope_viz.advice.plan.runtime_instructions import NAMES
from rope_viz.figures.words import FOOTNOTE, footnote, plain_with_footnote, spell_out_footnotes
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from rope_viz.picture.outputs import Table
from rope_viz.picture.wire_format import cells, columns, markdown_to_html, strip_markup
from tests.configs import LONGROPE, QWEN3_8B

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OWN_CONFIGS = [json.loads(path.read_text()) for path in sorted((ROOT / "tests/cases/extend").glob("*.json"))]
OWN_CONFIGS += [{**QWEN3_8B, "max_position_embeddings": 131_072}, {**QWEN3_8B, "model_type": "mine"}, LONGROPE]
FEW_MODELS = ["llama-3.1-8b", "qwen3-8b", "kimi-k2.5", "phi-3.5-mini", "mistral-7b-v0.1", "qwen3.5-9b"]

# Files of repositories, and repositories of the owners in the sources of the catalog and the rules.
FILE = r"[\w.-]*/[\w./-]*\.(?:py|jsonc?|cpp|h|cuh?|toml|md|ya?ml|sh)\b|\b\w+\.(?:py|cpp|sh|yml)\b(?<!llama\.cpp)"
OWNERS = {found for one in catalog().values() for found in re.findall(r"(?<![\w./-])([\w-]+)/[\w.-]+@", one.source)}
OWNERS |= {"huggingface", "vllm-project", "sgl-project", "ggml-org", "ml-explore", "NVIDIA", "QwenLM", "tenstorrent"}
PATH = re.compile(rf"{FILE}|\b(?:{'|'.join(sorted(OWNERS))})/[\w.-]+")
# Parts that are no sentence: code, addresses of links, and footnotes.
NO_SENTENCE = re.compile(rf"{FOOTNOTE.pattern}|`[^`]*`|(?<=\])\([^)]*\)|<style.*?</style>|<[^>]*>", re.DOTALL)


def list_texts(app):
    """Yield (kind, text) of all texts on the page, without the sidebar's list of sources."""
    listed = {id(one) for part in app.sidebar.expander if part.label == "Source" for one in part.get("caption")}
    for kind in ("title", "header", "subheader", "markdown", "html", "caption", "info", "warning", "success", "error"):
        for one in app.get(kind):
            if id(one) not in listed:
                yield kind, one.value


def list_picture_texts(picture_requests, app):
    """Yield the sentence of each picture and the cells of its table, without the column of sources."""
    for picture, request in picture_requests(app).items():
        drawn = picture(request)
        yield picture.address, drawn.sentence
        if isinstance(drawn, Table):
            for name, values in columns(drawn, footnotes=True).items():
                if name != "source":
                    yield picture.address, "\n".join(map(str, values))


def find_paths(texts):
    return {
        (where, found) for where, text in texts for found in PATH.findall(NO_SENTENCE.sub("", remove_escapes(text)))
    }


def remove_escapes(markdown):
    """Remove the escapes of Markdown, except those of brackets, which footnotes use."""
    return re.sub(r"\\(?![\[\]])(.)", r"\1", markdown).replace("\u2060", "")


@pytest.fixture
def open_with_config(open_page):
    """open_with_config(page, config) opens a page and pastes a config."""

    def run(page, config):
        app = open_page(page)
        next(one for one in app.text_area if one.key.startswith("upload.text")).set_value(json.dumps(config))
        next(one for one in app.button if one.label == "Use this config").click()
        return app.run()

    return run


@pytest.mark.parametrize("page", ["extend", "runtimes"])
def test_no_sentence_names_a_file_for_any_model(open_page, follow, picture_requests, page):
    app = open_page(page)
    found = {}
    for model in catalog():
        follow(app, model=model, **{"extend.for": ",".join(NAMES)})
        if paths := find_paths([*list_texts(app), *list_picture_texts(picture_requests, app)]):
            found[model] = paths
    assert found == {}


@pytest.mark.parametrize("page", ["extend", "runtimes"])
def test_no_sentence_names_a_file_for_own_configs(open_with_config, picture_requests, page):
    assert len(OWN_CONFIGS) >= 15
    for config in OWN_CONFIGS:
        app = open_with_config(page, config)
        assert app.query_params["model"] == "custom"
        assert find_paths([*list_texts(app), *list_picture_texts(picture_requests, app)]) == set(), config


@pytest.mark.parametrize("page", registry.PAGES)
def test_no_sentence_of_a_page_names_a_file(open_page, follow, picture_requests, page):
    app = open_page(page)
    for model in FEW_MODELS:
        follow(app, model=model)
        assert find_paths([*list_texts(app), *list_picture_texts(picture_requests, app)]) == set(), model


@pytest.mark.parametrize("page", registry.PAGES)
def test_code_has_the_colours_of_its_language(open_page, page):
    app = open_page(page, **{"extend.for": ",".join(NAMES)})
    for block in app.code:
        if block.language == "python":
            ast.parse(block.value)
        elif block.language == "json":
            json.loads(block.value)
        else:
            assert block.language in ("bash", "diff", "markdown"), block.value


def test_a_footnote_is_in_brackets_in_plain_text():
    text = f"As documented.{footnote('a_b [c] https://example.org/d*')}"
    assert strip_markup(text) == "As documented. (a_b [c] https://example.org/d*)"
    assert markdown_to_html(text) == "As documented. (a_b [c] https://example.org/d*)"
    assert markdown_to_html(text, footnotes=True) == (
        'As documented.<a href="#source">a_b [c] https://example.org/d*</a>'
    )
    assert "(" in spell_out_footnotes(text)
    table = Table([{"why": text}], "title", words=True)
    assert cells(table) == {"why": ["As documented. (a_b [c] https://example.org/d*)"]}
    assert cells(table, footnotes=True) == {"why": [text]}
    assert plain_with_footnote("Known (a_b).", "a_b") == f"Known{footnote('a_b')}."
