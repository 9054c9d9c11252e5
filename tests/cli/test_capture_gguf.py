"""`rope-viz capture` reads a GGUF file with NumPy and tokenizers alone."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from rope_viz.cli.main import main
from rope_viz.probe.write_gguf import reorder_rows
from rope_viz.real_models.gguf_model import load_gguf
from rope_viz.studies.capture_file import read_capture
from rope_viz.tiny_lm import numpy_model
from tests.float32_products import assert_products_close, bound_products
from tests.tiny_lm.gguf_writer import vocabulary, write_small_model

pytestmark = pytest.mark.float32_products

WITHOUT = """
import sys
for name in ("torch", "transformers", "gguf"):
    sys.modules[name] = None
from rope_viz.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def model(tmp_path):
    """A random Llama with a small vocabulary, in its folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    write_small_model(folder / "small.gguf")
    return folder


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the thin 12 in the a")
    return path


def test_a_file_is_captured_without_torch_and_transformers(model, text, tmp_path):
    words = [
        "capture",
        str(model / "small.gguf"),
        "--text",
        str(text),
        "--tokens",
        "9",
        "-o",
        "x",
        "--dtype",
        "float32",
    ]
    command = [sys.executable, "-c", WITHOUT, *words, "--dtype", "float32"]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": root}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "x: 2 layers, 4 heads, 9 tokens, 6 dimensions\n"), done.stderr
    read = read_capture(tmp_path / "x")
    assert (read.name, read.layers, read.spec(0).pairs) == ("small", (0, 1), 3)
    loaded = load_gguf(model / "small.gguf")
    ids = [loaded_id(word) for word in ("the", "Ġ", "th", "in", "Ġ", "1", "2", "Ġ", "in")]
    for number, (q, k) in enumerate(numpy_model.queries_and_keys(loaded, ids)):
        layer = loaded.layers[number]
        width = layer.q.shape[1]
        assert_products_close(read.layer(number).q, q, bound_products(layer.q, layer.before_attention), width)
        assert_products_close(read.layer(number).k, k, bound_products(layer.k, layer.before_attention), width)
        assert read.layer(number).scale == pytest.approx(6**-0.5)


def loaded_id(word):
    return vocabulary()["tokenizer.ggml.tokens"].index(word)


def test_a_folder_with_one_file_and_chosen_heads_works(model, text, tmp_path, capsys):
    words = ["capture", str(model), "--text", str(text), "-o", str(tmp_path / "x"), "--layers", "1", "--heads", "3,0"]
    assert main(words) == 0
    layer = read_capture(tmp_path / "x").layer(1)
    assert (layer.heads, layer.q.shape[0], layer.k.shape[0]) == ((3, 0), 2, 2)
    assert "the text has only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--layers", "7"], "layers must be from 0 to 1, got [7]"),
        (["--heads", "4"], "heads must be from 0 to 3, got [4]"),
        (["--tokens", "1"], "the text must have at least two tokens"),
        (["--device", "cuda"], "a GGUF file runs on the CPU only"),
    ],
)
def test_impossible_choices_give_one_line(change, said, model, text, tmp_path, capsys):
    assert main(["capture", str(model), "--text", str(text), "-o", str(tmp_path / "x"), *change]) == 2
    assert said in capsys.readouterr().err


def test_several_files_in_a_folder_must_be_named(model, text, tmp_path, capsys):
    (model / "other.gguf").write_bytes(b"GGUF")
    assert main(["capture", str(model), "--text", str(text), "-o", str(tmp_path / "x")]) == 2
    assert "has 2 GGUF files: name one of them, such as other.gguf" in capsys.readouterr().err


def test_rows_of_q_return_to_halves(model):
    loaded = load_gguf(model / "small.gguf")
    from rope_viz.models.formats.gguf import read_header
    from rope_viz.real_models.gguf_model import read_tensor

    stored = read_tensor(read_header(model / "small.gguf"), "blk.0.attn_q.weight")
    np.testing.assert_array_equal(reorder_rows(loaded.layers[0].q, 4), stored)
