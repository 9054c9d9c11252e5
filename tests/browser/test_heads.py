"""The Heads page: dropped captures and measurements are shown, other files are refused."""

import numpy as np
from playwright.sync_api import expect

from rope_viz.studies.capture_file import CapturedLayer, write_capture
from tests.pictures.test_real_heads import measured_file

CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "rope_theta": 100.0,
}
SENTENCE = "document.querySelector('[data-says=\"heads/across\"]').textContent"


def test_dropped_capture_is_shown(visit, tmp_path):
    random = np.random.default_rng(0)
    q, k = random.normal(size=(2, 4, 40, 8))
    write_capture(tmp_path / "qk.safetensors", {3: CapturedLayer(q, k, heads=(0, 1, 2, 3))}, config=CONFIG, name="mine")
    view = visit().open("/heads?model=rope-viz-reader")
    view.page.get_by_role("tab", name="Your own model or text").click()
    view.page.wait_for_url("**heads.tab=own*")
    # A picture is requested when it is near the view.
    view.page.locator('[data-place="heads/across"]').scroll_into_view_if_needed()
    view.until(f"{SENTENCE}.includes('RoPE Viz tiny_lm')")
    upload = view.page.locator("[data-testid=stMain] input[type=file]").last
    content = (tmp_path / "qk.safetensors").read_bytes()
    upload.set_input_files({"name": "qk.safetensors", "mimeType": "application/octet-stream", "buffer": content})
    view.until(f"{SENTENCE}.startsWith('Layer 3 of mine')")
    upload.set_input_files({"name": "cut.safetensors", "mimeType": "application/octet-stream", "buffer": content[:90]})
    expect(view.page.get_by_text("Not shown:")).to_be_visible()
    assert view.errors == []


def test_click_and_keys_choose_a_head_on_the_map(visit):
    view = visit().open("/heads")
    chosen = "new URLSearchParams(location.search).get('heads.real')"
    node = "document.querySelector('.rv-chart .js-plotly-plot')"
    place = view.page.evaluate(f"""() => {{
        const node = {node}, {{ xaxis, yaxis }} = node._fullLayout, box = node.getBoundingClientRect();
        return [box.left + xaxis._offset + xaxis.l2p(17), box.top + yaxis._offset + yaxis.l2p(3)];
    }}""")
    view.page.mouse.move(*place)
    expect(view.page.locator(".rv-chart .hoverlayer").first).to_contain_text("17")
    view.page.mouse.click(*place)
    view.until(f"{chosen} === 'L17H3'")
    view.until("document.querySelector('[data-says=\"heads/uses\"]').textContent.startsWith('Layer 17, head 3')")
    view.settle()
    view.page.evaluate(f"{node}.focus()")
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "Enter"):
        view.page.keyboard.press(key)
    view.until(f"{chosen} === 'L1H1'")


def test_dropped_measurement_replaces_the_map(visit, tmp_path):
    measured_file(tmp_path / "m.json")
    content = (tmp_path / "m.json").read_bytes()
    view = visit().open("/heads?heads.tab=own")
    heading = "document.querySelector('[data-says=\"heads/jobs\"]').textContent"
    view.until(f"{heading}.startsWith('17 of 270 heads')")
    upload = view.page.locator("[data-testid=stMain] input[type=file]").first
    upload.set_input_files({"name": "m.json", "mimeType": "application/json", "buffer": content})
    view.until(f"{heading}.startsWith('1 of 6 heads')")
    upload.set_input_files({"name": "cut.json", "mimeType": "application/json", "buffer": content[:90]})
    expect(view.page.get_by_text("Not shown:")).to_be_visible()
    view.until(f"{heading}.startsWith('17 of 270 heads')")
    assert view.errors == []


def test_dropped_measurement_replaces_the_text_field(visit, tmp_path):
    measured_file(tmp_path / "m.json")
    view = visit().open("/recall?recall.tab=own")
    upload = view.page.locator("[data-testid=stMain] input[type=file]").first
    content = (tmp_path / "m.json").read_bytes()
    upload.set_input_files({"name": "m.json", "mimeType": "application/json", "buffer": content})
    expect(view.page.get_by_text("Remove the file to have a text read here.")).to_be_visible()
    view.page.locator('[data-place="recall/live_loss"]').scroll_into_view_if_needed()
    view.until("document.querySelector('[data-says=\"recall/live_loss\"]').textContent.includes('3.00 nats')")
    assert view.errors == []
