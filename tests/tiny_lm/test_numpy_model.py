"""The forward pass matches the formulas, the trained network and the Llama of transformers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from rope_viz.embedding.scaling import Linear, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.kernels.reference import rotate
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model, passkey, tasks

pytestmark = pytest.mark.float32_products

# What LlamaForCausalLM.from_pretrained computed on the same folder; make_reader_golden.py made it.
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "reader_transformers.json").read_text())
SEED = "seed-0"


def written_out(reader, tokens, turn):
    """Logits in float64, every score in one matrix: (tokens, vocabulary)."""
    wide = np.float64
    count, dim = len(tokens), reader.head_dim
    angle = np.outer(np.arange(count), turn.inv_freq)
    rotation = turn.attention_factor * np.exp(1j * angle)

    def norm(x, scale):
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + reader.epsilon) * scale.astype(wide)

    x = reader.embedding[tokens].astype(wide)
    for layer in reader.layers:
        y, mixed = norm(x, layer.before_attention), []
        for head in range(reader.heads):
            at = slice(head * dim, (head + 1) * dim)
            q, k, v = (y @ part[at].T.astype(wide) for part in (layer.q, layer.k, layer.v))
            q, k = ((z[:, : dim // 2] + 1j * z[:, dim // 2 :]) * rotation for z in (q, k))
            scores = (q @ k.conj().T).real / np.sqrt(dim)
            scores[np.triu_indices(count, 1)] = -np.inf
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed.append(powers / powers.sum(axis=1, keepdims=True) @ v)
        x = x + np.concatenate(mixed, axis=1) @ layer.o.T.astype(wide)
        y = norm(x, layer.before_mlp)
        gate = y @ layer.gate.T.astype(wide)
        x = x + (gate / (1 + np.exp(-gate)) * (y @ layer.up.T.astype(wide))) @ layer.down.T.astype(wide)
    return norm(x, reader.norm) @ reader.unembedding.T.astype(wide)


def text(length, seed=0):
    return tasks.questions(np.random.default_rng(seed), 1, length)


@pytest.mark.parametrize("scaling", [None, Yarn(factor=4.0), Linear(factor=2.0)])
def test_logits_match_the_formulas(scaling):
    reader = checkpoints.load_tiny_lm(SEED)
    spec = reader.spec if scaling is None else RopeSpec(head_dim=32, context=256, scaling=scaling)
    tokens = text(700).tokens[0]
    found = numpy_model.logits(reader, tokens, Turning.from_spec(spec, 700))
    np.testing.assert_allclose(found, written_out(reader, tokens, Turning.from_spec(spec, 700)), atol=3e-4)


def test_block_size_does_not_change_the_result(monkeypatch):
    reader, asked = checkpoints.load_tiny_lm(SEED), text(300)
    whole = numpy_model.logits(reader, asked.tokens[0])
    for rows, keys, safe in ((1, 1, 60.0), (7, 100, 60.0), (300, 13, 0.0), (256, 512, 0.0)):
        monkeypatch.setattr(numpy_model, "ROWS", rows)
        monkeypatch.setattr(numpy_model, "KEYS", keys)
        monkeypatch.setattr(numpy_model, "SAFE", safe)
        np.testing.assert_allclose(numpy_model.logits(reader, asked.tokens[0]), whole, atol=1e-4)


def test_large_scores_do_not_overflow():
    q, k = (1000.0 * np.random.default_rng(0).normal(size=(2, 1, 40, 4))).astype(np.float32)
    scores = np.where(np.tri(40, dtype=bool), (q[0].astype(float) @ k[0].T) / 2.0, -np.inf)
    found = numpy_model.attend(q, k, k, np.arange(40))
    np.testing.assert_allclose(found, k[0, scores.argmax(axis=1)], rtol=1e-5)


def written_attention(q, k, rows, scale, window):
    """Softmax attention in float64 with a mask of all pairs; the keys are the values."""
    places = np.arange(len(k))
    distance = rows[:, None] - places
    scores = np.where((distance >= 0) & (distance < window), q.astype(float) @ k.T * scale, -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True) @ k


@pytest.mark.parametrize("strength", [1.0, 100.0])
@pytest.mark.parametrize("window", [1, 3, 40, 300, 1000])
def test_window_and_scale_are_those_of_a_mask(strength, window, monkeypatch):
    """With large scores too, where a row may see none of the first keys of its block."""
    monkeypatch.setattr(numpy_model, "ROWS", 64)
    monkeypatch.setattr(numpy_model, "KEYS", 16)
    generator = np.random.default_rng(1)
    q, k = (strength * generator.normal(size=(2, 1, 300, 8))).astype(np.float32)
    for rows in (np.arange(300), np.array([0, 1, 150, 299])):
        found = numpy_model.attend(q[:, rows], k, k, rows, scale=0.05, window=window)
        wanted = written_attention(q[0, rows], k[0], rows, 0.05, window)
        np.testing.assert_allclose(found, wanted, atol=2e-4 * strength)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("pairs", [2, 5, 8])
def test_rotation_is_that_of_the_reference(pairing, pairs):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(3, 20, 16)).astype(np.float32)
    inv_freq = 100.0 ** -np.arange(0.0, 1.0, 1.0 / pairs)
    angles = np.arange(20)[:, None] * inv_freq
    found = numpy_model.rotate(x, np.cos(angles).astype("f"), np.sin(angles).astype("f"), pairing)
    wanted = rotate(x.swapaxes(0, 1), np.arange(20), inv_freq, pairing=pairing).swapaxes(0, 1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_selected_rows_match_the_whole():
    reader, asked = checkpoints.load_tiny_lm(SEED), text(256)
    whole = numpy_model.logits(reader, asked.tokens[0])
    for rows in (asked.rows, [0], [0, 255], [100]):
        np.testing.assert_allclose(numpy_model.logits(reader, asked.tokens[0], rows=rows), whole[rows], atol=2e-5)


def test_later_tokens_do_not_change_earlier_logits():
    reader, asked = checkpoints.load_tiny_lm(SEED), text(128)
    other = asked.tokens[0].copy()
    other[100:] = tasks.FIRST_FILLER
    before, after = (numpy_model.logits(reader, tokens)[:100] for tokens in (asked.tokens[0], other))
    np.testing.assert_allclose(before, after, atol=2e-5)


def test_attention_sums_to_one_over_earlier_tokens():
    reader, asked = checkpoints.load_tiny_lm(SEED), text(200)
    for layer in range(2):
        found = numpy_model.attention(reader, asked.tokens[0], layer=layer, rows=asked.rows)
        assert found.shape == (2, len(asked.rows), 200)
        np.testing.assert_allclose(found.sum(axis=2), 1.0, atol=1e-5)
        later = np.arange(200) > asked.rows[:, None]
        assert np.all(found[:, later] == 0.0)
        whole = numpy_model.attention(reader, asked.tokens[0], layer=layer)
        np.testing.assert_allclose(whole[:, asked.rows], found, atol=1e-6)


def test_q_and_k_give_the_attention_of_their_layer():
    reader, asked = checkpoints.load_tiny_lm(SEED), text(150)
    turn = Turning.from_spec(reader.spec)
    rotation = np.exp(1j * np.outer(np.arange(150), turn.inv_freq))
    for layer, (q, k) in enumerate(numpy_model.queries_and_keys(reader, asked.tokens[0])):
        assert q.shape == k.shape == (2, 150, 32)
        q, k = ((x[..., :16] + 1j * x[..., 16:]) * rotation for x in (q, k))
        scores = np.einsum("hmd,hnd->hmn", q, k.conj()).real / np.sqrt(32)
        powers = np.where(np.tri(150, dtype=bool), np.exp(scores), 0.0)
        wanted = numpy_model.attention(reader, asked.tokens[0], layer=layer)
        np.testing.assert_allclose(powers / powers.sum(axis=2, keepdims=True), wanted, atol=1e-5)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_logits_match_transformers(case):
    reader = checkpoints.load_tiny_lm(case["reader"])
    asked = text(case["length"])
    turn = Turning(np.array(case["inv_freq"]), case["attention_factor"])
    found = numpy_model.logits(reader, asked.tokens[0], turn, rows=asked.rows[: len(case["logits"])])
    np.testing.assert_allclose(found, np.array(case["logits"]), atol=1e-4 if case["length"] <= 256 else 1e-3)


@pytest.mark.parametrize("name", checkpoints.names())
def test_a_folder_loads_in_transformers_with_the_same_logits(name):
    torch = pytest.importorskip("torch")
    llama = pytest.importorskip("transformers").LlamaForCausalLM.from_pretrained(checkpoints.FOLDER / name)
    # Within the trained length. Beyond, float32 angles alone put transformers 1.5e-4 from float64 at 512 tokens.
    reader, asked = checkpoints.load_tiny_lm(name), text(256)
    with torch.inference_mode():
        wanted = llama(torch.from_numpy(asked.tokens)).logits[0].numpy()
    assert wanted.dtype == np.float32
    np.testing.assert_allclose(numpy_model.logits(reader, asked.tokens[0]), wanted, atol=1e-4)


def test_saved_tokenizer_matches_ours():
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(checkpoints.FOLDER / SEED)

    tokens = text(256).tokens[0]
    spelled = " ".join(passkey.WORDS[token] for token in tokens)
    assert tokenizer(spelled, add_special_tokens=False)["input_ids"] == tokens.tolist()
    assert tokenizer.decode(tokens) == spelled


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([], "tokens must be 1 to"),
        ([[1, 2]], "tokens must be 1 to"),
        ([0.5], "tokens must be 1 to"),
        ([0, 201], "tokens must be from 0 to 200, got 0 to 201"),
        ([-1], "tokens must be from 0 to 200"),
    ],
)
def test_invalid_tokens_are_refused(tokens, said):
    with pytest.raises(ValueError, match=said):
        numpy_model.logits(checkpoints.load_tiny_lm(SEED), tokens)


@pytest.mark.parametrize("rows", [[], [3], [-1], [1, 1], [2, 1], [0.5]])
def test_invalid_rows_are_refused(rows):
    with pytest.raises(ValueError, match="rows must be"):
        numpy_model.logits(checkpoints.load_tiny_lm(SEED), [1, 2, 3], rows=rows)


def test_rotation_with_other_pairs_is_refused():
    with pytest.raises(ValueError, match="16 pairs per head, got 64"):
        numpy_model.logits(checkpoints.load_tiny_lm(SEED), [1, 2], Turning.from_spec(RopeSpec()))


def test_a_folder_of_another_model_is_refused(tmp_path):
    shutil.copytree(checkpoints.FOLDER / SEED, tmp_path / "x")
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    (tmp_path / "x" / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
    with pytest.raises(ValueError, match="x must hold a Llama, got 'gpt2'"):
        numpy_model.load(tmp_path / "x")


def test_every_checkpoint_is_small():
    for name in checkpoints.names():
        assert sum(path.stat().st_size for path in (checkpoints.FOLDER / name).iterdir()) <= 300_000
    assert set(checkpoints.SEEDS) <= set(checkpoints.names())


def test_missing_checkpoint_is_named():
    with pytest.raises(ValueError, match="unknown demo model 'seed-9'; models are seed-0, seed-1"):
        checkpoints.load_tiny_lm("seed-9")


@pytest.mark.parametrize("name", sorted(path.parent.name for path in checkpoints.FOLDER.glob("*/tokenizer.json")))
def test_every_checkpoint_has_the_same_tokenizer(name):
    assert json.loads((checkpoints.FOLDER / name / "tokenizer.json").read_text("utf-8")) == passkey.tokenizer()
