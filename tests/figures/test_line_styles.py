"""No two lines of a figure share a colour, methods keep theirs in any selection, and names identify a line's model."""

import itertools

import numpy as np
import pytest

from rope_viz.embedding.scaling import METHODS
from rope_viz.figures import compared, line_styles, method_curves, theme
from rope_viz.figures.files import lines
from rope_viz.models.catalog import model_specs
from rope_viz.models.spec_url import Subject
from rope_viz.models.variant import make_variant, read_variant
from rope_viz.pages import registry
from rope_viz.pages.decay import figures as decay
from rope_viz.pages.precision import figures as precision
from rope_viz.pages.scaling import figures as scaling
from rope_viz.picture import read_address
from rope_viz.studies.scores import even_parts
from rope_viz.tiny_lm import checkpoints
from tests.figures import colour_vision
from tests.figures.colour_vision import contrast
from tests.figures.drawn import DRAWN

LLAMA = model_specs("llama-3.1-8b")[""]
QWEN = model_specs("qwen3-8b")[""]
ALL = list(compared.choices(LLAMA))
TINY_LM = {"model": "rope-viz-reader", "method": "yarn", "factor": "4", "target": "1024"}
MODELS = ["llama-2-7b", "llama-3-8b", "qwen3-8b", "gpt-neox-20b", "gemma-2-27b", "phi-4"]
CURRENT = make_variant(Subject(LLAMA, "llama-3.1-8b"))


def pinned(*texts, current=CURRENT):
    """The variants of these texts by number."""
    return {number: read_variant(text, current) for number, text in enumerate(texts, 1)}


def drawn(fig):
    """{line: (colour, dash)} of a figure."""
    plain = [trace.to_plotly_json() for trace in fig.data]
    return {lines.line_name(trace): lines.read_look(trace)[:2] for trace in plain if lines.line_name(trace)}


@pytest.mark.parametrize("view", ["ratio", "wavelength", "ramp"])
def test_method_style_is_independent_of_the_selection(view):
    whole = drawn(scaling.view(view, compared.compared(LLAMA, compared.alternatives(LLAMA, ALL)))[0])
    for name in ALL:
        some = compared.compared(LLAMA, compared.alternatives(LLAMA, [name]))
        assert drawn(scaling.view(view, some)[0]).items() <= whole.items()
    backwards = compared.compared(LLAMA, compared.alternatives(LLAMA, ALL[::-1]))
    assert drawn(scaling.view(view, backwards)[0]) == whole


def test_a_method_looks_the_same_in_every_figure():
    curves = compared.compared(LLAMA, compared.alternatives(LLAMA, ALL))
    speed = drawn(method_curves.ratios(curves))
    parts = [even_parts(each.spec) for each in curves]
    for length in (500, 200_000):  # as lines, and as bands between the ends of columns
        where = decay.Range.from_length(length, None, log=True)
        assert drawn(decay.curves(curves, where, parts, mean=True)) == speed


def test_method_styles_are_distinct_from_each_other_and_current():
    assert set(line_styles.METHODS) == set(METHODS)
    shown = list(line_styles.METHODS.values())
    assert len({look.colour for look in shown}) == len({look.dash for look in shown}) == len(shown)
    assert line_styles.CURRENT not in shown
    assert line_styles.METHODS["none"] == line_styles.PLAIN


def test_no_two_lines_of_a_slot_share_colour_or_dash():
    looks = [line_styles.CURRENT, line_styles.PLAIN, *line_styles.SLOTS]
    for kind in ([look.colour for look in looks], [theme.DARK[look.colour] for look in looks], [d for _, d in looks]):
        assert len(set(kind)) == len(looks)


@pytest.mark.parametrize("pair", [*itertools.combinations(MODELS[:4], 2)])
def test_any_two_models_have_two_colours(pair):
    variants = pinned(*(f"model={name}" for name in pair))
    curves = compared.compared(LLAMA, compared.alternatives(LLAMA, ALL), variants, current=CURRENT)
    assert len({curve.colour for curve in decay.with_plain(curves)}) == len(curves) + 1 == len(ALL) + 4


def test_pinned_curves_take_the_slots_that_no_method_has():
    variants = pinned("model=llama-2-7b", "base=1e4")
    alone = compared.compared(LLAMA, [], variants, current=CURRENT)[1:]
    assert [(c.colour, c.dash) for c in alone] == list(line_styles.SLOTS[:2])
    mixed = compared.compared(LLAMA, compared.alternatives(LLAMA, ["yarn"]), variants, current=CURRENT)[1:]
    assert [(c.colour, c.dash) for c in mixed] == list(line_styles.SLOTS[:3])


def test_a_pinned_curve_keeps_its_style_when_another_is_removed():
    variants = pinned("base=1e4", "base=2e4", "base=3e4", "base=4e4")
    whole = drawn(method_curves.ratios(compared.compared(LLAMA, [], variants, current=CURRENT)))
    del variants[2]
    assert drawn(method_curves.ratios(compared.compared(LLAMA, [], variants, current=CURRENT))).items() <= whole.items()


def test_more_lines_than_colours_are_refused():
    with pytest.raises(ValueError, match=r"at most 16 lines, got 17$"):
        line_styles.take_slots(16, [line_styles.SLOTS[3]])


# Everything that the pages can compare, at once: (picture, choices).
COMPARISONS = [
    *(("scaling/comparison", {"scaling.show": view, "scaling.with": ",".join(ALL)}) for view in scaling.VIEWS),
    ("decay/curves", {"decay.with": ",".join(ALL), "decay.models": ",".join(MODELS)}),
    ("frequencies/wavelengths", {"variant1": "base=1e4", "variant2": "model=qwen3-8b", "variant4": "method=yarn"}),
    ("recall/lengths", TINY_LM | {"recall.with": ",".join(checkpoints.MAIN_METHODS), "recall.length": "512"}),
    ("recall/recover", TINY_LM | {"recall.tuned": ",".join(checkpoints.MAIN_METHODS)}),
    ("recall/yours", {}),
    ("recall/loss", TINY_LM),
    ("recall/previous", TINY_LM),
    ("recall/finder", TINY_LM),
    ("heads/distance", {}),
    ("extend/speeds", {}),
    ("extend/memory", {}),
    ("runtimes/curves", {"model": "kimi-k2-instruct"}),
    ("precision/scores", {"precision.with": ",".join(precision.OTHERS)}),
]


@pytest.mark.parametrize("name", DRAWN)
def test_no_two_lines_of_a_figure_share_a_colour(name):
    assert_distinct(DRAWN[name])


@pytest.mark.parametrize(("address", "query"), COMPARISONS, ids=[" ".join(map(str, each)) for each in COMPARISONS])
def test_no_two_lines_of_a_page_share_a_colour(address, query):
    page, name = address.split("/")
    request = read_address.read_request(registry.page(page), query)
    figure = registry.page(page).pictures[name].draw(request).fig
    # On "recover" a method has one colour at both lengths.
    assert_distinct(figure, most=2 if name == "recover" else 1)


def assert_distinct(fig, most=1):
    colours = {}
    for line, (colour, _) in drawn(fig).items():
        for theme_name, shown in (("light", colour), ("dark", theme.DARK.get(colour, colour))):
            colours.setdefault((theme_name, shown), set()).add(line)
    shared = {where: names for where, names in colours.items() if len(names) > most}
    assert not shared


def test_every_slot_has_its_own_dash_in_grey():
    assert len(set(lines.GREY_DASHES)) == len(lines.GREY_DASHES)
    assert set(lines.GREYS) == {look.colour for look in line_styles.SLOTS}
    assert not set(lines.GREY_DASHES) & set(lines.SPARE)


def test_every_line_grey_contrasts_with_its_background():
    from rope_viz.figures.files import colours

    for ink, ground in ((lines.GREY, theme.BACKGROUND), (colours.invert_greys(lines.GREY), DARK_GROUND)):
        assert contrast(ink, ground) >= 4.5


def test_lines_in_grey_have_as_many_dashes_as_in_colour():
    from rope_viz.figures.files import Style
    from rope_viz.figures.files.apply_style import apply_style

    some = ("llama-2-7b", "llama-3.1-8b", "deepseek-v2-lite", "yarn-mistral-7b-128k")
    variants = pinned(*(f"model={name}" for name in some))
    current = make_variant(Subject(QWEN, "qwen3-8b"))
    fig = method_curves.ratios(compared.compared(QWEN, compared.alternatives(QWEN, ALL), variants, current=current))
    data = apply_style(fig, Style(grey=True)).data
    dashes = [lines.read_look(each)[1] for each in data if lines.line_name(each)]
    assert len(set(dashes)) == len(dashes)


def test_rounding_style_is_independent_of_the_selection():
    names = list(precision.SHORT)[:4]
    whole = drawn(precision.scores(LLAMA, "phase64", shown="error", names=names, live=True))
    for name in names:
        some = drawn(precision.scores(LLAMA, "phase64", shown="error", names=[name], live=True))
        assert some.items() <= whole.items()


def labels(*texts, others=(), spec=LLAMA):
    return [c.label for c in compared.compared(spec, others, pinned(*texts), current=CURRENT)]


def test_curves_of_several_models_are_named_by_model():
    yarn = compared.alternatives(LLAMA, ["yarn"])
    assert labels("model=qwen3-8b", others=yarn) == ["Llama 3.1 8B", "Llama 3.1 8B, YaRN", "Qwen3 8B"]
    changed = labels("model=qwen3-8b,base=1e5,scaling=linear,factor=2", "dim=64")
    own = ["Llama 3.1 8B, head dimension 128", "Llama 3.1 8B, head dimension 64"]
    assert changed == [own[0], "Qwen3 8B, Linear, base 100,000", own[1]]
    curves = compared.compared(LLAMA, yarn, pinned("model=qwen3-8b"), current=CURRENT)
    assert decay.with_plain(curves)[-1].label == "Llama 3.1 8B, plain"


def test_curves_of_one_model_are_named_by_what_differs():
    assert labels("base=1e4", "base=1e6") == ["base 500,000", "base 10,000", "base 1,000,000"]
    assert labels("factor=4") == ["Llama 3 × 8", "Llama 3 × 4"]
    assert labels("scaling=yarn", "base=1e4") == ["Llama 3", "YaRN", "base 10,000"]
    assert labels("target=256k", "low_freq_factor=2") == ["Llama 3", "target 256k", "Low freq. factor 2"]
    assert labels() == ["Llama 3"]


def test_equal_curves_have_different_names():
    assert labels("base=5e5", "base=500000") == ["Llama 3", "Llama 3 (pinned 1)", "Llama 3 (pinned 2)"]


DARK_GROUND = theme.DARK[theme.BACKGROUND]


@pytest.mark.parametrize("look", [line_styles.CURRENT, line_styles.PLAIN, *line_styles.SLOTS])
def test_every_line_colour_contrasts_with_its_background(look):
    # WCAG 2 AA for text, which the labels are: 4.5 to 1.
    assert contrast(look.colour, theme.BACKGROUND) >= 4.5
    assert contrast(theme.DARK[look.colour], DARK_GROUND) >= 4.5


def test_the_colour_difference_is_that_of_its_published_cases():
    # Sharma, Wu and Dalal 2005, table 1: pairs 1, 7, 13, 17, 25 and 34.
    cases = [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ]
    for one, other, expected in cases:
        assert colour_vision.difference(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("sight", colour_vision.SIGHTS)
@pytest.mark.parametrize("dark", [False, True])
def test_any_two_line_colours_differ_visibly(dark, sight):
    colours = [look.colour for look in (line_styles.CURRENT, line_styles.PLAIN, *line_styles.SLOTS)]
    seen = [colour_vision.seen(theme.DARK[colour] if dark else colour, sight) for colour in colours]
    worst = min(colour_vision.difference(one, other) for one, other in itertools.combinations(seen, 2))
    # Differences of about 2 are just noticeable; the dash is a second sign.
    assert worst >= (9.0 if sight == "normal" else 6.0)
