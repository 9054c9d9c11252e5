"""Messages name a wrong value, and cut it where it is long."""

import pytest

from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.advice.plan.extend import extend
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.edit_config import Current
from rope_viz.models.model_config import ModelConfig
from tests.configs import QWEN3_8B
from tests.pages.test_shared_lengths import GEMMA_3_27B

LONG = "x" * 3000


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: extend(RopeSpec(128), LONG, 8192),
        lambda: memory(QWEN3_8B, length=1024, dtype=LONG),
        lambda: Current.from_config(ModelConfig.read(GEMMA_3_27B), LONG),
    ],
    ids=["method", "data type", "layer type"],
)
def test_a_long_value_is_cut_in_the_message(refuse):
    with pytest.raises(ValueError, match="xxx…") as caught:
        refuse()
    assert len(str(caught.value)) < 400
