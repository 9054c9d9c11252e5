"""The numbers in the sentences of the Axes page, against float64 mathematics computed here."""

import math

import numpy as np
import pytest

from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.multi_axis.image_layouts import model_scenes
from rope_viz.multi_axis.prompt_syntax import EXAMPLE, find_prompt_rules, lay_out_pieces, parse_pieces
from rope_viz.pages.axes import words as axes
from rope_viz.pages.axes.figures import lanes_of
from rope_viz.studies.axis_extrapolation import available_methods, extend_axis
from tests.figures.specs import TAU
from tests.offenders import for_each

SCENES = {
    f"{id} {part}": scene
    for id in axes_catalog()
    for part, scene in model_scenes(id).items()
    if " head " not in part or part.endswith("head 0")
}
every = for_each(SCENES)
QWEN2, QWEN3 = SCENES["qwen2-vl-7b text"], SCENES["qwen3-vl-8b text"]
AXIAL, MIXED = SCENES["rope-vit-axial-b vision"], SCENES["rope-vit-mixed-b vision all heads"]
HUNYUAN = SCENES["hunyuan-video transformer"]


def frequencies(scene, role):
    """Radians per patch of every pair along one axis; tables without a rotation have them for both members."""
    seen = scene.role_spec
    tables = [seen.weights] if seen.second is None else [seen.weights, seen.second]
    return np.concatenate(tables)[:, seen.axes.index(role)].astype(np.float64)


@every
@pytest.mark.parametrize("reach", [32, 30_000])
def test_the_map_gives_the_score_along_every_axis(scene, reach):
    sentence = axes.describe_scores(scene, reach)
    for role in scene.roles:
        expected = math.fsum(math.cos(each * reach) for each in frequencies(scene, role))
        assert sentence.values[role] == pytest.approx(expected / len(frequencies(scene, role)), abs=1e-9)
    assert sentence.values["reach"] == reach
    if "both" in sentence.values:
        angles = sum(frequencies(scene, role) for role in ("row", "column") if role in scene.roles) * reach
        assert sentence.values["both"] == pytest.approx(np.cos(angles).mean(), abs=1e-9)


def test_the_map_is_flat_along_an_axis_with_scores_of_one():
    assert "map.rows_only" in axes.describe_map([QWEN2], 32).entries
    assert "map.rows_only" not in axes.describe_map([QWEN2], 30_000).entries
    assert all(math.cos(each * 32) > 0.999 for each in frequencies(QWEN2, "column"))


def test_the_pattern_follows_the_axes_of_the_pairs():
    assert "map.faint_cross" in axes.describe_map([QWEN3], 32).entries
    assert "map.cross" in axes.describe_map([AXIAL], 32).entries
    assert "map.mixed" in axes.describe_map([MIXED], 32).entries
    assert "map.head" in axes.describe_map([SCENES["rope-vit-mixed-b vision head 0"]], 32).entries
    assert "map.no_rotation" in axes.describe_map([SCENES["v-jepa2-vit-l vision"]], 32).entries


def test_a_row_of_counted_tokens_has_the_width_of_the_image():
    for scene in SCENES.values():
        sentence = axes.describe_scores(scene, 32)
        if "map.counted" in sentence.entries:
            assert sentence.values["width"] == scene.sides["column"] + ("image" in scene.spec.axes)
            return
    pytest.fail("no model of the list mixes a token count with other axes")


@every
def test_wavelengths_count_the_pairs_within_a_side(scene):
    sentence = axes.describe_wavelengths([scene])
    for lane in lanes_of(scene):
        pairs = lane.pairs(scene).pair
        turns = [math.sqrt(math.fsum(each**2 for each in scene.role_spec.weights[pair])) / TAU for pair in pairs]
        values = axes.describe_lane(scene, lane).values
        assert values["shortest"] == pytest.approx(1.0 / max(turns), rel=1e-9)
        if lane.side > 1:
            assert (values["pairs"], values["side"]) == (len(pairs), lane.side)
            assert values["inside"] == sum(each * lane.side >= 1.0 - 1e-12 for each in turns)
        assert axes.describe_lane(scene, lane).rstrip(".") in sentence


def test_wavelengths_of_a_single_patch_have_no_side():
    one = QWEN2.with_sides({"time": 1, "row": 1, "column": 1})
    entries = axes.describe_wavelengths([one]).entries
    assert "wavelengths.inside" not in entries
    assert [entries.count(f"wavelengths.{entry}") for entry in ("single", "other")] == [1, 3]


def lay_out(runtime, line=EXAMPLE):
    return lay_out_pieces(parse_pieces(line), find_prompt_rules(axes_catalog()["qwen2-vl-7b"].config), runtime)


def test_a_prompt_gives_the_tokens_and_positions_of_an_image():
    values = axes.describe_piece(lay_out("transformers"), 1).values
    rows, columns = round(768 / 28), round(1024 / 28)
    assert values["tokens"] == rows * columns == 999
    assert values["cost"] == max(rows, columns) == 37


def test_a_prompt_gives_the_position_of_the_next_token():
    layout = lay_out("vllm")
    sentence = axes.describe_prompt(layout, "vllm")
    last = float(layout.positions.values[-1].max())
    assert sentence.values["count"] == len(layout.positions.values)
    assert sentence.values["at"] == last + 1
    assert sentence.values["delta"] == last + 1 - len(layout.positions.values)
    assert "prompt.overlap" not in sentence.entries


def test_a_prompt_tells_that_text_overlaps_a_video():
    layout = lay_out("transformers")
    (overlap,) = axes.describe_overlaps(layout, "transformers")
    video = layout.positions.values[layout.ends[3] : layout.ends[4]]
    assert overlap.values["end"] == video.max() == 88
    assert overlap.values["start"] == layout.positions.values[layout.ends[4], 0] == 85


def test_the_token_after_a_long_video_jumps():
    layout = lay_out("transformers", "text 4, video 56x56 60s 2fps, text 2")
    sentence = axes.describe_prompt(layout, "transformers")
    assert sentence.values["jump"] == sentence.values["at"] - (layout.positions.values[-1, 0] + 1) == 56


def test_the_first_token_that_differs_is_named():
    here, there = lay_out("transformers"), lay_out("vllm")
    sentence = axes.compare_layouts(here, there, "transformers", "vLLM")
    rows = (each.positions.values.tolist() for each in (here, there))
    first = next(k for k, (a, b) in enumerate(zip(*rows, strict=True)) if a != b)
    assert sentence.values["token"] == first == 1223
    assert (sentence.values["here"], sentence.values["there"]) == ("(70, 69, 69)", "(71, 69, 69)")
    assert axes.compare_layouts(here, here, "transformers", "vLLM").entries == ("prompt.same",)


def test_a_token_of_one_runtime_only_is_named():
    short, long = lay_out("vllm", "text 4"), lay_out("vllm", "text 6")
    for sentence in (axes.compare_layouts(short, long, "A", "B"), axes.compare_layouts(long, short, "B", "A")):
        assert {key: sentence.values[key] for key in ("token", "longer", "shorter")} == {
            "token": 4,
            "longer": "B",
            "shorter": "A",
        }


def test_pairs_without_a_section_are_named_or_counted():
    assert axes.describe_zero_pairs([61, 62], "llama.cpp").values["list"] == "61 and 62"
    assert axes.describe_zero_pairs([63], "llama.cpp").entries == ("prompt.one_zero",)
    assert axes.describe_zero_pairs(range(40), "llama.cpp").values["zero"] == 40
    assert axes.describe_zero_pairs([], "vllm") == ""


def peak_beyond(speeds, trained, target):
    """The highest peak beyond the trained side: a maximum of at least 0.25 within a quarter of that side."""
    curve = np.cos(np.outer(np.arange(target + 1), speeds)).mean(axis=1)
    apart = max(2, trained // 4)
    falls = int(np.flatnonzero(np.diff(curve) > 0.0)[0])
    tops = [
        at
        for at in range(max(trained, falls) + 1, target)
        if curve[at] >= 0.25 and curve[at] == curve[max(falls, at - apart) : at + apart + 1].max()
    ]
    return max(((curve[at], at) for at in tops), default=None)


@pytest.mark.parametrize("method", available_methods(HUNYUAN, "time"))
def test_an_extension_gives_its_peak_and_the_former_one(method):
    done = extend_axis(HUNYUAN, "time", method, 2.0)
    values = axes.describe_extension(done).values
    assert values["slow"] == sum(each * 33 < TAU for each in done.plain)
    request, before = (peak_beyond(speeds, 33, 66) for speeds in (done.extended, done.plain))
    assert "further.rings" in axes.describe_extension(done).entries
    if method == "none":
        assert (values["score"], values["at"]) == pytest.approx(request)
        assert values["at"] == 50
        return
    assert (values["before"], values["first"]) == pytest.approx(before)
    assert values["after"] == pytest.approx(
        math.fsum(math.cos(50 * each) for each in done.extended) / len(done.extended)
    )
    assert values["changed"] == sum(abs(a - b) > 1e-9 * b for a, b in zip(done.extended, done.plain, strict=True))
    if request[1] != before[1]:
        assert (values["score"], values["at"]) == pytest.approx(request)


def test_riflex_slows_one_pair_beyond_the_whole_video():
    values = axes.describe_extension(extend_axis(HUNYUAN, "time", "riflex", 2.0)).values
    assert values["pair"] == 3
    assert values["turn"] == pytest.approx(66 / 0.9)
    assert values["after"] == pytest.approx(0.40, abs=0.005)


def test_yarn_for_images_gives_its_attention_factor():
    flux = SCENES["flux.1-dev transformer"]
    values = axes.describe_extension(extend_axis(flux, "row", "yarn", 4.0)).values
    assert (values["slow"], values["pairs"], values["trained"]) == (20, 28, 64)
    assert values["factor"] == pytest.approx(0.1 * math.log(4.0) + 1.0)


@every
def test_the_patch_gives_its_place_and_the_pairs_per_axis(scene):
    place = {role: 3 + k for k, role in enumerate(scene.roles)}
    sentence = axes.describe_patch(scene, place)
    assert {role: sentence.values[role] for role in place} == place
    assert sentence.entries.count("patch.axis") == len(lanes_of(scene))
    assert sum(len(lane.pairs(scene).pair) for lane in lanes_of(scene)) <= scene.role_spec.pairs


@every
def test_every_direction_of_every_model_has_a_sentence(scene):
    for role in scene.roles:
        sentence = axes.describe_extension(extend_axis(scene, role, growth=2.0))
        assert sentence.entries[0] == "further.unturned"
        assert sentence.values["trained"] == scene.sides.get(role, 1)
