"""Types whose code travels with the model are read as files that run them compute (tests/goldens/make_published.py)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.lint import check
from rope_viz.models.architecture import all_architectures, find_architecture
from rope_viz.models.layer_patterns import describe_rotating_layers
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.no_rope_types import NoRope
from rope_viz.runtimes import emulate
from tests.offenders import for_each

GOLDEN = Path(__file__).parents[1] / "goldens" / "published.json"
REMOTE = {kind: record for kind, record in all_architectures().items() if record.remote_code}
SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}


@cache
def rows():
    return json.loads(GOLDEN.read_text())["rows"]


@for_each(rows(), lambda row: f"{row['config']['model_type']}-{row['config']['hidden_size']}-{row.get('length')}")
def test_a_published_type_is_read_as_its_file_computes(row):
    if row.get("length") is not None:
        found = emulate(row["config"], runtime="transformers", length=row["length"])
        np.testing.assert_allclose(found.inv_freq, row["inv_freq"], rtol=1e-6, atol=0)
        assert found.attention_factor == pytest.approx(row["attention_factor"], rel=1e-6)
        return
    spec = from_config(row["config"])[""]
    factor = spec.scaling.factor_for(spec)
    np.testing.assert_allclose(spec.inv_freq(), row["inv_freq"], rtol=1e-6 + 2e-7 * factor, atol=0)
    assert spec.attention_factor() == pytest.approx(row["attention_factor"], rel=1e-6)


def test_every_published_type_names_where_it_was_read():
    # EXAONE's code is in transformers since 5.24.0; what was executed is still the file that came with the model.
    assert {row["config"]["model_type"] for row in rows()} - {"exaone"} <= REMOTE.keys()
    for kind in REMOTE:
        config = {"model_type": kind}
        assert not [finding for finding in check(config) if finding.rule == "unlisted-type"]
        known = emulate(config, runtime="transformers").known
        assert known.how == "by rule"
        assert REMOTE[kind].source in known.source


LING_PLUS = {
    **{"model_type": "bailing_moe", "hidden_size": 5376, "num_attention_heads": 56, "num_key_value_heads": 8},
    **{"num_hidden_layers": 88, "max_position_embeddings": 16384, "rope_theta": 600000},
}


def test_ling_plus_derives_its_head_from_the_width():
    """Run: inclusionAI/Ling-plus, modeling_bailing_moe.py; read: bailing_moe.py of vLLM 0.33.0, line 93."""
    assert from_config(LING_PLUS)[""].head_dim == 96
    for runtime in ("vllm", "llama.cpp", "mlx-lm"):
        found = emulate(LING_PLUS, runtime=runtime)
        assert (len(found.inv_freq), found.known.how) == (48, "executed")
    assert not [one for one in check(LING_PLUS) if one.severity != "note"]


def test_telechat_names_both_codes():
    """Run: TeleChat's 7B code gives 3.85e-05 at the slowest of 64 pairs, its 12B code 1.15e-04."""
    config = {"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192}
    plain = from_config(config)[""].inv_freq()[-1]
    assert plain == pytest.approx(1.15e-4, rel=5e-3)
    assert pytest.approx(3.85e-5, rel=5e-3) == (10_000.0 * 3.0 ** (128 / 126)) ** (-126 / 128)
    (found,) = [one for one in check(config) if one.rule == "two-codes"]
    assert found.severity == "warning"
    assert "12B" in found.message
    assert "3^(d/(d-2))" in found.message
    assert found.message in ModelConfig.read(config).notes


# Keys as the published config.json have them, read in the files that `SOURCES` names.
KEYS = [
    ({"model_type": "qwen", **SIZES, "kv_channels": 128, "rotary_emb_base": 1000000, "rotary_pct": 1.0}, 1e6, 64),
    ({"model_type": "telechat", "hidden_size": 4096, "n_head": 32, "seq_length": 8192}, 1e4, 64),
    ({"model_type": "step3_text", "hidden_size": 7168, "max_position_embedding": 65536}, 5e5, 128),
    ({"model_type": "internlm", **SIZES, "rotary": {"base": 50000, "type": "dynamic"}}, 5e4, 64),
    ({"model_type": "phi3small", **SIZES, "rope_embedding_base": 1000000}, 1e6, 64),
    ({"model_type": "bailing_moe_v2", "head_dim": 128, "partial_rotary_factor": 0.5, "rope_theta": 600000}, 6e5, 32),
    ({"model_type": "baichuan", "hidden_size": 4096, "num_attention_heads": 32, "model_max_length": 4096}, 1e4, 64),
]


@pytest.mark.parametrize(("config", "base", "pairs"), KEYS, ids=lambda value: str(value)[:30])
def test_a_type_is_read_by_its_own_keys(config, base, pairs):
    spec = from_config(config)[""]
    assert (spec.base, spec.pairs) == (base, pairs)


@pytest.mark.parametrize("kind", ["deepseek_vl_v2", "kimi_vl", "mimo_vl", "minimax_vl_01", "step3_vl"])
def test_published_wrapper_has_its_text_part_where_recorded(kind):
    place = find_architecture(kind).text.path[0]
    config = {"model_type": kind, place: {**SIZES, "rope_theta": 77777.0, "qk_rope_head_dim": 64}}
    assert from_config(config)[""].base == 77777.0
    assert not [finding for finding in check(config) if finding.rule == "unlisted-type"]


def test_deepseek_vl2_tiny_has_whole_heads():
    """Its config names deepseek_v2 and says use_mla: false; vLLM 0.10.2 then runs DeepseekForCausalLM."""
    part = {"model_type": "deepseek_v2", "use_mla": False, "qk_rope_head_dim": 0, "kv_lora_rank": None}
    config = {
        "model_type": "deepseek_vl_v2",
        "language_config": {**part, "hidden_size": 1280, "num_attention_heads": 10, "max_position_embeddings": 4096},
    }
    assert from_config(config)[""].pairs == 64


def test_only_the_attention_layers_of_minimax_rotate():
    config = {"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1] * 4}
    assert describe_rotating_layers(ModelConfig.read(config).fields).startswith("Only some layers rotate, 4 of 16")


def test_baichuan_13b_has_no_rotary_embedding():
    with pytest.raises(NoRope, match="ALiBi"):
        from_config({"model_type": "baichuan", "hidden_size": 5120, "num_attention_heads": 40})


def test_the_first_chatglm_is_refused_by_name():
    with pytest.raises(ValueError, match="position_encoding_2d is true"):
        from_config({"model_type": "chatglm", **SIZES, "position_encoding_2d": True})


def test_grok_2_is_not_read_as_git():
    """Its config.json says model_type "git", the type of a captioning model without rotary embedding."""
    config = {"model_type": "git", "architectures": ["Grok1ForCausalLM"], **SIZES, "rope_theta": 208533496}
    assert from_config(config)[""].base == 208533496
    assert "unlisted-type" in [finding.rule for finding in check(config)]
    with pytest.raises(NoRope):
        from_config({"model_type": "git", **SIZES})
