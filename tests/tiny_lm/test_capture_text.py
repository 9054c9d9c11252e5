"""A GGUF model reads a user's text in its own process, and its q and k are those of the forward pass."""

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from rope_viz.pages import heads
from rope_viz.real_models.capture import capture_gguf
from rope_viz.real_models.capture_text import MOST, CaptureRun
from rope_viz.real_models.gguf_model import load_gguf
from tests.float32_products import allow_products, bound_products
from tests.tiny_lm.gguf_writer import write_small_model

pytestmark = pytest.mark.float32_products

TEXT = "in the tin 12 " * 60


def test_process_gives_the_q_and_k_of_the_first_tokens(tmp_path):
    path = tmp_path / "m.gguf"
    write_small_model(path)
    run = CaptureRun(path, TEXT)
    assert run.wait(60)
    assert (run.problem, run.fraction) == ("", 1.0)
    found, wanted = heads.decode(run.report.pack()), capture_gguf(path, TEXT, tokens=MOST)
    assert found.layers == tuple(wanted.layers) == (0, 1)
    assert found.name == "m on your text"
    loaded = load_gguf(path)
    for number, layer in wanted.layers.items():
        assert layer.q.shape[1] == MOST
        weights = loaded.layers[number]
        # The file has float16, and the process may use more threads, which add in another order.
        for part in ("q", "k"):
            matrix = getattr(weights, part)
            allowed = allow_products(bound_products(matrix, weights.before_attention), matrix.shape[1])
            same = getattr(found.layer(number), part), getattr(layer, part)
            np.testing.assert_allclose(*same, rtol=1e-3, atol=allowed)


def test_missing_file_is_a_sentence(tmp_path):
    run = CaptureRun(tmp_path / "none.gguf", TEXT)
    assert run.wait(60)
    assert "could not be read" in run.problem
    assert run.report.pack() == b""
