"""A longer context keeps what the model was trained with; nothing that loses it is written unasked."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.advice.plan.config_file import find_new_findings
from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.advice.plan.verdict import make_verdict
from rope_viz.cli.main import main
from rope_viz.embedding.scaling import Linear, Llama3, LongRope, NtkAware, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.catalog import catalog
from rope_viz.models.identity.trained_scaling import find_loss
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.pages.model.extend import words
from tests.configs import DEEPSEEK_V3, LLAMA_3_1_8B, QWEN3_8B, llama, yarn

CASES = Path(__file__).parents[1] / "cases" / "trained"
GEMMA = dict(catalog()["gemma-3-27b-global"].config)
LLAMA_7B = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
LLAMA_7B |= {"intermediate_size": 11008, "vocab_size": 32000}
PLAIN = RopeSpec(context=4096, base=10_000.0)


def read_case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


def run_extend(tmp_path, name, to, runtime="transformers"):
    """Return the exit code and what was written, None for nothing."""
    out = tmp_path / "out.json"
    code = main(["extend", str(CASES / f"{name}.json"), "--to", to, "--runtime", runtime, "-o", str(out)])
    return code, json.loads(out.read_text()) if out.exists() else None


def test_kimi_keeps_its_yarn_and_its_softmax_factor(tmp_path, capsys):
    code, written = run_extend(tmp_path, "kimi-k2.5", "512k")
    before, after = (from_config(config)[""] for config in (read_case("kimi-k2.5"), written))
    assert code == 0
    assert (after.scaling.name, after.scaling.factor, after.context) == ("yarn", 128.0, 4096)
    assert (after.scaling.mscale, after.scaling.mscale_all_dim) == (1.0, 1.0)
    assert np.all(after.inv_freq() <= before.inv_freq() * (1 + 1e-9))


def test_internlm_keeps_its_dynamic_ntk(tmp_path, capsys):
    code, written = run_extend(tmp_path, "internlm2.5", "64k")
    after = from_config(written)[""]
    assert code == 0
    assert (after.scaling.name, after.base) == ("dynamic", 1e6)
    assert after.scaling.factor > 2.0


def test_trained_lists_stay_where_a_server_cannot_read_them(tmp_path, capsys):
    code, written = run_extend(tmp_path, "phi-longrope-sglang", "256k", "sglang")
    assert code == 1
    before, after = (from_config(config)[""] for config in (read_case("phi-longrope-sglang"), written))
    assert after.scaling.name == "longrope"
    assert after.scaling.short_factor == before.scaling.short_factor
    assert np.all(np.array(after.scaling.long_factor) >= np.array(before.scaling.long_factor))


def test_what_no_class_scales_is_not_written(tmp_path, capsys):
    code, written = run_extend(tmp_path, "gpt-j", "4096")
    assert (code, written) == (1, None)
    told = capsys.readouterr().err
    assert "No way to 4,096 tokens is recommended, so nothing is written." in told
    assert "No scaling, only a longer limit:" in told
    plan = make_plan(read_case("gpt-j"), 4096, ["transformers"])
    assert plan.file.config == read_case("gpt-j")
    assert plan.instructions == ()
    assert plan.refused.keys() == {way.id for way in plan.advice.ways}
    verdict = make_verdict(plan)
    assert "No method is recommended for" in verdict.headline
    assert "No way to 4,096 tokens is recommended" in verdict.reason


@pytest.mark.parametrize(
    "config", [GEMMA, {"model_type": "gemma3", "text_config": GEMMA}, catalog()["gemma-3-27b-global"]]
)
def test_gemma_3_goes_on_from_its_linear_scaling(config):
    known = None if isinstance(config, dict) else config
    plan = make_plan(config if known is None else dict(known.config), 262_144, ["vllm"], known=known)
    assert plan.way.spec.scaling == Linear(16.0)
    assert from_config(plan.file.config)["full_attention"].scaling == Linear(16.0)
    assert plan.instructions[0].made.faithful
    assert "linear" in plan.instructions[0].command


def test_a_chosen_way_is_described_by_its_own_numbers():
    model = catalog()["llama-2-7b"]
    plan = make_plan(dict(model.config), 16_384, ["transformers"], known=model, way="linear")
    short = plan.advice.short[0]
    assert "64 of 64 pairs have a lower frequency" in short
    assert "logits" not in short
    assert plan.way.option.logit_factor == 1.0
    assert not plan.refused


def test_requested_way_is_written_with_a_warning(tmp_path, capsys):
    out = tmp_path / "out.json"
    command = ["extend", str(CASES / "kimi-k2.5.json"), "--to", "512k", "--way", "ntk", "-o", str(out)]
    assert main(command) == 0
    assert "NTK-aware, s = 128 is not recommended. Compared with YaRN" in capsys.readouterr().err
    assert from_config(json.loads(out.read_text()))[""].base > 7e6


@pytest.mark.parametrize(
    ("trained", "made", "faster", "factor"),
    [
        (Linear(8.0), Linear(16.0), 0, 1.0),
        (Linear(8.0), Yarn(16.0), None, 1.0),
        (Yarn(4.0), Yarn(8.0), 0, 1.0),
        (Yarn(4.0), Llama3(64.0, 1.0, 4.0), None, (0.1 * np.log(4.0) + 1.0) ** 2),
        (Yarn(4.0, attention=1.0), NtkAware(4.0), None, 1.0),
        (Yarn(4.0, mscale=1.0, mscale_all_dim=1.0), Yarn(8.0, attention=1.0), 0, (0.1 * np.log(4.0) + 1.0) ** 2),
        (LongRope((1.0,) * 64, (8.0,) * 64), NtkAware(8.0), None, None),
        (LongRope((1.0,) * 64, (8.0,) * 64, attention=1.0), Linear(8.0), 0, 1.0),
    ],
)
def test_a_loss_is_counted_by_pairs_and_factors(trained, made, faster, factor):
    before, after = (replace(PLAIN, scaling=scaling, target=32_768) for scaling in (trained, made))
    loss = find_loss(before, after)
    if faster == 0 and factor == 1.0:
        assert loss is None
        return
    assert loss is not None
    ratio = after.inv_freq(32_768) / before.inv_freq(32_768)
    assert loss.faster == (np.count_nonzero(ratio > 1.0 + 1e-6) if faster is None else faster)
    assert factor is None or loss.factor == pytest.approx(factor)


def test_a_trained_list_counts_even_where_the_limit_is_short():
    spec = replace(PLAIN, scaling=LongRope((1.0,) * 64, (8.0,) * 64, attention=1.0))
    assert find_loss(spec, replace(PLAIN, scaling=NtkAware(8.0), target=32_768)).faster == 63


@pytest.mark.parametrize("way", ["yarn", "ntk", "llama3", "linear", "none"])
def test_methods_that_drop_a_trained_scaling_are_not_advised(way):
    plan = make_plan(DEEPSEEK_V3, 327_680, ["transformers"], way=way)
    assert plan.way.is_advised == (way == "yarn")
    assert bool(plan.warning) == (way != "yarn")


def test_a_shipped_scaling_that_the_file_lacks_is_taken_further():
    config = {**LLAMA_3_1_8B, "rope_scaling": None}
    plan = make_plan(
        {**GEMMA, "num_hidden_layers": 62, "intermediate_size": 21504, "rope_scaling": None}, 262_144, ["vllm"]
    )
    assert plan.way.spec.scaling == Linear(16.0)
    assert make_plan(config, 262_144, ["vllm"]).way.rank != "not advised"


def test_a_short_model_without_scaling_has_lost_nothing():
    """Phi-3-mini-4k has the sizes of Phi-3-mini-128k, and its limit is the original length of the lists."""
    config = {key: value for key, value in catalog()["phi-3-mini-128k-2024-04"].whole.items() if key != "_about"}
    config |= {"rope_scaling": None, "max_position_embeddings": 4096}
    plan = make_plan(config, 8192, ["sglang"])
    assert not plan.refused
    assert plan.instructions[0].made.faithful


def test_added_yarn_is_extended():
    long = {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)}
    assert make_plan(long, 262_144, ["transformers"]).way.spec.scaling.factor == 8.0
    assert make_plan(QWEN3_8B, 131_072, ["transformers"]).way.rank == "documented"


def test_a_draft_is_compared_as_the_model_that_the_file_is():
    plan = make_plan(LLAMA_7B, 8192, ["vllm"])
    assert plan.recognised.name == "LLaMA 7B"
    assert (plan.way.method, plan.way.spec.context) == ("yarn", 2048)
    before, after = ModelConfig.read(LLAMA_7B), ModelConfig.read(plan.file.config)
    assert after.identity.name != "LLaMA 7B"  # by its numbers alone it is another one
    assert not [one for one in find_new_findings(before, after) if one.rule in ("trained-length", "not-as-shipped")]


@pytest.mark.parametrize("base", [50_000.0, 7_484_356.0])
def test_check_finds_missing_trained_scaling(base):
    config = {**catalog()["kimi-k2.5"].whole, "rope_theta": base}
    assert not [one for one in check(catalog()["kimi-k2.5"].whole) if one.rule == "trained-scaling-gone"]
    del config["rope_scaling"]
    found = [one for one in check(config) if one.rule == "trained-scaling-gone"]
    assert [one.severity for one in found] == ["warning"]
    assert "pairs turn up to ×" in found[0].message


def test_other_models_of_the_same_sizes_have_lost_nothing():
    """Llama 3 8B has the sizes of Llama 3.1 8B; a larger base may slow every pair as much as the scaling did."""
    for changes in (
        {"rope_scaling": None, "max_position_embeddings": 262_144, "rope_theta": 283_461_213.0},
        {"rope_scaling": None, "max_position_embeddings": 8192},
    ):
        assert "trained-scaling-gone" not in {one.rule for one in check({**LLAMA_3_1_8B, **changes})}


def test_an_original_length_is_never_called_trained():
    model = catalog()["llama-3.1-8b"]
    trained = ModelConfig.read(model.config, known=model).identity.trained
    assert (trained.name, trained.length) == ("original length", 8192)
    assert ModelConfig.read(QWEN3_8B).identity.trained.name == "trained length"
    assert ModelConfig.read(llama(max_position_embeddings=16_384)).identity.trained.name == "limit"
    for target in (131_072, 262_144):
        plan = make_plan(dict(model.config), target, ["vllm"], known=model)
        told = " ".join((make_verdict(plan).reason, words.speeds(plan)))
        assert "in training" not in told
        assert "trained length" not in told.replace("The trained length is not documented", "")


def test_limit_below_the_original_length_is_raised():
    plan = make_plan(read_case("internlm2.5"), 4096, ["transformers"])
    assert plan.recognised.says == 2048
    assert plan.way.rank == "documented"
    assert plan.way.spec.scaling == ModelConfig.read(read_case("internlm2.5")).specs[""].scaling


def test_extended_file_is_recognised():
    config = {key: value for key, value in catalog()["kimi-k2.5"].whole.items() if key != "_about"}
    longer = make_plan(config, 524_288, ["vllm"]).file.config
    plan = make_plan(dict(longer), 1_048_576, ["vllm"])
    assert plan.recognised.name == "Kimi-K2.5 / K2.6"
    assert plan.way.spec.scaling.factor == 256.0


def test_yarn_with_a_larger_factor_stays():
    config = {**QWEN3_8B, "max_position_embeddings": 327_680, "rope_scaling": yarn(32_768, 10.0)}
    assert make_plan(config, 131_072, ["transformers"]).way.id == "kept"


@pytest.mark.parametrize("id", list(catalog()))
def test_listed_model_and_its_file_get_the_same_way(id):
    model = catalog()[id]
    config = {key: value for key, value in model.whole.items() if key != "_about"}
    target = 2 * ModelConfig.read(model.config).limit
    listed, dropped = make_plan(dict(model.config), target, ["vllm"], known=model), make_plan(config, target, ["vllm"])
    if dropped.recognised.model is not None:
        assert dropped.way.spec == listed.way.spec
        assert bool(dropped.refused) == bool(listed.refused)
