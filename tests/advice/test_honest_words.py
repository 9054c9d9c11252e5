"""What `extend` says of training follows from documented lengths, or it says that they are not known.

Documented lengths are those of the catalog and the records, each with its source; the three sentences were wrong in
the cases below, whose trained lengths nobody documents or whose makers ship a longer one.
"""

import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.cli.extend import format_text
from rope_viz.models.catalog import catalog
from tests.configs import QWEN3_8B, llama

CLAIMS = ("never seen in training", "was seen in training", "was trained on")
UNKNOWN = llama(max_position_embeddings=32768, rope_theta=1e6, num_hidden_layers=32)
# Mistral-Nemo-Base's numbers: its limit of 1,024,000 is no trained length.
NEMO = {
    **{"model_type": "mistral", "hidden_size": 5120, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"head_dim": 128, "max_position_embeddings": 1_024_000, "rope_theta": 1e6, "vocab_size": 131072},
}


@pytest.mark.parametrize("config", [UNKNOWN, NEMO], ids=["llama", "nemo"])
@pytest.mark.parametrize("length", [16_384, 131_072, 2_097_152])
def test_without_a_documented_length_training_is_unknown(config, length):
    plan = make_plan(config, length, ["transformers"])
    said = format_text(plan)
    assert not plan.recognised.trained.is_known
    assert not [claim for claim in CLAIMS if claim in said]
    assert "The trained length is not documented, so it is not known which angles training showed." in said
    assert "Source of this length: max_position_embeddings of the config." in said
    for way in plan.advice.ways:
        assert not [reason for reason in way.reasons if any(claim in reason for claim in CLAIMS)]


def test_a_documented_length_is_named_as_the_trained_one():
    plan = make_plan(QWEN3_8B, 131_072, ["transformers"])
    assert plan.recognised.trained.is_documented
    assert "Source of the trained length: " in format_text(plan)
    assert "never seen in training" in " ".join(plan.advice.way("linear").reasons)


def test_the_users_own_length_counts_as_documented():
    plan = make_plan(UNKNOWN, 131_072, ["transformers"], trained=8192, way="none")
    assert "reach angles never seen in training on 8,192 tokens" in " ".join(plan.way.reasons)


def test_a_shipped_scaling_reaches_no_unseen_angles():
    model = catalog()["llama-3.1-8b"]
    plan = make_plan(model.config, 131_072, ["transformers"], known=model)
    assert plan.way.rank == "as it is"
    assert "The model ships with this scaling and reaches 131,072 tokens with it." in plan.way.reasons
    assert "reach angles" not in " ".join(plan.way.reasons)
