"""Each download arrives, opens, and carries the plotted numbers and the parameters in its name."""

import csv
import json
import struct
from xml.etree import ElementTree

import numpy as np
import pytest

from rope_viz.configs.catalog import model_specs
from rope_viz.embedding import spectrum

SPEC = model_specs("llama-3.1-8b")[""]


@pytest.fixture
def fetch(visit):
    """fetch("png", "/frequencies") -> bytes and the suggested name."""

    def get(kind, address, index=0):
        seen = visit().open(address)
        with seen.page.expect_download(timeout=30_000) as caught:
            seen.page.locator(f"[data-format={kind}]").nth(index).click()
        assert seen.errors == []
        return caught.value.path().read_bytes(), caught.value.suggested_filename

    return get


def test_png_is_a_picture_at_three_times_the_size(fetch):
    content, name = fetch("png", "/frequencies")
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (3 * 1000, 3 * 430)
    assert name == "rope-frequencies-wavelengths_llama-3.1-8b_d128_base500000_L8192_to131072_llama38.png"


def test_svg_is_a_picture_with_the_axis_titles(fetch):
    content, _ = fetch("svg", "/scaling")
    root = ElementTree.fromstring(content)
    assert root.tag.endswith("svg")
    # Letters are outlines, so that no font is needed; what they say stands beside them.
    assert "<!-- pair i -->" in content.decode()


def test_csv_holds_the_plotted_numbers(fetch):
    content, _ = fetch("csv", "/frequencies")
    rows = list(csv.reader(line for line in content.decode().splitlines() if not line.startswith("#")))
    assert rows[0] == ["pair i", "plain", "scaled"]
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_array_equal(table[:, 1], spectrum.wavelength(SPEC.plain_inv_freq))
    np.testing.assert_array_equal(table[:, 2], spectrum.wavelength(SPEC.inv_freq(SPEC.target)))


def test_csv_of_a_heatmap_is_its_grid(fetch):
    content, _ = fetch("csv", "/frequencies?frequencies.length=64", index=1)
    rows = list(csv.reader(line for line in content.decode().splitlines() if not line.startswith("#")))
    assert rows[0][0] == "position"
    grid = np.array([row[1:] for row in rows[1:]], dtype=float)
    cos, _ = spectrum.table(SPEC.inv_freq(64), np.arange(64))
    np.testing.assert_allclose(grid, cos, atol=1e-6)


def test_json_holds_the_spec_and_the_figure(fetch):
    content, _ = fetch("json", "/frequencies")
    found = json.loads(content)
    assert found["spec"]["base"] == 500_000
    assert found["spec"]["scaling"]["name"] == "llama3"
    assert len(found["data"][0]["y"]) == 64


def test_html_stands_alone_and_cannot_upload(fetch, chromium, tmp_path):
    content, _ = fetch("html", "/scaling")
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
