"""Figures for a paper: the dialog, the address in it and the command line make the same files, byte for byte."""

import urllib.request
from urllib.parse import urlsplit

import pytest

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
def test_an_authors_figure_is_the_same_by_dialog_address_and_command_line(visit, tmp_path, form):
    page, picture, given, flags = FIGURES[form]
    seen = visit().open(page)
    found = dialog(seen, picture)
    write(seen, found, given)
    with seen.page.expect_download(timeout=30_000) as caught:
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


def test_the_dialog_previews_at_true_size_says_what_cannot_be_and_is_left_by_a_key(visit):
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


def test_the_part_that_was_zoomed_to_is_the_part_in_the_file(visit):
    seen = visit().open("/frequencies")
    place = seen.look("frequencies/wavelengths")
    place.locator("[data-zoom=in]").click()
    seen.settle()
    found = dialog(seen, "frequencies/wavelengths")
    low, high = (float(found.locator(f"[name={end}]").input_value()) for end in ("xmin", "xmax"))
    assert 0 < low < high < 63
    # The y axis is logarithmic: the ends are wavelengths, not their powers of ten.
    assert float(found.locator("[name=ymax]").input_value()) > 100
