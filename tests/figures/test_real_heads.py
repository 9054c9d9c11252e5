"""The map of a real model's heads shows every job, and its bars show the measured numbers."""

import json
import re

import numpy as np
import pytest

from rope_viz.embedding.scaling import Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.embedding.spectrum import bands
from rope_viz.figures import theme
from rope_viz.pages.heads import figures
from rope_viz.studies.real_model import JOBS, read_heads

pytestmark = pytest.mark.float32_products


def row(**scores):
    jobs = {job: {"score": 0.1, "share": 0.0} for job in JOBS}
    for job, score in scores.items():
        changed = {"zero": 0.0, "linear 2": 0.1, "yarn 2": 0.7}
        jobs[job.replace("_", " ")] = {"score": score, "share": 0.75, "margin": [4.0, 1.0, 0.5], "changed": changed}
    return {"jobs": jobs, "strength": [1.0, 2.0, 3.0], "margin": [0.3, 0.2, 0.1]}


HEADS = read_heads(
    {
        "about": {"tokens": 512},
        "rows": {
            "L0H0": row(),
            "L0H1": row(previous_token=0.77),
            "L1H0": row(first_token=0.9),
            "L1H1": row(induction=0.6, same_token=0.4),
        },
    }
)
SPEC = RopeSpec(head_dim=6, context=64, target=128, scaling=Yarn(factor=2.0))


def test_every_job_has_its_letter_on_the_map():
    fig = figures.job_map(HEADS, (0, 1))
    shade, jobs, *marks = fig.data
    # A head with two jobs has both letters and the colour of the first.
    assert [(mark.text, tuple(mark.x), tuple(mark.y)) for mark in marks] == [
        (("P",), (0,), (1,)),
        (("IS",), (1,), (1,)),
        ((), (), ()),
    ]
    np.testing.assert_array_equal(jobs.z, [[np.nan, np.nan], [0, 1]])
    assert [colour for _, colour in jobs.colorscale][::2] == [mark.marker.color for mark in marks]
    np.testing.assert_allclose(shade.z, [[0.1, 0.9], [0.1, 0.1]])
    assert "Previous token 0.77 (75%)" in shade.customdata[1][0]
    outline = fig.layout.shapes[0]
    assert (outline.x0, outline.x1, outline.y0, outline.y1) == (-0.5, 0.5, 0.5, 1.5)


def test_repeated_words_of_the_sentence_are_numbered():
    words = ["Paris", "and", "Rome", "and", "Paris"]
    fig = figures.sentence_attention([("as trained", np.eye(5)), ("linear", np.eye(5))], words)
    assert list(fig.data[0].x) == ["Paris₁", "and₁", "Rome", "and₂", "Paris₂"]
    assert np.isnan(fig.data[1].z[np.triu_indices(5, 1)]).all()


def test_bars_show_margins_and_changed_scores():
    head = HEADS.heads[0, 1]
    np.testing.assert_array_equal(figures.pair_margins(head, "previous token", bands(SPEC)).data[0].y, [4, 1, 0.5])
    np.testing.assert_array_equal(figures.pair_margins(head, None, bands(SPEC)).data[0].y, [0.3, 0.2, 0.1])
    bar = figures.changed_scores(head, "previous token").data[0]
    assert dict(zip(bar.y, bar.x, strict=True)) == {"as trained": 0.77, "linear × 2": 0.1, "YaRN × 2": 0.7}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.job_map(HEADS),
        lambda: figures.pair_margins(HEADS.heads[1, 1], "induction", bands(SPEC)),
        lambda: figures.changed_scores(HEADS.heads[1, 1], "induction"),
    ],
)
def test_colours_have_dark_twins_and_axes_have_titles(draw):
    fig = draw()
    assert set(re.findall(r'"(#[0-9A-Fa-f]{6})"', json.dumps(fig.to_plotly_json(), default=str))) <= set(theme.DARK)
    assert fig.layout.xaxis.title.text
