"""`"rope_parameters": {}` and phi3's type su, against classes of transformers 5.23.0 (make_empty_parameters.py)."""

import json
from pathlib import Path

from rope_viz import check, emulate
from rope_viz.models.model_config import ModelConfig
from tests.offenders import for_each

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "empty_parameters.json").read_text())
# No module of transformers is found for these, or they lack a key that has nothing to do with the base.
OTHER_ERRORS = ("AttributeError", "ModuleNotFoundError")
ELSEWHERE = ("cohere2_moe", "cosmos3_edge_text")
# Rotary classes that compute their base and their share themselves.
FIXED = ("codegen", "gptj", "esm", "roformer")


@for_each(
    [kind for kind, row in GOLDEN["empty"].items() if row.get("error") not in OTHER_ERRORS and kind not in ELSEWHERE]
)
def test_empty_parameters_mean_what_the_class_makes_of_them(kind):
    row, read = GOLDEN["empty"][kind], ModelConfig.read({"model_type": kind, "rope_parameters": {}})
    if row.get("error") == "KeyError":
        assert "transformers raises KeyError" in read.problems[0]
        return
    expected = row["rope_parameters"]
    layers = expected if any(isinstance(part, dict) for part in expected.values()) else {"": expected}
    if kind in FIXED:
        assert expected == {}
        return
    for layer, params in read.rope_parameters.items():
        assert {"rope_type": "default", **params} == {
            key: part for key, part in layers[layer].items() if part is not None
        }


@for_each(GOLDEN["phi3"])
def test_su_needs_the_original_length_in_the_rope_dict(row):
    sizes = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072}
    found = emulate(sizes | row["keys"], "transformers")
    assert found.supported == ("error" not in row)
    assert any(one.severity == "error" for one in check(sizes | row["keys"])) == ("error" in row)
