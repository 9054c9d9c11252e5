"""What the layers of a whole model carry, from whole captures and from sums, against float64 mathematics."""

import numpy as np
import pytest

from rope_viz.pages import heads, registry
from rope_viz.pages.heads import whole_model
from rope_viz.picture import choices, read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies.capture_file import CapturedLayer, write_capture
from rope_viz.studies.pair_sums import add_up
from rope_viz.studies.real_model import load_mean_logits, load_sentence, load_sums
from rope_viz.studies.sums_file import SummedLayer, write_sums
from tests.pictures.test_heads import CONFIG

pytestmark = pytest.mark.float32_products

PAGE = registry.page("heads")
RANDOM = np.random.default_rng(0)
LAYERS = {
    number: tuple(RANDOM.normal(0.4, 1.0, (count, 40, 8)).astype(np.float32) for count in (4, 2)) for number in (1, 5)
}
WHOLE, SUMS = "whole", "sums"


@pytest.fixture
def ask(tmp_path):
    """ask(kind, **choices) is a request with a capture of two layers as a file of one kind."""
    path = tmp_path / "capture.safetensors"

    def make(kind, layers=LAYERS, **given):
        if kind == WHOLE:
            whole = {number: CapturedLayer(q, k, scale=0.5, heads=(0, 1, 2, 3)) for number, (q, k) in layers.items()}
            write_capture(path, whole, config=CONFIG, name="mine", dtype="float32")
        else:
            sums = {
                number: SummedLayer(add_up(q, k, 4, "half"), "", 0.5, (0, 1, 2, 3)) for number, (q, k) in layers.items()
            }
            write_sums(path, sums, config=CONFIG, name="mine")
        query = {"model": "rope-viz-reader", **{f"heads.{key}": text for key, text in given.items()}}
        resting = read_address.read_request(PAGE, query)
        held = StoredValue("here", heads.decode(choices.load_file(str(path))))
        return PictureRequest(resting.subject, given={**resting.given, "heads.file": held})

    return make


def pairs_of(x):
    """The pairs of heads as complex numbers."""
    return (x[..., :4] + 1j * x[..., 4:]).astype(np.complex128)


def compute(q, k, name):
    """A quantity by head and pair, from whole tensors."""
    q, k = pairs_of(q), pairs_of(k)
    if name.startswith("energy"):
        energy = (np.abs(q if name == "energy_q" else k) ** 2).sum(axis=1)
        return energy / energy.sum(axis=1, keepdims=True)
    if name == "strength":
        strength = np.abs(q).mean(axis=1) * np.repeat(np.abs(k).mean(axis=1), 2, axis=0)
        return strength / strength.sum(axis=1, keepdims=True)
    x = q if name == "concentration_q" else k
    return np.abs(x.mean(axis=1)) / np.abs(x).mean(axis=1)


@pytest.mark.parametrize("kind", [WHOLE, SUMS])
@pytest.mark.parametrize("name", whole_model.CARRIED)
def test_maps_show_the_quantity_of_whole_tensors(ask, kind, name):
    drawn = heads.layers(ask(kind, carries=name))
    wanted = [compute(*LAYERS[number], name).mean(axis=0) for number in (1, 5)]
    np.testing.assert_allclose(drawn.fig.data[0].z, wanted, rtol=1e-6)
    one = heads.carried(ask(kind, carries=name, of="1"))
    np.testing.assert_allclose(one.fig.data[0].z, compute(*LAYERS[5], name), rtol=1e-6)
    assert "40" in drawn.sentence
    assert "ayer 5" in one.title


@pytest.mark.parametrize("kind", [WHOLE, SUMS])
def test_the_histogram_counts_every_pair_of_every_head(ask, kind):
    drawn = heads.concentration(ask(kind))
    for trace, name in zip(drawn.fig.data, ("concentration_q", "concentration_k"), strict=True):
        values = np.concatenate([compute(*LAYERS[number], name).ravel() for number in (1, 5)])
        counts = [((values >= low / 40) & (values < (low + 1) / 40)).mean() for low in range(40)]
        np.testing.assert_allclose(trace.y, counts, atol=1e-12)


def test_the_curve_from_the_centres_and_its_correlation(ask):
    drawn = heads.rebuilt(ask(WHOLE, of="0", which="2"))
    q, k = pairs_of(LAYERS[1][0][2]), pairs_of(LAYERS[1][1][1])
    turn = 100.0 ** (-np.arange(4) / 4)
    at = whole_model.choose_distances(20)
    centres = [0.5 * (q.mean(axis=0) * k.mean(axis=0).conj() * np.exp(1j * each * turn)).sum().real for each in at]
    rotation = np.exp(1j * np.outer(np.arange(40), turn))
    scores = 0.5 * ((q * rotation) @ (k * rotation).conj().T).real
    exact = [np.diagonal(scores, -each).mean() for each in at]
    line, points = drawn.fig.data
    np.testing.assert_array_equal(points.x, at[1:])
    np.testing.assert_allclose(points.y, exact[1:], atol=1e-5)
    np.testing.assert_allclose(np.array(line.y)[np.isin(line.x, at)], centres[1:], atol=1e-5)
    expected = np.corrcoef(exact[1:], centres[1:])[0, 1]
    assert drawn.sentence.values["value"] == pytest.approx(expected, abs=1e-6)


def test_equal_tokens_are_rebuilt_exactly(ask):
    same = {1: tuple(np.repeat(x[:, :1], 40, axis=1) for x in LAYERS[1])}
    drawn = heads.rebuilt(ask(WHOLE, same, of="0"))
    line, points = drawn.fig.data
    np.testing.assert_allclose(np.array(line.y)[np.isin(line.x, points.x)], points.y, atol=1e-5)
    assert drawn.sentence.values["value"] == pytest.approx(1.0, abs=1e-6)
    assert float(np.min(compute(*same[1], "concentration_q"))) == pytest.approx(1.0)


def test_pictures_that_need_whole_tensors_say_so(ask):
    request = ask(SUMS)
    for picture in (heads.distance, heads.attention, heads.pairs, heads.rebuilt):
        assert "sums over tokens" in picture.refuses(request)
        with pytest.raises(ValueError, match="whole q and k"):
            picture(request)
    whole, sums = heads.across(ask(WHOLE)), heads.across(request)
    order = heads.looked(ask(WHOLE)).order
    np.testing.assert_allclose(np.array(sums.fig.data[0].z)[list(order)], whole.fig.data[0].z, rtol=1e-6)


def test_nonfinite_values_are_reported(ask):
    bad = {number: (q.copy(), k) for number, (q, k) in LAYERS.items()}
    bad[5][0][0, 0, 0] = np.nan
    assert "not finite" in heads.layers.refuses(ask(WHOLE, bad))


def test_the_shipped_sums_fit_the_shipped_sentence():
    """Sums of novels are of another text, so strengths agree roughly, and the sizes exactly."""
    sums, sentence = load_sums(), load_sentence()[0]
    assert sums.layers == sentence.layers
    distances, exact = load_mean_logits()
    found = []
    for number in sums.layers:
        layer, whole = sums.layer(number), sentence.layer(number)
        assert layer.sums.q.shape == (4, len(whole.q), whole.q.shape[2] // 2)
        assert exact[number].shape == (len(whole.q), len(distances))
        both = add_up(whole.q, whole.k, 32, "half").energies()[0], layer.sums.energies()[0]
        found.append(np.corrcoef(both[0].ravel(), both[1].ravel())[0, 1])
    assert min(found) > 0.8
    assert float(np.median(found)) > 0.95


def test_the_centres_of_the_real_model_give_its_mean_logits():
    """Two computations: the exact means over all pairs of tokens, and the products of the means of q and k."""
    query = [{"heads.tab": "whole", "heads.of": str(layer)} for layer in range(30)]
    requests = [read_address.read_request(PAGE, {"model": "llama-3.1-8b", **each}) for each in query]
    correlations = [one.correlation for request in requests for one in heads.rebuilt_heads(request)]
    assert len(correlations) == 270
    assert float(np.median(correlations)) > 0.99
