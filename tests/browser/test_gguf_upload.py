"""A dropped GGUF file: the browser reads its header and sends only a few kilobytes."""

import base64
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rope_viz.models.formats.gguf import read_header, summarise_header
from rope_viz.models.formats.gguf_config import config_from_gguf
from rope_viz.models.model_config import ModelConfig
from tests.gguf_files import write_gguf
from tests.models.test_gguf_config import QWEN3, write_sparse

CASES = json.loads((Path(__file__).parents[1] / "cases" / "gguf_headers.json").read_text())

TOKENIZER = {"tokenizer.ggml.tokens": [f"token {i}" for i in range(20_000)], "tokenizer.ggml.scores": [0] * 20_000}


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "qwen3-8b.gguf"
    write_sparse(
        path, QWEN3 | TOKENIZER, dict.fromkeys(("token_embd.weight", "output.weight"), (151_936, 4096)), 40 << 30
    )
    return path


def choose_file(view, path):
    view.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(path)


def test_gguf_of_40_gib_becomes_the_model_by_its_header(visit, model_file):
    view = visit().open("/model?extend.tab=runtimes")
    sent = []
    view.page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
    choose_file(view, model_file)
    view.page.wait_for_url("**model=custom**")
    expect(view.page.locator(".st-key-facts")).to_contain_text("base 1,000,000")
    expect(view.page.locator("[data-testid=stMain]")).to_contain_text("GGUF")
    view.settle()
    assert max(sent) < 100_000
    assert view.errors == []


DROP_FILE = """([place, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], "small.gguf"));
  const more = { dataTransfer: data, bubbles: true, cancelable: true };
  document.querySelector(place).dispatchEvent(new DragEvent("drop", more));
}"""


READ_HEADER = """async (bytes) => {
  const { name } = performance.getEntriesByType("resource").find(({ name }) => /\\/gguf[^/]*\\.js/.test(name));
  const { summarise } = await import(name);
  const file = new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], "small.gguf");
  return (await summarise(file)).text();
}"""


def test_gguf_that_is_dragged_onto_the_field_becomes_the_model(visit, tmp_path):
    path = tmp_path / "small.gguf"
    write_sparse(path, QWEN3, {"token_embd.weight": (151_936, 4096)}, 4096)
    view = visit().open("/model")
    place = "[data-testid=stFileUploader] section, [data-testid=stFileUploaderDropzone]"
    view.page.locator(place).first.wait_for()
    view.page.evaluate(DROP_FILE, [place, base64.b64encode(path.read_bytes()).decode()])
    view.page.wait_for_url("**model=custom**")
    expect(view.page.locator(".st-key-facts")).to_contain_text("base 1,000,000")
    assert view.errors == []


def test_truncated_gguf_says_to_download_it_again(visit, model_file, tmp_path):
    short = tmp_path / "short.gguf"
    with model_file.open("rb") as file:
        short.write_bytes(file.read(5000))
    view = visit().open("/model")
    choose_file(view, short)
    expect(view.page.locator(".st-key-rejected")).to_contain_text("download the file again")
    assert view.errors == []


@pytest.mark.parametrize("name", sorted(CASES))
def test_dropped_header_gives_the_answers_of_the_command_line(visit, tmp_path, name):
    path = write_gguf(tmp_path / f"{name}.gguf", CASES[name]["architecture"], CASES[name]["keys"])
    model = ModelConfig.read(path)
    view = visit().open("/model")
    choose_file(view, path)
    view.page.wait_for_url("**model=custom**")
    spec = model.specs[model.main_layer]
    expect(view.page.locator(".st-key-facts")).to_contain_text(f"{spec.pairs} pairs")
    expect(view.page.locator("[data-testid=stMain]")).to_contain_text("GGUF")
    view.settle()
    # From here on there is one reader of keys.
    sent = view.page.evaluate(READ_HEADER, base64.b64encode(path.read_bytes()).decode())
    assert config_from_gguf(json.loads(sent)["gguf"]) == config_from_gguf(summarise_header(read_header(path))["gguf"])
    assert view.errors == []


def test_unread_key_of_a_dropped_file_is_named(visit, tmp_path):
    case = CASES["gemma3-12b"]
    for key, place in (("rope.tomorrow", ".st-key-rejected"), ("attention.tomorrow", "[data-testid=stMain]")):
        path = write_gguf(tmp_path / "new.gguf", case["architecture"], case["keys"] | {key: 3})
        view = visit().open("/model")
        choose_file(view, path)
        expect(view.page.locator(place)).to_contain_text(f"gemma3.{key}")
        assert view.errors == []
