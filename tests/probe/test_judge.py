"""Every mistake of the conformance kit, planted into an engine's answers, is named, alone or with its equals."""

import functools

import numpy as np
import pytest

from rope_viz.advice.verify.conformance import find_factor_mistakes, list_mistakes
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.answers import list_targets
from rope_viz.probe.hypotheses import INTENDED, PREDICTED, ProbedPrompt, find_intended, list_hypotheses
from rope_viz.probe.judge import SAME, judge_prompts, measure
from rope_viz.probe.prompts import list_prompts
from rope_viz.probe.reference import open_reference
from rope_viz.probe.shrink_config import shrink_config

pytestmark = pytest.mark.float32_products

ORIGINAL = {"original_max_position_embeddings": 96}
PARAMETERS = {
    "plain": {"rope_type": "default", "rope_theta": 500000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "yarn": {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0, **ORIGINAL},
    "yarn with its own factor": {
        "rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0, "attention_factor": 1.3, **ORIGINAL
    },
    "yarn without rounding": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "truncate": False, **ORIGINAL
    },
    "half of the head": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "partial_rotary_factor": 0.5, **ORIGINAL
    },
    "llama3": {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        **ORIGINAL,
    },
    "dynamic": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    "longrope": {
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0 + 0.1 * i for i in range(16)],
        "long_factor": [1.0 + i for i in range(16)], **ORIGINAL,
    },
}  # fmt: skip


def build(name):
    return {
        "model_type": "llama",
        "hidden_size": 64,
        "head_dim": 32,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "num_hidden_layers": 2,
        "max_position_embeddings": 384,
        "rope_parameters": PARAMETERS[name],
    }


class Asked:
    """Everything that a config's hypotheses give, computed once."""

    def __init__(self, config):
        small = shrink_config(ModelConfig.read(config))
        self.model = ModelConfig.read(small)
        self.ask_about = functools.partial(ProbedPrompt, self.model, served=self.model.limit)
        self.prompts = list_prompts(self.model)
        self.known = {}
        with open_reference(small, find_intended(self.ask_about(length=2))) as reference:
            for prompt in self.prompts:
                # As if an engine had answered every token.
                targets, _ = list_targets(prompt, [0.0] * (len(prompt) - 1))
                self.known[tuple(prompt)] = reference(
                    prompt, targets, list_hypotheses(self.ask_about(length=len(prompt)))
                )

    def reference(self, prompt, targets, hypotheses):
        return {name: values for name, values in self.known[tuple(prompt)].items() if name in hypotheses}

    def answer(self, name):
        """Return the answers of an engine that computes this hypothesis."""
        return [
            (known.get(name, known[INTENDED])).tolist()
            for known in (self.known[tuple(prompt)] for prompt in self.prompts)
        ]

    def judge(self, answers):
        return judge_prompts(self.model, self.prompts, answers, self.reference, self.ask_about)

    def names(self):
        return dict.fromkeys(name for one in self.known.values() for name in one)


@functools.cache
def ask_about(name):
    return Asked(build(name))


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_planted_mistake_is_named(name):
    wrong = {}
    one = ask_about(name)
    for planted in one.names():
        answers = one.answer(planted)
        found = one.judge(answers)
        away = max(
            measure(np.array(given), np.array(right))
            for given, right in zip(answers, one.answer(INTENDED), strict=True)
        )
        expected = ("as intended", 0) if away <= SAME else ("something else", 1)
        if planted not in found.names or (found.verdict, found.code) != expected:
            wrong[planted] = (found.verdict, found.names[:3], away)
    assert wrong == {}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_mistake_of_the_conformance_kit_is_a_hypothesis(name):
    one = ask_about(name)
    (spec,) = one.model.specs.values()
    right = find_intended(one.ask_about(length=384)).layers[""]
    kit = [mistake for mistake, _ in list_mistakes(spec, right.inv_freq)]
    kit += find_factor_mistakes(spec, right.attention_factor)
    known = {hypothesis.split(" (")[0].split(", ")[0] for hypothesis in one.names()}
    assert {mistake for mistake in kit if mistake not in known} <= {"scaling ignored"}
    assert "scaling ignored" not in kit or {"no scaling", INTENDED} & set(one.names())


def test_a_wrong_base_is_none_of_these():
    one, other = (
        ask_about("yarn"),
        Asked({**build("yarn"), "rope_parameters": {**PARAMETERS["yarn"], "rope_theta": 5e5 * 1.02}}),
    )
    found = one.judge(other.answer(INTENDED))
    assert (found.verdict, found.code) == ("none of these", 1)


def test_predictions_are_named_after_what_they_are():
    yarn = ask_about("yarn")
    assert any(name.startswith(PREDICTED + "vLLM") for name in yarn.judge(yarn.answer(INTENDED)).names)


def test_noise_hides_what_it_is_larger_than():
    one = ask_about("yarn")
    drawn = np.random.default_rng(3)
    answers = [(np.array(values) + drawn.normal(0.0, 0.3, len(values))).tolist() for values in one.answer(INTENDED)]
    found = one.judge(answers)
    assert (found.verdict, found.code) == ("cannot tell", 4)
    assert found.noise == pytest.approx(0.3 * (2 / np.pi) ** 0.5, rel=0.5)
