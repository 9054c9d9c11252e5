"""The numbers in the sentences of the Rotation page, against float64 mathematics computed here."""

import math

import numpy as np
import pytest

from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import clocks
from rope_viz.pages.rotation import words as rotation
from rope_viz.studies.conversion import conversion_mistakes
from tests.figures.specs import TAU, every, near, plain, scaled, turning_share


@every
def test_turning_gives_the_wavelengths_of_both_ends(spec):
    sentence = rotation.describe_dials(spec)
    rotating = [(pair, each) for pair, each in enumerate(scaled(spec)) if each]
    assert ("wavelengths.zero" in sentence.entries) == (not rotating)
    if not rotating:
        return
    changed = any(share and abs(share - 1.0) > 1e-9 for share in turning_share(spec))
    mark = "scaled_" if changed else ""
    assert (sentence.values["first"], sentence.values["last"]) == (rotating[0][0], rotating[-1][0])
    assert sentence.values[f"{mark}shortest"] == near(TAU / rotating[0][1])
    assert sentence.values[f"{mark}longest"] == near(TAU / rotating[-1][1])


@every
def test_turning_counts_unfinished_and_zero_frequencies(spec):
    values = rotation.describe_turning(spec).values
    pairs = list(zip(plain(spec), scaled(spec), strict=True))
    zero = sum(request == 0.0 for _, request in pairs)
    if zero < spec.pairs:
        assert (values["pairs"], values["zero"]) == (spec.pairs, zero)
        assert values["slow"] == sum(request != 0.0 and spec.context * was < TAU for was, request in pairs)
        assert (values["context"], values["length_name"]) == (spec.context, spec.length_name)


@every
def test_score_counts_the_pairs_that_rotate(spec):
    rotating = sum(each != 0.0 for each in scaled(spec))
    sentence = rotation.describe_dials(spec, "score")
    assert sentence.values["rotating"] == rotating
    assert ("score.one_all" in sentence.entries) == (rotating == spec.pairs)
    assert ("score.one_none" in sentence.entries) == (rotating == 0)


@every
def test_matrix_counts_the_entries_that_can_be_nonzero(spec):
    size, sentence = spec.head_dim, rotation.describe_matrix(spec)
    assert ("matrix.too_large" in sentence.entries) == (size > 1024)
    assert sentence.values["size"] == size
    if size <= 1024:
        # A rotating pair fills a block of four entries; every other dimension has a one on the diagonal.
        rotating = sum(each != 0.0 for each in scaled(spec))
        assert sentence.values["filled"] == 4 * rotating + (size - 2 * rotating)
        assert sentence.values["entries"] == size * size


@every
def test_forms_give_the_number_of_multiplications(spec):
    values = rotation.compare_forms(spec).values
    assert (values["dense"], values["sparse"]) == (spec.head_dim**2, 4 * spec.pairs)


@every
def test_mistakes_give_the_error_of_each_wrong_conversion(spec):
    mistakes = conversion_mistakes(spec, np.arange(64), length=spec.target)
    sentence = rotation.describe_mistakes(spec, mistakes)
    assert ("mistakes.one_pair" in sentence.entries) == (spec.pairs == 1)
    no_factor = spec.pairs > 1 and spec.attention_factor(spec.target) == 0.0
    assert ("mistakes.no_factor" in sentence.entries) == no_factor
    if spec.pairs == 1 or no_factor:
        return
    scores = {each.name: each.scores for each in mistakes}
    size = math.sqrt(sum(each**2 for each in scores["both"])) or 1.0
    errors = {
        name: math.sqrt(sum((a - b) ** 2 for a, b in zip(each, scores["both"], strict=True))) / size
        for name, each in scores.items()
    }
    assert ("mistakes.none_right" in sentence.entries) == (errors["none"] == 0.0)
    for name in ("none", "q", "k"):
        assert sentence.values.get(name, 0.0) == pytest.approx(errors[name], rel=1e-9)


@pytest.mark.parametrize(("head_dim", "entry"), [(2, "one"), (512, "all"), (1024, "some")])
def test_title_of_the_dials_counts_them(head_dim, entry):
    title = clocks.title(RopeSpec(head_dim=head_dim), "turn")
    assert f"dials.{entry}" in title.entries
    assert (title.values["pairs"], title.values["most"]) == (head_dim // 2, 256)
