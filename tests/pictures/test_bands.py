"""Pictures of a real model with some pairs changed are those of the file's rows, averaged here once more.

The file may hold a part of the table: what is not measured yet must be named, and nothing else may depend on it.
"""

import json
import math

import numpy as np
import pytest

from rope_viz.figures.band_words import TEXTS as WORDS
from rope_viz.figures.band_words import describe_claims, explain_no_change
from rope_viz.figures.files.csv import read_columns
from rope_viz.pages import heads, registry
from rope_viz.pages.heads import band_groups
from rope_viz.pages.recall import bands, choices
from rope_viz.picture import read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.band_table import load_band_table, read_band_table
from rope_viz.studies.real_model import FOLDER, real_spec
from tests.pictures.test_real_heads import measured_file

GROUPS = [f"{first}-{first + 3}" for first in range(0, 32, 4)]
TEXTS = ("northangerabbey", "persuasion", "prideprejudice", "emma")
FURTHER = ("mansfieldpark", "sensesensibility", "northangerabbey+40000", "persuasion+40000")
HEADS = {"all": "all heads", "induction": "7 induction heads", "random": "7 random heads"}
PLANNED = [f"{pairs}/{how}/{name}" for pairs in GROUPS for how in ("zero", "remove") for name in HEADS]
SHIPPED = json.loads((FOLDER / "smollm2_bands.json").read_text(encoding="utf-8"))
ROWS = SHIPPED["rows"]


def has_all(condition):
    """Both measures of the change, and of the unchanged model."""
    keys = (
        f"{kind}/first/{text}/{each}" for kind in ("loss", "needle") for text in TEXTS for each in ("none", condition)
    )
    return all(key in ROWS for key in keys)


MEASURED = [condition for condition in PLANNED if has_all(condition)]


def request(page, **choices):
    return read_address.read_request(registry.page(page), {"model": "llama-3.1-8b", **choices})


def losses(condition, group="first", texts=TEXTS):
    return np.array([ROWS[f"loss/{group}/{text}/{condition}"]["loss"] for text in texts])


def found(condition):
    right = [ROWS[f"needle/first/{text}/{condition}"]["right"] for text in TEXTS]
    return np.array([[float(share == 1.0) for share in row] for row in right])


def test_the_whole_table_is_shipped():
    assert [condition for condition in PLANNED if condition not in MEASURED] == []
    assert len(ROWS) == 428


@pytest.mark.parametrize("pairs", GROUPS)
def test_both_sets_of_texts_give_an_effect_the_same_sign(pairs):
    added = [
        losses(f"{pairs}/zero/all", group, texts).mean() - losses("none", group, texts).mean()
        for group, texts in (("first", TEXTS), ("second", FURTHER))
    ]
    assert max(map(abs, added)) < 0.05 or added[0] * added[1] > 0


def signed(value):
    text = f"{value:+.3f}"
    return text[1:] if text[1:] == "0.000" else text.replace("-", "−")


def ends(values):
    """Mean of four values and Student's 95 % interval, written out."""
    mean = sum(values) / 4
    half = 3.182 * math.sqrt(sum((each - mean) ** 2 for each in values) / 3) / 2
    return mean, mean - half, mean + half


def test_table_names_its_origin():
    about = SHIPPED["about"]
    assert about["tokens"] == {"loss": 8192, "needle": 4096}
    assert about["seed"] == 43
    assert about["device"]
    assert len(about["commit"]) == 40
    assert {"numpy", "torch"} <= set(about["versions"])
    assert len(about["text_sha256"]) == 6
    assert len(about["heads"]["induction"]) == len(about["heads"]["random"]) == 7
    assert set(about["planned"]) == set(PLANNED)
    assert {str(each) for each in load_band_table().conditions} == set(MEASURED)
    assert [str(each) for each in load_band_table().planned] == PLANNED


def test_further_texts_give_the_same_signs():
    for pairs in GROUPS:
        condition, sets = f"{pairs}/zero/all", (("first", TEXTS), ("second", FURTHER))
        if not all(f"loss/{name}/{text}/{each}" in ROWS for name, texts in sets for text in texts
                   for each in ("none", condition)):  # fmt: skip
            continue
        first, second = ((losses(condition, *each) - losses("none", *each)).mean() for each in sets)
        assert abs(first) <= 0.05 or np.sign(first) == np.sign(second)


@pytest.mark.skipif(not has_all("none"), reason="the unchanged model is not measured yet")
def test_the_unchanged_model_reads_and_finds():
    assert losses("none").shape == (4, 16)
    assert 3.0 < losses("none").mean() < 4.0
    assert found("none").mean() > 0.8


@pytest.mark.parametrize("choice", sorted({condition.rpartition("/")[0] for condition in MEASURED}))
def test_loss_by_position_is_the_mean_difference_of_texts(choice):
    pairs, change = choice.split("/")
    drawn = bands.band_loss(request("recall", **{"recall.group": pairs, "recall.change": change}))
    curves = {trace.name: trace for trace in drawn.fig.data}
    np.testing.assert_allclose(curves["as it is"].x, (np.arange(16) + 0.5) * 512)
    for name, label in HEADS.items():
        if f"{choice}/{name}" not in MEASURED:
            assert label not in curves
            assert label in drawn.sentence[drawn.sentence.index("Not measured yet: ") :]
            continue
        added = losses(f"{choice}/{name}") - losses("none")
        np.testing.assert_allclose(curves[label].y, added.mean(axis=0), atol=1e-9)
        wanted = [ends(column) for column in added.T]
        np.testing.assert_allclose(curves[label].customdata, [row[1:] for row in wanted], atol=1e-6)
        mean, low, high = ends(added.mean(axis=1))
        assert f"**{signed(mean)}** ({signed(low)} to {signed(high)}) in {label}" in drawn.sentence


@pytest.mark.parametrize("choice", sorted({condition.rpartition("/")[0] for condition in MEASURED}))
def test_needles_by_depth_are_whole_answers(choice):
    pairs, change = choice.split("/")
    drawn = bands.band_needle(request("recall", **{"recall.group": pairs, "recall.change": change}))
    curves = {trace.name: trace for trace in drawn.fig.data}
    table = read_columns(drawn.fig)
    states = {"as it is": "none"} | {label: f"{choice}/{name}" for name, label in HEADS.items()}
    for label, condition in states.items():
        if condition != "none" and condition not in MEASURED:
            assert label not in table
            continue
        wanted = found(condition).mean(axis=0)
        np.testing.assert_allclose(curves[label].y, wanted)
        np.testing.assert_allclose(table[label], wanted)
        assert (table[f"{label}, low"] <= wanted).all()
        assert (table[f"{label}, high"] >= wanted).all()
    assert drawn.sentence.values["before"] == pytest.approx(found("none").mean())
    assert drawn.sentence.values["asked"] == 20


@pytest.mark.parametrize("measure", ["loss", "needle"])
@pytest.mark.parametrize("change", sorted({condition.split("/")[1] for condition in MEASURED}))
def test_groups_are_means_over_texts(change, measure):
    drawn = heads.groups(request("heads", **{"heads.change": change, "heads.measure": measure}))
    table = read_columns(drawn.fig)
    assert table["pairs"] == GROUPS
    for index, pairs in enumerate(GROUPS):
        conditions = {name: f"{pairs}/{change}/{name}" for name in HEADS}
        tick = drawn.fig.layout.xaxis.ticktext[index]
        assert ("n/a" in tick) == (not set(conditions.values()) & set(MEASURED))
        for name, label in HEADS.items():
            if conditions[name] not in MEASURED:
                assert label not in table or np.isnan(table[label][index])
                continue
            if measure == "loss":
                mean, low, high = ends((losses(conditions[name]) - losses("none")).mean(axis=1))
                assert table[f"{label}, low"][index] == pytest.approx(low, abs=1e-6)
                assert table[f"{label}, high"][index] == pytest.approx(high, abs=1e-6)
            else:
                mean = found(conditions[name]).mean()
            assert table[label][index] == pytest.approx(mean, abs=1e-9)
    missing = len(PLANNED) - len(MEASURED)
    assert (f"{missing} of 48 changes are not measured yet" in drawn.sentence) == (missing > 1)


@pytest.mark.skipif(not MEASURED, reason="no change is measured yet")
def test_claims_are_compared_with_the_shipped_rows():
    sentence = describe_claims(load_band_table(), real_spec())
    slow = [f"{pairs}/zero/all" for pairs in GROUPS[5:] if f"{pairs}/zero/all" in MEASURED]
    if slow:
        added = [(losses(each) - losses("none")).mean(axis=1) for each in slow]
        mean, low, high = ends(max(added, key=np.mean))
        assert "Pairs 20–31 complete no turn" in sentence
        assert f"at most **{signed(mean)} nats** ({signed(low)} to {signed(high)})" in sentence
        is_little = all(ends(each)[2] < 0.05 for each in added)
        assert ("agrees with “little effect”" in sentence) == (is_little and len(slow) == 3)
        assert ("not all of these pairs are measured yet" in sentence) == (is_little and len(slow) < 3)
    changed = {name: f"28-31/remove/{name}" for name in ("induction", "random")}
    if set(changed.values()) <= set(MEASURED):
        assert sentence.values["before"] == pytest.approx(found("none").mean())
        assert sentence.values["after"] == pytest.approx(found(changed["induction"]).mean())
        assert sentence.values["random"] == pytest.approx(found(changed["random"]).mean())
        assert "from 7 induction heads" in sentence
    else:
        assert "there is no verdict on “recall falls”" in sentence


def make_table(added=0.0, right=1.0, conditions=PLANNED):
    """A table in which every change adds this to the loss, and removal from induction heads finds `right` of keys."""
    rows = {}
    for text in "1234":
        for condition in conditions:
            share = right if condition.endswith("remove/induction") else 1.0
            rows[f"loss/first/{text}/{condition}"] = {"loss": [3.0 + added + 0.001 * int(text)] * 2}
            rows[f"needle/first/{text}/{condition}"] = {"right": [share] * 5}
        rows[f"loss/first/{text}/none"] = {"loss": [3.0] * 2}
        rows[f"needle/first/{text}/none"] = {"right": [1.0] * 5}
    about = {"block": 512, "depths": [0.1, 0.3, 0.5, 0.7, 0.9], "tokens": {"needle": 4096}, "planned": PLANNED}
    return read_band_table({"about": about, "rows": rows})


@pytest.mark.parametrize(("added", "little"), [(0.01, True), (0.2, False)])
@pytest.mark.parametrize(("right", "falls"), [(0.0, True), (1.0, False)])
def test_the_verdict_on_claims_follows_the_numbers(added, little, right, falls):
    sentence = describe_claims(make_table(added, right), real_spec())
    assert ("agrees with “little effect”" in sentence) == little
    assert ("more than “little effect”" in sentence) != little
    assert ("agrees with “recall falls”" in sentence) == falls
    assert ("does not show “recall falls”" in sentence) != falls


def test_what_is_not_measured_is_not_judged():
    table = make_table(conditions=["0-3/zero/all"])
    sentence = band_groups.describe_groups(table, "zero", "")
    assert "47 of 48 changes are not measured yet" in sentence
    assert "there is no verdict on “little effect”" in sentence
    assert "there is no verdict on “recall falls”" in sentence
    ticks = band_groups.draw_groups(table, "zero", "loss").layout.xaxis.ticktext
    assert list(ticks) == ["0–3", *(WORDS("open.group", pairs=pairs.replace("-", "–")) for pairs in GROUPS[1:])]
    table = make_table(0.0101, conditions=["28-31/zero/all"])
    sentence = describe_claims(table, real_spec())
    assert "at most **+0.013 nats**" in sentence
    assert "not all of these pairs are measured yet" in sentence
    assert "agrees with “little effect”" not in sentence


def test_a_change_that_is_not_measured_is_not_drawn():
    table = make_table(conditions=["28-31/zero/all"])
    assert explain_no_change(table, "zero", "28-31") == explain_no_change(table, "zero") == ""
    assert explain_no_change(table, "zero", "0-3") == "Not measured yet: zero frequency."
    assert explain_no_change(table, "remove") == "Not measured yet: removed from q and k."
    for condition in set(PLANNED) - set(MEASURED):
        pairs, change, _ = condition.split("/")
        asked = request("recall", **{"recall.group": pairs, "recall.change": change})
        assert asked[choices.GROUP] == pairs
        assert asked[choices.CHANGE] == change
        none = not any(each.startswith(f"{pairs}/{change}/") for each in MEASURED)
        assert bool(bands.explain_gap(asked)) == none


def test_only_the_shipped_table_is_compared_with_claims():
    table = make_table(0.2, 0.0)
    assert "little effect" in band_groups.describe_groups(table, "zero", "")
    assert "little effect" not in band_groups.describe_groups(table, "zero", "mine")


def test_the_table_of_a_measured_file_is_drawn_instead(tmp_path):
    rows = {
        f"{measure}/first/{text}/{condition}": row
        for text in "1234"
        for condition, loss in (("none", 2.0), ("slow/divide by 4/L0H1", 2.5))
        for measure, row in (("loss", {"loss": [loss] * 8}), ("needle", {"right": [1.0] * 5}))
    }
    about = {"block": 32, "depths": [0.1, 0.3, 0.5, 0.7, 0.9], "tokens": {"needle": 128}}
    measured_file(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text()) | {"bands": {"about": about, "rows": rows}}
    (tmp_path / "m.json").write_text(json.dumps(content))
    for page, key, draw in (("recall", "recall.measured", bands.band_loss), ("heads", "heads.measured", heads.groups)):
        choice = next(each for each in registry.page(page).choices if each.key == key)
        held = StoredValue("here", choice.decode(choice.load(str(tmp_path / "m.json"))))
        drawn = draw(PictureRequest(request(page).subject, given={key: held}))
        assert "mine" in drawn.title
        assert ("frequency divided by 4: added to the loss" in drawn.sentence) == (page == "recall")
        assert ("**+0.500**" in drawn.sentence) == (page == "recall")
        assert "L0H1" in [trace.name for trace in drawn.fig.data]
        assert "little effect" not in drawn.sentence
