"""The presets of venues have the widths and font sizes that tueplots gives them, in the files as well."""

import re
import zlib

import pytest

from rope_viz.figures.files import PRESETS, Style, render
from tests.figures.drawn import DRAWN
from tests.goldens.make_venues import read_venues

VENUES = read_venues()


def test_presets_have_the_sizes_of_every_venue():
    styles = {name: Style.read({"preset": name}) for name in VENUES}
    found = {name: (style.width_px(0) / 96 * 25.4, style.font_px / 96 * 72) for name, style in styles.items()}
    assert found == {name: pytest.approx((25.4 * width, size), abs=0.01) for name, (width, size) in VENUES.items()}
    assert set(PRESETS) - set(VENUES) == {"one-column", "two-columns", "slide"}


@pytest.mark.parametrize("name", ["icml2024-half", "neurips2024", "jmlr2001"])
def test_a_file_has_the_width_and_the_font_size_of_its_venue(name):
    width, size = VENUES[name]
    pdf = render(DRAWN["ratio"], "pdf", options=Style.read({"preset": name}))
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
    assert float(box[1]) / 72 * 25.4 == pytest.approx(25.4 * width, abs=0.1)
    drawn = b"".join(
        zlib.decompress(each) for each in re.findall(rb"/FlateDecode[^>]*>>\s*stream\r?\n(.*?)endstream", pdf, re.S)
    )
    assert any(float(each) == pytest.approx(size, abs=0.01) for each in re.findall(rb"/F\S+ ([\d.]+) Tf", drawn))
