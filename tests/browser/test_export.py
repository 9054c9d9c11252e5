"""Figures for a paper: the dialog, the address in it and the command line make the same files, byte for byte."""

import json
import re
import shlex
import urllib.request
import zlib
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from rope_viz.cli.main import main
from tests.browser.figure_tools import customise

# {format: (page, picture, fields of the dialog, the same as flags of the command line)}
FIGURES = {
    "svg": (
        "/scaling?model=qwen3-8b-yarn",
        "scaling/comparison",
        {"preset": "one-column", "title": "Our method", "label.YaRN": "ours, s = 4"},
        ["qwen3-8b-yarn", "--preset", "one-column", "--title", "Our method", "--label", "YaRN=ours, s = 4"],
    ),
    "pdf": (
        "/decay?model=llama-2-7b&decay.length=2048",
        "decay/curves",
        {"width": "178mm", "height": "60mm", "font": "serif", "grey": "yes", "ymin": "-0.5", "ymax": "1"},
        [
            "llama-2-7b",
            "--length",
            "2048",
            "--width",
            "178mm",
            "--height",
            "60mm",
            "--font",
            "serif",
            "--grey",
            "yes",
            "--ymin=-0.5",
            "--ymax",
            "1",
        ],
    ),
    "png": (
        "/frequencies?model=qwen3-8b",
        "frequencies/wavelengths",
        {"preset": "slide", "theme": "transparent", "legend": "legend", "xmin": "16", "xmax": "48", "yscale": "linear"},
        [
            "qwen3-8b",
            "--preset",
            "slide",
            "--theme",
            "transparent",
            "--legend",
            "legend",
            "--xmin",
            "16",
            "--xmax",
            "48",
            "--yscale",
            "linear",
        ],
    ),
}


def open_dialog(view, picture):
    """Open the export dialog of a picture and return it."""
    customise(view.scroll_to(picture))
    view.page.wait_for_selector("dialog.rv-export[data-state=shown]")
    return view.page.locator("dialog.rv-export")


def fill_fields(view, dialog, values):
    for key, value in values.items():
        field = dialog.locator(f'[name="{key}"]')
        (field.select_option if field.evaluate("node => node.tagName") == "SELECT" else field.fill)(value)
    view.page.wait_for_selector("dialog.rv-export[data-state=shown]")


@pytest.mark.parametrize("form", FIGURES)
def test_dialog_address_and_command_line_give_the_same_figure(visit, tmp_path, form):
    page, picture, values, flags = FIGURES[form]
    view = visit().open(page)
    dialog = open_dialog(view, picture)
    fill_fields(view, dialog, values)
    with view.page.expect_download() as caught:
        dialog.locator(f"[data-save={form}]").click()
    by_dialog = caught.value.path().read_bytes()
    address = dialog.locator("[name=address]").input_value()
    with urllib.request.urlopen(address.replace(".svg?", f".{form}?"), timeout=60) as answer:
        assert answer.read() == by_dialog
    assert view.errors == []
    path = tmp_path / f"figure.{form}"
    query = urlsplit(address).query
    for arguments in ([picture, *flags], [f"{picture}?{query}"], [address]):
        assert main(["figure", *arguments, "-o", str(path)]) == 0
        assert path.read_bytes() == by_dialog, arguments


def test_preset_stays_when_one_of_its_values_changes(visit):
    view = visit().open("/frequencies")
    dialog = open_dialog(view, "frequencies/wavelengths")
    fill_fields(view, dialog, {"preset": "one-column"})
    others = {key: dialog.locator(f"[name={key}]").input_value() for key in ("height", "dpi", "font_size")}
    fill_fields(view, dialog, {"width": "100mm"})
    assert dialog.locator("[name=preset]").input_value() == "one-column"
    assert {key: dialog.locator(f"[name={key}]").input_value() for key in others} == others
    assert "width=100mm" in dialog.locator("[name=address]").input_value()


def test_copied_command_draws_the_figure_of_a_dropped_config(visit, tmp_path, monkeypatch):
    """The config is dropped, the page opened by the menu, and the command copied."""
    config = {"_name_or_path": "me/mine", "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
    config |= {"max_position_embeddings": 131072, "rope_theta": 31337.0}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    view = visit(permissions=["clipboard-read", "clipboard-write"]).open("/scaling")
    view.page.locator("[data-testid=stSidebar] input[type=file]").set_input_files(tmp_path / "config.json")
    expect(view.knob("base")).to_have_value("31337")
    view.go("Frequencies")
    dialog = open_dialog(view, "frequencies/wavelengths")
    fill_fields(view, dialog, {"preset": "one-column"})
    with view.page.expect_download() as caught:
        dialog.locator("[data-save=pdf]").click()
    dialog.get_by_role("button", name="Copy command").click()
    expect(dialog.get_by_text("Copied")).to_be_visible()
    copied = view.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Save your config as config.json first.\n")
    words = shlex.split(copied, comments=True)
    assert not any("config=" in word for word in words)
    monkeypatch.chdir(tmp_path)
    assert words[0] == "rope-viz"
    assert main(words[1:]) == 0
    drawn = (tmp_path / words[words.index("-o") + 1]).read_bytes()
    assert read_page_stream(drawn) == read_page_stream(caught.value.path().read_bytes())


def read_page_stream(pdf):
    """Return the drawing of a PDF, its page stream, without the metadata."""
    return next(zlib.decompress(part) for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL))


def test_dialog_previews_at_true_size_and_names_errors(visit):
    view = visit().open("/scaling")
    dialog = open_dialog(view, "scaling/comparison")
    fill_fields(view, dialog, {"width": "96mm", "height": "60mm"})
    shown = dialog.locator(".rv-preview img").evaluate("node => [node.clientWidth, node.clientHeight]")
    assert shown == pytest.approx([96 / 25.4 * 96, 60 / 25.4 * 96], abs=1)
    dialog.locator("[name=width]").fill("5mm")
    view.page.wait_for_selector("dialog.rv-export[data-state=refused]")
    assert "width must be between" in dialog.locator("[role=status]").inner_text()
    assert dialog.locator("[data-save=pdf]").is_disabled()
    dialog.locator("[name=width]").fill("96mm")
    view.page.wait_for_selector("dialog.rv-export[data-state=shown]")
    assert dialog.locator("[data-save=pdf]").is_enabled()
    # Every field has a label, and the focus returns to the button.
    assert dialog.locator("input, select").evaluate_all("all => all.every((node) => node.labels.length)")
    view.page.keyboard.press("Escape")
    view.page.wait_for_selector("dialog.rv-export", state="detached")
    assert view.page.evaluate("document.activeElement.dataset.do") == "customise"
    again = open_dialog(view, "scaling/comparison")
    assert again.locator("[name=height]").input_value() == "60mm"


def test_exported_file_shows_the_zoomed_range(visit):
    view = visit().open("/frequencies")
    place = view.scroll_to("frequencies/wavelengths")
    place.locator(".rv-plot").press("+")
    view.settle()
    dialog = open_dialog(view, "frequencies/wavelengths")
    low, high = (float(dialog.locator(f"[name={end}]").input_value()) for end in ("xmin", "xmax"))
    assert 0 < low < high < 63
    # The y axis is logarithmic: the ends are wavelengths, not their powers of ten.
    assert float(dialog.locator("[name=ymax]").input_value()) > 100


def test_dialog_hides_a_line_and_sets_colour_and_axis_title(visit):
    view = visit().open("/decay")
    customise(view.page.locator("[data-picture='decay/curves']"))
    dialog = view.page.locator(".rv-export")
    dialog.locator("[name='hide.plain']").check()
    dialog.locator("[name='colour.Llama 3']").fill("#8e4a9e")
    dialog.locator("[name=ytitle]").fill("score")
    address = dialog.locator("#rv-export-address")
    expect(address).to_have_value(re.compile("hide.plain=yes"))
    query = parse_qs(urlsplit(address.input_value()).query)
    assert (query["colour.Llama 3"], query["ytitle"]) == (["#8e4a9e"], ["score"])
    assert "colour.plain" not in query
    view.until("document.querySelector('.rv-export').dataset.state === 'shown'")
    dialog.get_by_role("button", name="Reset").click()
    expect(address).not_to_have_value(re.compile("hide|colour|ytitle"))
    assert view.errors == []
