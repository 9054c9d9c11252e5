"""Pictures of a real model with some pairs changed are those of the file's rows, averaged here once more."""

import json
import math

import numpy as np
import pytest

from rope_viz.figures.band_words import describe_claims
from rope_viz.figures.files.csv import read_columns
from rope_viz.pages import heads, registry
from rope_viz.pages.heads import band_groups
from rope_viz.pages.recall import bands
from rope_viz.picture import read_address
from rope_viz.real_models.band_table import load_band_table, read_band_table
from rope_viz.studies.real_model import FOLDER, real_spec

GROUPS = [f"{first}-{first + 3}" for first in range(0, 32, 4)]
TEXTS = ("northangerabbey", "persuasion", "prideprejudice", "emma")
FURTHER = ("mansfieldpark", "sensesensibility", "northangerabbey+40000", "persuasion+40000")
HEADS = {"all": "all heads", "induction": "7 induction heads", "random": "7 random heads"}


@pytest.fixture(scope="module")
def raw():
    return json.loads((FOLDER / "smollm2_bands.json").read_text(encoding="utf-8"))


def request(page, **choices):
    return read_address.read_request(registry.page(page), {"model": "llama-3.1-8b", **choices})


def losses(raw, condition, group="first", texts=TEXTS):
    return np.array([raw["rows"][f"loss/{group}/{text}/{condition}"]["loss"] for text in texts])


def found(raw, condition):
    right = [raw["rows"][f"needle/first/{text}/{condition}"]["right"] for text in TEXTS]
    return np.array([[float(share == 1.0) for share in row] for row in right])


def ends(values):
    """Mean of four values and Student's 95 % interval, written out."""
    mean = sum(values) / 4
    half = 3.182 * math.sqrt(sum((each - mean) ** 2 for each in values) / 3) / 2
    return mean, mean - half, mean + half


def test_table_is_whole_and_names_its_origin(raw):
    about = raw["about"]
    assert about["tokens"] == {"loss": 8192, "needle": 4096}
    assert about["seed"] == 43
    assert about["dtype"] == "float32"
    assert about["device"]
    assert len(about["commit"]) == 40
    assert {"numpy", "torch"} <= set(about["versions"])
    assert len(about["text_sha256"]) == 6
    assert len(about["heads"]["induction"]) == len(about["heads"]["random"]) == 7
    conditions = [f"{pairs}/{how}/{name}" for pairs in GROUPS for how in ("zero", "remove") for name in HEADS]
    expected = {f"{measure}/first/{text}/{each}" for measure in ("loss", "needle") for text in TEXTS
                for each in ("none", *conditions)}  # fmt: skip
    expected |= {
        f"loss/second/{text}/{each}" for text in FURTHER for each in ("none", *(f"{p}/zero/all" for p in GROUPS))
    }
    assert set(raw["rows"]) == expected
    assert {str(each) for each in load_band_table().conditions} == set(conditions)


def test_further_texts_give_the_same_signs(raw):
    signs = []
    for pairs in GROUPS:
        effects = [
            (losses(raw, f"{pairs}/zero/all", *each) - losses(raw, "none", *each)).mean()
            for each in (("first", TEXTS), ("second", FURTHER))
        ]
        if abs(effects[0]) > 0.05:
            signs.append(np.sign(effects[0]) == np.sign(effects[1]))
    assert signs
    assert all(signs)


def test_the_unchanged_model_reads_and_finds(raw):
    assert losses(raw, "none").shape == (4, 16)
    assert 3.0 < losses(raw, "none").mean() < 4.0
    assert found(raw, "none").mean() > 0.8


@pytest.mark.parametrize("change", ["zero", "remove"])
@pytest.mark.parametrize("pairs", ["0-3", "28-31"])
def test_loss_by_position_is_the_mean_difference_of_texts(raw, pairs, change):
    drawn = bands.band_loss(request("recall", **{"recall.group": pairs, "recall.change": change}))
    curves = {trace.name: trace for trace in drawn.fig.data}
    values = {}
    for name, label in HEADS.items():
        added = losses(raw, f"{pairs}/{change}/{name}") - losses(raw, "none")
        np.testing.assert_allclose(curves[label].y, added.mean(axis=0), atol=1e-9)
        wanted = [ends(column) for column in added.T]
        np.testing.assert_allclose(curves[label].customdata, [row[1:] for row in wanted], atol=1e-6)
        values[name] = ends(added.mean(axis=1))
    np.testing.assert_allclose(curves["as it is"].x, (np.arange(16) + 0.5) * 512)
    for name, label in HEADS.items():
        mean, low, high = values[name]
        assert f"**{mean:+.3f}** ({low:+.3f} to {high:+.3f}) in {label}" in drawn.sentence
    assert ("On 4 further texts" in drawn.sentence) == (change == "zero")


def test_needles_by_depth_are_whole_answers(raw):
    drawn = bands.band_needle(request("recall", **{"recall.group": "28-31", "recall.change": "remove"}))
    curves = {trace.name: trace for trace in drawn.fig.data}
    table = read_columns(drawn.fig)
    for label, condition in {"as it is": "none"} | {HEADS[name]: f"28-31/remove/{name}" for name in HEADS}.items():
        wanted = found(raw, condition).mean(axis=0)
        np.testing.assert_allclose(curves[label].y, wanted)
        np.testing.assert_allclose(table[label], wanted)
        assert (table[f"{label}, low"] <= wanted).all()
        assert (table[f"{label}, high"] >= wanted).all()
    assert drawn.sentence.values["before"] == found(raw, "none").mean()
    assert drawn.sentence.values["count"] == 20


@pytest.mark.parametrize("measure", ["loss", "needle"])
@pytest.mark.parametrize("change", ["zero", "remove"])
def test_groups_are_means_over_texts(raw, change, measure):
    drawn = heads.groups(request("heads", **{"heads.change": change, "heads.measure": measure}))
    table = read_columns(drawn.fig)
    assert table["pairs"] == GROUPS
    for name, label in HEADS.items():
        for index, pairs in enumerate(GROUPS):
            if measure == "loss":
                added = losses(raw, f"{pairs}/{change}/{name}") - losses(raw, "none")
                mean, low, high = ends(added.mean(axis=1))
                assert table[f"{label}, low"][index] == pytest.approx(low, abs=1e-6)
                assert table[f"{label}, high"][index] == pytest.approx(high, abs=1e-6)
            else:
                mean = found(raw, f"{pairs}/{change}/{name}").mean()
            assert table[label][index] == pytest.approx(mean, abs=1e-9)


def test_claims_are_compared_with_the_shipped_rows(raw):
    sentence = describe_claims(load_band_table(), real_spec())
    slow = {pairs: (losses(raw, f"{pairs}/zero/all") - losses(raw, "none")).mean(axis=1) for pairs in GROUPS[5:]}
    worst = max(slow.values(), key=np.mean)
    mean, low, high = ends(worst)
    assert "by pairs 20–31." in sentence
    assert f"at most **{mean:+.2f} nats** ({low:+.2f} to {high:+.2f})" in sentence
    assert ("That agrees with “little effect”" in sentence) == all(ends(each)[2] < 0.05 for each in slow.values())
    assert sentence.values["before"] == found(raw, "none").mean()
    assert sentence.values["after"] == found(raw, "28-31/remove/induction").mean()
    assert sentence.values["random"] == found(raw, "28-31/remove/random").mean()
    assert "from 7 induction heads" in sentence


def make_table(added, right):
    """A table in which the slow pairs add this to the loss, and removing them finds `right` of the needles."""
    rows = {}
    for text in "1234":
        for pairs in GROUPS:
            for name in HEADS:
                for how in ("zero", "remove"):
                    key = f"first/{text}/{pairs}/{how}/{name}"
                    share = right if (how, name) == ("remove", "induction") else 1.0
                    rows[f"loss/{key}"] = {"loss": [3.0 + added + 0.001 * int(text)] * 2}
                    rows[f"needle/{key}"] = {"right": [share] * 5}
        rows[f"loss/first/{text}/none"] = {"loss": [3.0] * 2}
        rows[f"needle/first/{text}/none"] = {"right": [1.0] * 5}
    about = {"block": 512, "depths": [0.1, 0.3, 0.5, 0.7, 0.9], "tokens": {"needle": 4096}, "heads": {}}
    return read_band_table({"about": about, "rows": rows})


@pytest.mark.parametrize(("added", "little"), [(0.01, True), (0.2, False)])
@pytest.mark.parametrize(("right", "falls"), [(0.0, True), (1.0, False)])
def test_the_verdict_on_claims_follows_the_numbers(added, little, right, falls):
    sentence = describe_claims(make_table(added, right), real_spec())
    assert ("agrees with “little effect”" in sentence) == little
    assert ("more than “little effect”" in sentence) != little
    assert ("agrees with “recall falls”" in sentence) == falls
    assert ("does not show “recall falls”" in sentence) != falls


def test_only_the_shipped_table_is_compared_with_claims():
    table = make_table(0.2, 0.0)
    assert "little effect" in band_groups.describe_groups(table, "zero", "")
    assert "little effect" not in band_groups.describe_groups(table, "zero", "mine")
