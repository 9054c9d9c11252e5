"""vLLM and SGLang accept as many tokens as their published functions say, which were executed for the golden.

Source: _get_and_verify_max_len and derive_max_model_len_and_key of vLLM 0.33.0, get_context_length of SGLang 0.5.23.
"""

import copy
import dataclasses
import itertools
import json
from pathlib import Path

import pytest

from rope_viz.advice.plan.export import export, is_newly_refused
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.spec_url import with_method
from rope_viz.runtimes.longest_length import DERIVED, explain_refused_length
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "longest_length.json").read_text(encoding="utf-8"))
# A speech encoder, a wrapper of a wrapper that neither server has, and a class without any length key.
ELSEWHERE = ("lasr_ctc", "pi0", "recurrent_gemma")
ROWS = [
    *(({"model_type": kind}, row) for kind, row in GOLDEN["classes"].items() if kind not in ELSEWHERE),
    *((dict(catalog()[id].config), row) for id, row in GOLDEN["catalog"].items()),
    *((row["config"], row) for row in GOLDEN["synthetic"]),
]
ROWS = [(config, row) for config, row in ROWS if not ModelConfig.read(config).problems]
VLLM_KEYS = (
    *(
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_target_positions",
    ),
    *("max_sequence_length", "max_seq_length", "seq_len"),
)
SGLANG_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


@for_each(ROWS)
def test_the_longest_length_is_that_of_the_published_function(case):
    config, row = case
    for runtime in DERIVED:
        longest, model = row[runtime], ModelConfig.read(config)
        if longest is None:
            assert not explain_refused_length(model, runtime, 1 << 31)
        else:
            assert not explain_refused_length(model, runtime, longest)
            assert explain_refused_length(model, runtime, longest + 1)


def accepts(runtime, text, length):
    """Return what the published rules say of a loaded config, with factors left out: they only lengthen."""
    if runtime == "sglang":
        found = [getattr(text, key) for key in SGLANG_KEYS if getattr(text, key, None) is not None]
        return length <= (found[0] if found else 2048)
    found = [getattr(text, key) for key in VLLM_KEYS if getattr(text, key, None) is not None]
    return length <= (getattr(text, "model_max_length", None) or min(found, default=length))


@pytest.mark.slow
@for_each([config for config, _ in ROWS if config["model_type"] != "blt"])  # neither server has BLT
def test_no_certified_length_is_refused(config):
    transformers = pytest.importorskip("transformers")
    model = ModelConfig.read({key: value for key, value in config.items() if key != "_about"})
    start = model.start_specs[model.main_layer]
    start = dataclasses.replace(start.plain(), target=4 * start.context)
    for method, runtime in itertools.product(("yarn", "linear", "ntk", "none"), DERIVED):
        if start.rotary_dim % 2 or start.rotary_dim == 2:
            continue
        spec = with_method(start, method)
        made = export(spec, to=runtime, config=model, layer_type=model.main_layer or None)
        if made.faithful and not is_newly_refused(model, ModelConfig.read(made.config), model.main_layer or None):
            loaded = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(dict(made.config)))
            assert accepts(runtime, loaded.get_text_config(), spec.target), (runtime, method, made.text)
