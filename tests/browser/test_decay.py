"""The Decay page: zoom to single distances, a click that sets the distance, uploaded vectors."""

import io

import numpy as np
from playwright.sync_api import expect

NODE = "document.querySelector('.rv-plot')"


def test_drag_over_nine_million_zooms_to_single_distances(visit):
    view = visit().open("/decay?decay.length=10000000&decay.log=no")
    view.until(f"{NODE}?.data")  # ten million distances may take longer than the page
    view.page.evaluate(f"Plotly.relayout({NODE}, {{'xaxis.range': [9000000, 9000200]}})")
    view.until(f"{NODE}.data.at(-1).x.length < 300")
    x = view.page.evaluate(f"Array.from({NODE}.data.at(-1).x)")
    assert x[1] - x[0] == 1
    assert 8_999_999 <= x[0] <= 9_000_001


def test_click_on_the_curve_sets_the_distance(visit):
    view = visit().open("/decay")
    box = view.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    view.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    view.page.wait_for_url("**decay.at=*")


def test_uploaded_vectors_are_drawn_and_broken_files_rejected(visit):
    view = visit().open("/decay?decay.show=own&decay.source=file&decay.length=512&decay.log=no")
    raw = io.BytesIO()
    np.savez(raw, q=np.ones(128), k=np.ones(128))
    upload = view.page.get_by_role("region", name="q and k").locator("input[type=file]")
    upload.set_input_files({"name": "mine.npz", "mimeType": "application/zip", "buffer": raw.getvalue()})
    view.until(f"Math.abs({NODE}.data.at(-1).y[0] - 128) < 1e-9")
    view.settle()  # a file that is put in while the page is updated is lost
    many = io.BytesIO()
    np.savez(many, q=np.ones((40, 128)), k=np.ones((40, 128)))
    upload.set_input_files({"name": "many.npz", "mimeType": "application/zip", "buffer": many.getvalue()})
    view.until(f"{NODE}.data.at(-1).name === 'mean over 40 tokens'")
    assert view.page.evaluate(f"{NODE}.data.at(-1).y.length") == 40
    view.settle()
    upload.set_input_files({"name": "cut.npz", "mimeType": "application/zip", "buffer": raw.getvalue()[:100]})
    expect(view.page.get_by_text("Showing random vectors instead")).to_be_visible()
    assert view.errors == []


def test_attention_temperature_is_drawn_for_a_model_that_has_it(visit):
    view = visit(watched=True).open("/decay?model=ministral-3-3b")
    view.scroll_to("decay/temperature")
    sentence = view.page.locator('[data-says="decay/temperature"]')
    expect(sentence).to_contain_text("It is 1 before position 16,384 and 1.277 at position 262,143")
    assert view.errors == []
