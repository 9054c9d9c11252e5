"""Figures for a paper: the dialog, the address in it and the command line make the same files, byte for byte."""

import json
import re
import shlex
import urllib.request
import zlib
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from rope_viz.cli.main import main

# Each is a page, a picture, what an author writes into the dialog, and the same as flags of the command line.
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


def dialog(seen, picture):
    """The open dialog of a picture."""
    seen.look(picture).locator("[data-do=export]").click()
    seen.page.wait_for_selector("dialog.rv-export[data-state=shown]")
    return seen.page.locator("dialog.rv-export")


def write(seen, found, given):
    for key, value in given.items():
        field = found.locator(f'[name="{key}"]')
        (field.select_option if field.evaluate("node => node.tagName") == "SELECT" else field.fill)(value)
    seen.page.wait_for_selector("dialog.rv-export[data-state=shown]")


@pytest.mark.parametrize("form", FIGURES)
def test_dialog_address_and_command_line_give_the_same_figure(visit, tmp_path, form):
    page, picture, given, flags = FIGURES[form]
    seen = visit().open(page)
    found = dialog(seen, picture)
    write(seen, found, given)
    with seen.page.expect_download() as caught:
        found.locator(f"[data-save={form}]").click()
    by_dialog = caught.value.path().read_bytes()
    address = found.locator("[name=address]").input_value()
    with urllib.request.urlopen(address.replace(".svg?", f".{form}?"), timeout=60) as answer:
        assert answer.read() == by_dialog
    assert seen.errors == []
    path = tmp_path / f"figure.{form}"
    query = urlsplit(address).query
    for arguments in ([picture, *flags], [f"{picture}?{query}"], [address]):
        assert main(["figure", *arguments, "-o", str(path)]) == 0
        assert path.read_bytes() == by_dialog, arguments


def test_preset_stays_when_one_of_its_values_changes(visit):
    seen = visit().open("/frequencies")
    found = dialog(seen, "frequencies/wavelengths")
    write(seen, found, {"preset": "one-column"})
    others = {key: found.locator(f"[name={key}]").input_value() for key in ("height", "dpi", "font_size")}
    write(seen, found, {"width": "100mm"})
    assert found.locator("[name=preset]").input_value() == "one-column"
    assert {key: found.locator(f"[name={key}]").input_value() for key in others} == others
    assert "width=100mm" in found.locator("[name=address]").input_value()


def test_copied_command_draws_the_figure_of_a_dropped_config(visit, tmp_path, monkeypatch):
    """As an author does it: the file dropped, the page reached by the menu, the command copied."""
    config = {"_name_or_path": "me/mine", "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
    config |= {"max_position_embeddings": 131072, "rope_theta": 31337.0}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    seen = visit(permissions=["clipboard-read", "clipboard-write"]).open("/")
    seen.page.locator("input[type=file]").set_input_files(tmp_path / "config.json")
    expect(seen.knob("base")).to_have_value("31337")
    seen.go("Frequencies")
    found = dialog(seen, "frequencies/wavelengths")
    write(seen, found, {"preset": "one-column"})
    with seen.page.expect_download() as caught:
        found.locator("[data-save=pdf]").click()
    found.get_by_role("button", name="Copy command").click()
    expect(found.get_by_text("Copied")).to_be_visible()
    copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# Save your config as config.json first.\n")
    words = shlex.split(copied, comments=True)
    assert not any("config=" in word for word in words)
    monkeypatch.chdir(tmp_path)
    assert words[0] == "rope-viz"
    assert main(words[1:]) == 0
    drawn = (tmp_path / words[words.index("-o") + 1]).read_bytes()
    assert numbers(drawn) == numbers(caught.value.path().read_bytes())


def numbers(pdf):
    """What is drawn: the page's own stream, without what the file says of where it came from."""
    return next(zlib.decompress(part) for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL))


def test_dialog_previews_at_true_size_and_names_errors(visit):
    seen = visit().open("/scaling")
    found = dialog(seen, "scaling/comparison")
    write(seen, found, {"width": "96mm", "height": "60mm"})
    shown = found.locator(".rv-preview img").evaluate("node => [node.clientWidth, node.clientHeight]")
    assert shown == pytest.approx([96 / 25.4 * 96, 60 / 25.4 * 96], abs=1)
    found.locator("[name=width]").fill("5mm")
    seen.page.wait_for_selector("dialog.rv-export[data-state=refused]")
    assert "width must be between" in found.locator("[role=status]").inner_text()
    assert found.locator("[data-save=pdf]").is_disabled()
    found.locator("[name=width]").fill("96mm")
    seen.page.wait_for_selector("dialog.rv-export[data-state=shown]")
    assert found.locator("[data-save=pdf]").is_enabled()
    # Every field has a name that a screen reader says, and the keyboard comes back to the button.
    assert found.locator("input, select").evaluate_all("all => all.every((node) => node.labels.length)")
    seen.page.keyboard.press("Escape")
    seen.page.wait_for_selector("dialog.rv-export", state="detached")
    assert seen.page.evaluate("document.activeElement.dataset.do") == "export"
    again = dialog(seen, "scaling/comparison")
    assert again.locator("[name=height]").input_value() == "60mm"


def test_exported_file_shows_the_zoomed_range(visit):
    seen = visit().open("/frequencies")
    place = seen.look("frequencies/wavelengths")
    place.locator("[data-zoom=in]").click()
    seen.settle()
    found = dialog(seen, "frequencies/wavelengths")
    low, high = (float(found.locator(f"[name={end}]").input_value()) for end in ("xmin", "xmax"))
    assert 0 < low < high < 63
    # The y axis is logarithmic: the ends are wavelengths, not their powers of ten.
    assert float(found.locator("[name=ymax]").input_value()) > 100
