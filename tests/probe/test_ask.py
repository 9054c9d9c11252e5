"""`probe ask` against a server that computes a chosen hypothesis, behind each interface that real servers have."""

import importlib.util
import json
import re
import sys

import pytest

from rope_viz.cli.main import main
from tests.probe import fake_engine
from tests.probe.fake_engine import FakeEngine, serve

pytestmark = pytest.mark.float32_products

YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 96}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "max_position_embeddings": 384,
    "rope_parameters": YARN,
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


def ask(capsys, url, config, *flags):
    """Return exit code, and what the command prints as JSON."""
    code = main(["probe", "ask", url, "--config", config, "--json", *flags])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("reply", "interface"),
    [
        (fake_engine.complete, "prompt_logprobs"),
        (fake_engine.echo, "echo with logprobs"),
        (fake_engine.list_next, "n_probs"),
        (fake_engine.list_likeliest, "logprobs of the next token with texts"),
    ],
)
def test_every_interface_tells_intended_from_no_scaling(reply, interface, config, capsys):
    with serve(FakeEngine(CONFIG), reply) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["verdict"], found["interface"]) == (0, "as intended", interface)
    assert found["next_distance"] > 100 * found["distance"]
    with serve(FakeEngine(CONFIG, "no scaling"), reply) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["verdict"]) == (1, "something else")
    assert "no scaling" in found["names"]


def test_many_releases_are_counted_in_the_text(config, capsys):
    with serve(FakeEngine(CONFIG), fake_engine.complete) as url:
        assert main(["probe", "ask", url, "--config", config]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("as intended")
    assert re.search(r"our rules predict this of \d+ releases of transformers, ", out)
    assert "transformers 5.23.0" not in out


def test_the_first_deviating_position_is_named(config, capsys):
    def name(length):
        return "as the config means it" if length < 350 else "no scaling"

    with serve(FakeEngine(CONFIG, name)) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["verdict"]) == (1, "none of these")
    assert found["first"] is not None


def test_answers_that_nothing_explains_are_called_none_of_these(config, capsys):
    other = {**CONFIG, "rope_parameters": {**YARN, "rope_theta": 10100.0}}
    with serve(FakeEngine(other)) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["verdict"]) == (1, "none of these")


def test_a_noisy_engine_is_not_decided_within_its_noise(config, capsys):
    with serve(FakeEngine(CONFIG, noise=0.2)) as url:
        code, found = ask(capsys, url, config)
    assert found["noise"] > 0.02
    assert (code, found["verdict"]) == (4, "cannot tell")
    assert "hides the difference" in found["sentence"]


def test_other_weights_are_not_judged(config, capsys):
    with serve(FakeEngine({**CONFIG, "num_attention_heads": 1, "hidden_size": 16})) as url:
        code, found = ask(capsys, url, config)
    assert code == 4
    assert "other weights" in found["sentence"]


def test_prompts_fit_the_length_that_the_server_names(config, capsys):
    with serve(FakeEngine(CONFIG, served=200)) as url:
        code, found = ask(capsys, url, config)
    assert code == 0
    assert max(found["lengths"]) <= 200


def test_refused_long_prompts_become_shorter(config, capsys):
    def complete(engine, body):
        if len(body["prompt"]) > 200:
            raise ValueError("maximum context length is 200")
        return fake_engine.complete(engine, body)

    with serve(FakeEngine(CONFIG), complete) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["lengths"]) == (0, [190])
    assert "maximum context length is 200" in found["problems"][0]


@pytest.mark.parametrize("value", [float("-inf"), -9999.0, float("nan"), None])
def test_what_is_no_log_probability_is_left_out(value, config, capsys):
    def complete(engine, body):
        reply = fake_engine.complete(engine, body)
        for listed in reply["choices"][0].get("prompt_logprobs", [])[5:9]:
            for token in listed:
                listed[token] = {"logprob": value}
        return reply

    with serve(FakeEngine(CONFIG), complete) as url:
        code, found = ask(capsys, url, config)
    assert (code, found["verdict"]) == (0, "as intended")


def refuse(engine, body):
    raise ValueError("boom")


def add_token(engine, body):
    return fake_engine.complete(engine, {**body, "prompt": [256, *fake_engine.read_ids(body["prompt"])]})


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"reply": refuse}, 3, "no prompt was answered"),
        ({"reply": add_token}, 4, "9 tokens of a prompt of 8"),
        ({"reply": fake_engine.say_nothing}, 4, "gives no log-probabilities"),
        ({"content": b"<html>hello</html>"}, 3, "not JSON"),
        ({"listed": {"models": []}}, 3, "does not list its models"),
    ],
)
def test_a_server_of_another_kind_gets_a_sentence(options, code, words, config, capsys):
    with serve(FakeEngine(CONFIG), **options) as url:
        assert main(["probe", "ask", url, "--config", config]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("http://127.0.0.1:9", 3, "cannot be reached"),
        ("ftp://localhost", 2, "must be an address"),
        ("localhost:8000", 2, "must be an address"),
    ],
)
def test_an_address_without_a_server_gets_a_sentence(url, code, words, config, capsys):
    assert main(["probe", "ask", url, "--config", config]) == code
    assert words in capsys.readouterr().err


def test_a_server_is_asked_with_a_config(capsys):
    assert main(["probe", "ask", "http://localhost:8000"]) == 2
    assert "--config is missing" in capsys.readouterr().err


def test_the_text_names_the_next_hypothesis(config, capsys):
    with serve(FakeEngine(CONFIG)) as url:
        assert main(["probe", "ask", url, "--config", config]) == 0
    out = capsys.readouterr().out
    assert out.startswith("as intended\n")
    assert "\nnext: " in out
    assert "positions shifted by one" in out


@pytest.mark.parametrize(
    ("python", "code", "words"),
    [(sys.executable, 3, "pip install mlx-lm there"), ("/nowhere/python", 2, "cannot be started")],
)
def test_a_python_without_the_package_gets_a_sentence(python, code, words, config, tmp_path, capsys):
    if importlib.util.find_spec("mlx_lm"):
        pytest.skip("mlx-lm is installed")
    folder = str(tmp_path / "probe")
    assert main(["probe", "make", config, "-o", folder]) == 0
    assert main(["probe", "ask", "--engine", "mlx-lm", folder, "--python", python]) == code
    assert words in capsys.readouterr().err
