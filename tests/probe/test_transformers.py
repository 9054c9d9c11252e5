"""The reference by transformers: unchanged it is the model itself, and ours in NumPy is the same."""

import json
import os
import signal

import numpy as np
import pytest
import torch

from rope_viz.cli.main import main
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.probe import plain_model, transformers_worker, worker_process
from rope_viz.probe.hypotheses import INTENDED, ProbedPrompt, find_intended, list_hypotheses
from rope_viz.probe.prompts import draw_prompt
from rope_viz.probe.reference import as_data
from rope_viz.probe.shrink_config import shrink_config

pytestmark = [pytest.mark.slow, pytest.mark.float32_products]
LENGTH = 150
PLAIN = ["llama-3.1-8b", "mistral-7b-v0.1", "qwen2.5-7b-instruct-yarn", "qwen3-8b-yarn"]
OTHERS = ["gemma-3-1b", "deepseek-v3", "gpt-oss-20b", "llama-4-scout", "phi-3.5-mini", "glm-4-9b-0414", "mixtral-8x7b"]


def build(id):
    small = shrink_config(read_catalog_model(id))
    model = ModelConfig.read(small)
    return small, model, ProbedPrompt(model, LENGTH, model.limit)


def run_untouched(model, prompt):
    """Return the log-probability of every token of a prompt but the first."""
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        found = model(input_ids=ids, use_cache=False).logits[0, :-1].log_softmax(-1)
    return found.gather(1, ids[0, 1:, None])[:, 0].double().numpy()


@pytest.mark.parametrize("id", [*PLAIN, *OTHERS])
def test_the_intended_embedding_is_that_of_transformers_itself(id):
    small, _, asked = build(id)
    prompt = draw_prompt(LENGTH, 1)
    right = run_untouched(transformers_worker.build_model(small), prompt)
    intended = as_data(find_intended(asked))
    reference = transformers_worker.Reference(small, "", intended)
    targets = [[row, token] for row, token in enumerate(prompt[1:])]
    other = as_data(list_hypotheses(asked)["the other pairing"])
    task = {"prompt": prompt, "targets": targets, "hypotheses": [intended, other, intended]}
    first, changed, again = reference.compute(task)
    np.testing.assert_allclose(first, right, atol=2e-4)
    np.testing.assert_array_equal(again, first)
    assert np.abs(np.array(changed) - right).mean() > 0.02


@pytest.mark.parametrize("id", PLAIN)
def test_our_forward_pass_is_that_of_transformers(id):
    small, _, asked = build(id)
    if small["model_type"] == "mistral":
        small["sliding_window"] = 40
        asked = ProbedPrompt(ModelConfig.read(small), LENGTH, small["max_position_embeddings"])
    prompt = draw_prompt(LENGTH, 1)
    targets = np.array([[row, token] for row, token in enumerate(prompt[1:])])
    hypotheses = list_hypotheses(asked)
    model = transformers_worker.Reference(small, "", as_data(hypotheses[INTENDED]))
    weights = plain_model.draw_weights(small)
    model.model.load_state_dict({name: torch.tensor(one) for name, one in weights.items()}, strict=False)
    task = {"prompt": prompt, "targets": targets, "hypotheses": [as_data(one) for one in hypotheses.values()]}
    ours = plain_model.compute_log_probs(small, weights, prompt, targets, hypotheses)
    theirs = dict(zip(hypotheses, model.compute(task), strict=True))
    assert {name for name, one in theirs.items() if one is not None} >= ours.keys()
    for name, values in ours.items():
        np.testing.assert_allclose(values, theirs[name], atol=2e-3, err_msg=name)


def test_a_reference_that_is_not_the_model_is_refused():
    small, _, asked = build("glm-4-9b-0414")
    wrong = as_data(list_hypotheses(asked)["Linear by 4"])
    with pytest.raises(ValueError, match="no reference: glm4"):
        transformers_worker.Reference(small, "", wrong)


def test_the_other_pairing_at_the_end_of_heads():
    def rotate(x, cos, sin):
        size = 2 * cos.shape[-1]
        rest, turned = x[..., :-size], x[..., -size:]
        even, odd = turned[..., 0::2], turned[..., 1::2]
        out = torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)
        return torch.cat([rest, out], -1)

    angles = torch.arange(1.0, 5.0)[:, None] * torch.tensor([1.0, 0.1, 0.01])
    x = torch.randn(4, 10, generator=torch.Generator().manual_seed(1))
    changed = transformers_worker.reorder_around(rotate, "interleaved", [])(x, angles.cos(), angles.sin())
    first, second = x[..., 4:7], x[..., 7:]
    cos, sin = angles.cos(), angles.sin()
    right = torch.cat([x[..., :4], first * cos - second * sin, second * cos + first * sin], -1)
    torch.testing.assert_close(changed, right)


@pytest.mark.parametrize("kind", ["deepseek_v4", "exaone_moe", "lara_mini"])
def test_sizes_that_only_a_class_names_are_small(kind):
    model = transformers_worker.build_model(shrink_config(ModelConfig.read({"model_type": kind})))
    assert 4 * sum(one.numel() for one in model.parameters()) < 8e6


def test_a_package_is_asked_in_a_process_of_its_own(tmp_path, capsys):
    config = {
        "model_type": "glm4", "hidden_size": 64, "head_dim": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
        "num_hidden_layers": 2, "max_position_embeddings": 384, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    folder = str(tmp_path / "probe")
    assert main(["probe", "make", str(tmp_path / "config.json"), "-o", folder]) == 0
    capsys.readouterr()
    assert main(["probe", "ask", "--engine", "transformers", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "as intended"
    (tmp_path / "config.json").write_text(json.dumps({**config, "rope_theta": 20000.0}))
    code = main(
        ["probe", "ask", "--engine", "transformers", folder, "--config", str(tmp_path / "config.json"), "--json"]
    )
    found = json.loads(capsys.readouterr().out)
    assert (code, found["verdict"]) == (1, "something else")
    assert any(name.startswith("base lost") for name in found["names"])


def test_end_of_the_worker_is_a_sentence():
    with worker_process.start_worker() as worker:
        with pytest.raises(ValueError, match=r"could not run this probe: KeyError: 'reference'"):
            worker.ask({"task": "compute"})
        with pytest.raises(ValueError, match="Unrecognized model"):
            worker.ask({"task": "make", "folder": "", "config": {"model_type": "x"}, "intended": {}})
        os.kill(worker.process.pid, signal.SIGKILL)
        with pytest.raises(ValueError, match="could not run this probe"):
            worker.ask({"task": "compute"})
    assert worker.process.running.poll() is not None
