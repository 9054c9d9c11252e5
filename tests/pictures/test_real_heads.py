"""The real model's pictures on Heads show what the files of measurements hold, for the chosen head and rotation."""

import json

import numpy as np
import pytest

from rope_viz.pages import heads, registry
from rope_viz.picture import read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.real_models.measured_file import SCALED
from rope_viz.studies import real_model
from rope_viz.studies.real_model import FOLDER, JOBS, load_heads

pytestmark = pytest.mark.float32_products

PAGE = registry.page("heads")
FILE = json.loads((FOLDER / "smollm2_heads.json").read_text(encoding="utf-8"))


def picture_request(**given):
    return read_address.read_request(
        PAGE, {"model": "llama-3.1-8b"} | {f"heads.{key}": text for key, text in given.items()}
    )


def test_a_cell_of_the_map_is_the_entry_of_the_menu():
    fig = heads.jobs(picture_request()).fig
    rows, columns = np.shape(fig.data[0].z)
    names = list(heads.list_heads(load_heads()))
    assert (rows, columns, len(names)) == (9, 30, 270)
    for name in ("L0H0", "L16H0", "L29H8"):
        layer, head = map(int, name.removeprefix("L").split("H"))
        assert names[layer * rows + head] == name
        score = FILE["rows"][name]["jobs"]["first token"]["score"]
        assert fig.data[0].z[head][layer] == pytest.approx(score)


def test_the_chosen_head_shows_the_numbers_of_the_file():
    row = FILE["rows"]["L18H6"]["jobs"]["induction"]
    drawn = heads.uses(picture_request(real="L18H6"))
    np.testing.assert_allclose(drawn.fig.data[0].y, row["margin"])
    assert drawn.sentence.values["first"] == 20  # 8,192 · 100,000^(−2i/64) < 2π from i = 20 on
    bar = heads.changed(picture_request(real="L18H6")).fig.data[0]
    found = dict(zip(bar.y, bar.x, strict=True))
    assert (found["as trained"], found["linear × 2"]) == (row["score"], row["changed"]["linear 2"])


def test_a_head_without_a_job_says_why_there_is_no_score():
    assert "does not look one token back" in heads.changed.refuses(picture_request(real="L0H0"))
    with pytest.raises(ValueError, match="does not look one token back"):
        heads.changed(picture_request(real="L0H0"))
    np.testing.assert_allclose(heads.uses(picture_request(real="L0H0")).fig.data[0].y, FILE["rows"]["L0H0"]["margin"])


def test_attention_on_the_sentence_is_that_of_rotated_q_and_k():
    head = load_heads().heads[16, 0]
    capture, tokens = real_model.load_sentence()
    layer = capture.layer(16)
    q, k = layer.q[0].astype(float), layer.k[0].astype(float)
    # RoPE written out: pairs (i, i + 32), angle position · base^(−2i/64) / 2 under linear interpolation by 2.
    angle = np.outer(np.arange(len(tokens)), 100_000.0 ** (-np.arange(32) / 32)) / 2
    q, k = ((x[:, :32] + 1j * x[:, 32:]) * np.exp(1j * angle) for x in (q, k))
    logits = np.where(np.tri(len(tokens)) > 0, (q @ k.conj().T).real / 8, -np.inf)
    wanted = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(heads.attend(head, heads.scaled_spec("linear 2")), wanted, atol=1e-5)
    assert "28 tokens" in heads.sentence(picture_request()).sentence


def measured_file(path, *, layers=2, heads=3, pairs=4, changed=True):
    """Write the file of a measured model of which head 1 of layer 1 looks one token back."""
    rows = {}
    for layer in range(layers):
        for head in range(heads):
            jobs = {job: {"score": 0.1, "share": 0.0} for job in JOBS}
            if (layer, head) == (1, 1):
                scores = {"zero": 0.05} | (dict.fromkeys(SCALED, 0.3) if changed else {})
                jobs["previous token"] = {"score": 0.9, "share": 1.0, "margin": [4.0, 3.0, 2.0, 1.0], "changed": scores}
            rows[f"L{layer}H{head}"] = {"jobs": jobs, "strength": [1.0] * pairs, "margin": [0.5] * pairs}
    config = {"model_type": "llama", "hidden_size": 24, "num_attention_heads": 3, "head_dim": 8}
    config |= {"max_position_embeddings": 64, "rope_theta": 100.0}
    about = {"model": "mine", "config": config, "kinds": {}, "tokens": 128, "sequences": 1}
    loss = {"factor": 2.0, "tokens": 256, "block": 32, "methods": {"none": [3.0] * 8, "yarn": [2.5] * 8}}
    content = {"kind": "rope-viz measure", "version": 1, "about": about, "rows": rows, "loss": loss}
    path.write_text(json.dumps(content))
    return content


def own(path, **given):
    held = StoredValue("here", heads.MEASURED.decode(heads.MEASURED.load(str(path))))
    resting = picture_request()
    return PictureRequest(resting.subject, given={**given, "heads.measured": held})


def test_measured_file_replaces_the_map(tmp_path):
    measured_file(tmp_path / "m.json")
    asked = own(tmp_path / "m.json")
    drawn = heads.jobs(asked)
    assert np.shape(drawn.fig.data[0].z) == (3, 2)
    assert drawn.title == "Jobs of the heads of mine"
    assert drawn.sentence.startswith("**1 of 6** heads of mine")
    assert "one piece of your text" in drawn.sentence
    assert asked[heads.CHOSEN] == "L1H1"
    uses = heads.uses(asked)
    np.testing.assert_allclose(uses.fig.data[0].y, [4.0, 3.0, 2.0, 1.0])
    assert uses.sentence.values["first"] == 3  # 64 · 100^(−2i/8) < 2π from i = 3 on
    assert "0.30" in heads.changed(asked).sentence
    assert "SmolLM2 135M only" in heads.sentence.refuses(asked)


@pytest.mark.parametrize("picture", [heads.jobs, heads.uses, heads.changed, heads.sentence], ids=lambda each: each.name)
def test_same_head_of_two_models_is_not_one_cached_picture(tmp_path, picture):
    measured_file(tmp_path / "m.json")
    mine = own(tmp_path / "m.json", **{"heads.real": "L1H1"})
    assert picture.cache_key(mine) != picture.cache_key(picture_request(real="L1H1"))


def test_scaled_model_has_a_map_and_no_other_rotation(tmp_path):
    measured_file(tmp_path / "m.json", changed=False)
    asked = own(tmp_path / "m.json")
    assert "blurs" not in heads.jobs(asked).sentence
    assert "scaled already" in heads.changed.refuses(asked)


def test_a_head_that_the_file_does_not_have_is_its_default(tmp_path):
    measured_file(tmp_path / "m.json")
    assert own(tmp_path / "m.json", **{"heads.real": "L29H8"})[heads.CHOSEN] == "L1H1"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "other"}, "holds no measurement"),
        ({"version": 2}, "must be of version 1"),
        ({"rows": {}}, "every head of every layer"),
        ({"loss": {"factor": 2.0, "tokens": 256, "block": 32, "methods": {"none": [1.0]}}}, "list of 8 numbers"),
        ({"loss": None}, "must be an object"),
    ],
)
def test_wrong_measurement_is_a_sentence(tmp_path, change, sentence):
    content = measured_file(tmp_path / "m.json")
    (tmp_path / "m.json").write_text(json.dumps(content | change))
    with pytest.raises(ValueError, match=sentence):
        own(tmp_path / "m.json")


@pytest.mark.parametrize("wrong", [None, [], -1, 9e9, "x", {"a": 1}, [1.0] * 9])
def test_wrong_value_in_a_head_is_a_sentence(tmp_path, wrong):
    for place in ((), ("jobs",), ("strength",), ("jobs", "previous token", "score"), ("jobs", "induction")):
        content = measured_file(tmp_path / "m.json")
        inner = content["rows"]
        for key in ("L1H1", *place)[:-1]:
            inner = inner[key]
        inner[("L1H1", *place)[-1]] = wrong
        (tmp_path / "m.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"\w"):
            own(tmp_path / "m.json")


def test_truncated_measurement_is_a_sentence(tmp_path):
    measured_file(tmp_path / "m.json")
    content = (tmp_path / "m.json").read_bytes()
    with pytest.raises(ValueError, match="not whole JSON"):
        heads.MEASURED.decode(b"m.json\0" + content[:100])
