"""Run model files of SGLang 0.5.23 on configs that transformers' own classes loaded: writes tests/goldens/glue.json.

Run from the root of the repository with torch and transformers 5.23.0, and the unpacked wheel:
    python tests/goldens/make_glue.py unpacked/sglang-0.5.23
As in model_files.py the model file and the rotary package are real, here get_rope_config too; every other module of
the server is a stub that says no, or one processor of one. What is kept is row 1 of the table that the first get_rope
of a layer built from the config makes. SGLang pins transformers 5.19, the classes here are those of 5.23.0: types whose
file asks the class for more than sizes and rope_parameters (partial_rotary_factor, rope_theta) are left out.
Three types have no class of transformers there: Qwen3.5 MoE is loaded by SGLang's own class, MiMo V2 by the code of its
checkpoint, which keeps each key of the file as an attribute, and MiMo is a Qwen 2 by its own words.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import make_servers as servers
import model_files
import torch
from records import read_records
from transformers import AutoConfig

PATH = Path(__file__).with_name("glue.json")
BASE = {"rope_theta": 50000.0}
ORIGINAL = {"original_max_position_embeddings": 1024}
SCALINGS: tuple[dict[str, Any], ...] = (
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "yarn", "factor": 4.0, **ORIGINAL},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL},
    {"rope_type": "dynamic", "factor": 2.0},
)
SIZES = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 4096}
SIZES["num_hidden_layers"] = 8
PLAIN: dict[str, Any] = {}
HEAD = {"head_dim": 64}
HALF = {**HEAD, "partial_rotary_factor": 0.5}
SPARSE = {"qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 64}
SWA = {
    "swa_rope_theta": 10000.0,
    "swa_head_dim": 192,
    "swa_v_head_dim": 128,
    "hybrid_layer_pattern": [0, 1, 0, 1, 0, 1, 0, 1],
}
SWA |= {"swa_num_attention_heads": 16, "swa_num_key_value_heads": 16, "sliding_window_size": 128}
# {model type: its own keys}
TYPES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("qwen2", "qwen2_moe", "cohere", "cohere2", "olmo", "olmo2", "olmoe", "lfm2", "starcoder2"), PLAIN),
    **dict.fromkeys(("llama", "mixtral", "gemma", "gemma2", "granite", "granitemoe", "granitemoeshared"), HEAD),
    **dict.fromkeys(("internlm3", "apertus", "qwen3", "qwen3_moe", "llama4_text", "arcee", "afmoe", "hy_v3"), HEAD),
    **dict.fromkeys(("cohere2_moe", "hrm_text", "iquestcoder", "granite_swa", "granitemoe_swa", "falcon_h1"), HEAD),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe"), HEAD),
    **dict.fromkeys(("glm4", "glm4_moe"), HALF),
    "minimax_m2": {**HEAD, "rotary_dim": 32},
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), SPARSE),
    "mimo": PLAIN,
    "mimo_v2_flash": {"head_dim": 192, "v_head_dim": 128, "rope_theta": 5e6, "partial_rotary_factor": 0.334, **SWA},
    "qwen3_5_moe_text": {**HEAD, "partial_rotary_factor": 0.25, "full_attention_interval": 4},
}
# The files in which the layers of these types are; their own files build on them.
LAYERS = {"mimo": "qwen2", "qwen3_5_moe_text": "qwen3_5"}
# It reads the old keys at the top. Its layers differ: a scaling without a layer type is refused by transformers.
TOP = "mimo_v2_flash"
CONFIGS = ("sglang.srt.configs.qwen3_5", "sglang.srt.configs.qwen3_next")
# Parts of the server whose code is not wanted, and libraries of kernels.
AROUND = {"triton", "einops", "msgspec", "regex"}
ONES = "get_attention_tp_size get_tensor_model_parallel_world_size get_tp_size get_pp_size get_attention_dp_size"


class Alone:
    """A processor of one."""

    def __getattr__(self, name: str) -> Any:
        return 1 if name.endswith("size") else 0 if name.endswith("rank") else servers.No()


class Gpu(str):
    """The name of a device, whose own device is not the CPU: DeepSeek's file has another rotation there."""

    device = "cuda"


class Loaded:
    """A loaded configuration, and what layers want beside what it holds."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.config, name, Loaded)
        if found is not Loaded:
            return found
        rope = ("rope", "rotary", "layer_types", "max_position", "sliding_window", "interleaved")
        if name in model_files.REST and not name.startswith(rope):
            return model_files.REST[name]
        raise AttributeError(name)


def numbers() -> None:
    """What says no counts as one processor, and as nothing added."""
    no = servers.No
    for name in ("gt", "lt", "ge", "le"):
        setattr(no, f"__{name}__", lambda self, other: False)
    for name in ("add", "radd", "sub", "rsub", "rfloordiv"):
        setattr(no, f"__{name}__", lambda self, other: other)
    no.__rmod__ = no.__int__ = no.__index__ = lambda self, *_: 0
    no.__iter__ = lambda self: iter((no(), no()))


def real(root: Path) -> Any:
    """get_rope_config as it stands in the wheel."""
    path = root / "sglang" / "srt" / "utils" / "hf_transformers" / "common.py"
    node = next(one for one in ast.parse(path.read_text()).body if getattr(one, "name", "") == "get_rope_config")
    space: dict[str, Any] = {}
    exec(compile(ast.Module([node], []), str(path), "exec"), space)
    return space["get_rope_config"]


class Finder(model_files.Finder):
    """SGLang's own configuration classes are real, too."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in CONFIGS:
            place = self.root.joinpath(*name.split(".")).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, place)
        return super().find_spec(name, path, target)


def loaded(kind: str, given: dict[str, Any]) -> Loaded:
    """A config as the class loads it that SGLang has for this type."""
    if kind == TOP:
        return Loaded(types.SimpleNamespace(rope_scaling=None, **given))
    if kind == "qwen3_5_moe_text":
        return Loaded(importlib.import_module(CONFIGS[0]).Qwen3_5MoeTextConfig(**given))
    return Loaded(AutoConfig.for_model("qwen2" if kind == "mimo" else kind, **given))


def made(package: Any, factory: Any, file: str, config: Any) -> tuple[Any, Exception | None]:
    """The first rotary module that a layer of the file makes, or what get_rope raised."""
    factory._ROPE_DICT.clear()
    found: list[Any] = []
    raised: list[Exception] = []

    def get_rope(*arguments: Any, **options: Any) -> Any:
        try:
            given = inspect.signature(real_get_rope).bind(*arguments, **options).arguments
            found.append(real_get_rope(**{**given, "dtype": torch.float32}))
        except Exception as error:
            raised.append(error)
            raise
        return found[-1]

    usual, real_get_rope = package.get_rope, factory.get_rope
    package.get_rope = factory.get_rope = get_rope
    name = f"sglang.srt.models.{file}"
    sys.modules.pop(name, None)
    try:
        module = importlib.import_module(name)
        kinds = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
        order = {end: rank for rank, end in enumerate(("DecoderLayer", "Layer", "Block", "Attention"))}
        ranked = sorted(kinds, key=lambda one: next((order[end] for end in order if one.__name__.endswith(end)), 9))
        for kind in (one for one in ranked if re.search("(Layer|Block|Attention)$", one.__name__)):
            if "config" not in inspect.signature(kind.__init__).parameters:
                continue
            try:
                kind(**{**model_files.arguments_of(kind, config)})
            except Exception as error:  # a layer whose other parts ask too much of the stubs
                print(f"  {file}.{kind.__name__}: {type(error).__name__}: {str(error)[:90]}")
            if found or raised:
                break
    finally:
        package.get_rope, factory.get_rope = usual, real_get_rope
    return (found or [None])[0], (raised or [None])[0]


def main(root: str) -> None:
    numbers()
    servers.KERNELS |= AROUND
    model_files.KNOWN |= {"get_parallel": Alone, "get_rope_config": real(Path(root))}
    model_files.KNOWN |= dict.fromkeys(ONES.split(), lambda *_, **__: 1)
    model_files.KNOWN["add_prefix"] = lambda name, prefix="": f"{prefix}.{name}" if prefix else name
    model_files.KNOWN["get_device"] = lambda *_: Gpu("cpu")
    model_files.KNOWN["resolve_linear_parallel_group"] = model_files.KNOWN["get_pp_indices"] = lambda *_, **__: (0, 1)
    model_files.Finder = Finder
    package = model_files.opened(root, "sglang")
    factory = importlib.import_module(package.__name__ + ".factory")
    served = {kind: record.get("runtimes", {}).get("sglang", {}).get("file") for kind, record in read_records().items()}
    rows = []
    for kind, keys in TYPES.items():
        for scaling in SCALINGS:
            share = {key: value for key, value in keys.items() if key == "partial_rotary_factor"}
            given = {**SIZES, **keys, "rope_parameters": {**BASE, **share, **scaling}}
            if kind == TOP:
                if scaling["rope_type"] != "default":
                    continue
                given = {**SIZES, **keys}
            config = loaded(kind, json.loads(json.dumps(given)))
            rope, raised = made(package, factory, LAYERS.get(kind, served[kind]), config)
            row: dict[str, Any] = {"runtime": "sglang", "version": "0.5.23", "file": served[kind], "length": None}
            row["config"] = {"model_type": kind, **given}
            if rope is None:
                if raised is None:
                    raise SystemExit(f"{served[kind]}.py did not call get_rope")
                row["error"] = f"{type(raised).__name__}: {raised}".splitlines()[0][:160]
            else:
                cos, sin = rope.cos_sin_cache[1].double().chunk(2)
                row["inv_freq"] = [float(f"{value:.9g}") for value in torch.atan2(sin, cos).tolist()]
                row["attention_factor"] = round(float(torch.hypot(sin[0], cos[0])), 9)
            rows.append(row)
    about = "Made by make_glue.py: model files and rotary package of SGLang 0.5.23, configs of transformers 5.23.0."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')
    print(len(rows), "rows,", len(TYPES), "types,", sum("error" in row for row in rows), "refused")


if __name__ == "__main__":
    main(sys.argv[1])
