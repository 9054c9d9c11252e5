"""A change of some pairs of some heads: against plain loops in float64, other weights, and transformers."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rope_viz.embedding.spec import RopeSpec  # noqa: E402
from rope_viz.real_models import measured_subjects  # noqa: E402
from rope_viz.real_models.band_change import BandChange, find_heads, find_pairs  # noqa: E402
from rope_viz.real_models.gguf_model import load_gguf  # noqa: E402
from rope_viz.real_models.measured_subjects import FolderSubject, GgufSubject  # noqa: E402
from rope_viz.real_models.torch_forward import KeyValueCache, TorchLm  # noqa: E402
from rope_viz.studies.real_model import load_results  # noqa: E402
from tests.tiny_lm.gguf_writer import convert, write  # noqa: E402

pytestmark = pytest.mark.float32_products

PAIRS, TOKENS, FIRST = 4, 7, 3
INV_FREQ = RopeSpec(head_dim=2 * PAIRS, base=100.0).inv_freq()
IDS = np.random.default_rng(6).integers(0, 96, 40)


def rotated(x, pairing):
    """(heads, tokens, d) rotated by positions from FIRST on, pair by pair."""
    found = np.zeros_like(x)
    for head in range(len(x)):
        for token in range(TOKENS):
            for pair in range(PAIRS):
                one, other = (pair, pair + PAIRS) if pairing == "half" else (2 * pair, 2 * pair + 1)
                turn = np.exp(1j * (FIRST + token) * INV_FREQ[pair])
                value = (x[head, token, one] + 1j * x[head, token, other]) * turn
                found[head, token, one], found[head, token, other] = value.real, value.imag
    return found


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("heads", [None, {(5, 0), (5, 3), (6, 1)}])
@pytest.mark.parametrize("how", ["zero", "divide", "remove"])
def test_logits_are_those_of_a_loop_over_pairs(how, heads, pairing):
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(4, TOKENS, 2 * PAIRS)), rng.normal(size=(2, TOKENS, 2 * PAIRS))
    change = BandChange((0, 2), how, None if heads is None else frozenset(heads), 3.0)
    given = [torch.from_numpy(rotated(x, pairing)).float() for x in (q, k)]
    new_q, new_k = change.apply(5, *given, INV_FREQ, first=FIRST, pairing=pairing)
    for head in range(4):
        hit = heads is None or (5, head) in heads
        for row in range(TOKENS):
            for column in range(TOKENS):
                wanted = 0.0
                for pair in range(PAIRS):
                    ends = [pair, pair + PAIRS] if pairing == "half" else [2 * pair, 2 * pair + 1]
                    a, b = (complex(*x[ends]) for x in (q[head, row], k[head // 2, column]))
                    frequency = INV_FREQ[pair]
                    if hit and pair in (0, 2):
                        if how == "remove":
                            continue
                        frequency = 0.0 if how == "zero" else frequency / 3.0
                    wanted += (a * b.conjugate() * np.exp(1j * (row - column) * frequency)).real
                found = new_q[head, row] @ new_k[head * len(new_k) // 4, column]
                assert float(found) == pytest.approx(wanted, abs=1e-5)
    # What was given is as it was.
    assert torch.equal(given[0], torch.from_numpy(rotated(q, pairing)).float())


def test_layers_without_a_changed_head_are_left_alone():
    q, k = torch.randn(4, TOKENS, 2 * PAIRS), torch.randn(2, TOKENS, 2 * PAIRS)
    found = BandChange((0,), "zero", frozenset({(5, 0)})).apply(4, q, k, INV_FREQ)
    assert found[0] is q
    assert found[1] is k


@pytest.fixture(scope="module")
def model():
    """A small Llama with grouped keys, in float32."""
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=12, max_position_embeddings=64, tie_word_embeddings=True, pad_token_id=0,
    )  # fmt: skip
    found = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for weight in found.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.2)
    return found


@pytest.fixture(scope="module")
def ours(model, tmp_path_factory):
    """The same model with our forward pass."""
    path = tmp_path_factory.mktemp("bands") / "m.gguf"
    write(path, *convert(model))
    return TorchLm(load_gguf(path))


def own_losses(model):
    """Losses that transformers itself computes."""
    with torch.inference_mode():
        logits = model(torch.from_numpy(IDS)[None]).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, torch.from_numpy(IDS[1:]), reduction="none")


@pytest.mark.parametrize(("how", "factor"), [("zero", 0.0), ("divide", 1 / 3)])
def test_all_heads_are_transformers_with_other_frequencies(how, factor, model, ours):
    change = BandChange((1, 4), how, divisor=3.0)
    other = copy.deepcopy(model)
    other.model.rotary_emb.inv_freq[[1, 4]] *= factor
    wanted = own_losses(other)
    assert float((wanted - own_losses(model)).abs().max()) > 0.1
    np.testing.assert_allclose(ours.losses(IDS, change=change), wanted, atol=1e-4)
    subject = FolderSubject(copy.deepcopy(model), "m")
    np.testing.assert_allclose(subject.losses(IDS, subject.spec, change), wanted, atol=1e-4)
    np.testing.assert_allclose(subject.losses(IDS, subject.spec), own_losses(model), atol=1e-5)


@pytest.mark.parametrize("heads", [None, {(1, 0), (1, 3), (2, 2)}])
def test_removed_pairs_are_rows_of_zeros_in_the_weights_of_q(heads, model, ours):
    change = BandChange((0, 1), "remove", None if heads is None else frozenset(heads))
    other = copy.deepcopy(model)
    for layer in range(3):
        for head in range(4):
            if heads is None or (layer, head) in heads:
                rows = [12 * head + number for number in (0, 1, 6, 7)]
                other.model.layers[layer].self_attn.q_proj.weight.data[rows] = 0.0
    wanted = own_losses(other)
    assert float((wanted - own_losses(model)).abs().max()) > 0.01
    np.testing.assert_allclose(ours.losses(IDS, change=change), wanted, atol=1e-4)
    subject = FolderSubject(copy.deepcopy(model), "m")
    np.testing.assert_allclose(subject.losses(IDS, subject.spec, change), wanted, atol=1e-4)


def test_some_changed_heads_are_those_of_attention_written_out(model, ours):
    """Keys are shared by two heads, of which one changes: every head is computed by itself, from its own angles."""
    heads, pairs = {(0, 1), (2, 0)}, [0, 3]

    def attend(layer, states):
        attention = model.model.layers[layer].self_attn
        q, k, v = (
            getattr(attention, f"{name}_proj")(states).double().view(len(IDS), -1, 12).transpose(0, 1) for name in "qkv"
        )
        out = []
        for head in range(4):
            theta = 1e4 ** (-torch.arange(6).double() / 6)
            if (layer, head) in heads:
                theta[pairs] = 0.0
            turn = torch.polar(torch.ones(len(IDS), 6).double(), torch.arange(len(IDS))[:, None] * theta)
            ends = [torch.complex(x[:, :6], x[:, 6:]) * turn for x in (q[head], k[head // 2])]
            logits = (ends[0] @ ends[1].conj().T).real / math.sqrt(12)
            hidden = torch.ones_like(logits, dtype=torch.bool).triu(1)
            out.append(torch.softmax(logits.masked_fill(hidden, -torch.inf), dim=1) @ v[head // 2])
        return attention.o_proj(torch.cat(out, dim=1).float())

    with torch.inference_mode():
        x = model.model.embed_tokens(torch.from_numpy(IDS))
        for layer, block in enumerate(model.model.layers):
            x = x + attend(layer, block.input_layernorm(x))
            x = x + block.mlp(block.post_attention_layernorm(x))
        logits = model.lm_head(model.model.norm(x))
    wanted = torch.nn.functional.cross_entropy(logits[:-1], torch.from_numpy(IDS[1:]), reduction="none")
    change = BandChange(tuple(pairs), "zero", frozenset(heads))
    np.testing.assert_allclose(ours.losses(IDS, change=change), wanted, atol=1e-4)
    subject = FolderSubject(copy.deepcopy(model), "m")
    np.testing.assert_allclose(subject.losses(IDS, subject.spec, change), wanted, atol=1e-4)
    for found in (GgufSubject(ours), subject):
        np.testing.assert_allclose(found.last_logits(IDS, 5, change), logits[-6:-1], atol=1e-4)
    # A question after a reading that has no other keys is a text of its own.
    (answer,) = ours.answer(IDS[:30], [(3, 9)], [IDS[30:]], 5, change)
    np.testing.assert_allclose(answer, logits[-6:-1], atol=1e-4)


def test_layers_below_the_change_need_not_be_computed_again(ours):
    change = BandChange((0, 1), "zero", frozenset({(2, 1)}))
    below = ours.enter_layer(IDS, change.first_layer)
    assert change.first_layer == 2
    np.testing.assert_allclose(ours.losses(IDS, change=change, below=below), ours.losses(IDS, change=change), atol=1e-6)
    asked = IDS[:30], [(3, 6), (20, 24)], [IDS[30:], IDS[12:20]]
    states = ours.enter_questions(*asked, change.first_layer)
    for found, wanted in zip(ours.answer(*asked, 5, change, states), ours.answer(*asked, 5, change), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("heads", [None, frozenset({(1, 1)})])
def test_tokens_after_a_cache_change_as_in_one_piece(heads, ours):
    change, cache = BandChange((0, 2), "zero", heads), KeyValueCache()
    ours.hidden(IDS[:25], cache=cache, change=change)
    found = ours.hidden(IDS[25:], cache=cache, change=change)
    np.testing.assert_allclose(found, ours.hidden(IDS, change=change)[25:], atol=1e-4)


def test_tokens_of_other_questions_are_not_attended_to(ours, model):
    """A question sees the reading without the other key: masked in transformers, with the same positions."""
    reading, question, hidden = IDS[:30], IDS[30:], (12, 18)
    found, _ = ours.answer(reading, [(3, 6), hidden], [question, question], 5)
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    mask[30:, hidden[0] : hidden[1]] = False
    with torch.inference_mode():
        logits = model(torch.from_numpy(IDS)[None], attention_mask=mask[None, None]).logits[0]
    np.testing.assert_allclose(found, logits[-6:-1], atol=1e-4)
    whole = ours.last_logits(IDS, 5)
    assert float((found - whole).abs().max()) > 0.01


def test_frequencies_of_another_source_are_refused(model):
    subject = FolderSubject(copy.deepcopy(model), "m")
    subject.model.model.rotary_emb.inv_freq *= 2
    with pytest.raises(ValueError, match="not those of its config"):
        subject.losses(IDS, subject.spec, BandChange((0,), "zero"))


def test_a_model_that_changes_q_after_the_rotation_is_refused(model, monkeypatch):
    subject = FolderSubject(copy.deepcopy(model), "m")
    monkeypatch.setattr(measured_subjects, "wrap_attention", without_pieces(measured_subjects.wrap_attention))
    with pytest.raises(ValueError, match="layer 0 rotates other numbers"):
        subject.losses(IDS, subject.spec, BandChange((0,), "zero"))


def without_pieces(wrap):
    """Wrap attention, but see outputs of the rotation that are not what attends."""

    class Doubled(list):
        def extend(self, pieces):
            super().extend((before, 2 * after) for before, after in pieces)

    def wrapped(model, attend, pieces):
        doubled = Doubled()

        def forward(*arguments, **options):
            pieces[:] = doubled
            doubled.clear()
            return attend(*arguments, **options)

        return wrap(model, forward, doubled)

    return wrapped


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0,4-6", (0, 4, 5, 6)),
        ("fast", (0, 1, 2, 3)),
        ("slow", (28, 29, 30, 31)),
        ("all", tuple(range(32))),
        # Pair 19 makes 1.4 turns within 8,192 tokens, pair 20 less than one.
        ("turns:0-1", tuple(range(20, 32))),
        ("divided", tuple(range(20, 32))),
        ("turns:1-", tuple(range(20))),
    ],
)
def test_pairs_are_named_by_number_band_and_turns(written, expected):
    assert find_pairs(written, RopeSpec(head_dim=64, base=1e5, context=8192)) == expected


@pytest.mark.parametrize("written", ["", "x", "32", "4-2", "turns:5", "turns:9000-", "1,,2", "0-99999"])
def test_pairs_that_do_not_exist_are_refused(written):
    with pytest.raises(ValueError, match=r"pairs|turns"):
        find_pairs(written, RopeSpec(head_dim=64, base=1e5, context=8192))


def test_heads_are_named_by_job_by_chance_and_by_name():
    rows = load_results("heads")["rows"]
    having = find_heads("induction", rows)
    assert having == {(17, 3), (17, 4), (18, 6), (18, 7), (20, 6), (23, 2), (23, 7)}
    drawn = find_heads("random:induction", rows, 1)
    assert sorted(layer for layer, _ in drawn) == sorted(layer for layer, _ in having)
    assert not drawn & having
    named = [
        job for place in drawn for job, found in rows["L{}H{}".format(*place)]["jobs"].items() if "margin" in found
    ]
    assert set(named) <= {"first token"}
    assert drawn == find_heads("random:induction", rows, 1) != find_heads("random:induction", rows, 2)
    assert find_heads("all", rows) is None
    assert find_heads("L0H8,L29H0", rows) == {(0, 8), (29, 0)}
    assert len(find_heads("random:270", rows)) == 270
    for wrong in ("L30H0", "random:271", "random:x", "few:3", "job"):
        with pytest.raises(ValueError, match=r"head|random"):
            find_heads(wrong, rows)
