"""The Heads page under a real hand: a capture that is dropped is shown, and what is none is a sentence."""

import numpy as np
from playwright.sync_api import expect

from rope_viz.tiny_lm.capture_file import Layer, write_capture

CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "rope_theta": 100.0,
}
SAID = "document.querySelector('[data-says=\"heads/across\"]').textContent"


def test_dropped_capture_is_shown(visit, tmp_path):
    random = np.random.default_rng(0)
    q, k = random.normal(size=(2, 4, 40, 8))
    write_capture(tmp_path / "qk.safetensors", {3: Layer(q, k, heads=(0, 1, 2, 3))}, config=CONFIG, name="mine")
    seen = visit().open("/heads?model=rope-viz-reader")
    seen.until(f"{SAID}.includes('RoPE Viz tiny_lm')")
    upload = seen.page.locator("[data-testid=stMain] input[type=file]")
    content = (tmp_path / "qk.safetensors").read_bytes()
    upload.set_input_files({"name": "qk.safetensors", "mimeType": "application/octet-stream", "buffer": content})
    seen.until(f"{SAID}.startsWith('Layer 3 of mine')")
    upload.set_input_files({"name": "cut.safetensors", "mimeType": "application/octet-stream", "buffer": content[:90]})
    expect(seen.page.get_by_text("Not shown:")).to_be_visible()
    assert seen.errors == []
