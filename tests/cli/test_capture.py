"""`rope-viz capture` writes what the model rotates, and says in one sentence what it cannot do."""

import numpy as np
import pytest

from rope_viz.tiny_lm import passkey

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from rope_viz.cli.main import main  # noqa: E402
from rope_viz.studies import capture_file  # noqa: E402
from rope_viz.tiny_lm import checkpoints, numpy_model  # noqa: E402

pytestmark = pytest.mark.float32_products

FOLDER = checkpoints.FOLDER / "seed-0"
TEXT = "<s> " + " ".join(passkey.WORDS[1:])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_model_folder_and_text_give_a_capture(text, tmp_path, capsys):
    out = tmp_path / "qk.safetensors"
    assert main(["capture", str(FOLDER), "--text", str(text), "--tokens", "100", "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 2 layers, 2 heads, 100 tokens, 32 dimensions\n"
    read = capture_file.read_capture(out)
    assert (read.name, read.layers) == ("seed-0", (0, 1))
    wanted = numpy_model.queries_and_keys(checkpoints.load_tiny_lm("seed-0"), passkey.parse(TEXT)[:100])
    for number, (q, k) in enumerate(wanted):
        np.testing.assert_allclose(read.layer(number).q, q, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(read.layer(number).k, k, rtol=1e-3, atol=1e-3)


def test_capture_reports_layers_heads_and_a_short_text(text, tmp_path, capsys):
    out = tmp_path / "qk.safetensors"
    flags = ["--layers", "1", "--heads", "0-0", "--dtype", "float32"]
    assert main(["capture", str(FOLDER), "--text", str(text), "-o", str(out), *flags]) == 0
    said = capsys.readouterr()
    assert "1 layers, 1 heads, 201 tokens" in said.out
    assert "the text has only 201 tokens" in said.err
    assert capture_file.read_capture(out).layer(1).heads == (0,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "nowhere"}, "nowhere is neither a GGUF file nor a folder with a config.json or a GGUF file"),
        ({"--layers": "7"}, "the model has no layer 7"),
        ({"--heads": "9"}, "heads must be from 0 to 1, got [9]"),
        ({"--tokens": "1"}, "the text must have at least two tokens"),
        ({"--text": "no.txt"}, "No such file"),
    ],
)
def test_impossible_capture_gives_a_one_line_error(change, said, text, tmp_path, capsys):
    asked = {"model": str(FOLDER), "--text": str(text), "-o": str(tmp_path / "x")} | change
    words = [asked.pop("model"), *(word for pair in asked.items() for word in pair)]
    assert main(["capture", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize("written", ["a", "1-", "-1", "5-2", "0-99999", "1,,2", "1.5", "²"])
def test_invalid_layer_list_is_refused(written, text, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["capture", str(FOLDER), "--text", str(text), "-o", "x", f"--layers={written}"])
    assert caught.value.code == 2
    assert "--layers" in capsys.readouterr().err
