"""Figures as files: every format of every figure opens, names its content, and is reproducible."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rope_viz import __version__
from rope_viz.figures import theme
from rope_viz.figures.files import FORMS, Style, from_json, render, render_sheet, save
from rope_viz.figures.files.canvas import Canvas
from rope_viz.figures.files.label_placement import Places
from rope_viz.figures.table_figure import sheet as empty
from rope_viz.pages.frequencies import figures as frequencies
from tests.figures.drawn import DRAWN, LLAMA
from tests.figures.opened import COLUMN, META, SOME, SVG, png_chunks, png_pixels, ratio


@pytest.mark.parametrize("name", DRAWN)
def test_svg_of_every_figure_uses_outlines(name):
    raw = render(DRAWN[name], "svg", options=COLUMN, title=name, meta=META)
    root = ElementTree.fromstring(raw)
    assert root.tag == f"{SVG}svg"
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(85 / 25.4 * 72, abs=0.01)
    assert len(list(root.iter(f"{SVG}path"))) > 10
    # Text is drawn: no font is needed to show it.
    assert not list(root.iter(f"{SVG}text"))


@pytest.mark.parametrize("name", SOME)
def test_png_has_the_requested_size(name):
    raw = render(DRAWN[name], "png", options=COLUMN, title=name, meta=META)
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    wide, _ = struct.unpack(">II", png_chunks(raw)["IHDR"][0][:8])
    assert wide == pytest.approx(85 / 25.4 * 72, abs=1)
    assert np.ptp(png_pixels(raw)[..., :3]) > 100, "there is ink on it"


@pytest.mark.parametrize("name", SOME)
def test_pdf_embeds_its_fonts(name, tmp_path):
    raw = render(DRAWN[name], "pdf", options=COLUMN, title=name, meta=META)
    assert raw.startswith(b"%PDF")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", raw)
    assert float(box[1]) == pytest.approx(85 / 25.4 * 72, abs=0.01)
    fonts, files = raw.count(b"/FontDescriptor ") - raw.count(b"/Type /FontDescriptor"), raw.count(b"/FontFile2 ")
    assert fonts == files > 0
    assert b"/Type3" not in raw
    if shutil.which("pdffonts"):
        path = tmp_path / "figure.pdf"
        path.write_bytes(raw)
        done = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True)
        rows = done.stdout.splitlines()[2:]
        assert rows
        assert all(re.search(r"TrueType +\S+ +yes yes", row) for row in rows), done.stdout


@pytest.mark.parametrize("name", SOME)
def test_html_file_holds_the_figure(name):
    page = render(DRAWN[name], "html", title="A <b>title</b>", meta=META).decode()
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert '"showSendToCloud":false' in page
    assert "<script src=" not in page


@pytest.mark.parametrize("name", DRAWN)
def test_csv_and_json_hold_every_figure(name):
    fig = DRAWN[name]
    rows = list(csv.reader(io.StringIO(render(fig, "csv").decode())))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert any(cell for cell in rows[1])
    said = json.loads(render(fig, "json", title=name, meta=META))
    assert (said["title"], said["spec"], said["address"]) == (name, META["spec"], META["address"])
    assert len(said["data"]) == len(fig.data)


# The names of texts, the boxes that labels take, and the sheet they are on.
SIZES = [
    {"dpi": "40"},
    {"preset": "one-column", "dpi": "60"},
    {"preset": "slide", "dpi": "36"},
    {"width": "60mm", "font_size": "7pt", "legend": "ends", "dpi": "60"},
    {"preset": "one-column", "legend": "legend", "title": "yes", "font": "serif", "dpi": "60"},
]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: " ".join(size.values()))
def test_texts_are_not_cut_and_labels_do_not_overlap(size, monkeypatch):
    written, sheets = [], []
    write, make = Canvas.text, Places.__init__

    def text(self, lines, x, y, **place):
        written.append((write(self, lines, x, y, **place), lines, self))
        return written[-1][0]

    def places(self, *size):
        make(self, *size)
        sheets.append(self)

    monkeypatch.setattr(Canvas, "text", text)
    monkeypatch.setattr(Canvas, "write", lambda *_: b"")
    monkeypatch.setattr(Places, "__init__", places)
    style = Style.read(size)
    asked = list(DRAWN) if size == SIZES[1] else list(DRAWN)[SIZES.index(size) :: 5]
    for name in asked:
        written.clear()
        render_sheet.draw(DRAWN[name], "png", style, "A title that is somewhat longer than one column", {})
        for (left, top, right, bottom), lines, sheet in written:
            assert -1 <= left <= right <= sheet.width + 1, (name, lines)
            assert -1 <= top <= bottom <= sheet.height + 1, (name, lines)
        boxes = sheets[-1].boxes
        for place, one in enumerate(boxes):
            for other in boxes[:place]:
                wide = min(one[2], other[2]) - max(one[0], other[0])
                high = min(one[3], other[3]) - max(one[1], other[1])
                # A line of text is a fifth taller than its letters.
                assert wide < 1 or high < 0.2 * style.font_px, (name, one, other)


def test_line_labels_do_not_cover_the_data(monkeypatch):
    sheets = []
    make = Places.__init__

    def places(self, *size):
        make(self, *size)
        sheets.append(self)

    monkeypatch.setattr(Canvas, "write", lambda *_: b"")
    monkeypatch.setattr(Places, "__init__", places)
    for name in ("wavelengths", "ratio", "wavelength", "mean", "errors", "costs", "error", "runtimes"):
        for style in (Style(dpi=36), COLUMN):
            render_sheet.draw(DRAWN[name], "png", style, "", {})
            covered = [sheets[-1].ink_share(box) for box in sheets[-1].boxes]
            assert max(covered) < 0.12, (name, style.width)


def test_file_bytes_depend_only_on_figure_style_and_meta(tmp_path):
    """Another process, with another order of hashes and another date, makes the same files."""
    script = (
        "import hashlib, sys\n"
        "from rope_viz.models.catalog import model_specs\n"
        "from rope_viz.pages.frequencies import figures as frequencies\n"
        "from rope_viz.figures.files import FORMS, Style, render\n"
        "spec = model_specs('llama-3.1-8b')['']\n"
        "for fig in (frequencies.heatmap(spec, stop=64),):\n"
        "    for form in FORMS:\n"
        "        style = Style.read({'preset': 'one-column'})\n"
        "        print(hashlib.sha256(render(fig, form, options=style, title='θ', meta={'a': 1})).hexdigest())\n"
    )
    here = []
    for fig in (frequencies.heatmap(LLAMA, stop=64),):
        for form in FORMS:
            style = Style.read({"preset": "one-column"})
            here.append(hashlib.sha256(render(fig, form, options=style, title="θ", meta={"a": 1})).hexdigest())
    root = Path(__file__).parents[2]
    own = {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "86400", "PATH": "", "HOME": str(tmp_path)}
    env = os.environ | own
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == here, done.stderr


def test_threads_at_once_make_the_same_files():
    styles = [Style(dpi=72), Style.read({"preset": "one-column", "theme": "dark", "font": "serif", "dpi": "72"})]
    forms = ("svg", "png", "pdf")
    work = [("ratio", form, style) for style in styles for form in forms] + [
        ("dials", "svg", style) for style in styles
    ]
    alone = [render(DRAWN[name], form, options=style) for name, form, style in work]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: render(DRAWN[job[0]], job[1], options=job[2]), work))
    assert together == alone


def test_settings_of_matplotlib_neither_matter_nor_change():
    import matplotlib

    before = render(ratio(), "svg")
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "svg.fonttype": "none", "lines.linewidth": 9}):
        assert render(ratio(), "svg") == before
        assert matplotlib.rcParams["font.size"] == 30
    from matplotlib import pyplot

    assert pyplot.get_fignums() == []


def test_pdf_fonts_have_no_unused_layout_rules():
    """How letters join was known before; the option of fontTools is as it was once the file is written."""
    from fontTools import subset

    before = subset.Options().drop_tables
    raw = render(ratio(), "pdf")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL)
    fonts = [font for font in map(unpacked, streams) if font.startswith(b"\0\1\0\0")]
    assert fonts
    for font in fonts:
        tags = {font[at : at + 4] for at in range(12, 12 + 16 * struct.unpack_from(">H", font, 4)[0], 16)}
        assert tags >= {b"glyf", b"hmtx", b"loca"}
        assert not tags & {b"GSUB", b"GPOS", b"GDEF", b"kern"}
    assert subset.Options().drop_tables == before


def unpacked(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return stream


def test_svg_names_its_content():
    text = render(ratio(), "svg", title="Speed <θ>", meta=META).decode()
    assert "<title>Speed &lt;θ&gt;</title>" in text
    assert "<dc:source>https://host/rope?a=1&amp;b=2</dc:source>" in text
    assert f"RoPE Viz {__version__}" in text
    assert "500000.0" in text
    assert "dc:date" not in text


def test_png_names_its_content_and_resolution():
    chunks = png_chunks(render(ratio(), "png", options=Style(dpi=100), title="Speed θ", meta=META))
    said = dict(chunk.split(b"\0", 1) for kind in ("tEXt", "iTXt") for chunk in chunks.get(kind, []))
    assert b"https://host/rope?a=1&b=2" in said[b"Source"]
    assert said[b"Software"] == f"RoPE Viz {__version__}".encode()
    assert "Speed θ".encode() in said[b"Title"]
    assert b"500000.0" in said[b"Description"]
    assert struct.unpack(">II", chunks["pHYs"][0][:8]) == (round(100 / 0.0254),) * 2


def test_pdf_names_its_content():
    raw = render(ratio(), "pdf", title="Speed", meta=META)
    assert b"/Title (Speed)" in raw
    assert b"/Subject (https://host/rope?a=1&b=2)" in raw
    assert f"/Creator (RoPE Viz {__version__})".encode() in raw
    assert b"/CreationDate" not in raw


def test_html_names_its_content():
    page = render(ratio(), "html", title="Speed", meta=META).decode()
    assert '<meta name="rope-viz:address" content="https://host/rope?a=1&amp;b=2">' in page


def test_json_draws_the_same_figure_again():
    for name in ("ratio", "phase64", "dials"):
        fig = DRAWN[name]
        again, said = from_json(render(fig, "json", options=COLUMN, title=name, meta=META))
        style = Style.read(said["style"])
        assert style == COLUMN
        if name != "dials":  # which are arranged anew for a width, and a file has one arrangement
            assert render(again, "svg", options=style) == render(fig, "svg", options=style), name
        assert render(again, "svg") == render(fig, "svg"), name


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"data": 3}', '{"data": [{"type": "nonsense"}], "layout": {}}', "[" * 9999]
)
def test_foreign_json_raises_a_clear_error(text):
    with pytest.raises(ValueError, match=r"JSON|drawn"):
        from_json(text)


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_missing_matplotlib_error_names_the_package(form, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'rope-viz\[pictures\]'"):
        render(ratio(), form)
    assert render(ratio(), "csv")


def test_unknown_file_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be svg, png, pdf, html, csv or json"):
        render(ratio(), "jpg")
    with pytest.raises(ValueError, match=r"must end in \.svg"):
        save(ratio(), str(tmp_path / "x.jpg"), title="x")


def test_saved_file_equals_the_rendered_bytes(tmp_path):
    for form in FORMS:
        path = tmp_path / f"plot.{form.upper()}"
        save(ratio(), str(path), title="x", meta=META)
        assert path.read_bytes() == render(ratio(), form, title="x", meta=META)


def test_png_is_compressed_completely():
    chunks = png_chunks(render(ratio(), "png", options=Style(width="400px", height="320px", dpi=96)))
    wide, high = struct.unpack(">II", chunks["IHDR"][0][:8])
    assert (wide, high) == (400, 320)
    assert len(zlib.decompress(b"".join(chunks["IDAT"]))) == high * (1 + 4 * wide)


def test_headings_above_a_plot_are_over_their_values(monkeypatch):
    above = {"y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    notes = [above | {"x": at, "text": text} for at, text in ((100, "first piece"), (900, "last piece"), (5000, "out"))]
    fig = theme.figure([theme.line([0, 1000], [0, 1], "", theme.TEXT)], x={"range": [0, 1000]}, y={}, notes=notes)
    written = {}
    real = Canvas.text
    monkeypatch.setattr(
        Canvas, "text", lambda self, lines, x, y, **kw: written.update({str(lines): x}) or real(self, lines, x, y, **kw)
    )
    render(fig, "svg", options=Style.read({"width": "400px"}), title="", meta=META)
    first, last = (next(x for text, x in written.items() if each in text) for each in ("first", "last"))
    assert first < 120 < 280 < last + 40
    assert not any("out" in text for text in written)


def test_file_of_an_empty_table_names_the_reason():
    assert "no rows" in str(empty({}).layout.annotations)


def test_line_labels_have_the_same_order_on_page_and_file(monkeypatch):
    """Three lines end together, a fourth just above them; a small file has fewer pixels between them than the page."""
    values = {"first": 0.5, "second": 0.5, "third": 0.5, "fourth": 0.62}
    ends = [(1000, value, text, theme.TEXT) for text, value in values.items()]
    notes = theme.spread_labels(ends, (0, 1), log=False)
    fig = theme.figure([theme.line([0, 1000], [0, 1], "", theme.TEXT)], x={"range": [0, 1000]}, y={}, notes=notes)
    written, real = {}, Canvas.text
    monkeypatch.setattr(
        Canvas, "text", lambda self, lines, x, y, **kw: written.update({str(lines): y}) or real(self, lines, x, y, **kw)
    )
    render(fig, "svg", options=Style.read({"width": "400px", "height": "150px"}), title="", meta=META)
    heights = {name: next(y for text, y in written.items() if name in text) for name in values}
    assert sorted(heights, key=heights.get) == ["fourth", "third", "second", "first"]
    pixels = theme.MAIN_HEIGHT - 74
    on_page = {note["text"]: note["y"] * pixels + note["yshift"] for note in notes}
    assert sorted(on_page, key=on_page.get, reverse=True) == ["fourth", "third", "second", "first"]
