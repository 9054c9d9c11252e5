"""Merge overrides into configs as vLLM, SGLang and transformers do: writes tests/goldens/overrides.json.

Run from the root of the repository with transformers 5.23.0 and the unpacked wheels of vLLM and SGLang:
    python tests/goldens/make_overrides.py unpacked/vllm-0.33.0 unpacked/sglang-0.5.23
The functions that merge are cut out of both wheels and executed as they are; the rest of both packages is not loaded.
"""

from __future__ import annotations

import ast
import copy
import json
import logging
import sys
import tempfile
import typing
import warnings
from pathlib import Path
from typing import Any

import transformers

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
WHOLE = YARN | {"rope_theta": 1000000.0}
SIZES = {"hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 6}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3": {"model_type": "qwen3", "rope_theta": 1e6, "max_position_embeddings": 40960, "head_dim": 128, **SIZES},
    "llama3": {
        "model_type": "llama",
        "rope_theta": 500000.0,
        "max_position_embeddings": 131072,
        "rope_scaling": LLAMA3 | {"original_max_position_embeddings": 8192},
        **SIZES,
    },
    "gemma3": {"model_type": "gemma3_text", "max_position_embeddings": 32768, "head_dim": 256, **SIZES},
    "glm4": {"model_type": "glm4", "partial_rotary_factor": 0.5, "max_position_embeddings": 32768, **SIZES},
    "wrapper": {
        "model_type": "qwen3_vl",
        "text_config": {
            "model_type": "qwen3_vl_text",
            "rope_theta": 5e6,
            "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True},
            "max_position_embeddings": 262144,
            "head_dim": 128,
            **SIZES,
        },
    },
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "scaling": {"rope_scaling": YARN},
    "parameters": {"rope_parameters": YARN},
    "scaling with base": {"rope_scaling": WHOLE, "max_position_embeddings": 131072},
    "parameters with base": {"max_position_embeddings": 131072, "rope_parameters": WHOLE},
    "no original": {
        "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e6},
    },
    "base": {"rope_theta": 5000000.0},
    "share": {"partial_rotary_factor": 0.25},
    "limit": {"max_position_embeddings": 131072},
    "null": {"rope_scaling": None},
    "layer": {"rope_parameters": {"full_attention": YARN}},
    "nested scaling": {"text_config": {"rope_scaling": YARN}},
    "nested parameters": {"text_config": {"rope_parameters": YARN, "max_position_embeddings": 1048576}},
    "nested base": {"text_config": {"rope_theta": 1000000.0}},
}


def take(path: Path, *names: str) -> dict[str, Any]:
    """Return functions of a file, executed alone."""
    tree = ast.parse(path.read_text())
    chosen = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
    base = transformers.PretrainedConfig
    space: dict[str, Any] = {
        **vars(typing),
        "Any": Any,
        "PreTrainedConfig": base,
        "PretrainedConfig": base,
        "logger": logging.getLogger("overrides"),
        "getattr_iter": find_attribute,
        "is_rope_parameters_nested": lambda rope: any(isinstance(part, dict) for part in rope.values()),
    }
    for node in chosen:
        node.decorator_list = []
        node.body = [part for part in node.body if not isinstance(part, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module([node], []), str(path), "exec"), space)
    return space


def find_attribute(config: Any, names: list[str], default: Any, warn: bool = False) -> Any:
    """Return the first attribute that there is, as getattr_iter of vLLM does, and set the first name, too."""
    return next((getattr(config, name) for name in names if hasattr(config, name)), default)


def merge_vllm(config: Any, overrides: dict[str, Any], wheel: Path) -> Any:
    """Merge as ModelConfig.__post_init__ does: plain values, then patch_rope_parameters, then objects."""
    model = take(wheel / "vllm/config/model.py", "_update_nested", "_apply_dict_overrides")
    patch = take(wheel / "vllm/transformers_utils/config.py", "patch_legacy_rope_type", "patch_rope_parameters")
    owner = type("Owner", (), {name: model[name] for name in ("_update_nested", "_apply_dict_overrides")})()
    config.update({key: value for key, value in overrides.items() if not isinstance(value, dict)})
    for part in {id(part): part for part in (config, config.get_text_config())}.values():
        patch["patch_rope_parameters"](part)
    owner._apply_dict_overrides(config, {key: value for key, value in overrides.items() if isinstance(value, dict)})
    return config


def merge_sglang(config: Any, overrides: dict[str, Any], wheel: Path) -> Any:
    """Merge by the loop of get_config."""
    path = wheel / "sglang/srt/utils/hf_transformers/config.py"
    loop = next(
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.For) and ast.unparse(node.iter) == "model_override_args.items()"
    )
    space = {"config": config, "model_override_args": overrides, "PretrainedConfig": transformers.PretrainedConfig}
    exec(compile(ast.Module([loop], []), str(path), "exec"), space)
    return config


def describe(config: Any) -> dict[str, Any]:
    """Return the RoPE keys that the language model of a loaded config has."""
    text = config.get_text_config()
    if isinstance(text, dict):
        return {"error": "the part is no config any more"}
    return {"rope_parameters": text.rope_parameters, "max_position_embeddings": text.max_position_embeddings}


def main() -> None:
    """Write one row per config, override and loader."""
    warnings.simplefilter("ignore")
    vllm, sglang = Path(sys.argv[1]), Path(sys.argv[2])
    rows = []
    for name, config in CONFIGS.items():
        for what, overrides in OVERRIDES.items():
            for loader in ("transformers", "vllm", "sglang"):
                with tempfile.TemporaryDirectory() as folder:
                    (Path(folder) / "config.json").write_text(json.dumps(config))
                    keywords = copy.deepcopy(overrides)
                    try:
                        if loader == "transformers":
                            loaded = transformers.AutoConfig.from_pretrained(folder, **keywords)
                        else:
                            loaded = transformers.AutoConfig.from_pretrained(folder)
                            merge = merge_vllm if loader == "vllm" else merge_sglang
                            loaded = merge(loaded, keywords, vllm if loader == "vllm" else sglang)
                        found = describe(loaded)
                    except Exception as error:
                        found = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
                rows.append({"config": name, "override": what, "loader": loader, **found})
    about = "Made by make_overrides.py: transformers 5.23.0, and the merging code of vLLM 0.33.0 and SGLang 0.5.23."
    content = {"_about": about, "configs": CONFIGS, "overrides": OVERRIDES, "rows": rows}
    Path(__file__).with_name("overrides.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
