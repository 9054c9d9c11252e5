"""A GGUF file that is dropped: the browser reads its header, and the server gets a few kilobytes."""

import base64

import pytest
from playwright.sync_api import expect

from tests.models.test_gguf_config import QWEN3, write_sparse

WORDS = {"tokenizer.ggml.tokens": [f"token {i}" for i in range(20_000)], "tokenizer.ggml.scores": [0] * 20_000}


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "qwen3-8b.gguf"
    write_sparse(path, QWEN3 | WORDS, dict.fromkeys(("token_embd.weight", "output.weight"), (151_936, 4096)), 40 << 30)
    return path


def choose(seen, path):
    seen.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(path)


def test_gguf_of_40_gib_becomes_the_model_by_its_header(visit, model_file):
    seen = visit().open("/model?extend.tab=runtimes")
    sent = []
    seen.page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
    choose(seen, model_file)
    seen.page.wait_for_url("**model=custom**")
    expect(seen.page.locator(".st-key-facts")).to_contain_text("base 1,000,000")
    expect(seen.page.locator("[data-testid=stMain]")).to_contain_text("GGUF")
    seen.settle()
    assert max(sent) < 100_000
    assert seen.errors == []


DROP = """([place, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], "small.gguf"));
  const more = { dataTransfer: data, bubbles: true, cancelable: true };
  document.querySelector(place).dispatchEvent(new DragEvent("drop", more));
}"""


def test_gguf_that_is_dragged_onto_the_field_becomes_the_model(visit, tmp_path):
    path = tmp_path / "small.gguf"
    write_sparse(path, QWEN3, {"token_embd.weight": (151_936, 4096)}, 4096)
    seen = visit().open("/model")
    place = "[data-testid=stFileUploader] section, [data-testid=stFileUploaderDropzone]"
    seen.page.locator(place).first.wait_for()
    seen.page.evaluate(DROP, [place, base64.b64encode(path.read_bytes()).decode()])
    seen.page.wait_for_url("**model=custom**")
    expect(seen.page.locator(".st-key-facts")).to_contain_text("base 1,000,000")
    assert seen.errors == []


def test_cut_off_gguf_gets_a_sentence_that_says_what_to_do(visit, model_file, tmp_path):
    short = tmp_path / "short.gguf"
    with model_file.open("rb") as file:
        short.write_bytes(file.read(5000))
    seen = visit().open("/model")
    choose(seen, short)
    expect(seen.page.locator(".st-key-rejected")).to_contain_text("download the file again")
    assert seen.errors == []
