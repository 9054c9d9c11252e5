"""The maker's documented method is recommended first, and the written config means the same to every runtime."""

import json

import pytest

from rope_viz.advice.plan.config_file import write_config_file
from rope_viz.advice.plan.rank_methods import recommend
from rope_viz.advice.plan.runtime_instructions import NAMES, format_diff, write_instructions
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from rope_viz.runtimes.compare import compare
from tests.configs import QWEN3_8B, yarn

CARD = "model card, Processing Long Texts"
LISTS = {"rope_type": "longrope"}
# {model: (length, what its maker documents for it, where)}; as the published files and cards have it.
DOCUMENTED = [
    ("qwen3-8b", 65_536, yarn(32768, 2.0), CARD),
    ("qwen3-8b", 131_072, yarn(32768), CARD),
    ("qwen3-8b-yarn", 131_072, yarn(32768), CARD),
    ("qwen2.5-7b-instruct", 131_072, {"factor": 4.0, "original_max_position_embeddings": 32768}, CARD),
    ("qwen2.5-7b-instruct-yarn", 131_072, {"factor": 4.0, "original_max_position_embeddings": 32768}, CARD),
    (
        "qwen3.5-9b",
        524_288,
        {"factor": 2.0, "original_max_position_embeddings": 262144, "mrope_interleaved": True},
        CARD,
    ),
    ("qwen3.5-9b", 1_010_000, {"factor": 4.0, "original_max_position_embeddings": 262144}, CARD),
    ("deepseek-v2", 131_072, {"type": "yarn", "factor": 40.0, "mscale_all_dim": 0.707}, "config.json"),
    ("deepseek-v2-lite", 131_072, {"type": "yarn", "factor": 40.0, "mscale": 0.707}, "config.json"),
    ("deepseek-v3", 131_072, {"type": "yarn", "factor": 40.0, "mscale_all_dim": 1.0}, "config.json"),
    ("kimi-k2-instruct", 131_072, {"type": "yarn", "factor": 32.0, "beta_fast": 1.0}, "config.json"),
    ("kimi-k2-thinking", 262_144, {"type": "yarn", "factor": 64.0, "beta_fast": 1.0}, "config.json"),
    ("kimi-k2.5", 262_144, {"type": "yarn", "factor": 64.0, "beta_fast": 32.0}, "config.json"),
    ("gemma-3-12b-global", 131_072, {"rope_type": "linear", "factor": 8.0}, "config.json"),
    ("gemma-3-27b-global", 131_072, {"rope_type": "linear", "factor": 8.0}, "config.json"),
    ("gpt-oss-20b", 131_072, {"rope_type": "yarn", "factor": 32.0, "truncate": False}, "config.json"),
    ("internlm2.5-7b", 32_768, {"rope_type": "dynamic", "factor": 2.0}, "config.json"),
    ("llama-3.1-8b", 131_072, {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0}, "config.json"),
    ("llama-3.2-1b", 131_072, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0}, "config.json"),
    ("llama-4-scout", 10_485_760, {"rope_type": "llama3", "factor": 16.0, "high_freq_factor": 1.0}, "args.py"),
    ("ministral-3-3b", 262_144, {"rope_type": "yarn", "factor": 16.0, "llama_4_scaling_beta": 0.1}, "config.json"),
    ("olmo-3.1-32b", 65_536, {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32}, "config.json"),
    ("phi-3-mini-128k-2024-04", 131_072, LISTS, "config.json"),
    ("phi-3-vision-128k", 131_072, LISTS, "config.json"),
    ("phi-3.5-mini", 131_072, LISTS, "config.json"),
    ("phi-4-mini", 131_072, LISTS, "config.json"),
    ("yarn-llama-2-7b-64k", 65_536, {"rope_type": "yarn", "factor": 16.0}, "train.sh"),
    ("yarn-llama-2-7b-128k", 131_072, {"rope_type": "yarn", "factor": 32.0}, "train.sh"),
    ("yarn-mistral-7b-128k", 131_072, {"rope_type": "yarn", "factor": 16.0}, "model card"),
]


@pytest.mark.parametrize(("id", "length", "keys", "where"), DOCUMENTED, ids=lambda value: str(value)[:24])
def test_the_first_recommendation_is_what_the_maker_documented(id, length, keys, where):
    model = catalog()[id]
    found = ModelConfig.read(model.config).identify(known=model)
    best = recommend(model.config, found, length).best
    assert best.rank in ("documented", "as it is")
    assert best.source
    written = write_config_file(best.spec, model.config, found.layer).config
    part = ModelConfig.read(written).part.config
    rope = part.get("rope_scaling") or part["rope_parameters"]
    rope = rope.get("full_attention", rope) if isinstance(rope.get("full_attention"), dict) else rope
    assert {key: rope[key] for key in keys} == keys
    assert part["max_position_embeddings"] >= length or best.rank == "as it is"


@pytest.mark.parametrize(("length", "factor"), [(65_536, 2.0), (131_072, 4.0)])
@pytest.mark.parametrize("limit", [40_960, 131_072])
def test_stock_qwen3_is_extended_from_its_trained_length(length, factor, limit):
    config = {**QWEN3_8B, "max_position_embeddings": limit}
    best = recommend(config, ModelConfig.read(config).identity, length).best
    assert best.rank == "documented"
    flags = write_instructions(best.spec, "llama.cpp", config=config, length=length).text
    assert f"--rope-scale {factor} --yarn-orig-ctx 32768" in flags
    assert flags.endswith(f"-c {length}")
    options = write_instructions(best.spec, "vllm", config=config, length=length)
    assert f'"factor": {factor}' in options.text
    assert '"original_max_position_embeddings": 32768' in options.text
    assert options.text.endswith(f"--max-model-len {length}")
    assert options.made.faithful
    assert options.proof.startswith("Checked")


@pytest.mark.parametrize("runtime", NAMES)
@pytest.mark.parametrize(
    "changes", [{}, {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}]
)
def test_old_and_new_runtimes_read_the_written_config(runtime, changes):
    config = {key: value for key, value in {**QWEN3_8B, **changes}.items() if value is not None}
    best = recommend(config, ModelConfig.read(config).identity, 131_072).best
    file = write_config_file(best.spec, config)
    assert file.fit
    assert not [finding for finding in file.findings if finding.severity != "note"]
    for release in ("5.24.0", "4.57.6", "4.52.4"):
        answer = emulate(file.config, runtime="transformers", version=release)
        assert answer.inv_freq == pytest.approx(best.spec.inv_freq(), rel=1e-6)
        assert answer.attention_factor == pytest.approx(best.spec.attention_factor())
    given = write_instructions(best.spec, runtime, config=config, file=file)
    assert given.made.faithful
    assert given.command
    assert given.check


def test_nothing_changes_at_a_length_within_training():
    best = recommend(QWEN3_8B, ModelConfig.read(QWEN3_8B).identity, 32_768).best
    assert (best.rank, best.spec.scaling.name) == ("as it is", "none")
    file = write_config_file(best.spec, QWEN3_8B)
    assert (file.config, file.fragment) == (QWEN3_8B, {})
    assert format_diff(QWEN3_8B, file.config) == ""


def test_method_without_effect_is_not_recommended():
    long = {**QWEN3_8B, "rope_theta": 1e9, "num_hidden_layers": 8, "max_position_embeddings": 32_768}
    for length in (65_536, 262_144):
        advice = recommend(long, ModelConfig.read(long).identity, length)
        assert advice.best.method not in ("none", "proportional")
        assert next(way for way in advice.ways if way.method == "none").rank == "not advised"


def test_scaled_model_is_extended_by_its_own_method():
    model = catalog()["llama-3.1-8b"]
    advice = recommend(model.config, ModelConfig.read(model.config).identify(known=model), 262_144)
    assert (advice.best.rank, advice.best.method) == ("its own, further", "llama3")
    assert advice.best.spec.scaling.factor == 16.0


def test_yarn_is_extended_from_the_length_its_factor_reaches():
    rope = yarn(32768)
    config = {**QWEN3_8B, "rope_scaling": rope}  # max_position_embeddings is 40,960 still
    assert recommend(config, ModelConfig.read(config).identity, 1_048_576).best.spec.scaling.factor == 32.0


def test_given_trained_length_decides_the_factor():
    found = ModelConfig.read({**QWEN3_8B, "num_hidden_layers": 20}).identify(trained=16_384)
    advice = recommend(QWEN3_8B, found, 65_536)
    assert advice.best.spec.scaling.factor == 4.0
    assert advice.best.spec.context == 16_384


def test_cost_of_a_static_factor_on_short_texts_is_named():
    advice = recommend(QWEN3_8B, ModelConfig.read(QWEN3_8B).identity, 131_072)
    assert "40 of 64 pairs have a lower frequency below 32,768 tokens, too" in advice.short[0]
    assert "serve them with the original config" in advice.short[1]
    assert any("RULER" in one.text for one in advice.best.evidence)


def test_advice_sentences_are_well_formed():
    for model in catalog().values():
        advice = recommend(model.config, ModelConfig.read(model.config).identify(known=model), 65_536)
        for way in advice.ways:
            for sentence in (*way.reasons, *(one.text for one in way.evidence)):
                assert sentence.endswith("."), sentence
                assert ".." not in sentence, sentence


def test_downloaded_config_is_json_and_its_diff_names_changes():
    best = recommend(QWEN3_8B, ModelConfig.read(QWEN3_8B).identity, 131_072).best
    file = write_config_file(best.spec, QWEN3_8B)
    assert json.loads(json.dumps(file.config)) == file.config
    changed = format_diff(QWEN3_8B, file.config)
    assert '+  "max_position_embeddings": 131072,' in changed
    assert '-  "rope_theta"' not in changed


def test_config_that_reaches_the_length_stays_as_it_is():
    model = catalog()["qwen3-8b-yarn"]
    best = recommend(model.config, ModelConfig.read(model.config).identify(known=model), 16_384).best
    assert (best.rank, best.id) == ("as it is", "kept")


@pytest.mark.parametrize(
    ("id", "trained"), [("qwen3-8b-yarn", False), ("qwen2.5-7b-instruct-yarn", False), ("kimi-k2-instruct", True)]
)
def test_short_texts_are_called_trained_only_if_the_model_was(id, trained):
    model = catalog()[id]
    advice = recommend(model.config, ModelConfig.read(model.config).identify(known=model), 16_384)
    assert ("trained with this scaling" in advice.short[0]) == trained


MPT = {
    **{"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "max_seq_len": 2048},
    "attn_config": {"alibi": False, "rope": True, "rope_theta": 10000, "rope_impl": "hf"},
}
"""As llm-foundry writes it; modeling_mpt.py of transformers 5.24.0 has ALiBi and no rotary code."""
QWEN2_VL = {
    **{"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28},
    **{"num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 32768, "vocab_size": 152064},
    **{"rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
    "vision_config": {"depth": 32, "embed_dim": 1280},
}
"""The keys of Qwen2-VL-7B's config.json, its language model at the top."""


@pytest.mark.parametrize("config", [MPT, QWEN2_VL, QWEN3_8B], ids=["mpt", "flat qwen2_vl", "qwen3"])
def test_proof_is_claimed_only_for_executed_or_read_code(config):
    found = ModelConfig.read(config).identity
    best = recommend(config, found, 131_072).best
    file = write_config_file(best.spec, config)
    known = {
        f"{one.emulation.runtime} {one.emulation.version.split(' ')[0]}": one.how
        for one in compare(config, layer_type=found.layer or None)
    }
    assert all(known[name] in ("executed", "by rule") for name in file.runtimes)
    assert all(known[name] == "not known" for name in file.unverified)
    proved = [sentence for sentence in file.proof if sentence.startswith("Checked")]
    assert len(proved) == bool(file.runtimes)
    for runtime in NAMES:
        given = write_instructions(best.spec, runtime, config=config, file=file)
        at = f"{given.made.runtime} {given.made.version}"
        assert given.proof.startswith("Checked") == (known[at] != "not known" and given.made.faithful)
        assert (given.is_checked is None) == (known[at] == "not known")


def test_transformers_alone_proves_nothing_about_remote_code():
    config = {"model_type": "internlm2", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1000000.0}
    config |= {"num_key_value_heads": 8, "num_hidden_layers": 32, "max_position_embeddings": 32768}
    file = write_config_file(recommend(config, ModelConfig.read(config).identity, 131_072).best.spec, config)
    assert "transformers 5.24.0" not in " ".join(file.runtimes)
    assert any("transformers 5.24.0, which refuses it without the model's own code" in one for one in file.others)
    given = write_instructions(file_spec(config), "transformers", config=config, file=file)
    assert given.proof.startswith("Not verified: transformers 5.24.0 alone refuses this model")
    assert given.is_checked is None


def file_spec(config):
    return recommend(config, ModelConfig.read(config).identity, 131_072).best.spec


def test_unknown_model_has_no_proof():
    file = write_config_file(recommend(MPT, ModelConfig.read(MPT).identity, 131_072).best.spec, MPT)
    assert file.runtimes == ()
    assert "vllm 0.33.0" in file.unverified
    assert file.proof[-1].startswith("By general rules, not verified for this model, ")
    assert "compute the intended frequencies" in file.proof[-1]
    assert "it is unknown whether any release of transformers reads them" in file.generation
