"""The real model's pictures on Heads show what the files of measurements hold, for the chosen head and rotation."""

import json

import numpy as np
import pytest

from rope_viz.pictures import heads, real_heads, registry
from rope_viz.studies.real_model import FOLDER, load_heads

PAGE = registry.page("heads")
FILE = json.loads((FOLDER / "smollm2_heads.json").read_text(encoding="utf-8"))


def now(**given):
    return registry.read_request(
        PAGE, {"model": "llama-3.1-8b"} | {f"heads.{key}": text for key, text in given.items()}
    )


def test_a_cell_of_the_map_is_the_entry_of_the_menu():
    fig = heads.jobs(now()).fig
    rows, columns = np.shape(fig.data[0].z)
    names = list(real_heads.list_heads())
    assert (rows, columns, len(names)) == (9, 30, 270)
    for name in ("L0H0", "L16H0", "L29H8"):
        layer, head = map(int, name.removeprefix("L").split("H"))
        assert names[layer * rows + head] == name
        score = FILE["rows"][name]["jobs"]["first token"]["score"]
        assert fig.data[0].z[head][layer] == pytest.approx(score)


def test_the_chosen_head_shows_the_numbers_of_the_file():
    row = FILE["rows"]["L18H6"]["jobs"]["induction"]
    drawn = heads.uses(now(real="L18H6"))
    np.testing.assert_allclose(drawn.fig.data[0].y, row["margin"])
    assert drawn.sentence.values["first"] == 20  # 8,192 · 100,000^(−2i/64) < 2π from i = 20 on
    bar = heads.changed(now(real="L18H6")).fig.data[0]
    found = dict(zip(bar.y, bar.x, strict=True))
    assert (found["as trained"], found["linear × 2"]) == (row["score"], row["changed"]["linear 2"])


def test_a_head_without_a_job_says_why_there_is_no_score():
    assert "does not look one token back" in heads.changed.refuses(now(real="L0H0"))
    with pytest.raises(ValueError, match="does not look one token back"):
        heads.changed(now(real="L0H0"))
    np.testing.assert_allclose(heads.uses(now(real="L0H0")).fig.data[0].y, FILE["rows"]["L0H0"]["margin"])


def test_attention_on_the_sentence_is_that_of_rotated_q_and_k():
    head = load_heads().heads[16, 0]
    capture, tokens = real_heads.load_sentence()
    layer = capture.layer(16)
    q, k = layer.q[0].astype(float), layer.k[0].astype(float)
    # RoPE written out: pairs (i, i + 32), angle position · base^(−2i/64) / 2 under linear interpolation by 2.
    angle = np.outer(np.arange(len(tokens)), 100_000.0 ** (-np.arange(32) / 32)) / 2
    q, k = ((x[:, :32] + 1j * x[:, 32:]) * np.exp(1j * angle) for x in (q, k))
    logits = np.where(np.tri(len(tokens)) > 0, (q @ k.conj().T).real / 8, -np.inf)
    wanted = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(real_heads.attend(head, real_heads.scaled_spec("linear 2")), wanted, atol=1e-5)
    assert "28 tokens" in heads.sentence(now()).sentence
