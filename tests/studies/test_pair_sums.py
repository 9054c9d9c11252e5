"""Sums over tokens give the statistics of whole tensors, add up over shards, and survive their file."""

import json

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.identity.local_models import MODELS
from rope_viz.studies.capture_file import CapturedLayer, read_capture, write_capture
from rope_viz.studies.heads import Heads, pair_statistics, statistics_of_sums
from rope_viz.studies.pair_sums import add_up
from rope_viz.studies.sums_file import (
    SummedLayer,
    add_files,
    read_capture_or_sums,
    read_sums,
    write_sums,
)
from rope_viz.studies.tensors import encode_tensors, open_tensors
from tests.configs import llama
from tests.tiny_lm.gguf_writer import write_small_model

pytestmark = pytest.mark.float32_products

CONFIG = llama(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_hidden_layers=2)
EXACT = 1e-12


def draw(seed=0, tokens=70, heads=4, keys=2, dim=16):
    """q and k with directions that are not spread evenly."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(0.7, 1.0, (count, tokens, dim)).astype(np.float32) for count in (heads, keys))


def as_complex(x, pairs, pairing):
    """The pairs of heads as complex numbers, and the rest in twos, by slices."""
    x = x.astype(np.float64)
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    if pairing == "half":
        found = turned[..., :pairs] + 1j * turned[..., pairs:]
    else:
        found = turned[..., 0::2] + 1j * turned[..., 1::2]
    return np.concatenate([found, rest[..., 0::2] + 1j * rest[..., 1::2]], axis=-1)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("pairs", [8, 5])
def test_statistics_of_sums_are_those_of_whole_tensors(pairs, pairing):
    q, k = draw()
    sums = sum(
        (add_up(q[:, part], k[:, part], pairs, pairing) for part in (slice(21, 50), slice(50, 70))),
        start=add_up(q[:, :21], k[:, :21], pairs, pairing),
    )
    found = statistics_of_sums(sums, 0.25)
    whole_q, whole_k = (as_complex(x, pairs, pairing) for x in (q, np.repeat(k, 2, axis=0)))
    strength = 0.25 * np.abs(whole_q).mean(axis=1) * np.abs(whole_k).mean(axis=1)
    np.testing.assert_allclose(found.strength, strength, rtol=EXACT)
    for share, values in ((found.energy_q, whole_q), (found.energy_k, whole_k)):
        energy = (np.abs(values) ** 2).sum(axis=1)
        np.testing.assert_allclose(share, energy / energy.sum(axis=1, keepdims=True), rtol=EXACT)
    centre = whole_q.mean(axis=1) * whole_k.mean(axis=1).conj()
    np.testing.assert_allclose(found.steady, np.abs(centre) / (strength / 0.25), rtol=EXACT)
    np.testing.assert_allclose(found.phase, -np.angle(centre), rtol=EXACT, atol=EXACT)
    concentrated, of_keys = sums.concentrations()
    np.testing.assert_allclose(concentrated, np.abs(whole_q.mean(axis=1)) / np.abs(whole_q).mean(axis=1), rtol=EXACT)
    assert of_keys.shape == (2, whole_q.shape[2])
    whole = pair_statistics(Heads(q, k, pairing, 0.25), pairs)
    for name in ("strength", "energy_q", "energy_k", "steady", "phase"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=EXACT, atol=EXACT)


def test_products_with_means_follow_from_the_means():
    q, k = draw()
    mean_q, mean_k = add_up(q, k, 8, "half").means()
    whole_q, whole_k = (as_complex(x, 8, "half") for x in (q, np.repeat(k, 2, axis=0)))
    np.testing.assert_allclose(
        mean_q * mean_k.conj(), (whole_q * whole_k.mean(axis=1, keepdims=True).conj()).mean(axis=1)
    )
    np.testing.assert_allclose(
        mean_q * mean_k.conj(), (whole_q.mean(axis=1, keepdims=True) * whole_k.conj()).mean(axis=1)
    )


def test_a_head_without_length_has_no_concentration():
    q, k = (np.zeros_like(x) for x in draw())
    sums = add_up(q, k, 8, "half")
    assert not sums.concentrations()[0].any()
    assert (sums.energies()[0] == 1 / 8).all()


def summed(seed, layers=(0, 1), tokens=70):
    """Sums of some layers of one text."""
    return {
        number: SummedLayer(add_up(*draw(10 * seed + number, tokens), 8, "half"), "", 0.25, (0, 1, 2, 3))
        for number in layers
    }


def test_files_of_texts_and_of_layers_add_up(tmp_path):
    paths = [tmp_path / f"{number}.safetensors" for number in range(3)]
    parts = [summed(0), summed(1, tokens=31), summed(2, layers=(2, 3))]
    for path, layers in zip(paths, parts, strict=True):
        write_sums(path, layers, config=CONFIG, name="a model")
    found = add_files(paths)
    assert found.layers == (0, 1, 2, 3)
    assert [found.summed[number].sums.tokens for number in found.layers] == [101, 101, 70, 70]
    for number in (0, 1):
        np.testing.assert_array_equal(found.summed[number].sums.q, parts[0][number].sums.q + parts[1][number].sums.q)
    np.testing.assert_array_equal(found.summed[3].sums.k, parts[2][3].sums.k)
    assert found.spec(0) == RopeSpec(head_dim=16, base=10000.0, context=2048, target=2048) or found.spec(0).pairs == 8
    out = tmp_path / "all.safetensors"
    assert main(("capture", "--add", *map(str, paths), "-o", str(out))) == 0
    np.testing.assert_array_equal(read_sums(out).summed[1].sums.q, found.summed[1].sums.q)
    write_sums(paths[1], summed(1), config={**CONFIG, "rope_theta": 5e5}, name="another")
    with pytest.raises(ValueError, match="different configs"):
        add_files(paths)
    assert main(("capture", "--add", *map(str, paths), "-o", str(out))) == 2


def test_each_file_names_the_command_for_the_other(tmp_path):
    whole, sums = tmp_path / "whole.safetensors", tmp_path / "sums.safetensors"
    q, k = draw()
    write_capture(whole, {0: CapturedLayer(q, k, heads=(0, 1, 2, 3))}, config=CONFIG, name="a model")
    write_sums(sums, summed(0), config=CONFIG, name="a model")
    with pytest.raises(ValueError, match="capture again without --sums"):
        read_capture(sums)
    with pytest.raises(ValueError, match="rope-viz capture --sums"):
        read_sums(whole)
    assert read_capture_or_sums(whole).layer(0).q.shape == q.shape
    assert read_capture_or_sums(sums.read_bytes()).layer(0).sums.tokens == 70


def test_sums_of_a_layer_take_about_100_kb(tmp_path):
    """32 query heads, 8 key heads and 64 pairs, as in Llama 3.1 8B."""
    config = llama(hidden_size=4096, num_attention_heads=32, num_key_value_heads=8, head_dim=128, num_hidden_layers=1)
    sums = add_up(*draw(0, 3, 32, 8, 128), 64, "half")
    path = tmp_path / "sums.safetensors"
    write_sums(path, {0: SummedLayer(sums, "", 1.0, tuple(range(32)))}, config=config, name="a model")
    assert path.stat().st_size < 100_000


def change(path, about=None, tensors=None):
    """Write a file of sums again with other metadata or tensors."""
    file = open_tensors(path)
    held = {name: file.read_tensor(name) for name in file.entries} | (tensors or {})
    metadata = json.loads(file.metadata["rope_viz"])
    (about or (lambda _: None))(metadata)
    path.write_bytes(b"".join(encode_tensors(held, {"rope_viz": json.dumps(metadata)})))


@pytest.mark.parametrize(
    ("about", "tensors", "message"),
    [
        (lambda found: found["layers"]["0"].update(tokens=0), {}, "tokens of layer 0"),
        (lambda found: found["layers"]["0"].update(scale=-1), {}, "scale of layer 0"),
        (lambda found: found["layers"]["0"].update(heads=[0]), {}, "one number per head"),
        (lambda found: found["layers"]["0"].update(kind="other"), {}, "layer type"),
        (lambda found: found["layers"].pop("1"), {}, "nothing else"),
        (lambda found: found.update(layers={}), {}, "a config and layers"),
        (None, {"layers.0.q": np.zeros((3, 4, 8))}, r"must be \(4, heads, pairs\)"),
        (None, {"layers.0.q": np.full((4, 4, 8), np.nan)}, "no tokens add up to"),
        (None, {"layers.0.k": np.full((4, 2, 8), -1.0)}, "no tokens add up to"),
        (None, {"layers.0.q": np.zeros((4, 4, 7)), "layers.0.k": np.zeros((4, 2, 7))}, "7 pairs"),
    ],
)
def test_files_that_no_capture_wrote_are_refused(about, tensors, message, tmp_path):
    path = tmp_path / "sums.safetensors"
    write_sums(path, summed(0), config=CONFIG, name="a model")
    change(path, about, tensors)
    with pytest.raises(ValueError, match=message):
        read_sums(path)


def capture(model, folder, name, *flags):
    """The sums that the command captures."""
    path = folder / name
    words = ("capture", str(model), "--text", str(folder / "text.txt"), "--sums", "-o", str(path), *flags)
    assert main(words) == 0
    return read_sums(path)


def compare_shards(model, folder, tokens):
    """Compare sums of two shards with those of one run, and with the whole tensors of its first piece."""
    whole = capture(model, folder, "whole.safetensors", "--tokens", tokens)
    for number in "01":
        capture(model, folder, f"{number}.safetensors", "--tokens", tokens, "--shard", f"{number}/2")
    added = add_files([folder / "0.safetensors", folder / "1.safetensors"])
    assert added.layers == whole.layers
    for number in whole.layers:
        one, other = whole.summed[number].sums, added.summed[number].sums
        assert one.tokens == other.tokens > int(tokens)
        for sums, again in ((one.q, other.q), (one.k, other.k)):
            # A sum of numbers of both signs is as exact as its terms are large.
            room = np.concatenate([sums[2:3], sums[2:3], sums[2:]])
            assert (np.abs(sums - again) <= EXACT * room).all()
    words = ("capture", str(model), "--text", str(folder / "text.txt"), "--tokens", tokens, "--dtype", "float32")
    assert main((*words, "-o", str(folder / "tensors.safetensors"))) == 0
    first = text_of_first_piece(model, folder, int(tokens))
    tensors = read_capture(folder / "tensors.safetensors")
    for number in tensors.layers:
        layer, spec = tensors.layer(number), tensors.spec(number)
        expected = pair_statistics(layer.as_heads(spec), spec.pairs)
        found = statistics_of_sums(first.summed[number].sums, first.summed[number].scale)
        for name in ("strength", "energy_q", "energy_k", "steady"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=EXACT, atol=EXACT)


def text_of_first_piece(model, folder, tokens):
    """The sums of the first piece alone: one shard of so many that it has no other."""
    return capture(model, folder, "first.safetensors", "--tokens", str(tokens), "--shard", "0/9999")


def test_two_shards_add_up_to_the_run_in_one_piece(tmp_path, capsys):
    pytest.importorskip("tokenizers")
    write_small_model(tmp_path / "small.gguf")
    rng = np.random.default_rng(0)
    (tmp_path / "text.txt").write_text("".join(rng.choice(list("abcdefgh the in"), 2000)))
    compare_shards(tmp_path / "small.gguf", tmp_path, "64")
    assert "sums over" in capsys.readouterr().out


@pytest.mark.real_model
def test_two_shards_of_smollm2_add_up(tmp_path):
    sentence = "It is a truth universally acknowledged, that a single man in possession of a good fortune must want. "
    (tmp_path / "text.txt").write_text("".join(f"{number} {sentence}" for number in range(24)))
    compare_shards(MODELS["smollm2"].weights, tmp_path, "192")


@pytest.mark.parametrize(
    "words",
    [
        ("small.gguf", "-o", "x"),
        ("a", "b", "--text", "text.txt", "-o", "x"),
        ("a", "--text", "text.txt", "--shard", "0/2", "-o", "x"),
    ],
)
def test_flags_that_do_not_fit_are_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a text")
    assert main(("capture", *words)) == 2
    assert "--" in capsys.readouterr().err
