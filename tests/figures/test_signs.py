"""Words of an author are drawn with the fonts of the style, and with others of the machine where those lack a sign."""

from rope_viz.figures.files import Style, signs

OURS = 'ours <s = 4>, 100 % "ü" & θ′ − ½'


def test_what_an_author_writes_in_latin_and_in_formulas_needs_no_other_font():
    for font in ("sans", "serif", "mono"):
        style = Style.read({"font": font, "title": OURS, "label.a": OURS})
        assert signs.families(style) == style.families


def test_a_font_of_the_machine_is_taken_for_what_the_usual_ones_lack(monkeypatch):
    known = signs.signs
    monkeypatch.setattr(signs, "installed", lambda: {"Some Kanji": "kanji.ttf"})
    monkeypatch.setattr(signs, "signs", lambda file: frozenset("角度") if file == "kanji.ttf" else known(file))
    for given in ({"title": "die 角度"}, {"label.YaRN": "角 é"}):
        style = Style.read(given)
        assert signs.families(style) == (*style.families, "Some Kanji")
