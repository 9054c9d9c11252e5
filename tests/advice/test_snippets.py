"""What `extend` prints to start and to verify a model runs on tiny saved models of each kind of class."""

import json
import re

import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.advice.plan.runtime_instructions import find_auto_class
from rope_viz.cli.main import main
from tests.goldens.records import read_records

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    **{"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2},
    **{"num_hidden_layers": 2, "vocab_size": 160, "head_dim": 16, "max_position_embeddings": 2048},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}
PLAIN = {key: value for key, value in SIZES.items() if key != "head_dim"}
BOTH = ["sliding_attention", "full_attention"]
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
VISION = {"hidden_size": 64, "depth": 1, "num_heads": 4, "intermediate_size": 64, "out_hidden_size": 64}
SIGLIP = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
MODULE = {**SIZES, "layer_types": BOTH, "sliding_window": 64}
KINDS = {
    "qwen3": ("AutoModelForCausalLM", SIZES),
    "gpt_oss": ("AutoModelForCausalLM", {**SIZES, **EXPERTS, "layer_types": BOTH, "sliding_window": 64}),
    "llama4_text": ("AutoModelForCausalLM", {**SIZES, **EXPERTS, "intermediate_size_mlp": 96}),
    "gemma3_text": ("AutoModelForCausalLM", {**SIZES, "layer_types": BOTH}),
    "modernbert": ("AutoModel", {**PLAIN, "layer_types": BOTH, "cls_token_id": 1, "sep_token_id": 2}),
    "gemma3": (
        "AutoModelForImageTextToText",
        {"text_config": {**SIZES, "layer_types": BOTH}, "vision_config": SIGLIP, "mm_tokens_per_image": 4},
    ),
    "qwen2_5_vl": (
        "AutoModelForImageTextToText",
        {
            "text_config": {**PLAIN, "rope_scaling": {"type": "default", "mrope_section": [2, 3, 3]}},
            "vision_config": VISION,
        },
    ),
    "t5gemma": ("AutoModelForSeq2SeqLM", {"encoder": MODULE, "decoder": MODULE}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_printed_snippets_run_and_confirm_the_written_file(kind, tmp_path, monkeypatch, capsys):
    auto_class, keys = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    config = transformers.AutoConfig.for_model(kind, **json.loads(json.dumps(keys)))
    torch.manual_seed(0)
    getattr(transformers, auto_class).from_config(config).save_pretrained("model")
    given = json.loads((tmp_path / "model" / "config.json").read_text())
    plan = make_plan(given, 8192, ["transformers"])
    (tmp_path / "model" / "config.json").write_text(json.dumps(dict(plan.file.config)))
    (tmp_path / "config.json").write_text(json.dumps(dict(plan.file.config)))
    (one,) = plan.instructions
    assert f"import {auto_class} as M" in one.command
    exec(re.search('"(.*)"', one.command).group(1), {})
    exec(one.check, {})
    assert main(plan.verify_command.split()[1:]) == 0, capsys.readouterr().out
    assert main(("verify", "config.json", "--from", "model")) == 0, capsys.readouterr().out
    found = json.loads((tmp_path / "inv_freq.json").read_text())
    assert found["inv_freq"] == pytest.approx(plan.way.spec.inv_freq().tolist(), rel=1e-5)
    assert found["attention_factor"] == pytest.approx(plan.way.spec.attention_factor(), rel=1e-6)


def test_the_asked_layer_type_is_the_one_that_is_verified(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = transformers.AutoConfig.for_model("gemma3_text", **SIZES, layer_types=BOTH)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained("model")
    given = json.loads((tmp_path / "model" / "config.json").read_text())
    plan = make_plan(given, 8192, ["transformers"], layer="sliding_attention")
    (tmp_path / "model" / "config.json").write_text(json.dumps(dict(plan.file.config)))
    (tmp_path / "config.json").write_text(json.dumps(dict(plan.file.config)))
    exec(plan.instructions[0].check, {})
    assert plan.verify_command.endswith("--layer sliding_attention")
    assert main(plan.verify_command.split()[1:]) == 0, capsys.readouterr().out


def test_auto_classes_are_those_of_transformers():
    from transformers.models.auto import modeling_auto

    mappings = {
        "AutoModelForImageTextToText": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        "AutoModelForSeq2SeqLM": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        "AutoModelForCausalLM": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "AutoModelForMultimodalLM": modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        "AutoModel": modeling_auto.MODEL_MAPPING_NAMES,
    }
    known = 0
    for kind, facts in read_records().items():
        found = find_auto_class({"model_type": kind})
        if facts.get("remote_code") or not any(kind in mapping for mapping in mappings.values()):
            continue
        known += 1
        assert kind in mappings[found], kind
    assert known > 200
