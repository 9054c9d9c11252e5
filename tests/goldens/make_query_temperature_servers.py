"""Makes query_temperature_servers.json: the factors on the query by position, from the formulas of vLLM and SGLang.

Run with torch 2.13.0 (CPU, float32) and the unpacked wheels of vLLM 0.33.0 and SGLang 0.5.23:
    python tests/goldens/make_query_temperature_servers.py unpacked/vllm-0.33.0 unpacked/sglang-0.5.23
Only the function that computes the factor is executed. When a model calls it was read, not executed.
"""

import ast
import json
import sys
import types
from pathlib import Path

import torch

POSITIONS = (0, 1, 2046, 8190, 8191, 8192, 16_382, 16_383, 16_384, 32_766, 65_535, 262_143, 1_048_575)
LLAMA4 = types.SimpleNamespace(floor_scale=8192.0, attn_scale=0.1)
MISTRAL = types.SimpleNamespace(llama_4_scaling_beta=0.1, llama_4_scaling_original_max_position_embeddings=16_384)


def function(path: Path, name: str):
    """A function of a file, or a method of one of its classes, without decorators."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    node = next(one for one in nodes if isinstance(one, ast.FunctionDef) and one.name == name)
    node.decorator_list = []
    space = {"torch": torch}
    exec(compile(ast.Module([node], []), str(path), "exec"), space)
    return space[name]


def main(vllm: Path, sglang: Path) -> None:
    models = vllm / "vllm" / "model_executor" / "models"
    others = sglang / "sglang" / "srt" / "models"
    at = torch.tensor(POSITIONS)
    found = {
        "vllm llama4_text": function(models / "llama4.py", "_get_attn_scale")(LLAMA4, at),
        "vllm ministral3": function(models / "mistral.py", "_get_llama_4_attn_scale")(MISTRAL, at),
        "sglang llama4_text": function(others / "llama4.py", "_get_attn_scale")(LLAMA4, at),
        "sglang ministral3": function(others / "ministral3.py", "_get_llama_4_attn_scale")(at, 0.1, 16_384),
    }
    factors = {name: values.flatten().tolist() for name, values in found.items()}
    made = "tests/goldens/make_query_temperature_servers.py, vLLM 0.33.0, SGLang 0.5.23"
    text = json.dumps({"_made_by": made, "positions": POSITIONS, "factors": factors})
    Path(__file__).with_name("query_temperature_servers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
