"""Find the longest length that vLLM and SGLang accept for configs: writes tests/goldens/longest_length.json.

Run from the root of the repository with transformers and the unpacked wheels of vLLM and SGLang:
    python tests/goldens/make_longest_length.py unpacked/vllm-0.33.0 unpacked/sglang-0.5.23
The functions that derive and refuse a length are cut out of both wheels and executed as they are.
"""

from __future__ import annotations

import ast
import functools
import json
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers
from huggingface_hub.errors import StrictDataclassClassValidationError
from make_overrides import take

from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog

OUT = Path(__file__).with_name("longest_length.json")
MOST = 1 << 31
CONFIG = "vllm/transformers_utils/config.py"
LLAMA = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8, "max_position_embeddings": 8192}
OTHER_KEYS = (
    "n_positions max_seq_len seq_length model_max_length max_target_positions max_sequence_length max_seq_length "
    "seq_len"
).split()
ORIGINAL = {"original_max_position_embeddings": 2048}
SCALINGS: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 4.0},
    {"type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, **ORIGINAL},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "linear", "factor": 4.0, **ORIGINAL},
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL},
    {"rope_type": "longrope", "factor": 4.0, "short_factor": [1.0] * 64, "long_factor": [2.0] * 64, **ORIGINAL},
]


def list_synthetic() -> list[dict[str, Any]]:
    """Return configs with every further key below and above the limit, alone, in pairs, and with scaling."""
    found = [{**LLAMA, key: value} for key in OTHER_KEYS for value in (4096, 16384)]
    found += [{**LLAMA, "model_max_length": 32768, key: 4096} for key in OTHER_KEYS if key != "model_max_length"]
    found += [{**LLAMA, "rope_scaling": scaling} for scaling in SCALINGS]
    found += [{**LLAMA, "rope_scaling": scaling, "max_sequence_length": 4096} for scaling in SCALINGS]
    found += [{**LLAMA, "rope_scaling": scaling, "model_max_length": 65536} for scaling in SCALINGS]
    found += [{**LLAMA, "model_type": "gemma3_text", "rope_scaling": scaling} for scaling in SCALINGS[:1]]
    text = {**LLAMA, "model_type": "mistral", "max_sequence_length": 4096}
    return [*found, {"model_type": "llava", "text_config": text, "max_position_embeddings": 1024}]


@functools.cache
def cut_vllm(wheel: Path) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions of vLLM that derive a length and that refuse a longer one."""
    path = wheel / "vllm/transformers_utils/model_arch_config_convertor.py"
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    derive = next(node for node in nodes if node.name == "derive_max_model_len_and_key")
    space: dict[str, Any] = {}
    exec(compile(ast.Module([derive], []), str(path), "exec"), space)
    verify = take(wheel / "vllm/config/model.py", "_get_and_verify_max_len")
    verify |= {
        "iter_rope_parameters": take(wheel / CONFIG, "iter_rope_parameters")["iter_rope_parameters"],
        "envs": types.SimpleNamespace(VLLM_ALLOW_LONG_MAX_MODEL_LEN=False),
    }
    function = types.FunctionType(verify["_get_and_verify_max_len"].__code__, verify)
    return space["derive_max_model_len_and_key"], function


def accepts_vllm(config: Any, wheel: Path, length: int) -> bool:
    """Return whether vLLM serves a length of this text config."""
    derive, verify = cut_vllm(wheel)
    found = derive(types.SimpleNamespace(hf_text_config=config))
    asked = types.SimpleNamespace(derived_max_model_len_and_key=found)
    try:
        verify(config, asked, None, length, False, None, None, None)
    except ValueError:
        return False
    return True


@functools.cache
def cut_sglang(wheel: Path) -> Callable[[Any], int]:
    """Return the function of SGLang that derives a length."""
    path = wheel / "sglang/srt/utils/hf_transformers/common.py"
    keys = next(
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CONTEXT_LENGTH_KEYS"
    )
    space = take(path, "get_context_length")
    exec(compile(ast.Module([keys], []), str(path), "exec"), space)
    function: Callable[[Any], int] = space["get_context_length"]
    return function


@functools.cache
def cut_patch(wheel: Path) -> Callable[[Any], None]:
    """Return the function of vLLM that folds old keys in."""
    function: Callable[[Any], None] = take(wheel / CONFIG, "patch_legacy_rope_type", "patch_rope_parameters")[
        "patch_rope_parameters"
    ]
    return function


def find_longest(accepts: Callable[[int], bool]) -> int | None:
    """Return the longest accepted length by halving; None where there is no bound."""
    if accepts(MOST):
        return None
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def load(config: dict[str, Any], wheel: Path) -> Any:
    """Return the language model's part as both servers hold it: loaded, its old keys folded in."""
    kind = transformers.CONFIG_MAPPING[config["model_type"]]
    loaded = kind.from_dict(json.loads(json.dumps({key: value for key, value in config.items() if key != "_about"})))
    text = loaded.get_text_config()
    cut_patch(wheel)(text)
    return text


def measure(config: dict[str, Any], vllm: Path, sglang: Path) -> dict[str, int | None] | None:
    """Return the longest length of both servers; None for a config that its class refuses, such as an empty one."""
    try:
        text = load(config, vllm)
    except (TypeError, AttributeError, KeyError, ValueError, StrictDataclassClassValidationError) as error:
        print(f"{config['model_type']}: {type(error).__name__}: {error}"[:120], file=sys.stderr)
        return None
    found = find_longest(lambda length: accepts_vllm(text, vllm, length))
    return {"vllm": found, "sglang": cut_sglang(sglang)(text)}


def main() -> None:
    """Write a row for every class default, every model of the catalog, and every synthetic config."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    wheels = Path(sys.argv[1]), Path(sys.argv[2])
    known = transformers.CONFIG_MAPPING
    classes = {
        name: {"model_type": name} for name, one in all_architectures().items() if name in known and not one.not_text
    }
    listed = {id: dict(model.config) for id, model in catalog().items() if model.config["model_type"] in known}
    golden: dict[str, Any] = {"_made_by": "tests/goldens/make_longest_length.py"}
    for name, configs in (("classes", classes), ("catalog", listed)):
        rows = {key: measure(config, *wheels) for key, config in configs.items()}
        golden[name] = {key: row for key, row in rows.items() if row is not None}
    golden["synthetic"] = [{"config": one, **(measure(one, *wheels) or {})} for one in list_synthetic()]
    rows = [f'"{name}": ' + format_rows(value) for name, value in golden.items()]
    OUT.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def format_rows(value: Any) -> str:
    """Return a part of the golden as JSON with one row on each line."""
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()) + "\n}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n]"
    return json.dumps(value)


if __name__ == "__main__":
    main()
