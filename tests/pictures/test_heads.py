"""The Heads page shows a capture under any scaling, and explains what it cannot show."""

import dataclasses
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rope_viz.pages import heads, registry
from rope_viz.picture import choices, read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies.capture_file import CapturedLayer, write_capture

pytestmark = pytest.mark.float32_products

PAGE = registry.page("heads")
CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "rope_theta": 100.0,
}
RANDOM = np.random.default_rng(0)
Q, K = RANDOM.normal(size=(4, 40, 8)), RANDOM.normal(size=(2, 40, 8))


@pytest.fixture
def content(tmp_path):
    """content(q) is a capture of two layers, or of those in `numbers`, as the page keeps it."""

    def make(q=Q, numbers=(1, 5)):
        layers = {n: CapturedLayer(q, K, scale=0.5, heads=(0, 1, 2, 3)) for n in numbers}
        write_capture(tmp_path / "qk.safetensors", layers, config=CONFIG, name="mine", dtype="float32")
        return choices.load_file(str(tmp_path / "qk.safetensors"))

    return make


def picture_request(content, **given):
    query = {"model": "rope-viz-reader", **{f"heads.{key}": text for key, text in given.items()}}
    resting = read_address.read_request(PAGE, query)
    held = StoredValue("here", heads.decode(content))
    return PictureRequest(resting.subject, given={**resting.given, "heads.file": held})


def test_the_map_is_the_mean_product_of_lengths_by_pair(content):
    drawn = heads.across(picture_request(content(), layer="1"))
    order = heads.looked(picture_request(content(), layer="1")).order
    q, k = ((x[..., :4] + 1j * x[..., 4:]) for x in (Q.astype(np.float32), K.astype(np.float32)))
    wanted = [0.5 * np.abs(q[head]).mean(axis=0) * np.abs(k[head // 2]).mean(axis=0) for head in order]
    np.testing.assert_allclose(drawn.fig.data[0].z, wanted, rtol=1e-5)
    assert drawn.sentence.startswith("Layer 5 of mine")


def test_the_mean_logit_is_the_mean_over_all_pairs_of_tokens(content):
    asked = picture_request(content(), head="2")
    drawn = heads.distance(asked)
    head = heads.looked(asked).order[2]
    q, k = ((x[..., :4] + 1j * x[..., 4:]) for x in (Q[head], K[head // 2]))
    turn = np.exp(1j * np.outer(np.arange(40), 100.0 ** (-np.arange(4) / 4)))
    scores = 0.5 * ((q * turn) @ (k * turn).conj().T).real
    wanted = [np.diagonal(scores, -distance).mean() for distance in range(40)]
    line = drawn.fig.data[0]
    for x, y in zip(line.x, line.y, strict=True):
        if x == int(x):
            assert y == pytest.approx(wanted[int(x)], abs=1e-5)
    assert drawn.sentence.values["head"] == head


def test_selected_method_is_drawn_with_the_captured_heads(content):
    resting = read_address.read_request(PAGE, {"model": "qwen3-8b-yarn"})
    held = StoredValue("here", heads.decode(content()))
    asked = PictureRequest(resting.subject, given={"heads.file": held})
    assert [trace.name for trace in heads.attention(asked).fig.data] == ["as captured", "YaRN"]
    same = heads.attention(picture_request(content()))
    assert same.fig.data[0].name == "as captured"


def test_nonfinite_values_are_reported(content):
    bad = Q.copy()
    bad[0, 0, 0] = np.nan
    asked = picture_request(content(bad))
    assert "q of layer 1 holds 1 values that are not finite numbers" in heads.problem(asked)
    with pytest.raises(ValueError, match="not finite"):
        heads.across(asked)


def test_heads_of_the_demo_model_are_shown_without_a_file():
    drawn = heads.across(read_address.read_request(PAGE, {"model": "llama-3.1-8b"}))
    assert "RoPE Viz tiny_lm" in drawn.sentence
    assert drawn.fig.data[0].z.shape == (2, 16)


def test_file_is_shown_before_the_text_read_on_the_page(content):
    file, live = heads.decode(content()), heads.decode(content(2 * Q, numbers=(3,)))
    resting = read_address.read_request(PAGE, {"model": "llama-3.1-8b"})
    both = {"heads.file": StoredValue("file", file), "heads.live": StoredValue("live", live)}
    for given, layers in (({"heads.live": both["heads.live"]}, (3,)), (both, (1, 5))):
        asked = PictureRequest(resting.subject, given={**resting.given, **given})
        assert heads.source(asked).layers == layers
        assert heads.across(asked).sentence.startswith(f"Layer {layers[0]} of mine")
        for picture in (heads.distance, heads.attention, heads.pairs):
            assert len(picture(asked).fig.data) > 0


@pytest.mark.parametrize(
    "raw", [b"", b"mine\0", b"mine\0" + b"\xff" * 100, b"mine\0" + b"\x08" + b"\0" * 7 + b"{}      "]
)
def test_file_that_is_no_capture_raises_a_clear_error(raw):
    with pytest.raises(ValueError, match=r"\w") as caught:
        heads.decode(b"mine\0" + raw)
    assert "\n" not in str(caught.value)


class YieldingName(str):
    """A name that lets other threads run whenever a cache looks it up."""

    def __hash__(self):
        time.sleep(0)
        return super().__hash__()


def test_threads_may_read_many_layers_at_once(content):
    held = picture_request(content(numbers=range(8)))
    capture = StoredValue(YieldingName("here"), held.given["heads.file"].value)
    requests = [
        dataclasses.replace(held, given={**held.given, "heads.file": capture, "heads.layer": layer})
        for layer in range(8)
    ]
    order = np.random.default_rng(1).integers(8, size=1000).tolist()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(heads.looked, [requests[number] for number in order]))
    finally:
        sys.setswitchinterval(interval)
    assert [each.number for each in found] == order
