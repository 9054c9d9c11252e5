"""Text uses the fonts of the style, and installed fonts for glyphs that those lack."""

import pytest

from rope_viz.figures.files import Style, render_sheet

OURS = 'ours <s = 4>, 100 % "ü" & θ′ − ½'


def test_latin_text_and_formulas_need_no_fallback_font():
    for font in ("sans", "serif", "mono"):
        style = Style.read({"font": font, "title": OURS, "label.a": OURS})
        assert render_sheet.find_families(style) == style.families


def test_installed_font_supplies_missing_glyphs(monkeypatch):
    known = render_sheet.read_characters
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: {"Some Kanji": "kanji.ttf"})
    monkeypatch.setattr(
        render_sheet, "read_characters", lambda file: frozenset("角度") if file == "kanji.ttf" else known(file)
    )
    for given in ({"title": "die 角度"}, {"label.YaRN": "角 é"}):
        style = Style.read(given)
        assert render_sheet.find_families(style) == (*style.families, "Some Kanji")


@pytest.mark.parametrize("given", [{"label.YaRN": "die 漢字"}, {"title": "हिन्दी"}])
def test_glyphs_without_a_font_are_named(monkeypatch, given):
    known = render_sheet.read_characters
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: {})
    with pytest.raises(ValueError, match=r"no font of this machine has the signs '(漢字|हि.*)' of a title or label"):
        render_sheet.find_families(Style.read(given))
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: {"Some": "some.ttf"})
    monkeypatch.setattr(
        render_sheet, "read_characters", lambda file: frozenset("漢") if file == "some.ttf" else known(file)
    )
    with pytest.raises(ValueError, match="has the sign 字 of"):
        render_sheet.find_families(Style.read({"label.YaRN": "漢字"}))


def test_blanks_and_joiners_need_no_font():
    for font in ("sans", "serif", "mono"):
        style = Style.read({"font": font, "label.YaRN": "s\u00a0=\u202f4, a\u200db\ufe0f"})
        assert render_sheet.find_families(style) == style.families
