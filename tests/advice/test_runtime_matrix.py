"""The answers of the runtimes in words, and that no config breaks the page that shows them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_viz.advice.lint import check, repair
from rope_viz.advice.plan import extend, runtime_matrix
from rope_viz.advice.plan.export import TARGETS
from rope_viz.embedding.scaling import METHODS
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.pages import registry
from rope_viz.pages.model import runtimes as pictures
from rope_viz.pages.model.runtimes import figures as runtimes
from rope_viz.pages.model.runtimes import words
from rope_viz.picture import read_address
from rope_viz.runtimes import RUNTIMES, emulate


def asked(model):
    specs = model_specs(model)
    layer = main_layer(catalog()[model], specs)
    return runtime_matrix.RuntimeCase(ModelConfig.read(catalog()[model].config), layer, specs[layer], model)


def everything_the_page_does(question):
    for length in (None, question.spec.target):
        answers = runtime_matrix.compare_runtimes(question, length)
        words.agreement(answers)
        words.whose(question, length)
        runtimes.curves(answers, question.spec)
        runtimes.matrix(answers, question.config)
    check(question.clean)
    json.dumps(repair(question.clean))
    for target in TARGETS:
        words.faithful(runtime_matrix.export_intended(question, target), target)
    for method in runtimes.methods(question, 65_536):
        spec = extend.extend(question.spec, method, 65_536)
        runtime_matrix.export_intended(replace(question, spec=spec), "transformers")


def test_sentence_counts_and_names_runtimes():
    answers = runtime_matrix.compare_runtimes(asked("kimi-k2-instruct"))
    text = words.agreement(answers)
    assert text.startswith("**7 of 9 runtimes agree**")
    assert "llama.cpp 0c1e57098 is off by **×8.93 at pair 19**" in text
    assert "transformers 4.43.4 refuses it" in text
    assert len(answers.rows) == len(RUNTIMES)


def test_repair_flags_make_llama_cpp_agree():
    """The flags given for llama.cpp make it agree: sent back by themselves."""
    question = asked("kimi-k2-instruct")
    row = next(row for row in runtime_matrix.compare_runtimes(question).rows if row.name.startswith("llama.cpp"))
    mended = emulate(question.config, runtime="llama.cpp", flags=row.repair)
    assert mended.inv_freq == pytest.approx(question.spec.inv_freq(), rel=1e-6)


def test_runtimes_with_the_same_frequencies_share_a_curve():
    groups = runtime_matrix.group_differing(runtime_matrix.compare_runtimes(asked("gpt-oss-20b")))
    names = [[row.name for row in rows] for rows, _ in groups]
    assert ["llama.cpp 0c1e57098", "mlx-lm 0.32.2", "TensorRT-LLM"] in names


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["qwen3-8b", "gpt-oss-20b", "gemma-3-1b", "gpt-neox-20b", "deepseek-v3"])
def test_config_of_the_question_matches_the_knobs(model, method):
    start = asked(model)
    spec = extend.extend(start.spec, method, 2 * start.spec.target)
    question = runtime_matrix.config_for(Subject(spec, model, start.layer))
    assert question.problem or not runtime_matrix.unexpressible_part(question.config, spec, question.layer)
    # No config has a share of a part of the head, nor CoPE's pair that does not turn.
    assert not question.problem or method in ("proportional", "cope")


def test_every_catalog_model_has_a_row():
    rows = runtimes.model_list(everything=True)
    assert {row["model"] for row in rows} == {model.name for model in catalog().values()}
    assert len(runtimes.model_list()) < len(rows)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, 1, -1, 2, 3, 7, 64, 4096, 10**9, 10**30, 1e-9, 1e308, 0.5, "", "yarn", "4", [], [1.0] * 32, {}]
    ),
    st.floats(),
    st.integers(-5, 300_000),
)
ROPE = st.dictionaries(
    st.sampled_from(
        [
            "factor",
            "original_max_position_embeddings",
            "beta_fast",
            "beta_slow",
            "attention_factor",
            "mscale",
            "mscale_all_dim",
            "truncate",
            "short_factor",
            "long_factor",
            "low_freq_factor",
            "high_freq_factor",
            "rope_theta",
            "partial_rotary_factor",
            "alpha",
        ]
    ),
    ODD,
    max_size=6,
)
KINDS = st.sampled_from(
    ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional", "su", "mrope", "nonsense"]
)
SIZES = st.dictionaries(
    st.sampled_from(
        [
            "head_dim",
            "hidden_size",
            "num_attention_heads",
            "max_position_embeddings",
            "rope_theta",
            "partial_rotary_factor",
            "original_max_position_embeddings",
            "layer_types",
            "sliding_window",
            "qk_rope_head_dim",
            "kv_lora_rank",
        ]
    ),
    ODD,
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(catalog())), SIZES, KINDS, ROPE, st.sampled_from(["rope_scaling", "rope_parameters"]))
def test_no_config_breaks_the_page(model, sizes, kind, rope, key):
    config = {name: value for name, value in catalog()[model].config.items() if name != "_about"}
    text = json.dumps({**config, **sizes, key: {"rope_type": kind, **rope}})
    try:
        upload = read_upload(text)
    except ValueError:
        return
    for layer, spec in upload.specs.items():
        everything_the_page_does(runtime_matrix.RuntimeCase(ModelConfig.read(upload.config), layer, spec, upload.name))


def test_inexpressible_method_gets_answers_but_no_repair():
    # Phi-3's class takes LongRoPE alone: there is nothing that could be exported.
    page = registry.page("runtimes")
    request = read_address.read_request(page, {"model": "phi-3-mini-128k-2024-04", "method": "dynamic"})
    assert page.pictures["curves"](request).fig.data
    repairs = {row.repair for row in pictures.answers(request).rows}
    assert repairs - {""}
    assert all(repair.startswith("nothing: ") for repair in repairs - {""})
