"""Every method and model has one colour and dash in any selection, and names identify the model of a line."""

import itertools

import numpy as np
import pytest

from rope_viz.embedding.scaling import METHODS
from rope_viz.figures import decay, line_styles, precision, scaling, theme
from rope_viz.figures.files import lines
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.studies.scores import even_parts

LLAMA = model_specs("llama-3.1-8b")[""]
LLAMA_2 = model_specs("llama-2-7b")[""]
QWEN = model_specs("qwen3-8b")[""]
ALL = list(scaling.choices(LLAMA))


def drawn(fig):
    """{line: (colour, dash)} of a figure."""
    plain = [trace.to_plotly_json() for trace in fig.data]
    return {lines.line_name(trace): lines.read_look(trace)[:2] for trace in plain if lines.line_name(trace)}


@pytest.mark.parametrize("view", ["ratio", "wavelength", "ramp"])
def test_method_style_is_independent_of_the_selection(view):
    whole = drawn(scaling.view(view, scaling.compared(LLAMA, scaling.alternatives(LLAMA, ALL)))[0])
    for name in ALL:
        some = scaling.compared(LLAMA, scaling.alternatives(LLAMA, [name]))
        assert drawn(scaling.view(view, some)[0]).items() <= whole.items()
    backwards = scaling.compared(LLAMA, scaling.alternatives(LLAMA, ALL[::-1]))
    assert drawn(scaling.view(view, backwards)[0]) == whole


def test_a_method_looks_the_same_in_every_figure():
    curves = scaling.compared(LLAMA, scaling.alternatives(LLAMA, ALL))
    speed = drawn(scaling.ratios(curves))
    parts = [even_parts(each.spec) for each in curves]
    for length in (500, 200_000):  # as lines, and as bands between the ends of columns
        where = decay.Range.from_length(length, None, log=True)
        assert drawn(decay.curves(curves, where, parts, mean=True)) == speed


def test_method_styles_are_distinct_from_each_other_and_current():
    shown = [line_styles.method_look(name) for name in METHODS]
    assert set(line_styles.METHODS) == set(METHODS)
    assert len(set(shown)) == len(shown)
    assert line_styles.CURRENT not in shown
    assert line_styles.method_look("none") == line_styles.PLAIN


def test_model_style_is_independent_of_the_selection():
    specs = {catalog()[name].name: model_specs(name)[""] for name in ("llama-2-7b", "qwen3-8b", "gpt-neox-20b")}
    whole = {c.label: (c.colour, c.dash) for c in scaling.compared(LLAMA, [], specs)}
    for count in (1, 2):
        for some in itertools.permutations(specs, count):
            for c in scaling.compared(LLAMA, [], {name: specs[name] for name in some}):
                assert whole[c.label] == (c.colour, c.dash)


def test_no_two_models_look_alike_and_none_like_a_method():
    assert set(line_styles.MODELS) <= set(catalog())
    shown = [line_styles.model_look(name) for name in line_styles.MODELS]
    assert len(set(shown)) == len(shown)
    assert not set(shown) & {line_styles.CURRENT, *line_styles.METHODS.values()}


def test_a_model_looks_the_same_by_its_id_and_by_its_name():
    for name, model in catalog().items():
        assert line_styles.model_look(model.name) == line_styles.model_look(name)
    assert line_styles.model_look("a model of my own") == line_styles.model_look("a model of my own")


def known_looks():
    """Every look that a method, a runtime, a model of the list or an entry of a fixed list can have."""
    named = [*line_styles.METHODS.values(), *line_styles.RUNTIMES.values(), *map(line_styles.model_look, catalog())]
    entries = [str(place) for place in range(16)]
    return {*named, *(line_styles.entry_look(entry, entries) for entry in entries)} - {line_styles.PLAIN}


def test_every_style_has_its_own_dash_and_grey():
    own = {look: lines.GREYS[look.dash, look.colour] for look in known_looks()}
    assert len(set(own.values())) == len(own)
    # What is compared most is told apart by dashes alone.
    first = [*line_styles.METHODS.values(), *map(line_styles.model_look, line_styles.MODELS[:20])]
    dashes = [own[look][0] for look in first if look != line_styles.PLAIN]
    assert len(set(dashes)) == len(dashes)
    assert not {*lines.GREY_DASHES} & {*lines.SPARE}
    assert len({*lines.GREY_DASHES}) == len(lines.GREY_DASHES)


@pytest.mark.parametrize("level", lines.LEVELS)
def test_every_line_grey_contrasts_with_its_background(level):
    from rope_viz.figures.files import colours

    for ink, ground in ((level, theme.BACKGROUND), (colours.invert_greys(level), theme.DARK[theme.BACKGROUND])):
        high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_grey_model_style_is_independent_of_the_selection():
    from rope_viz.figures.files import Style
    from rope_viz.figures.files.apply_style import apply_style

    def greys(names):
        specs = {catalog()[name].name: model_specs(name)[""] for name in names}
        fig = scaling.ratios(scaling.compared(QWEN, scaling.alternatives(QWEN, ["yarn"]), specs))
        data = apply_style(fig, Style(grey=True)).data
        return {lines.line_name(each): lines.read_look(each)[:2] for each in data if lines.line_name(each)}

    some = ("llama-2-7b", "llama-3.1-8b", "deepseek-v2-lite", "gemma-2-27b", "yarn-mistral-7b-128k")
    whole = greys(some)
    assert len(set(whole.values())) == len(whole)
    assert greys(some[::-1]) == whole
    for name in some:
        assert greys([name]).items() <= whole.items()


def test_rounding_style_is_independent_of_the_selection():
    names = list(precision.SHORT)[:4]
    whole = drawn(precision.scores(LLAMA, "phase64", shown="error", names=names, live=True))
    for name in names:
        some = drawn(precision.scores(LLAMA, "phase64", shown="error", names=[name], live=True))
        assert some.items() <= whole.items()


def test_current_model_is_named_when_compared_with_models():
    curves = decay.with_plain(scaling.compared(LLAMA_2, [], {"Qwen3 8B": QWEN}, name="Llama 2 7B"))
    assert [c.label for c in curves] == ["Llama 2 7B", "Qwen3 8B"]
    unnamed = scaling.compared(LLAMA_2, [], {"Qwen3 8B": QWEN})
    assert [c.label for c in unnamed] == ["this model", "Qwen3 8B"]


def test_method_names_its_model_when_compared_with_models():
    curves = scaling.compared(LLAMA, scaling.alternatives(LLAMA, ["yarn"]), {"Qwen3 8B": QWEN}, name="Llama 3.1 8B")
    labels = [c.label for c in decay.with_plain(curves)]
    assert labels == ["Llama 3.1 8B", "Llama 3.1 8B, YaRN", "Qwen3 8B", "Llama 3.1 8B, plain"]
    assert [c.label for c in decay.with_plain(scaling.compared(LLAMA, []))] == ["Llama 3", "plain"]


def test_a_model_is_not_compared_with_itself():
    assert len(scaling.compared(QWEN, [], {"Qwen3 8B": QWEN}, name="Qwen3 8B")) == 1


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(
    "colour", sorted({look.colour for look in (line_styles.CURRENT, *line_styles.METHODS.values())})
)
def test_every_line_colour_contrasts_with_its_background(colour):
    # WCAG 2 AA for text, which the labels are: 4.5 to 1.
    for ink, ground in ((colour, theme.BACKGROUND), (theme.DARK[colour], theme.DARK[theme.BACKGROUND])):
        high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5
