"""A GGUF model reads a user's text in its own process, and its q and k are those of the forward pass."""

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from rope_viz.pages import heads
from rope_viz.real_models.capture import capture_gguf
from rope_viz.real_models.capture_text import MOST, CaptureRun
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
    for number, layer in wanted.layers.items():
        assert layer.q.shape[1] == MOST
        np.testing.assert_allclose(found.layer(number).q, layer.q, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(found.layer(number).k, layer.k, rtol=1e-3, atol=1e-6)


def test_missing_file_is_a_sentence(tmp_path):
    run = CaptureRun(tmp_path / "none.gguf", TEXT)
    assert run.wait(60)
    assert "could not be read" in run.problem
    assert run.report.pack() == b""
