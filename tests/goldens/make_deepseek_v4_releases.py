"""Run the rotary code of DeepSeek V4 in a release of vLLM or SGLang: adds to tests/goldens/deepseek_v4_releases.json.

Run from the root of the repository with torch and transformers, once for each release and its unpacked wheel:
    python tests/goldens/make_deepseek_v4_releases.py vllm 0.29.0 unpacked/vllm-0.29.0
What runs is the part of the layer's constructor that builds its frequencies, cut out of the model file, and what that
part calls: the rotary package of vLLM, `precompute_freqs_cis` of SGLang (the table of NVIDIA GPUs). A layer's
`compress_ratio` is 0 for "main" and 4 for "compress". `error` is what the code raises.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from model_files import opened
from transformers import DeepseekV3Config

PATH = Path(__file__).with_name("deepseek_v4_releases.json")
YARN = {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536}
SIZES = {"rope_theta": 10000.0, "compress_rope_theta": 160000.0, "max_position_embeddings": 1048576}
HEADS = {"head_dim": 512, "qk_rope_head_dim": 64}
BASES = {"main": 10000.0, "compress": 160000.0}
SHARE = 0.125
# The published file, and the same in the form that transformers writes.
CONFIGS: tuple[dict[str, Any], ...] = (
    {**SIZES, **HEADS, "rope_scaling": YARN},
    {
        **SIZES,
        **HEADS,
        "rope_parameters": {
            "main": {"rope_type": "default", "rope_theta": BASES["main"], "partial_rotary_factor": SHARE},
            "compress": {**YARN, "rope_theta": BASES["compress"], "partial_rotary_factor": SHARE},
        },
    },
)


def find_functions(root: Path, folder: str, *names: str) -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Yield every function under a folder whose source has all these names, with its file."""
    for path in sorted(root.joinpath(folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not all(name in text for name in names):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and all(name in ast.unparse(node) for name in names):
                yield path, node


def cut(function: ast.FunctionDef, first: str, last: str) -> Callable[..., None]:
    """Return the statements of a constructor from the one that has `first` to the one that has `last`, as a function.

    Imports are left out: the caller's namespace has what they bring.
    """
    texts = [ast.unparse(statement) for statement in function.body]
    start = next(place for place, text in enumerate(texts) if first in text)
    stop = next(place for place, text in enumerate(texts) if last in text and place >= start)
    body = [one for one in function.body[start : stop + 1] if not isinstance(one, (ast.Import, ast.ImportFrom))]
    arguments = [ast.arg(name) for name in ("self", "config", "rope_original_seq_len", "compress_ratio")]
    arguments += [ast.arg(name) for name in ("head_dim", "rope_head_dim", "max_position_embeddings")]
    signature = ast.arguments([], arguments, None, [], [], None, [])
    made = ast.FunctionDef("run", signature, body, [], None, None, type_params=[])
    module = ast.fix_missing_locations(ast.Module([made], []))
    return lambda names: exec(compile(module, "<cut>", "exec"), names)


def run(function: ast.FunctionDef, first: str, last: str, names: dict[str, Any], config: Any, ratio: int) -> None:
    """Run what `cut` gives for a layer with this compress ratio."""
    layer = types.SimpleNamespace(
        compress_ratio=ratio,
        head_dim=config.head_dim,
        rope_head_dim=config.qk_rope_head_dim,
        qk_rope_head_dim=config.qk_rope_head_dim,
        max_position_embeddings=config.max_position_embeddings,
        register_buffer=lambda *_, **__: None,
    )
    cut(function, first, last)(names)
    names["run"](layer, config, None, ratio, config.head_dim, config.qk_rope_head_dim, config.max_position_embeddings)


def ask_vllm(root: str, given: dict[str, Any], ratio: int) -> tuple[list[float], float]:
    """Return frequencies and factor that a layer of vLLM gets from get_rope."""
    package = opened(root)
    package._ROPE_DICT.clear()
    scaling = given.get("rope_scaling")
    # As the release's own DeepseekV4Config: the scaling of the file is its rope_parameters.
    values = {
        **given,
        "torch_dtype": torch.float32,
        "rope_parameters": json.loads(json.dumps(scaling or given["rope_parameters"])),
    }
    made: list[Any] = []

    def get_rope(*arguments: Any, **options: Any) -> Any:
        made.append(package.get_rope(*arguments, **{**options, "max_position": 2, "dtype": torch.float32}))
        return made[-1]

    _, function = next(find_functions(Path(root), "vllm", "compress_rope_theta", "get_rope(", "is_deepseek_v4"))
    names = {"get_rope": get_rope, "RotaryEmbedding": object}
    run(
        function, "rope_parameters = config.rope_parameters", "get_rope(", names, types.SimpleNamespace(**values), ratio
    )
    cos, sin = made[0].cos_sin_cache[1].double().chunk(2)
    return torch.atan2(sin, cos).tolist(), float(torch.hypot(sin[0], cos[0]))


def ask_sglang(root: str, given: dict[str, Any], ratio: int) -> tuple[list[float], float]:
    """Return frequencies and factor of the table that a layer of SGLang builds."""
    source = Path(root)
    names: dict[str, Any] = {
        "torch": torch,
        "math": math,
        "Optional": None,
        "get_rope_wrapper": lambda **_: None,
        "get_global_server_args": lambda: types.SimpleNamespace(device="cpu"),
    }
    found = find_functions(source, "sglang", "def precompute_freqs_cis(", "original_seq_len")
    table = next(node for _, node in found if node.name == "precompute_freqs_cis")
    config_rope = next(
        node
        for _, node in find_functions(source, "sglang/srt/utils", "def get_rope_config(")
        if node.name == "get_rope_config"
    )
    for node in (table, config_rope):
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        exec(compile(ast.fix_missing_locations(ast.Module([node], [])), "<function>", "exec"), names)
    made: list[Any] = []
    real = names["precompute_freqs_cis"]

    @functools.wraps(real)
    def precompute_freqs_cis(**options: Any) -> Any:
        made.append(real(**{**options, "seqlen": 2}))
        return made[-1]

    names["precompute_freqs_cis"] = precompute_freqs_cis
    model = find_functions(source, "sglang/srt/models", "compress_rope_theta", "precompute_freqs_cis(")
    _, function = next(one for one in model if one[0].name == "deepseek_v4.py")
    # SGLang registers this class for deepseek_v4.
    values = DeepseekV3Config(**json.loads(json.dumps(given)))
    run(function, "get_rope_config(", "freqs_cis = precompute_freqs_cis(", names, values, ratio)
    row = made[0][1].to(torch.complex128)
    return torch.angle(row).tolist(), float(torch.abs(row[0]))


def main(server: str, version: str, root: str) -> None:
    """Add the rows of one release."""
    rows = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    rows = [row for row in rows if (row["runtime"], row["version"]) != (server, version)]
    ask = {"vllm": ask_vllm, "sglang": ask_sglang}[server]
    for given in CONFIGS:
        for layer, ratio in (("main", 0), ("compress", 4)):
            row = {
                "runtime": server,
                "version": version,
                "config": {"model_type": "deepseek_v4", **given},
                "layer": layer,
            }
            try:
                inv_freq, factor = ask(root, given, ratio)
                row |= {"inv_freq": [float(f"{value:.9g}") for value in inv_freq], "attention_factor": round(factor, 9)}
            except (KeyError, TypeError) as error:
                row["error"] = f"{type(error).__name__}: {error}"
            rows.append(row)
    about = "Made by make_deepseek_v4_releases.py from the wheels of vLLM and SGLang, torch on the CPU, float32."
    rows.sort(key=lambda row: (row["runtime"], [int(part) for part in row["version"].replace("post", "").split(".")]))
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')
    print(
        server,
        version,
        [
            row.get("error", row.get("inv_freq", [0])[-1])
            for row in rows
            if (row["runtime"], row["version"]) == (server, version)
        ],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
