"""A style from parameters, and what it refuses."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rope_viz.figures.files import PARAMETERS, PRESETS, Style, is_key
from rope_viz.figures.files.style import LEGENDS, THEMES


def test_default_style_is_the_look_of_the_page():
    style = Style.read({})
    assert style == Style()
    assert style.query() == {}
    assert (style.scale, style.width_px(1000), style.height_px(430)) == (1.0, 1000, 430)


def test_lengths_have_units():
    style = Style.read({"width": "85 mm", "height": "6CM", "font_size": "9pt"})
    assert style.width_px(0) == pytest.approx(85 * 96 / 25.4)
    assert style.height_px(0) == pytest.approx(60 * 96 / 25.4)
    assert style.font_px == pytest.approx(12)
    assert (style.width, style.height) == ("85mm", "6cm")
    assert Style.read({"width": "800"}) == Style(width="800px")


def test_explicit_values_override_the_preset():
    for name, sets in PRESETS.items():
        assert Style.read({"preset": name}) == Style.read(sets)
    mine = Style.read({"preset": "one-column", "width": "90mm"})
    assert (mine.width, mine.font_size) == ("90mm", "8pt")


def test_numbers_are_written_as_people_write_them():
    style = Style.read({"xmin": "-0.5", "xmax": "128k", "ymin": "−1e-8", "ymax": " "})
    assert (style.xmin, style.xmax, style.ymin, style.ymax) == (-0.5, 131_072, -1e-8, None)


def test_labels_are_set_by_line():
    style = Style.read({"label.YaRN": "Ours", "label.plain, really": "a=b"})
    assert style.labels == (("YaRN", "Ours"), ("plain, really", "a=b"))


def test_colours_and_hidden_lines_are_set_by_line():
    style = Style.read({"colour.YaRN": "#0b62c4", "hide.plain": "yes", "hide.Linear": "no"})
    assert (style.colours, style.hidden) == ((("YaRN", "#0B62C4"),), (("plain", "yes"),))
    assert style.query() == {"colour.YaRN": "#0B62C4", "hide.plain": "yes"}
    with pytest.raises(ValueError, match="colour of 'YaRN' must be a colour like #0B62C4"):
        Style.read({"colour.YaRN": "blue"})


def test_an_axis_title_is_the_figures_own_unless_set():
    assert Style.read({"xtitle": "", "ytitle": "yes"}) == Style()
    assert Style.read({"xtitle": "no", "ytitle": "score"}).query() == {"xtitle": "no", "ytitle": "score"}


@pytest.mark.parametrize("words", ["s\u00a0=\u00a04", "s\u202f=\u202f4", "👩\u200d💻", "x\u2009y"])
def test_blanks_that_do_not_break_and_joined_signs_are_text(words):
    style = Style.read({"title": words, "label.YaRN": words})
    assert (style.title, style.labels) == (words, (("YaRN", words),))


def test_other_parameters_of_an_address_are_left_alone():
    assert Style.read({"model": "qwen3-8b", "base": "77000", "decay.length": "64"}) == Style()
    assert not is_key("model")
    assert is_key("label.x")
    assert is_key("colour.x")
    assert is_key("hide.x")
    assert all(is_key(name) for name in PARAMETERS)


def test_the_order_of_parameters_makes_no_difference():
    given = {"width": "85mm", "label.b": "2", "label.a": "1", "theme": "dark"}
    assert Style.read(given) == Style.read(dict(reversed(given.items())))
    assert list(Style.read(given).query()) == list(Style.read(dict(reversed(given.items()))).query())


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "width": st.builds("{}mm".format, st.integers(40, 900)),
            "height": st.builds("{}px".format, st.integers(60, 2000)),
            "font": st.sampled_from(["sans", "serif", "mono", "Serif"]),
            "font_size": st.builds("{}pt".format, st.integers(6, 30)),
            "theme": st.sampled_from(THEMES),
            "grey": st.sampled_from(["yes", "no", "on", "off"]),
            "title": st.sampled_from(["yes", "no"]),
            "legend": st.sampled_from(list(LEGENDS)),
            "xmin": st.floats(-1e9, -1, allow_subnormal=False).map(repr),
            "ymax": st.floats(1e-6, 1e9).map(repr),
            "xscale": st.sampled_from(["", "linear"]),
            "dpi": st.integers(36, 1200).map(str),
            "label.plain": st.text("abc =&|", min_size=1, max_size=20).filter(str.strip),
        },
    )
)
def test_style_survives_its_own_query(params):
    style = Style.read(params)
    assert Style.read(style.query()) == style


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"width": "85furlongs"}, "width must be a length like 85mm"),
        ({"width": "1mm"}, "width must be between"),
        ({"width": "-85mm"}, "width must be a length"),
        ({"width": "٨٥mm"}, "width must be a length"),
        ({"height": "1e9"}, "height must be a length"),
        ({"font_size": "200pt"}, "font_size must be between 3.75pt and 54pt"),
        ({"font": "No Such Font"}, "no font 'No Such Font' is installed"),
        ({"font": "x; url(http://evil)"}, "font must be sans, serif or mono"),
        ({"theme": "blue"}, "theme must be light, dark or transparent, not 'blue'"),
        ({"grey": "maybe"}, "grey must be yes or no"),
        ({"title": "x" * 301}, "title"),
        ({"legend": "left"}, "legend must be auto, ends, legend or none"),
        ({"xmin": "wide"}, "xmin must be a number"),
        ({"xmin": "nan"}, "xmin must be a number"),
        ({"xmin": "1e400"}, "xmin must be a number"),
        ({"xmin": "5", "xmax": "5"}, "xmin must be less than xmax"),
        ({"yscale": "log", "ymin": "0"}, "above 0"),
        ({"yscale": "cubic"}, "yscale must be linear or log"),
        ({"dpi": "3000"}, "dpi must be a whole number between 36 and 1200"),
        ({"dpi": "100.5"}, "dpi must be a whole number"),
        ({"preset": "poster"}, "some that are: one-column, two-columns, slide or icml2024-half"),
        ({"preset": "neurips2025"}, "some that are: neurips2024, neurips2023"),
        ({"label.x": ""}, "label of 'x' must be one line"),
        ({"label.x": "a\nb"}, "label of 'x' must be one line of text, got U+000A"),
        ({"label.x": "a\u202eb"}, "label of 'x' must be one line of text, got U+202E"),
        ({"title": "a\u2028b"}, "title must be one line of text, got U+2028"),
        ({"xmin": "5", "xmax": "5.0000000000001"}, "too near to each other for numbers"),
        ({"label.x": "y" * 81}, "1 to 80 characters"),
        ({f"label.{n}": "y" for n in range(41)}, "at most 40 lines"),
    ],
)
def test_invalid_parameter_is_named_in_one_sentence(params, said):
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        Style.read(params)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 200


def test_installed_font_is_found_by_name():
    assert Style(font="dejavu serif").families == ("DejaVu Serif", "DejaVu Sans")
    assert Style(font="serif").families == ("STIXGeneral", "DejaVu Sans")
