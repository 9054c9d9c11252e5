"""Figures as files have the requested theme, greys, labels, ranges and fonts."""

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from rope_viz.figures import theme
from rope_viz.figures.files import FORMS, Style, render
from tests.figures.drawn import DRAWN, LLAMA
from tests.figures.opened import png_pixels, ratio


def test_a_dark_file_has_the_dark_palette():
    dark = render(ratio(), "svg", options=Style(theme="dark")).decode().lower()
    assert theme.DARK[theme.CURRENT].lower() in dark
    assert theme.CURRENT.lower() not in dark
    assert theme.DARK[theme.BACKGROUND].lower() in dark


def test_transparent_file_has_no_background():
    pixels = png_pixels(render(ratio(), "png", options=Style(theme="transparent", dpi=72)))
    assert pixels[2, 2, 3] == 0
    assert pixels[..., 3].max() == 255
    assert png_pixels(render(ratio(), "png", options=Style(dpi=72)))[2, 2, 3] == 255


@pytest.mark.parametrize("name", ["ratio", "contributions", "attention scores", "angle", "bases", "dials", "random"])
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_a_grey_file_has_no_colour(name, ground):
    style = Style(grey=True, theme=ground, dpi=48)
    pixels = png_pixels(render(DRAWN[name], "png", options=style))[..., :3]
    assert (pixels.max(axis=-1) - pixels.min(axis=-1)).max() <= 2


def test_grey_lines_have_distinct_dashes():
    from rope_viz.figures.files import lines
    from rope_viz.figures.files.apply_style import apply_style

    for name in ("ratio", "wavelength", "error", "long decay", "errors", "costs"):
        sheet = apply_style(DRAWN[name], Style(grey=True))
        named = {lines.line_name(trace): lines.read_look(trace)[1] for trace in sheet.data if lines.line_name(trace)}
        assert len(set(named.values())) == len(named), (name, named)


def test_narrow_heatmap_cells_are_averaged_not_sampled():
    # Stripes of 0 and 1, a thousand on 300 dots: what is between them is their mean, not the one that was hit.
    z = np.tile([0.0, 1.0], 500)[None].repeat(4, axis=0)
    trace = {"type": "heatmap", "z": z, "zmin": 0, "zmax": 1, "colorscale": [[0, "#000000"], [1, "#FFFFFF"]]}
    fig = theme.figure([trace | {"showscale": False}], x={"showticklabels": False}, y={"showticklabels": False})
    pixels = png_pixels(render(fig, "png", options=Style(width="300px", height="120px", dpi=96)))
    inner = pixels[55:65, 60:240, 0]
    assert inner.min() > 100
    assert inner.max() < 155


def test_custom_labels_replace_every_line_name():
    style = Style(labels=(("YaRN", "ours & theirs"),), legend="legend")
    page = render(ratio(), "html", options=style).decode()
    figure = json.loads(re.search(r"const figure = (.*);\n", page)[1])
    names = [trace["name"] for trace in figure["data"] if trace.get("showlegend")]
    assert "ours &amp; theirs" in names
    assert "YaRN" not in names
    head = render(ratio(), "csv", options=style).decode().splitlines()[0]
    assert "ours & theirs" in head.split(",")
    svg = render(ratio(), "svg", options=Style(labels=(("YaRN", "ours & theirs"),))).decode()
    assert "<!-- ours &amp; theirs -->" in svg
    assert "<!-- YaRN -->" not in svg


def test_a_hidden_line_leaves_with_its_range_labels_and_bar():
    from rope_viz.figures.files import lines
    from rope_viz.figures.files.apply_style import apply_style

    for name, line in (("long decay", "Llama 2 7B"), ("ratio", "NTK-aware")):
        whole = apply_style(DRAWN[name], Style())
        sheet = apply_style(DRAWN[name], Style(hidden=((line, "yes"),)))
        assert line in lines.line_names(whole.data)
        assert lines.line_names(sheet.data) == [each for each in lines.line_names(whole.data) if each != line]
        assert not [trace for trace in sheet.data if (trace.get("meta") or {}).get("band") == line]
        assert not [note for note in sheet.layout["annotations"] if note["text"].startswith(line)]
        bars = [[each for each in it.layout["shapes"] if each.get("name") == "band"] for it in (whole, sheet)]
        assert len(bars[1]) < len(bars[0]) or not bars[0]
        head = render(DRAWN[name], "csv", options=Style(hidden=((line, "yes"),))).decode().splitlines()[0].split(",")
        assert len(head) > 1
        assert not [column for column in head if column.startswith(line)]
        named = Style(hidden=((line, "yes"),), labels=((line, "ours"),), colours=((line, "#0B62C4"),))
        assert apply_style(DRAWN[name], named).data == sheet.data
    every = tuple((each, "yes") for each in lines.line_names(whole.data))
    with pytest.raises(ValueError, match="one line must stay visible"):
        apply_style(DRAWN["ratio"], Style(hidden=every))


def test_a_custom_colour_is_that_of_line_range_and_labels():
    from rope_viz.figures.files import lines
    from rope_viz.figures.files.apply_style import apply_style

    before = {lines.line_name(trace): trace["line"]["color"] for trace in DRAWN["long decay"].to_plotly_json()["data"]}
    sheet = apply_style(DRAWN["long decay"], Style(colours=(("Llama 2 7B", "#123456"),)))
    of_line = [trace for trace in sheet.data if lines.line_name(trace) == "Llama 2 7B"]
    of_range = [trace for trace in sheet.data if (trace.get("meta") or {}).get("band") == "Llama 2 7B"]
    assert of_line[0]["line"]["color"] == "#123456"
    assert of_range[-1]["fillcolor"].startswith("#123456")
    assert before["Llama 2 7B"] not in json.dumps(
        [*of_line[0]["line"].values(), *sheet.layout["annotations"]], default=str
    )


def test_axis_titles_can_be_replaced_and_left_out():
    from rope_viz.figures.files.apply_style import apply_style

    layout = apply_style(DRAWN["wavelengths"], Style(xtitle="i", ytitle="no", yscale="linear")).layout
    assert (layout["xaxis"]["title"]["text"], layout["yaxis"]["title"]["text"]) == ("i", "")
    with pytest.raises(ValueError, match="no y axis with a title"):
        apply_style(DRAWN["dials"], Style(ytitle="score"))


# JSON holds the figure unchanged, with the style as a further key.
@pytest.mark.parametrize("form", [form for form in FORMS if form != "json"])
def test_label_for_a_missing_line_lists_existing_lines(form):
    with pytest.raises(ValueError, match=r"no line 'Yarn'; its lines are .*NTK-aware"):
        render(ratio(), form, options=Style(labels=(("Yarn", "x"),)))


def test_a_legend_takes_the_place_of_labels_at_the_ends():
    def texts(style):
        return re.findall(r"<!-- (.*?) -->", render(ratio(), "svg", options=style).decode())

    ends, legend, none = (texts(Style(legend=where)) for where in ("ends", "legend", "none"))
    assert ends.count("NTK-aware") == legend.count("NTK-aware") == 1
    assert "NTK-aware" not in none
    assert "pair i" in none


def test_labels_that_have_no_room_at_the_ends_go_into_a_legend():
    long = "a name that is much longer than a column of a paper has room for"
    style = {"width": "60mm", "font_size": "8pt", "label.plain": long[:60]}
    narrow = render(DRAWN["wavelengths"], "svg", options=Style.read(style)).decode()
    assert " ".join(re.findall(r"<!-- (.*?) -->", narrow)).count(long[:60].strip()) == 1


LONG = "Our method with a rather long name, s = 4 (this work)"


def drawn_texts(monkeypatch):
    """[(text, box on the sheet), …] of what is drawn from now on."""
    from rope_viz.figures.files.canvas import Canvas

    found, write = [], Canvas.text

    def text(canvas, lines, x, y, **look):
        box = write(canvas, lines, x, y, **look)
        found.append(("".join(run.text for line in lines for run in line), box, canvas))
        return box

    monkeypatch.setattr(Canvas, "text", text)
    return found


@pytest.mark.parametrize("where", ["auto", "ends", "legend"])
def test_a_long_label_is_broken_and_stays_whole_on_the_sheet(where, monkeypatch):
    found = drawn_texts(monkeypatch)
    style = Style.read({"preset": "one-column", "label.YaRN": LONG, "legend": where})
    render(ratio(), "svg", options=style)
    (box, canvas), *more = [
        (box, canvas) for text, box, canvas in found if text.replace(" ", "") == LONG.replace(" ", "")
    ]
    assert not more
    assert 0 <= box[0] < box[2] <= canvas.width


@pytest.mark.parametrize("where", ["auto", "ends", "legend"])
def test_a_label_that_cannot_be_broken_is_named(where):
    style = Style.read({"preset": "one-column", "label.YaRN": 80 * "W", "legend": where})
    with pytest.raises(ValueError, match=r"the label 'WWW.* is too long for this size: take a shorter one"):
        render(ratio(), "svg", options=style)


def test_headings_of_a_narrow_plot_do_not_overlap(monkeypatch):
    fig = theme.figure([theme.line([0, 1], [0, 1], "a", theme.CURRENT)], x={"range": [0, 1]}, y={})
    above = {"yref": "y domain", "y": 1, "yanchor": "bottom", "showarrow": False}
    texts = ("an image of 1024", "a film of 448", "a sound of forty seconds")
    for count in (2, 3):
        found = drawn_texts(monkeypatch)
        notes = [above | {"x": 0.3 + 0.1 * i, "text": text} for i, text in enumerate(texts[:count])]
        fig.update_layout(annotations=notes)
        render(fig, "svg", options=Style(width="320px"))
        boxes = [box for text, box, _ in found if text in texts]
        assert len(boxes) == count
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] + 1 or b[3] <= a[1] + 1
        monkeypatch.undo()


def test_annotation_has_a_background_and_stays_in_the_plot(monkeypatch):
    from rope_viz.figures.files.canvas import Canvas

    x = np.linspace(0, 1, 400)
    fig = theme.figure([theme.line(x, np.sin(900 * x), "a", theme.CURRENT)], x={"range": [0, 1]}, y={"range": [-1, 1]})
    fig.add_annotation(x=0.95, y=0.0, text="first below 0 at 27,115", ax=0, ay=-20)
    found, boxes, box = drawn_texts(monkeypatch), [], Canvas.box
    monkeypatch.setattr(Canvas, "box", lambda *args, **look: (boxes.append(args[1]), box(*args, **look)))
    render(fig, "svg", options=Style(width="320px"))
    where = next(box for text, box, _ in found if text.startswith("first"))
    assert any(each == pytest.approx(where, abs=3) for each in boxes)
    assert where[2] <= 320 - 2


def test_labels_avoid_data_first_and_vertical_lines_second():
    from rope_viz.figures.files.label_placement import Places

    def cost(**rule):
        places = Places(100, 100)
        places.draw([30, 30], [0, 100], (0, 0, 100, 100), **rule)
        return places.cost((10, 10, 60, 20))

    assert cost() > cost(rule=True) > Places(100, 100).cost((10, 10, 60, 20))


def test_custom_labels_replace_whole_names_in_the_title():
    from rope_viz.figures.files.apply_style import apply_style

    style = Style(title="yes", labels=(("YaRN", "ours, 5 % \\1"),))
    title = "Speed of each pair: YaRN, NTK-aware, YaRNs, YaRN"
    assert apply_style(ratio(), style, title).title == title.replace("YaRN,", "ours, 5 % \\1,")[:-4] + "ours, 5 % \\1"
    assert apply_style(ratio(), Style(title="YaRN, a study", labels=style.labels), title).title == "YaRN, a study"


def test_requested_ranges_and_scales_are_used():
    from rope_viz.figures.files.apply_style import apply_style

    fig = DRAWN["wavelengths"]
    axis = apply_style(fig, Style(xmin=10, xmax=30, ymin=64)).layout
    assert axis["xaxis"]["range"] == [10, 30]
    assert axis["yaxis"]["range"][0] == pytest.approx(np.log10(64))
    linear = apply_style(fig, Style(yscale="linear")).layout
    assert linear["yaxis"]["type"] == "linear"
    assert linear["yaxis"]["title"]["text"] == "wavelength (tokens per turn)"
    end = next(note for note in linear["annotations"] if note["text"] == "plain")
    assert end["y"] == pytest.approx(2 * np.pi / LLAMA.plain_inv_freq[-1])
    # A map of pairs runs from top to bottom, and still does.
    pairs = apply_style(DRAWN["cos"], Style(ymin=10, ymax=20)).layout["yaxis"]["range"]
    assert pairs == [20, 10]


@pytest.mark.parametrize(
    ("name", "style", "said"),
    [
        ("wavelengths", {"ymin": -1.0}, "logarithmic"),
        ("wavelengths", {"xmin": 100.0}, "leave nothing of the x axis"),
        ("wavelengths", {"xmin": 1000.0, "xmax": 2000.0}, "range of x: the data go from 0 to 63"),
        ("cos", {"ymin": 200.0, "ymax": 300.0}, "range of y: the data go from 0 to 63"),
        ("wavelengths", {"xmax": -0.5 + 1e-12}, "too near to each other"),
        ("cos", {"yscale": "log"}, "the y axis of this map begins at 0, so it cannot be logarithmic"),
        ("table", {"xmin": 5.0}, "this figure has no x axis"),
        ("dials", {"ymax": 5.0}, "this figure has no y axis"),
        ("attention weights", {"xmin": 1.0}, "names"),
        ("lengths", {"xscale": "log"}, "names"),
        ("wavelengths", {"width": "100px", "font_size": "40px"}, "no room"),
        ("wavelengths", {"width": "1200mm", "dpi": 1200}, "too many"),
    ],
)
def test_unsupported_style_raises_a_clear_error(name, style, said):
    with pytest.raises(ValueError, match=said):
        render(DRAWN[name], "svg", options=Style(**style))


def test_default_dpi_is_lowered_for_a_large_file():
    from rope_viz.figures.files.apply_style import fit_dpi

    assert fit_dpi(Style(), 1000, 430).dpi == Style.dpi
    # 50 million dots on 50 by 50 inches: sqrt(50e6) / 50 = 141.4 dots per inch.
    assert fit_dpi(Style(), 4800, 4800).dpi == 141
    with pytest.raises(ValueError, match="take a dpi of at most 141, or a smaller size"):
        fit_dpi(Style(dpi=142), 4800, 4800)


def test_a_range_holds_for_all_panels_of_a_figure():
    from rope_viz.figures.files.apply_style import apply_style

    layout = apply_style(DRAWN["matrices whole"], Style(xmin=3, xmax=9)).layout
    axes = [axis for key, axis in layout.items() if key.startswith("xaxis")]
    assert len(axes) == 3
    assert all(list(axis["range"]) == [3, 9] for axis in axes)


def test_another_scale_is_fitted_to_what_is_shown():
    from rope_viz.figures.files.apply_style import apply_style

    fig = DRAWN["wavelengths"]
    longest = 2 * np.pi / LLAMA.inv_freq(LLAMA.target)[-1]
    low, high = apply_style(fig, Style(yscale="linear")).layout["yaxis"]["range"]
    assert low == 0
    assert longest < high < 1.1 * longest
    assert apply_style(fig, Style(yscale="linear", ymax=1e9)).layout["yaxis"]["range"] == [0, 1e9]


@pytest.mark.parametrize("log", [False, True])
def test_tick_labels_of_a_narrow_range_differ(log):
    from rope_viz.figures.files import axes

    ends = (5.0, 5.0000001) if not log else (np.log10(5.1), np.log10(5.4))
    words = [word for _, word in (axes.log_ticks if log else axes.linear_ticks)(*ends, 5)]
    assert len(set(words)) == len(words) > 1


@pytest.mark.filterwarnings("error")
def test_band_names_survive_a_log_axis():
    # The first range begins at −0.5, which a log axis has not.
    usual, log = (render(DRAWN["wavelengths"], "svg", options=Style(xscale=scale)).decode() for scale in ("", "log"))
    for kind in ("kept", "blended", "divided"):
        assert usual.count(f"<!-- {kind} ") == log.count(f"<!-- {kind} ") == 1


def test_browser_only_trace_raises_a_clear_error():
    fig = go.Figure(go.Scatterpolar(r=[1], theta=[2]), layout={"height": 300, "font": {"color": "#000000"}})
    with pytest.raises(ValueError, match="scatterpolar is drawn by browsers only: take html or json"):
        render(fig, "svg")


def test_missing_glyphs_use_a_fallback_font(recwarn):
    style = Style(font="serif", labels=(("YaRN", "Δθᵢ 10⁻⁷ s\u202f=\u00a04"),))
    text = render(ratio(), "svg", options=style).decode()
    assert "<!-- Δθᵢ 10⁻⁷ s\u202f=\u00a04 -->" in text
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
