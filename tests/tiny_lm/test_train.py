"""Training: a smaller model learns within a minute, interrupted training resumes, and files match the network."""

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rope_viz.embedding.spec import RopeSpec  # noqa: E402
from rope_viz.studies.heads import Turning  # noqa: E402
from rope_viz.tiny_lm import checkpoints, numpy_model, tasks  # noqa: E402
from rope_viz.tiny_lm.recall import recall  # noqa: E402
from tools.tiny_lm import build_checkpoints, train  # noqa: E402
from tools.tiny_lm.torch_model import table  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.float32_products]

SPEC = RopeSpec(head_dim=16, base=10_000.0, context=32)
SMALL = {**train.CONFIG, "hidden_size": 32, "intermediate_size": 32, "head_dim": 16}
BRIEF = train.Course(lengths=(32,), steps=(30,), tokens=512, warmup=5)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weights(network):
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def test_small_model_learns_recall_within_a_minute(tmp_path):
    network = train.new_network(0)
    course = train.Course(lengths=(32,), steps=(240,), last=1.0, warmup=20)
    spec = dataclasses.replace(build_checkpoints.TRAINED, context=32)
    losses = train.train(network, spec, course, seed=0)
    build_checkpoints.save_tiny_lm(network, tmp_path / "r", train.config_of(spec), {})
    found = recall([numpy_model.load(tmp_path / "r")], spec, 32, sequences=50)
    assert np.mean(losses[:10]) > 4.5
    assert np.mean(losses[-10:]) < 1.0
    assert found.share > 0.8


def test_interrupted_training_resumes_identically(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "SAVE_EVERY", 10)
    whole, parts = train.new_network(1, SMALL), train.new_network(1, SMALL)
    losses = train.train(whole, SPEC, BRIEF, seed=1)

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.train(parts, SPEC, BRIEF, seed=1, progress=tmp_path / "p.pt", at={17: stop})
    again = train.new_network(7, SMALL)  # what it starts from no longer matters
    assert train.train(again, SPEC, BRIEF, seed=1, progress=tmp_path / "p.pt") == losses
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(weights(again)[name], value)


def test_trained_network_equals_the_numpy_model(tmp_path):
    network = train.new_network(2, SMALL)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_((weight * (10 if weight.ndim == 2 else 1)).half().float())  # float16 holds it
    train.save(network, tmp_path / "r", train.config_of(SPEC, SMALL), {"seed": "2"})
    reader = numpy_model.load(tmp_path / "r")
    assert reader.spec == SPEC
    assert reader.parameters == sum(weight.numel() for weight in network.parameters())
    asked = tasks.questions(np.random.default_rng(0), 1, 100)
    with torch.no_grad():
        wanted = network(torch.from_numpy(asked.tokens), *table(Turning.from_spec(SPEC), 100))[0].numpy()
    np.testing.assert_allclose(numpy_model.logits(reader, asked.tokens[0]), wanted, atol=1e-4)
    opened, config = train.open_network(tmp_path / "r")
    assert config["max_position_embeddings"] == 32
    for name, value in weights(network).items():
        np.testing.assert_array_equal(weights(opened)[name], value)


def test_a_batch_asks_every_task_by_its_share():
    course = train.Course(lengths=(64,), steps=(1,), tokens=64 * 40)
    tokens, targets, weight = (part.numpy() for part in train.batch(course, 0, 0))
    asked = targets != tasks.NOT_ASKED
    assert tokens.shape == targets.shape == weight.shape == (40, 64)
    assert asked[:20].sum() == 20 * 8
    assert np.all(asked[30:, :-1])
    assert weight[:30].sum() == pytest.approx(0.75)
    assert weight[30:].sum() == pytest.approx(0.25)
    assert np.all(weight[~asked] == 0)
    short = train.batch(train.Course(lengths=(32,), steps=(1,), tokens=32 * 40), 0, 0)[0].numpy()
    assert short.max() < tasks.FIRST_STATE  # no chains before length 64


def test_course_moves_from_length_to_length():
    course = train.Course(lengths=(32, 64), steps=(2, 3), rate=1.0, warmup=1)
    assert [course.length(step) for step in range(5)] == [32, 32, 64, 64, 64]
    rates = [course.rate_at(step) for step in range(5)]
    assert rates[0] == pytest.approx(1.0)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] > 0.05


def test_build_writes_all_checkpoints_and_measurements(tmp_path):
    plan = build_checkpoints.CheckpointPlan(
        seeds=(0, 1),
        tuned=(1,),
        course=BRIEF,
        fine_tuning=train.Course(lengths=(1024,), steps=(3,), tokens=1024, warmup=1),
        methods=("yarn", "ntk"),
        measured=(0, 2, 3),
        kept=(2,),
        sequences=1,
        config=SMALL | {"head_dim": 16},
        trained=dataclasses.replace(SPEC, context=256),
    )
    found = build_checkpoints.make(tmp_path, plan, cores=2)
    assert found == json.loads((tmp_path / "measured.json").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["measured.json", "seed-0", "seed-1", *(f"{method}-2" for method in plan.methods)]
    )
    rows = {(row["method"], row["seed"], row["step"], row["at"]) for row in found["recover"]}
    assert len(rows) == len(found["recover"]) == 2 * 3 * 2
    yarn = json.loads((tmp_path / "yarn-2" / "config.json").read_text())
    assert yarn["rope_parameters"]["factor"] == 4.0
    assert numpy_model.load(tmp_path / "yarn-2").spec == build_checkpoints.scaled(plan.trained, "yarn", 1024)


@pytest.mark.parametrize("method", checkpoints.MAIN_METHODS)
def test_every_main_method_can_be_written_as_a_config(method):
    spec = build_checkpoints.scaled(build_checkpoints.TRAINED, method, 1024)
    said = train.config_of(build_checkpoints.sayable(spec))
    from rope_viz.models.model_config import from_config

    found = from_config(said)[""]
    np.testing.assert_allclose(found.inv_freq(1024), spec.inv_freq(1024), rtol=1e-12)
    assert found.attention_factor(1024) == pytest.approx(spec.attention_factor(1024))
