"""The Decay page: zoom to single distances, a click that sets the distance, uploaded vectors."""

import io

import numpy as np
from playwright.sync_api import expect

NODE = "document.querySelector('.rv-plot')"


def test_drag_over_nine_million_zooms_to_single_distances(visit):
    seen = visit().open("/decay?decay.length=10000000&decay.log=no")
    seen.page.evaluate(f"Plotly.relayout({NODE}, {{'xaxis.range': [9000000, 9000200]}})")
    seen.until(f"{NODE}.data.at(-1).x.length < 300")
    x = seen.page.evaluate(f"Array.from({NODE}.data.at(-1).x)")
    assert x[1] - x[0] == 1
    assert 8_999_999 <= x[0] <= 9_000_001


def test_a_click_on_the_curve_sets_the_distance_of_the_bars(visit):
    seen = visit().open("/decay")
    box = seen.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    seen.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    seen.page.wait_for_url("**decay.at=*")


def test_uploaded_vectors_are_drawn_and_broken_files_rejected(visit):
    seen = visit().open("/decay?decay.show=own&decay.source=file&decay.length=512&decay.log=no")
    raw = io.BytesIO()
    np.savez(raw, q=np.ones(128), k=np.ones(128))
    upload = seen.page.locator("[data-testid=stMain] input[type=file]")
    upload.set_input_files({"name": "mine.npz", "mimeType": "application/zip", "buffer": raw.getvalue()})
    seen.until(f"Math.abs({NODE}.data.at(-1).y[0] - 128) < 1e-9")
    many = io.BytesIO()
    np.savez(many, q=np.ones((40, 128)), k=np.ones((40, 128)))
    upload.set_input_files({"name": "many.npz", "mimeType": "application/zip", "buffer": many.getvalue()})
    seen.until(f"{NODE}.data.at(-1).name === 'mean over 40 tokens'")
    assert seen.page.evaluate(f"{NODE}.data.at(-1).y.length") == 40
    upload.set_input_files({"name": "cut.npz", "mimeType": "application/zip", "buffer": raw.getvalue()[:100]})
    expect(seen.page.get_by_text("Showing random vectors instead")).to_be_visible()
    assert seen.errors == []


def test_attention_temperature_is_drawn_for_a_model_that_has_it(visit):
    seen = visit(watched=True).open("/decay?model=ministral-3-3b")
    seen.look("decay/temperature")
    sentence = seen.page.locator('[data-says="decay/temperature"]')
    expect(sentence).to_contain_text("It is 1 before position 16,384 and 1.277 at position 262,143")
    assert seen.errors == []


def test_models_without_temperature_have_no_such_section(visit):
    seen = visit().open("/decay?model=llama-3.1-8b")
    expect(seen.page.get_by_text("Bases that support a context")).to_be_visible()
    assert seen.page.get_by_text("Attention temperature by position").count() == 0
    assert seen.page.locator('[data-picture="decay/temperature"]').count() == 0
