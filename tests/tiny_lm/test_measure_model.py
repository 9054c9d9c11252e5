"""`measure` finds what the model itself computes: its attention, its losses under each method, and what fits."""

import json
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from rope_viz.cli.main import main  # noqa: E402
from rope_viz.models.rope_config import to_config  # noqa: E402
from rope_viz.real_models import head_jobs, measured_subjects  # noqa: E402
from rope_viz.real_models.measure_model import (  # noqa: E402
    Need,
    free_memory,
    measure_model,
    require_memory,
)
from rope_viz.real_models.measured_file import METHODS, read_measured  # noqa: E402
from rope_viz.real_models.measured_subjects import FolderSubject, find_prefix, spec_under  # noqa: E402
from rope_viz.real_models.text_results import BLOCK, average_blocks  # noqa: E402
from rope_viz.studies.real_model import JOBS  # noqa: E402
from tests.tiny_lm.gguf_writer import write_small_model  # noqa: E402
from tests.tiny_lm.test_capture import MODELS, built  # noqa: E402

pytestmark = pytest.mark.float32_products

IDS = np.random.default_rng(4).integers(3, 60, 24)
TEXT = "in the tin 12 an the thin " * 60


@pytest.mark.parametrize("name", sorted(MODELS))
def test_attention_is_that_of_the_model(name):
    model = built(name)
    model.set_attn_implementation("eager")
    wanted = []
    with torch.inference_mode():
        wanted = [each[0] for each in model(torch.from_numpy(IDS)[None], output_attentions=True).attentions]
    seen = {}
    FolderSubject(model, name).see_layers(IDS, seen.__setitem__)
    assert sorted(seen) == list(range(len(wanted)))
    for number, layer in seen.items():
        for head in range(len(layer.q)):
            found = layer.attend(head, *layer.head(head))
            np.testing.assert_allclose(found, wanted[number][head], atol=2e-5)


@pytest.fixture
def causal():
    """causal(**changes) is a small Llama with a head, in float32."""

    def build(**changes):
        torch.manual_seed(5)
        sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
        sizes |= {"num_key_value_heads": 2, "vocab_size": 330, "max_position_embeddings": 64}
        config = transformers.LlamaConfig(**sizes | changes)
        model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.ndim > 1:
                    weight.normal_(std=0.3)
        return model

    return build


@pytest.mark.parametrize("method", ["none", "linear", "yarn"])
def test_losses_are_those_of_transformers_own_scaling(causal, method):
    model, ids = causal(), np.random.default_rng(0).integers(3, 330, 100)
    subject = FolderSubject(model, "m")
    spec = spec_under(subject, method, 4.0)
    found = subject.losses(ids, spec)
    other = causal(rope_parameters=to_config(spec)["rope_parameters"], max_position_embeddings=256)
    other.load_state_dict(model.state_dict())
    with torch.inference_mode():
        logits = other(torch.from_numpy(ids)[None]).logits[0, :-1].double()
    wanted = torch.nn.functional.cross_entropy(logits, torch.from_numpy(ids[1:]), reduction="none")
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    # The model has its own frequencies again.
    np.testing.assert_allclose(
        subject.losses(ids, subject.spec), FolderSubject(causal(), "m").losses(ids, subject.spec)
    )


def test_ntk_is_a_larger_base(causal):
    model, ids = causal(), np.random.default_rng(0).integers(3, 330, 100)
    found = FolderSubject(model, "m").losses(ids, spec_under(FolderSubject(model, "m"), "ntk", 4.0))
    # https://www.reddit.com/r/LocalLLaMA/comments/14lz7j5/: base times factor to the power of d / (d - 2)
    base = 10_000.0 * 4.0 ** (8 / 6)
    other = FolderSubject(causal(rope_parameters={"rope_type": "default", "rope_theta": base}), "m")
    np.testing.assert_allclose(found, other.losses(ids, other.spec), atol=1e-4)


def test_frequencies_of_another_source_are_refused(causal):
    model = causal()
    subject = FolderSubject(model, "m")
    model.model.rotary_emb.inv_freq *= 2
    with pytest.raises(ValueError, match="not those of its config"):
        subject.losses(IDS, spec_under(subject, "linear", 2.0))


def test_layers_without_rotation_are_refused():
    config = transformers.AutoConfig.for_model(
        "smollm3", vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, no_rope_layers=[1, 0], pad_token_id=0, layer_types=["full_attention"] * 2,
    )  # fmt: skip
    subject = FolderSubject(transformers.AutoModelForCausalLM.from_config(config).eval(), "m")
    with pytest.raises(ValueError, match="layers 1 of this model do not rotate"):
        subject.see_layers(IDS, lambda *each: None)


class Copier:
    """A model of one layer whose head 0 attends to the token before, and head 1 to nothing in particular."""

    vocabulary, prefix = 60, ()

    def __init__(self, spec):
        self.spec = spec

    def see_layers(self, ids, see):
        pairs = self.spec.pairs
        angle = torch.from_numpy(np.outer(np.arange(len(ids)), self.spec.inv_freq()))
        key = 9 * torch.cat([torch.cos(angle), torch.sin(angle)], dim=1).float()
        query = 9 * torch.cat([torch.cos(angle - angle[1]), torch.sin(angle - angle[1])], dim=1).float()
        q = torch.stack([query, torch.zeros_like(query)])
        see(0, head_jobs.LayerInput(q, key[None], self.spec, (2 * pairs) ** -0.5))


def test_previous_token_head_is_found_with_its_pairs(causal):
    spec = FolderSubject(causal(), "m").spec
    ids = np.tile(np.arange(30), 3)
    rows = head_jobs.measure_heads(Copier(spec), [ids], [np.arange(40)])
    first, second = (rows[name] for name in ("L0H0", "L0H1"))
    assert first["jobs"]["previous token"]["score"] > 0.99
    assert second["jobs"]["previous token"]["score"] < 0.1
    # |q||k| of a pair is 81, times the scale.
    np.testing.assert_allclose(first["strength"], [81 * 8**-0.5] * 4, atol=0.01)
    # What a pair adds to the right token, less the mean over all tokens before: written out.
    count = len(ids)
    scores = 81 * 8**-0.5 * np.cos(np.arange(-1, count - 1)[:, None] * spec.inv_freq())  # by distance
    mean = [np.mean([scores[0] - scores[: row + 1].mean(axis=0) + (scores[1] - scores[0])], axis=0)
            for row in range(head_jobs.SKIPPED, count)]  # fmt: skip
    np.testing.assert_allclose(first["jobs"]["previous token"]["margin"], np.mean(mean, axis=0), atol=0.01)
    assert first["jobs"]["previous token"]["changed"]["zero"] < 0.1
    assert "changed" not in second["jobs"]["previous token"]


def test_right_tokens_begin_after_the_prefix():
    ids = np.array([0, *range(1, 21), *range(1, 21)])
    right = head_jobs.place_right_tokens(("previous token", "first token", "same token"), ids, 1)
    assert right["previous token"][31].nonzero()[:, 0].tolist() == [30]
    assert right["first token"][31].nonzero()[:, 0].tolist() == [0]
    assert right["same token"][31].nonzero()[:, 0].tolist() == [11]
    assert not right["first token"][: 1 + head_jobs.SKIPPED].any()


def test_text_without_a_repeated_token_is_refused():
    with pytest.raises(ValueError, match="no right token for the job same token"):
        head_jobs.place_right_tokens(("same token",), np.arange(40), 0)


def test_average_leaves_out_the_first_token():
    losses = np.arange(1.0, 2 * BLOCK)
    np.testing.assert_allclose(
        average_blocks(losses, BLOCK), [[losses[: BLOCK - 1].mean(), losses[BLOCK - 1 :].mean()]]
    )


def test_prefix_is_what_the_tokenizer_adds():
    assert find_prefix(lambda text, special: [7, 9, 5, 2] if special else [5]) == (7, 9)
    assert find_prefix(lambda text, special: [5]) == ()
    assert find_prefix(lambda text, special: []) == ()


def save_folder(model, folder):
    """Write a model and a tokenizer of the words of `TEXT` as a folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"<s>": 0, "<unk>": 1} | {word: number for number, word in enumerate(sorted(set(TEXT.split())), 2)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>").save_pretrained(folder)
    model.save_pretrained(folder)


@pytest.fixture
def paths(tmp_path, causal):
    """A GGUF file and a folder with random models, and a text."""
    write_small_model(tmp_path / "small.gguf")
    save_folder(causal(), tmp_path / "folder")
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize("name", ["small.gguf", "folder"])
def test_command_writes_a_file_that_is_read_back(paths, name, capsys):
    out = paths / "m.json"
    words = [
        str(paths / name),
        "--text",
        str(paths / "text.txt"),
        "-o",
        str(out),
        "--tokens",
        "256",
        "--sequences",
        "1",
    ]
    assert main(["measure", *words]) == 0
    printed = capsys.readouterr()
    assert "MB of main memory, of which" in printed.err
    assert "8 heads on 1 pieces of" in printed.out
    found = read_measured(out)
    assert (found.name, found.heads.shape, found.tokens, tuple(found.losses)) == (
        name.removesuffix(".gguf"), (2, 4), 256, METHODS,
    )  # fmt: skip
    assert found.losses["none"].shape == (1, 256 // BLOCK)
    for job in JOBS:
        assert (found.heads.scores(job) >= 0).all()
    about = json.loads(out.read_text())["about"]
    assert about["prefix"] == (name == "folder")
    assert about["versions"]["torch"] == torch.__version__


def test_losses_of_a_folder_include_its_first_token(paths, causal):
    found = measure_model(paths / "folder", TEXT, tokens=256, sequences=1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(paths / "folder")
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"][:, :256]
    with torch.inference_mode():
        logits = causal()(ids).logits[0, :-1].double()
    losses = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")
    wanted = [losses[: BLOCK - 1].mean(), losses[-BLOCK:].mean()]
    values = found["loss"]["methods"]["none"]
    np.testing.assert_allclose([values[0], values[-1]], wanted, atol=1e-3)


def test_scaled_model_is_measured_as_it_is(paths, causal, capsys):
    yarn = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10_000.0, "original_max_position_embeddings": 32}
    save_folder(causal(rope_parameters=yarn), paths / "folder")
    words = [str(paths / "folder"), "--text", str(paths / "text.txt"), "-o", str(paths / "m.json"), "--tokens", "256"]
    assert main(["measure", *words]) == 0
    assert "scaled already" in capsys.readouterr().err
    assert tuple(read_measured(paths / "m.json").losses) == ("none",)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "nowhere"}, "nowhere is neither a GGUF file nor a folder"),
        ({"--tokens": "9"}, "--tokens must be at least 256"),
        ({"--factor": "0.5"}, "--factor must be at least 1"),
        ({"--sequences": "0"}, "--sequences must be from 1"),
        ({"--device": "tpu"}, "--device must be cpu, cuda or cuda:NUMBER, got tpu"),
        ({"--text": "no.txt"}, "No such file"),
    ],
)
def test_impossible_measurement_gives_one_line(change, sentence, paths, capsys):
    asked = {"model": str(paths / "small.gguf"), "--text": str(paths / "text.txt"), "-o": str(paths / "x")} | change
    words = [asked.pop("model"), *(word for pair in asked.items() for word in pair)]
    assert main(["measure", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


def test_short_text_gives_one_line(paths, capsys):
    (paths / "text.txt").write_text("in the tin")
    assert main(["measure", str(paths / "folder"), "--text", str(paths / "text.txt"), "-o", str(paths / "x")]) == 2
    assert "the text must have at least 256 tokens, got 3" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA GPU")
def test_a_missing_gpu_is_a_sentence(paths, capsys):
    words = [str(paths / "small.gguf"), "--text", str(paths / "text.txt"), "-o", str(paths / "x")]
    assert main(["measure", *words, "--device", "cuda"]) == 2
    assert "--device cuda is not there: PyTorch finds no CUDA GPU" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["small.gguf", "folder"])
def test_model_that_does_not_fit_is_refused_before_it_is_loaded(paths, name, monkeypatch, capsys):
    monkeypatch.setattr("rope_viz.real_models.measure_model.free_memory", lambda: 1000)
    for loader in ("load_gguf", "FolderSubject"):
        monkeypatch.setattr(measured_subjects, loader, None)
    words = [str(paths / name), "--text", str(paths / "text.txt"), "-o", str(paths / "x")]
    assert main(["measure", *words]) == 2
    error = capsys.readouterr().err
    assert f"{name} does not fit: it needs about" in error
    assert "0.1 MB are free" in error


def test_weights_and_work_are_counted_together(monkeypatch):
    monkeypatch.setattr("rope_viz.real_models.measure_model.free_memory", lambda: int(3e9))
    assert "2.5 GB of main memory, of which 3.0 GB are free" in require_memory("m", Need(int(2e9), int(0.5e9)))
    with pytest.raises(ValueError, match=r"about 3\.5 GB of main memory, and 3\.0 GB are free"):
        require_memory("m", Need(int(2e9), int(1.5e9)))
    monkeypatch.setattr("rope_viz.real_models.measure_model.free_memory", lambda: None)
    assert "how much is free is unknown" in require_memory("m", Need(1, 1))


def test_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.setattr("rope_viz.real_models.measure_model.CGROUP", tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("rope_viz.real_models.measure_model.PROC", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    assert free_memory() == 5000 * 1024
    for file, content in (
        ("memory.max", "3000000"),
        ("memory.current", "2000000"),
        ("memory.stat", "inactive_file 500\n"),
    ):
        (tmp_path / file).write_text(content)
    assert free_memory() == 1_000_500
    (tmp_path / "memory.max").write_text("max")
    assert free_memory() == 5000 * 1024
