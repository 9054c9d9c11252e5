"""Methods are ranked by what the chosen runtimes compute, and costs are those of the model and the method."""

import pytest

from rope_viz.advice.plan.export import export
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.advice.plan.runtime_instructions import NAMES
from rope_viz.advice.plan.ways import EVIDENCE
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig

MODELS = ("qwen3-8b", "gemma-3-27b-global", "llama-3.1-8b", "internlm2.5-7b", "mixtral-8x7b", "deepseek-v3.2")
DOCUMENTED = ("as it is", "documented", "as set")


def plan(id, to, *runtimes, **given):
    return make_plan(ModelConfig.read(catalog()[id].whole), to, runtimes, known=catalog()[id], **given)


@pytest.mark.parametrize("runtime", NAMES)
@pytest.mark.parametrize("id", MODELS)
def test_a_runtime_computes_what_is_recommended(id, runtime):
    for to in (131_072, 1_048_576):
        made = plan(id, to, runtime)
        if made.refused or not all(one.made.faithful for one in made.instructions):
            continue
        layer = made.recognised.layer or None
        for way in made.advice.ways:
            if way.is_advised and way.rank not in DOCUMENTED and way.id != "kept":
                assert export(way.spec, to=runtime, config=made.config, layer_type=layer).faithful, way.title


def test_dynamic_ntk_is_ranked_by_the_runtime():
    places = {name: [way.id for way in plan("qwen3-8b", 131_072, name).advice.ways].index("dynamic") for name in NAMES}
    assert places["transformers"] == 1
    for name in ("vllm", "sglang", "llama.cpp"):
        assert places[name] > 1
    way = plan("qwen3-8b", 131_072, "vllm").advice.way("dynamic")
    assert way.rank == "not advised"
    assert way.because.startswith("vLLM 0.33.0 does not compute it: other frequencies")


def test_one_of_several_runtimes_is_enough():
    assert plan("qwen3-8b", 131_072, "transformers", "vllm").advice.way("dynamic").rank == "not advised"


def test_no_method_loses_its_rank_where_the_runtime_reads_none():
    made = plan("internlm2.5-7b", 131_072, "transformers-4")
    assert not any(one.made.faithful for one in made.instructions)
    assert made.way.is_advised


def test_a_chosen_method_changes_no_rank():
    ranks = [
        [(way.id, way.rank) for way in plan("qwen3-8b", 131_072, "vllm", way=way).advice.ways]
        for way in ("", "ntk", "dynamic")
    ]
    assert ranks[0] == ranks[1] == ranks[2]


def test_the_command_line_says_why_a_method_is_not_recommended(capsys):
    assert main(["extend", "qwen3-8b", "--to", "128k", "--runtime", "vllm"]) == 0
    text = capsys.readouterr().out
    assert "Dynamic NTK, s = 4 (not recommended)\n   - vLLM 0.33.0 does not compute it" in text


def test_costs_are_those_of_a_reading_runtime():
    assert "nothing changes" in plan("internlm2.5-7b", 32_768, "transformers").advice.short[0]
    assert plan("internlm2.5-7b", 32_768, "sglang").advice.short == ()
    assert "nothing changes" in plan("internlm2.5-7b", 32_768, "sglang", "transformers").advice.short[0]


def test_lengths_that_are_not_served_make_no_difference():
    """vLLM computes the base of dynamic NTK once. Below the original length that is the right one."""
    (given,) = plan("internlm2.5-7b", 32_768, "vllm").instructions
    assert given.made.faithful
    longer = plan("internlm2.5-7b", 65_536, "vllm", way="dynamic")
    assert longer.instructions[0].is_checked is False


@pytest.mark.parametrize("to", [32_768, 131_072, 262_144])
def test_documented_methods_cite_their_model(to):
    for model in catalog().values():
        known = ModelConfig.read(model.whole, known=model)
        if known.problems:
            continue
        for way in plan(model.id, to, "vllm").advice.ways:
            for one in way.evidence:
                assert one in EVIDENCE
                assert model.id in one.models if one.models else way.rank not in (*DOCUMENTED[:2], "its own, further")


@pytest.mark.parametrize(("way", "always"), [("yarn", True), ("dynamic", False)])
def test_a_factor_by_length_does_not_apply_to_every_text(way, always):
    notes = " ".join(plan("qwen3-8b", 262_144, "transformers", way=way).instructions[0].notes)
    assert ("applies to every text" in notes) == always
