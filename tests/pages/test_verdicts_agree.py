"""Page and command line give one verdict: the same method, sentences, certainty and memory, and no pair gets faster."""

import contextlib
import dataclasses
import io
import json

import numpy as np
import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.advice.plan.verdict import make_verdict
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.formats.gguf import read_header, summarise_header
from rope_viz.models.identity.trained_scaling import find_trained_embedding
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import CUSTOM, Subject, with_sizes
from rope_viz.pages.model import extend
from rope_viz.picture.picture_request import PictureRequest
from tests.configs import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_3_1_8B, QWEN3_8B, with_scaling, yarn
from tests.gguf_files import write_gguf
from tests.pages.test_pages_agree import GEMMA_3_27B

LENGTHS = (131_072, 262_144, 1_048_576)
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
LLAMA_70B_AWQ = {
    **{**LLAMA_3_1_8B, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64},
    **{"num_hidden_layers": 80, "quantization_config": AWQ},
}
GGUF = {
    **{"context_length": 40960, "embedding_length": 4096, "block_count": 36, "feed_forward_length": 12288},
    **{"attention.head_count": 32, "attention.head_count_kv": 8, "attention.key_length": 128},
    **{"attention.value_length": 128, "rope.freq_base": 1e6},
}
# {name: (config, model of the list or architecture of a GGUF file, certainty at 128k, 256k and 1M)}. Documented are the
# lengths of model cards and released configs; up to twice as far is the maker's method, taken further.
CASES = {
    "Qwen3 8B": (QWEN3_8B, ("documented", "further", "unshown")),
    "Gemma 3 27B, list": ("gemma-3-27b-global", ("documented", "further", "unshown")),
    "Gemma 3 27B, file": (GEMMA_3_27B, ("documented", "further", "unshown")),
    "Llama 3.1 70B AWQ": (LLAMA_70B_AWQ, ("documented", "further", "unshown")),
    "DeepSeek-V3.2": ("deepseek-v3.2", ("documented", "further", "unshown")),
    "Kimi-K2.5": ("kimi-k2.5", ("documented", "documented", "unshown")),
    "Phi-4-mini": ("phi-4-mini", ("documented", "further", "unshown")),
    "GGUF of Qwen3 8B": (GGUF, ("documented", "further", "unshown")),
    "gpt-oss-20b": ("gpt-oss-20b", ("documented", "further", "unshown")),
}
OTHERS = {
    "gpt-oss, file": GPT_OSS_20B,
    "DeepSeek-V3, file": DEEPSEEK_V3,
    "Qwen3 with YaRN": {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)},
    "Qwen3 with a larger factor": {**QWEN3_8B, "max_position_embeddings": 262_144, "rope_scaling": yarn(32_768, 8.0)},
    "Qwen3 fine-tune": {**QWEN3_8B, "vocab_size": 152_064},
    "Llama 3.1, other factor": with_scaling(LLAMA_3_1_8B, factor=16.0),
    "unknown Llama": {**LLAMA_3_1_8B, "hidden_size": 4608, "num_attention_heads": 36, "rope_scaling": None},
    "Qwen3.5": "qwen3.5-9b",
    "Mistral with windows": "mistral-7b-v0.1",
    "Llama 4 Scout": "llama-4-scout",
    "Gemma 4": "gemma-4-31b",
    "Mixtral": "mixtral-8x7b",
    "InternLM2.5": "internlm2.5-7b",
    "GPT-J": "gpt-j-6b",
}


def read_page(source, data, to):
    """Return the plan that the page shows for a model and a length, with the runtime that it chooses."""
    if isinstance(source, str):
        known = catalog()[source]
        model = ModelConfig.read(known.whole, known=known)
        layer = model.find_layer(None)
        subject = Subject(model.start_specs[layer], source, layer)
    else:
        upload = read_upload(data)
        subject = Subject(upload.specs[upload.layer], CUSTOM, upload.layer, upload)
    request = PictureRequest(subject._replace(spec=with_sizes(subject.spec, target=to)))
    return extend.answer(request), request[extend.RUNTIMES]


def run_extend(name, to, runtime):
    """Return what the command line prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(["extend", str(name), "--to", str(to), "--runtime", runtime, "--json"]) in (0, 1)
    return json.loads(out.getvalue())


def compare_answers(source, data, file, to):
    """Assert that page and command line agree, and that no trained pair gets faster; return what the command says."""
    plan, runtime = read_page(source, data, to)
    told = run_extend(source if isinstance(source, str) else file, to, runtime)
    verdict = dataclasses.asdict(make_verdict(plan))
    assert (plan.target, verdict) == (to, told["verdict"])
    assert told["chosen"] == (None if plan.refused else plan.way.id)
    assert dict(plan.file.config) == told["config"]
    assert [one.command for one in plan.instructions] == [one["command"] for one in told["runtimes"].values()]
    assert list(plan.memory.sentences(to)) == told["memory"]["sentences"]
    # A file that departs from its model by mistake is compared with what the model ships with.
    trained = find_trained_embedding(plan.recognised)
    if not plan.refused:
        before, after = (one.inv_freq(min(to, one.target)) for one in (trained, plan.way.spec))
        assert np.all(after <= before * (1.0 + 1e-6))
    return told


def write_file(source, tmp_path):
    """Return a config as a file and what a browser sends of it: of a GGUF file a summary of its header."""
    if isinstance(source, str):
        return None, b""
    if source is GGUF:
        file = write_gguf(tmp_path / "model.gguf", "qwen3", GGUF)
        return file, json.dumps(summarise_header(read_header(file))).encode()
    file = tmp_path / "config.json"
    file.write_text(json.dumps(source))
    return file, file.read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_page_and_command_line_give_one_verdict(name, tmp_path):
    source, expected = CASES[name]
    file, data = write_file(source, tmp_path)
    told = [compare_answers(source, data, file, to) for to in LENGTHS]
    assert tuple(one["verdict"]["certainty"] for one in told) == expected
    for one in told:
        assert one["verdict"]["headline"].startswith("If you must") == (one["verdict"]["certainty"] == "unshown")


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_get_one_verdict_too(name, tmp_path):
    source = OTHERS[name]
    file, data = write_file(source, tmp_path)
    for to in LENGTHS:
        compare_answers(source, data, file, to)


def test_a_shorter_measurement_belongs_to_the_verdict():
    verdicts = {to: make_verdict(make_plan(QWEN3_8B, to, ["vllm"])) for to in LENGTHS}
    assert verdicts[131_072].measured == ""
    for to in LENGTHS[1:]:
        assert verdicts[to].measured == "Measured so far: up to 128k tokens, RULER 77.4 with YaRN × 4."
    assert verdicts[1_048_576].words == "Nobody has shown this"


def test_what_only_the_config_says_is_called_so():
    unknown = make_verdict(make_plan(OTHERS["unknown Llama"], 131_072, ["vllm"]))
    assert (unknown.certainty, unknown.words) == ("documented", "Documented by the config only")
    assert "not documented" in unknown.reason
    edited = make_verdict(make_plan(OTHERS["Qwen3 with a larger factor"], 262_144, ["vllm"]))
    assert edited.certainty == "further"
    assert "its makers document something else" in edited.reason


def test_a_way_that_speeds_pairs_up_is_not_recommended():
    plan = make_plan(GEMMA_3_27B, 262_144, ["vllm"], way="yarn")
    verdict = make_verdict(plan)
    assert (verdict.certainty, verdict.words) == ("unshown", "Not recommended")
    assert verdict.headline.startswith("Not recommended:")
    assert "pairs turn" in verdict.reason


def test_where_nothing_is_recommended_there_is_no_certainty():
    verdict = make_verdict(make_plan({"model_type": "gptj"}, 4096, ["transformers"]))
    assert (verdict.certainty, verdict.words) == (None, "")
    assert verdict.headline == "No method is recommended for 4,096 tokens"
