"""The hands of a query and a key: the pairs that are chosen, exact angles, and the static picture."""

import json
import math

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import hands
from rope_viz.models.catalog import catalog, main_layer, model_specs
from tests.offenders import for_each

LLAMA = model_specs("llama-3.1-8b")[""]


def test_pairs_of_llama_turn_slowly_enough_to_be_followed():
    found = hands.message(LLAMA, "Llama 3.1 8B")
    degrees = np.degrees(LLAMA.inv_freq(LLAMA.target))
    assert (found["pair"], found["few"]) == (8, [4, 8, 12, 16])
    assert degrees[8] == pytest.approx(11.1, abs=0.05)
    assert degrees[0] == pytest.approx(57.3, abs=0.05)
    np.testing.assert_array_equal(json.loads(json.dumps(found))["inv_freq"], LLAMA.inv_freq(LLAMA.target))


@for_each(list(catalog()))
def test_shown_pair_of_every_model_turns_visibly(model):
    spec = model_specs(model)[main_layer(catalog()[model], model_specs(model))]
    found = hands.message(spec)
    step = math.degrees(found["inv_freq"][found["pair"]])
    assert 5 < step < 25
    assert len(found["few"]) in (3, 4)


@pytest.mark.parametrize("dim", [2, 4])
def test_embeddings_of_one_or_two_pairs_are_shown(dim):
    spec = RopeSpec(head_dim=dim)
    found = hands.message(spec)
    assert 1 <= len(found["few"]) <= spec.pairs
    assert hands.draw_static(found).data


def test_embedding_without_rotation_has_angle_zero():
    found = hands.message(LLAMA) | {"inv_freq": [0.0] * 64}
    assert hands.nearest_pair(np.zeros(64), 11.1) == 0
    assert hands.describe(found).values["angle"] == "0.0"
    assert hands.describe(found).values["score"] == "1.00"


@pytest.mark.parametrize(("degrees", "folded"), [(0, 0), (66.7, 66.7), (-90, 90), (180, 180), (190, 170), (725, 5)])
def test_angle_between_hands_is_at_most_half_a_turn(degrees, folded):
    assert hands.fold_angle(degrees) == pytest.approx(folded)


def test_sentence_has_the_numbers_of_the_picture():
    sentence = hands.describe(hands.message(LLAMA, "Llama 3.1 8B"))
    assert sentence.startswith("In pair 8 of Llama 3.1 8B, each position turns a hand by 11.1°.")
    assert sentence.endswith("are 6 tokens apart: 66.7°, score 0.40.")


def test_static_hands_point_at_their_angles():
    found = hands.message(LLAMA, "Llama 3.1 8B")
    fig, step = hands.draw_static(found), LLAMA.inv_freq(LLAMA.target)[8]
    ends = {trace.name: math.atan2(trace.y[-1], trace.x[-1]) for trace in fig.data if trace.name in ("query", "key")}
    assert ends == pytest.approx({"query": 7 * step, "key": step})
    text = " ".join(note.text for note in fig.layout.annotations)
    assert "66.7°" in text
    assert "score = cos 66.7° = <b>0.40</b>" in text


def test_table_has_the_cosine_of_every_pair():
    found = hands.draw_static(hands.message(LLAMA)).table()
    np.testing.assert_allclose(found["its cosine"], np.cos(6 * LLAMA.inv_freq(LLAMA.target)))
    np.testing.assert_allclose(np.cos(np.radians(found["angle between (degrees)"])), found["its cosine"], atol=1e-12)
