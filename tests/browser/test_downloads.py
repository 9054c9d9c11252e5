"""Downloads of figures: format, plotted numbers and the parameters in the name."""

import csv
import json
import struct
from xml.etree import ElementTree

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.models.catalog import model_specs
from tests.browser.figure_tools import download

SPEC = model_specs("llama-3.1-8b")[""]


def fetch(view, kind, index=0):
    """Return the bytes and the suggested name of a download."""
    found = download(view.page.locator(".rv-picture").nth(index), kind)
    assert view.errors == []
    return found


def test_png_csv_and_json_of_a_figure_hold_what_is_plotted(visit):
    """PNG has three times the size; CSV and JSON have all digits, and JSON the spec."""
    view = visit().open("/frequencies")
    content, name = fetch(view, "png")
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (3 * 1000, 3 * 430)
    assert name == "rope-frequencies-wavelengths_llama-3.1-8b_d128_base500000_L8k_to128k_llama3x8.png"

    content, _ = fetch(view, "csv")
    rows = list(csv.reader(line for line in content.decode().splitlines() if not line.startswith("#")))
    assert rows[0] == ["pair i", "plain", "scaled"]
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_array_equal(table[:, 1], spectrum.wavelength(SPEC.plain_inv_freq))
    np.testing.assert_array_equal(table[:, 2], spectrum.wavelength(SPEC.inv_freq(SPEC.target)))

    content, _ = fetch(view, "json")
    found = json.loads(content)
    assert found["spec"]["base"] == 500_000
    assert found["spec"]["scaling"]["name"] == "llama3"
    assert len(found["data"][0]["y"]) == 64


def test_csv_of_a_heatmap_holds_its_grid(visit):
    content, _ = fetch(visit().open("/frequencies?frequencies.length=64"), "csv", index=1)
    rows = list(csv.reader(line for line in content.decode().splitlines() if not line.startswith("#")))
    assert rows[0][0] == "position"
    grid = np.array([row[1:] for row in rows[1:]], dtype=float)
    cos, _ = spectrum.table(SPEC.inv_freq(64), np.arange(64))
    np.testing.assert_allclose(grid, cos, atol=1e-6)


def test_svg_has_axis_titles_and_html_is_self_contained(visit, chromium, tmp_path):
    view = visit().open("/scaling")
    content, _ = fetch(view, "svg")
    root = ElementTree.fromstring(content)
    assert root.tag.endswith("svg")
    # Letters are outlines, so that no font is needed; their text is added as a comment.
    assert "<!-- pair i -->" in content.decode()

    content, _ = fetch(view, "html")
    path = tmp_path / "figure.html"
    path.write_bytes(content)
    page = chromium.new_context(offline=True).new_page()
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".main-svg")
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
    page.hover("#figure")
    assert page.locator('[data-title*="cloud" i], [data-title*="share" i]').count() == 0
