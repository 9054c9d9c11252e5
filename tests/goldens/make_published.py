"""Ask model files of vLLM 0.10.2 for the rotary module of published configs: writes tests/goldens/published.json.

Run from the root of the repository with torch and transformers, and the unpacked wheel as the argument:
    python tests/goldens/make_published.py unpacked/vllm-0.10.2
The model file and the rotary package are real; every other module of the server is a stub that says no, as in
make_servers.py. The attention layers of the file are built from the config, and what its call of get_rope makes is
asked: frequencies and the factor on cos and sin are those of row 1 of the table. These types are not in transformers:
their code travels with the model, and these files run it. The configs are those published, cut down to what matters.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import make_servers as servers
import torch

PATH = Path(__file__).with_name("published.json")
PACKAGE = "vllm.model_executor.layers.rotary_embedding"
MODELS = "vllm.model_executor.models"
# Model files that are helpers; stubs do.
HELPERS = ("utils", "interfaces", "interfaces_base", "vision", "registry", "adapters", "module_mapping", "config")
YARN = {"type": "yarn", "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
# What the layers want beside the keys of interest.
REST = {
    **{"intermediate_size": 64, "moe_intermediate_size": 32, "vocab_size": 32, "rms_norm_eps": 1e-5, "bias": False},
    **{"layer_norm_epsilon": 1e-5, "layer_norm_rms_epsilon": 1e-5, "num_experts": 2, "num_experts_per_tok": 1},
    **{"num_local_experts": 2, "n_routed_experts": None, "num_hidden_layers": 2, "hidden_act": "silu"},
    **{"first_k_dense_replace": 9, "moe_layer_freq": 1, "use_bias": False, "use_qkv_bias": False, "use_qk_norm": False},
    **{"rope_scaling": None, "no_bias": True, "attention_bias": False, "norm_topk_prob": False, "mlp_bias": False},
    **{"norm_after_layernorm": True, "moe_layers_enum": "", "share_q_dim": 64, "num_attention_groups": 1},
    **{"q_lora_rank": None, "kv_lora_rank": 512, "v_head_dim": 128, "use_residual": False, "moe_num_experts": 2},
    **{"activation_function": "silu", "add_qkv_bias": False, "multi_query_attention": False, "rmsnorm": True},
    **{"attn_output_multiplier": 1.0, "apply_residual_connection_post_layernorm": False, "num_shared_experts": 0},
    **{"scale_emb": 1, "scale_depth": 1.0, "dim_model_base": 256, "layernorm_epsilon": 1e-5, "postnorm": False},
    **{"num_key_value_heads": 4, "layernorm_full_attention_alpha": 1.0, "layernorm_full_attention_beta": 1.0},
    **{"layernorm_linear_attention_alpha": 1.0, "layernorm_linear_attention_beta": 1.0, "layernorm_mlp_alpha": 1.0},
    **{"layernorm_mlp_beta": 1.0, "max_position_embeddings": 8192},
}


def sizes(width: int, heads: int, length: int, **keys: Any) -> dict[str, Any]:
    """The keys that every config has."""
    return {"hidden_size": width, "num_attention_heads": heads, "max_position_embeddings": length, **keys}


# {model type: (file, configs)}
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "aquila": ("llama", [sizes(4096, 32, 2048)]),
    "arctic": ("arctic", [sizes(7168, 56, 4096, rope_theta=10000)]),
    "baichuan": ("baichuan", [sizes(4096, 32, 4096)]),
    "bailing_moe": ("bailing_moe", [sizes(2048, 16, 16384, head_dim=128, rope_theta=600000)]),
    "deepseek": ("deepseek", [sizes(2048, 16, 4096, rope_theta=10000)]),
    "exaone": (
        "exaone",
        [
            sizes(4096, 32, 4096, rope_theta=500000, head_dim=128),
            sizes(
                *(4096, 32, 32768),
                **{"rope_theta": 1000000, "head_dim": 128},
                rope_scaling={**LLAMA3, "original_max_position_embeddings": 8192},
            ),
        ],
    ),
    "grok-1": ("grok1", [sizes(6144, 48, 8192)]),
    "internlm": ("llama", [sizes(4096, 32, 2048)]),
    "internlm2": ("internlm2", [sizes(4096, 32, 32768, rope_theta=1000000)]),
    "kimi_k2": (
        "deepseek_v2",
        [
            sizes(
                *(7168, 64, 131072),
                **{"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "rope_theta": 50000.0},
                rope_scaling={**YARN, "original_max_position_embeddings": 4096},
            )
        ],
    ),
    "mimo": ("qwen2", [sizes(4096, 32, 32768, head_dim=128, rope_theta=640000)]),
    "minicpm": ("minicpm", [sizes(2304, 36, 4096)]),
    "minimax_m1": (
        "minimax_text_01",
        [sizes(6144, 64, 10240000, head_dim=128, rotary_dim=64, rope_theta=10000000)],
    ),
    "minimax_text_01": (
        "minimax_text_01",
        [sizes(6144, 64, 10240000, head_dim=128, rotary_dim=64, rope_theta=10000000)],
    ),
    "orion": ("orion", [sizes(5120, 40, 4096, rope_theta=10000.0)]),
    "step3_text": ("step3_text", [sizes(7168, 64, 65536, head_dim=256, rope_theta=500000, num_kv_heads=1)]),
    "xverse": ("llama", [sizes(5120, 40, 8192), sizes(8192, 64, 16384, rope_theta=500000)]),
}


class Mixin(servers.No):
    """A base class of which nothing is wanted."""

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()


class Answers(servers.No):
    """The server's settings: the config where it is asked for, else no."""

    def __init__(self, config: Any) -> None:
        self.__dict__["config"] = config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        config = self.__dict__["config"]
        return config if name in ("hf_config", "hf_text_config") else Answers(config)


class Platform(servers.No):
    """A processor."""

    device_type = "cpu"


KNOWN = {
    "current_platform": Platform(),
    "extract_layer_index": lambda prefix, *_: int(next(part for part in prefix.split(".") if part.isdigit())),
    "get_tensor_model_parallel_world_size": lambda: 1,
    "get_tensor_model_parallel_rank": lambda: 0,
    "get_tp_group": lambda: types.SimpleNamespace(world_size=1, rank_in_group=0),
    "get_ep_group": lambda: types.SimpleNamespace(device_group=types.SimpleNamespace(size=lambda: 1, rank=lambda: 0)),
    "support_torch_compile": lambda *a, **_: a[0] if a and isinstance(a[0], type) else (lambda kind: kind),
    "AttentionType": types.SimpleNamespace(DECODER="decoder", ENCODER_ONLY="encoder_only"),
    "maybe_prefix": lambda prefix, name: f"{prefix}.{name}" if prefix else name,
    "get_current_vllm_config": lambda: servers.No(),
}


class Finder(servers.Finder):
    """Real model files beside the real rotary package, stubs for everything else."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        place = self.root.joinpath(*name.split(".")).with_suffix(".py")
        if name.startswith(MODELS + ".") and name.rsplit(".", 1)[1] not in HELPERS and place.exists():
            return importlib.util.spec_from_file_location(name, place)
        if name.startswith(self.package + "."):
            return importlib.util.spec_from_file_location(name, place) if place.exists() else None
        return super().find_spec(name, path, target)


def stubs() -> None:
    """Teach the stubs of make_servers.py what model files ask of them."""
    usual = servers.Stub.__getattr__

    def answer(self: Any, name: str) -> Any:
        if name in KNOWN:
            return KNOWN[name]
        return Mixin() if re.match(r"Supports|Has|Is[A-Z]|Mixture|.*(Mixin|Protocol)$", name) else usual(self, name)

    servers.Stub.__getattr__ = answer
    servers.No.__mro_entries__ = lambda self, bases: () if any(isinstance(base, type) for base in bases) else (object,)
    servers.No.__getitem__ = lambda self, key: servers.No()
    servers.No.__iter__ = lambda self: iter(())
    for name in ("or", "ror", "and", "rand", "mul", "rmul"):
        setattr(servers.No, f"__{name}__", lambda self, other: other)
    torch.compile = lambda *a, **_: a[0] if a and callable(a[0]) else (lambda function: function)


def ropes(file: str, config: Any, package: Any) -> list[Any]:
    """What get_rope made while the layers of a model file were built."""
    made: list[Any] = []
    real = package.get_rope

    def get_rope(*arguments: Any, **options: Any) -> Any:
        made.append(real(*arguments, **{**options, "dtype": torch.float32}))
        return made[-1]

    package.get_rope = get_rope
    sys.modules.pop(f"{MODELS}.{file}", None)
    try:
        module = importlib.import_module(f"{MODELS}.{file}")
        kinds = [
            kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__
        ]
        order = {name: rank for rank, name in enumerate(("DecoderLayer", "Layer", "Block", "Attention"))}
        ranked = sorted(kinds, key=lambda kind: next((order[e] for e in order if kind.__name__.endswith(e)), 9))
        for kind in [kind for kind in ranked if re.search("(Layer|Block|Attention)$", kind.__name__)]:
            try:
                kind(**arguments_of(kind, config))
            except Exception as error:  # a layer whose other parts ask too much of the stubs
                print(f"  {file}.{kind.__name__}: {type(error).__name__}: {str(error)[:90]}")
            if made:
                break
    finally:
        package.get_rope = real
    return made


def arguments_of(kind: type, config: Any) -> dict[str, Any]:
    """A value for everything that a layer's constructor wants."""
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    values: dict[str, Any] = {
        **{"config": config, "hf_config": config, "vllm_config": Answers(config), "model_config": Answers(config)},
        **{"prefix": "model.layers.0", "layer_idx": 0, "layer_id": 0, "hidden_size": config.hidden_size},
        **{
            "num_heads": heads,
            "num_attention_heads": heads,
            "num_kv_heads": getattr(config, "num_kv_heads", heads),
            "position_embedding": "ROPE",
        },
        **{"head_dim": head_dim, "rotary_dim": getattr(config, "rotary_dim", head_dim), "expert_num": 1},
        **{"rope_theta": getattr(config, "rope_theta", 10000), "rope_scaling": config.rope_scaling, "layer_id": 0},
        **{"max_position_embeddings": config.max_position_embeddings, "max_position": config.max_position_embeddings},
    }
    found = {}
    for name, parameter in list(inspect.signature(kind.__init__).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if name in values:
            found[name] = values[name]
        elif hasattr(config, name):
            found[name] = getattr(config, name)
        elif parameter.default is parameter.empty:
            found[name] = None if "quant" in name else Answers(config)
    return found


def main(root: str) -> None:
    stubs()
    sys.path.insert(0, root)
    sys.meta_path.insert(0, Finder(PACKAGE, Path(root)))
    package = importlib.import_module(PACKAGE)
    rows = []
    for kind, (file, configs) in CASES.items():
        for given in configs:
            config = {"model_type": kind, **given}
            scaling = given.get("rope_scaling") or {}
            # As its transformers_utils/config.py does.
            patched = {**scaling, "rope_type": scaling.get("rope_type", scaling.get("type"))} if scaling else None
            made = ropes(file, types.SimpleNamespace(**{**REST, **given, "rope_scaling": patched}), package)
            if not made:
                raise SystemExit(f"{kind}: {file}.py did not call get_rope")
            cos, sin = made[0].cos_sin_cache[1].double().chunk(2)
            inv_freq = [float(f"{value:.9g}") for value in torch.atan2(sin, cos).tolist()]
            attention = round(float(torch.hypot(sin[0], cos[0])), 9)
            rows.append({"file": file, "config": config, "inv_freq": inv_freq, "attention_factor": attention})
            print(kind, file, len(inv_freq))
    about = "Made by make_published.py from the model files and the rotary package of vLLM 0.10.2, torch CPU, float32."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
