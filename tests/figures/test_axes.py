"""Pictures of multi-axis rotations: their numbers against float64 computed here, and their sentences."""

import re

import numpy as np
import pytest

from rope_viz.figures import theme
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import model_scenes
from rope_viz.multi_axis.prompt_syntax import EXAMPLE, find_prompt_rules, lay_out_pieces, parse_pieces
from rope_viz.pages.axes import extrapolation, prompt
from rope_viz.pages.axes import figures as axes
from rope_viz.studies.axis_extrapolation import extend_axis

QWEN2, QWEN3 = model_scenes("qwen2-vl-7b")["text"], model_scenes("qwen3-vl-8b")["text"]
AXIAL, MIXED = model_scenes("rope-vit-axial-b")["vision"], model_scenes("rope-vit-mixed-b")["vision all heads"]
FLUX2, SHEAR = model_scenes("flux.2-dev")["transformer"], model_scenes("v-jepa2-vit-l")["vision"]
HUNYUAN = model_scenes("hunyuan-video")["transformer"]


def lay_out_line(runtime, line=EXAMPLE, id="qwen2-vl-7b"):
    return lay_out_pieces(parse_pieces(line), find_prompt_rules(axes_catalog()[id].config), runtime)


def every_figure():
    yield "sight", axes.sight([QWEN2, QWEN3])
    yield "far sight", axes.sight([AXIAL, MIXED], 100_000, shades="one")
    yield "sight alone", axes.sight([SHEAR], 8, coarse=True)
    yield "speeds", axes.speeds([QWEN2, FLUX2])
    yield "speeds of directions", axes.speeds([MIXED, SHEAR])
    yield "prompt", prompt.positions(lay_out_line("transformers"), "transformers", lay_out_line("vllm"), "vllm")
    yield "prompt zoomed", prompt.positions(lay_out_line("transformers"), "transformers", view=(100.2, 220.7))
    yield "beyond", extrapolation.heights(extend_axis(HUNYUAN, "time", "riflex", 2.0), "frames")
    yield "far beyond", extrapolation.heights(extend_axis(QWEN2, "time", "yarn", 8.0), "frames", coarse=True)


FIGURES = dict(every_figure())


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_titles_and_colours_have_dark_twins(name):
    layout = FIGURES[name].layout
    assert layout.xaxis.title.text
    assert layout.yaxis.title.text or name.startswith("speeds")
    assert layout.title.text is None
    assert layout.height
    used = set(re.findall(r'"(#[0-9A-Fa-f]{6})(?:[0-9A-Fa-f]{2})?"', FIGURES[name].to_json()))
    assert used <= set(theme.DARK), used - set(theme.DARK)


def test_a_cell_of_the_map_is_the_score_at_its_displacement():
    figure = axes.sight([QWEN2, QWEN3], 32)
    for trace, scene in zip(figure.data, (QWEN2, QWEN3), strict=True):
        row, column = list(trace.y).index("−7"), list(trace.x).index("19")
        weights = scene.spec.weights
        expected = np.cos(-7 * weights[:, 1] + 19 * weights[:, 2]).mean()
        assert trace.z[row, column] == pytest.approx(expected, abs=1e-6)
        assert trace.z[list(trace.y).index("0"), list(trace.x).index("0")] == 1.0


def test_maps_are_linked_and_reach_the_requested_range():
    figure = axes.sight([QWEN2, QWEN3], 5000)
    assert figure.layout.meta["linked"]
    last = int(figure.data[0].x[-1].replace(",", ""))
    assert last + 39 >= 5000
    assert last < 5100
    assert len(figure.data[0].x) <= 129


def test_one_scale_for_both_has_the_same_ends():
    own, one = axes.sight([QWEN2, QWEN3]).layout, axes.sight([QWEN2, QWEN3], shades="one").layout
    assert own.coloraxis.cmin > own.coloraxis2.cmin
    assert one.coloraxis.cmin == one.coloraxis2.cmin == own.coloraxis2.cmin


def test_maps_have_stripes_a_cross_or_a_spot():
    band = axes.sight([QWEN2]).data[0].z
    assert np.ptp(band, axis=1).max() < 1e-5 < np.ptp(band, axis=0).min()
    cross, spot = (axes.sight([scene]).data[0].z for scene in (AXIAL, MIXED))
    assert cross[32, 0] > 0.6 > 0.3 > cross[0, 0]
    assert abs(spot[32, 0]) < 0.1
    assert abs(spot[0, 32]) < 0.1
    assert spot[31, 31] > 0.4


def test_every_pair_is_a_tick_at_its_wavelength():
    figure = axes.speeds([QWEN2])
    found = np.concatenate([trace.x for trace in figure.data])
    np.testing.assert_allclose(np.sort(found), 2 * np.pi * 1e6 ** (np.arange(64) / 64))
    assert [len(trace.x) for trace in figure.data] == [16, 24, 24]
    # Three blocks, the last wider than any image.
    assert figure.data[2].x.min() > 35_000 > 36


def test_the_sides_of_image_and_clip_are_bars():
    bars = [shape for shape in axes.speeds([QWEN2]).layout.shapes if shape.type == "rect"]
    assert [bar.x1 for bar in bars] == [384, 36, 36]


def test_second_members_have_ticks_of_their_own():
    figure = axes.speeds([SHEAR])
    assert len(figure.data) == 6
    assert set(figure.data[1].x) != set(figure.data[0].x)


def test_an_axis_has_one_look_on_every_picture():
    looks = [axes.look(name) for name in ("t", "frame", "time")]
    assert len(set(looks)) == 1
    assert axes.look("height").colour == axes.LOOKS["row"].colour
    assert len({axes.look(name).dash for name in ("t", "h", "w", "l")}) == 4


def test_lines_of_a_prompt_are_its_positions():
    one = lay_out_line("transformers", "text 4, image 112x84, text 3")
    figure = prompt.positions(one, "transformers")
    named = {trace.name: trace for trace in figure.data}
    np.testing.assert_array_equal(named["row h, transformers 5.23"].y, one.positions.values[:, 1])
    assert named["next token, transformers 5.23"].y[0] == 4 + 4 + 3
    alike = named["all axes"].y
    assert np.isnan(alike[5])
    assert alike[0] == 0.0
    assert alike[-1] == 10.0


def test_long_prompt_retains_its_extremes():
    one = lay_out_line("transformers", "text 4, image 1400x1400, text 3")
    column = next(trace for trace in prompt.positions(one, "transformers").data if trace.name.startswith("column"))
    values = one.positions.values[:, 2]
    assert len(column.y) < len(values)
    assert (column.y.min(), column.y.max()) == (values.min(), values.max())


def test_the_first_differing_token_is_marked():
    figure = FIGURES["prompt"]
    rules = [shape for shape in figure.layout.shapes if shape.type == "line" and shape.line.dash == "dot"]
    assert any(shape.x0 == 1222.5 for shape in rules)
    assert any("token 1,223 differs" in note.text for note in figure.layout.annotations)
    assert {trace.line.dash for trace in figure.data if trace.mode == "lines"} == {"solid", "dash"}


def test_extrapolated_angles_are_the_cosines_of_the_pairs():
    done = extend_axis(HUNYUAN, "time", "riflex", 2.0)
    trace = extrapolation.heights(done, "frames").data[0]
    np.testing.assert_allclose(trace.z, np.cos(np.outer(done.extended, np.arange(67))), atol=1e-6)


def test_false_peaks_are_ringed_with_their_numbers():
    texts = [
        note.text
        for note in extrapolation.heights(extend_axis(HUNYUAN, "time", growth=2.0), "frames").layout.annotations
    ]
    assert {"25: 0.58", "50: 0.57"} <= set(texts)
    assert "50: 0.40" in [note.text for note in FIGURES["beyond"].layout.annotations]


@pytest.mark.parametrize("id", axes_catalog())
def test_every_model_has_its_pictures(id):
    for part, scene in model_scenes(id).items():
        if " head " in part and not part.endswith("head 0"):
            continue
        axes.sight([scene], coarse=True)
        axes.speeds([scene])
        for role in scene.roles:
            done = extend_axis(scene, role, growth=2.0)
            extrapolation.heights(done, scene.units, coarse=True)
