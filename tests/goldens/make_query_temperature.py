"""Makes query_temperature.json: the factors on the query by position, from the attention classes that compute them.

Run with transformers 5.23.0 and torch 2.13.0 (CPU, float32), and with the published modeling_qwen.py of Qwen 7B, whose
one line with the logarithm is evaluated: python tests/goldens/make_query_temperature.py modeling_qwen.py
"""

import ast
import json
import math
import sys
from pathlib import Path

import torch
import transformers
from transformers import Llama4TextConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.beam.modeling_beam import compute_attention_scaling
from transformers.models.llama4.modeling_llama4 import Llama4TextAttention
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale as ministral3
from transformers.models.mistral4.modeling_mistral4 import get_llama_4_attn_scale as mistral4

POSITIONS = (0, 1, 2046, 8190, 8191, 8192, 16_382, 16_383, 16_384, 32_766, 65_535, 262_143, 1_048_575)
QWEN = 2048
"""seq_length of the first Qwen 7B."""


class Length:
    """A cache that only has a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def get_seq_length(self, layer: int) -> int:
        return self.length

    def update(self, keys, values, layer):
        return keys, values


def llama4(position: int) -> float:
    """Return the query that a layer without rotation hands to attention, over the query at position 0."""
    sizes = {"hidden_size": 8, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8}
    config = Llama4TextConfig(**sizes, num_hidden_layers=4, no_rope_layers=[1, 1, 1, 0], attn_implementation="caught")
    caught = []

    def attend(module, query, key, value, *rest, **more):
        caught.append(query)
        return value.transpose(1, 2), None

    ALL_ATTENTION_FUNCTIONS.register("caught", attend)
    torch.manual_seed(0)
    attention = Llama4TextAttention(config, 3)
    with torch.no_grad():
        for at in (0, position):
            attention(torch.ones(1, 1, 8), None, None, past_key_values=Length(at))
    return float((caught[1] / caught[0]).mean())


def qwen(source: str) -> list[float]:
    """Evaluate the list of factors in the published file."""
    lists = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "logn_list"
    ]

    class Self:
        seq_length = QWEN

    return eval(compile(ast.Expression(lists[0]), "logn", "eval"), {"math": math, "self": Self})


def main() -> None:
    positions = torch.tensor([POSITIONS])
    logn = qwen(Path(sys.argv[1]).read_text(encoding="utf-8"))
    cases = {
        "llama4_text": [llama4(position) for position in POSITIONS],
        "ministral3": ministral3(positions, 0.1, 16_384).flatten().tolist(),
        "mistral4": mistral4(positions, 0.1, 8192).flatten().tolist(),
        "beam": compute_attention_scaling(positions).flatten().tolist(),
        "qwen": [logn[position] if position < len(logn) else None for position in POSITIONS],
    }
    made = f"tests/goldens/make_query_temperature.py, transformers {transformers.__version__}, modeling_qwen.py"
    text = json.dumps({"_made_by": made, "positions": POSITIONS, "qwen_seq_length": QWEN, "factors": cases})
    Path(__file__).with_name("query_temperature.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
