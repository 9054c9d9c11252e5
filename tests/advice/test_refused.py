"""What transformers refuses is never computed here as if it were fine, key by key and value by value."""

import json
from pathlib import Path

import pytest

from rope_viz.advice.lint import check, repair

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "refused.json").read_text())
# Not told here: a null beside a class default that both read as if the key were left out.
KNOWN = [("gpt_oss", "rope_theta"), ("deepseek_v3", "v_head_dim")]


def changed(base, key, value):
    inner = base.get("text_config")
    return {**base, key: value} if inner is None else {"text_config": {**inner, key: value}}


def errors(config):
    return [one for one in check(config) if one.severity == "error"]


@pytest.mark.parametrize("kind", GOLDEN["refused"])
def test_a_value_that_transformers_refuses_is_an_error(kind):
    base = GOLDEN["bases"][kind]
    assert not errors({"model_type": kind, **base})
    for key, values in GOLDEN["refused"][kind].items():
        for value in values:
            if value is not None or (kind, key) not in KNOWN:
                assert errors({"model_type": kind, **changed(base, key, value)}), (key, value)


def test_a_null_type_and_a_null_base_are_errors_with_a_repair():
    llama = {"model_type": "llama", **GOLDEN["bases"]["llama"]}
    for faulty in (
        {**llama, "rope_theta": None},
        {**llama, "rope_scaling": {"rope_type": None, "type": "linear", "factor": 4.0}},
    ):
        assert errors(faulty)
        assert not errors(repair(faulty))


def test_a_method_that_a_class_does_not_know_is_an_error():
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    for kind in ("phi3", "gemma4_text"):
        assert errors({"model_type": kind, **GOLDEN["bases"]["llama"], **linear})
