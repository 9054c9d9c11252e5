"""Text uses the fonts of the style, and installed fonts for glyphs that those lack."""

import pytest
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, fontManager

from rope_viz.figures import files, theme
from rope_viz.figures.files import Style, render_sheet
from rope_viz.pages import registry
from rope_viz.picture import export, read_address
from rope_viz.texts import use_language

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


def draw_label(text, **given):
    """Draw a figure with an annotation of the current language as a PDF."""
    fig = theme.figure([theme.line([0, 1], [0, 1], text, theme.CURRENT)], x={"title": text}, y={})
    return files.render(fig, "pdf", options=Style.read(given))


def test_own_texts_of_another_language_need_a_font(monkeypatch):
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: {})
    with use_language("zh"), pytest.raises(render_sheet.MissingFontError, match="install fonts-noto-cjk"):
        draw_label("距离")
    assert draw_label("距离").startswith(b"%PDF"), "in English only the style's own labels are checked"


def test_picture_without_a_font_is_in_english_with_a_line_below(monkeypatch):
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: {})
    picture = registry.picture("decay", "curves")
    request = read_address.read_request(registry.page("decay"), {"lang": "zh"})
    english = read_address.read_request(registry.page("decay"), {})
    mark = "In English, because no font here has Chinese characters: install fonts-noto-cjk"
    assert export.render(picture, request, "svg") == export.render(picture, english, "svg", Style(mark=mark))


def test_a_font_that_is_no_longer_installed_is_not_used(monkeypatch, tmp_path):
    left = next(entry for entry in fontManager.ttflist if entry.name == "DejaVu Sans")
    gone = FontEntry(fname=str(tmp_path / "gone.ttf"), name=left.name)
    monkeypatch.setattr(fontManager, "ttflist", [left, gone])
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    assert render_sheet.find_font_files() == {left.name: left.fname}


def test_font_of_the_language_is_preferred(monkeypatch):
    names = {"Some Kanji": "a.ttf", "Noto Sans CJK JP": "b.ttf", "Noto Sans CJK SC": "b.ttf"}
    known = render_sheet.read_characters
    monkeypatch.setattr(render_sheet, "find_font_files", lambda: names)
    monkeypatch.setattr(
        render_sheet, "read_characters", lambda file: frozenset("距离") if file in names.values() else known(file)
    )
    with use_language("zh"):
        assert render_sheet.find_families(Style(), "距离")[-1] == "Noto Sans CJK SC"


def test_pdf_with_chinese_labels_is_small():
    for name in ("decay/curves", "attention/maps"):
        picture = registry.picture(*name.split("/"))
        request = read_address.read_request(registry.page(picture.page), {"lang": "zh"})
        assert len(export.render(picture, request, "pdf")) < 300_000
