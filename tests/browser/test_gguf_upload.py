"""A dropped GGUF file: the browser reads its header and sends only a few kilobytes."""

import base64

import pytest
from playwright.sync_api import expect

from tests.models.test_gguf_config import QWEN3, write_sparse

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
