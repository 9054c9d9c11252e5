"""Ask get_rope of vLLM 0.33.0 or SGLang 0.5.23 for its table: writes tests/goldens/servers.json.

Run from the root of the repository, once for each, with torch and the unpacked wheel on the path:
    PYTHONPATH=unpacked/vllm python tests/goldens/make_servers.py vllm
Only the rotary package is real; every other module of the server (platforms, loggers, custom operators, kernels) is a
stub that says no. Frequencies and the factor on cos and sin are those of row 1 of the table that the real class builds.
`config` is a model whose file passes exactly these parameters on: Llama for vLLM, GLM-4 for SGLang.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import types
from pathlib import Path

import torch

PATH = Path(__file__).with_name("servers.json")
VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23"}
PACKAGES = {"vllm": "vllm.model_executor.layers.rotary_embedding", "sglang": "sglang.srt.layers.rotary_embedding"}
KERNELS = {"sgl_kernel", "flashinfer", "vllm", "sglang"}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 1024}
LISTS = {"short_factor": [1.0 + 0.01 * i for i in range(32)], "long_factor": [1.0 + i for i in range(32)]}
LONGROPE = {"rope_type": "longrope", **LISTS, "original_max_position_embeddings": 1024}
PARAMETERS = (
    {"rope_type": "default"},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"rope_type": "linear", "factor": 2.5},
    {"rope_type": "linear", "factor": 2},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "dynamic", "alpha": 3.0},
    {"rope_type": "dynamic", "alpha": 3.0, "factor": 2.0, "partial_rotary_factor": 0.5},
    YARN,
    {**YARN, "factor": 2},
    {**YARN, "truncate": False},
    {**YARN, "mscale": 1.5},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.0},
    {**YARN, "attention_factor": 0.7},
    {**YARN, "attention_factor": 1.0, "mscale": 1.0, "mscale_all_dim": 0.5},
    {**YARN, "beta_fast": 16, "beta_slow": 2},
    {**YARN, "beta_fast": 1.0, "beta_slow": 32.0},
    {**YARN, "partial_rotary_factor": 0.5},
    {**LLAMA3, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    {**LLAMA3, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
    {**LLAMA3, "low_freq_factor": 2.0, "high_freq_factor": 2.0},
    LONGROPE,
    {**LONGROPE, "attention_factor": 1.3, "factor": 9.0},
    {**LONGROPE, "short_mscale": 1.1, "long_mscale": 1.2},
    {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.25},
    {"rope_type": "foo"},
)
ONLY = {
    "vllm": (
        {"rope_type": "dynamic", "factor": 2.0, "max_trained_positions": 2048},
        {"rope_type": "default", "rope_dim": 16},
        {"rope_type": "ntk", "factor": 4.0},
    ),
    "sglang": ({**YARN, "attn_factor": 0.7}, {**YARN, "extrapolation_factor": 0.5}),
}
LIMIT = 4096


class Operator(torch.nn.Module):
    """What the servers' custom operators are, without their kernels."""

    def __init__(self, *_, **__):
        super().__init__()

    @classmethod
    def register(cls, *_, **__):
        return lambda target: target

    @classmethod
    def enabled(cls):
        return False


class No:
    """Answers no to everything."""

    def __bool__(self):
        return False

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        return types.SimpleNamespace(get=lambda: 0) if name.isupper() else No()

    def __mro_entries__(self, _):
        return (Operator,)


class Stub(types.ModuleType):
    """A module of the server that is not real."""

    longest = LIMIT

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        off = types.SimpleNamespace(rl_on_policy_target=None)
        known = {
            "CustomOp": Operator,
            "BaseFusedOp": Operator,
            "get_compiler_backend": lambda *_: "eager",
            "get_device": lambda *_: "cpu",
            "get_exec": lambda: types.SimpleNamespace(deterministic=off),
            "get_current_vllm_config": lambda: types.SimpleNamespace(
                model_config=types.SimpleNamespace(max_model_len=Stub.longest)
            ),
        }
        return known.get(name, No())


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes stubs of everything around the rotary package."""

    def __init__(self, package, root):
        self.package, self.root = package, root

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in KERNELS or name.startswith(self.package + "."):
            return None
        if name == self.package:
            folder = self.root.joinpath(*name.split("."))
            return importlib.util.spec_from_file_location(
                name, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def table(server, module, parameters, length):
    """Row 1 of the table, and the factor on cos and sin."""
    trained = parameters.get("original_max_position_embeddings", LIMIT)
    module._ROPE_DICT.clear()
    Stub.longest = length or trained
    if server == "vllm":
        rope = module.get_rope(64, LIMIT, True, dict(parameters), dtype=torch.float32)
        rows = getattr(rope, "long_short_cos_sin_cache", None)
        row = rope.cos_sin_cache[1] if rows is None else rows[1 + (trained if rope.use_long_rope else 0)]
    else:
        share = parameters.get("partial_rotary_factor", 1.0)
        options = {"rope_scaling": dict(parameters), "dtype": torch.float32, "partial_rotary_factor": share}
        rope = module.get_rope(64, 64, LIMIT, parameters["rope_theta"], True, **options)
        if hasattr(rope, "long_cos_sin_cache"):
            # As its forward does: the long table where any position is above the trained length.
            longer = (length or 1) - 1 > trained
            row = (rope.long_cos_sin_cache if longer else rope.short_cos_sin_cache)[1]
        else:
            row = rope.cos_sin_cache[1]
    cos, sin = row.double().chunk(2)
    return torch.atan2(sin, cos).tolist(), float(torch.hypot(sin[0], cos[0]))


def main(server):
    """Add the rows of this server."""
    package = PACKAGES[server]
    root = next(Path(folder) for folder in sys.path if (Path(folder) / server).is_dir())
    sys.meta_path.insert(0, Finder(package, root))
    module = importlib.import_module(package if server == "vllm" else package + ".factory")
    rows = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    rows = [row for row in rows if row["runtime"] != server]
    for knobs in PARAMETERS + ONLY[server]:
        parameters = {"rope_theta": 10000.0, "partial_rotary_factor": 1.0, **knobs}
        for length in (None, 1025, 4096) if knobs["rope_type"] in ("longrope", "dynamic") else (None,):
            config = {"model_type": {"vllm": "llama", "sglang": "glm4"}[server], "head_dim": 64, "hidden_size": 1024}
            config |= {"num_attention_heads": 16, "max_position_embeddings": LIMIT, "rope_parameters": parameters}
            row = {"runtime": server, "version": VERSIONS[server], "config": config, "length": length}
            try:
                found, attention = table(server, module, parameters, length)
                row |= {"inv_freq": [float(f"{value:.9g}") for value in found], "attention_factor": round(attention, 9)}
            except Exception as error:
                row |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
            rows.append(row)
    about = "Made by make_servers.py from the rotary packages of vLLM 0.33.0 and SGLang 0.5.23, torch CPU, float32."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in sorted(rows, key=lambda row: row["runtime"]))
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
