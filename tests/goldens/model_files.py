"""Model files of vLLM, run without the server around them: what their layers get from get_rope, for the scripts here.

The model file and the rotary package are real; every other module of the server is a stub that says no, as in
make_servers.py. The layers of the file are built from a config until one of them has called get_rope.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import make_servers as servers
import torch

# {server: (its rotary package, its model files)}
PLACES = {
    "vllm": ("vllm.model_executor.layers.rotary_embedding", "vllm.model_executor.models"),
    "sglang": ("sglang.srt.layers.rotary_embedding", "sglang.srt.models"),
}
MODELS = dict(PLACES.values())
# Model files that are helpers; stubs do.
HELPERS = ("utils", "interfaces", "interfaces_base", "vision", "registry", "adapters", "module_mapping", "config")
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
    **{
        "attn_logit_softcapping": None,
        "query_pre_attn_scalar": 64,
        "attention_dropout": 0.0,
        "attention_multiplier": 1.0,
        "layer_types": None,
    },
    **{"interleaved_sliding_window": None, "sliding_window": None, "residual_multiplier": 1.0, "logit_scale": 1.0},
    **{"decoder_sparse_step": 1, "mlp_only_layers": [0], "clip_qkv": None, "norm_epsilon": 1e-5, "qkv_bias": False},
    **{"layer_norm_eps": 1e-5, "max_window_layers": 0, "use_parallel_residual": True, "hidden_activation": "gelu"},
    **{"routed_scaling_factor": 1.0, "rope_interleave": True, "use_cache": True, "sliding_window_pattern": None},
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
    "set_default_rope_theta": lambda config, default_theta=None: None,
    "is_interleaved": lambda config: False,
}


class Finder(servers.Finder):
    """Real model files beside the real rotary package, stubs for everything else."""

    # The model file that is asked for, where it is not among the others.
    asked = ""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        place = self.root.joinpath(*name.split(".")).with_suffix(".py")
        if name == self.asked:
            return importlib.util.spec_from_file_location(name, place)
        if name.startswith(MODELS[self.package] + ".") and name.rsplit(".", 1)[1] not in HELPERS and place.exists():
            return importlib.util.spec_from_file_location(name, place)
        if name.startswith(self.package + "."):
            return importlib.util.spec_from_file_location(name, place) if place.exists() else None
        if name == self.package and place.exists():
            # Releases before 0.10 keep it in one file.
            return importlib.util.spec_from_file_location(name, place)
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
    servers.No.__setitem__ = lambda self, key, value: None
    servers.No.__getitem__ = lambda self, key: servers.No()
    servers.No.__iter__ = lambda self: iter(())
    for name in ("or", "ror", "and", "rand", "mul", "rmul"):
        setattr(servers.No, f"__{name}__", lambda self, other: other)
    torch.compile = lambda *a, **_: a[0] if a and callable(a[0]) else (lambda function: function)


def ropes(file: str, config: Any, package: Any) -> list[Any]:
    """What get_rope made while the layers of a model file were built."""
    made: list[Any] = []
    raised: list[Exception] = []
    real = package.get_rope

    def get_rope(*arguments: Any, **options: Any) -> Any:
        try:
            made.append(real(*arguments, **{**options, "dtype": torch.float32}))
        except Exception as error:
            raised.append(error)
            raise
        return made[-1]

    package.get_rope = get_rope
    name = Finder.asked = file if "." in file else f"{MODELS[package.__name__]}.{file}"
    sys.modules.pop(name, None)
    try:
        module = importlib.import_module(name)
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
            if made or raised:
                break
    finally:
        package.get_rope = real
    if not made:
        raise raised[0] if raised else SystemExit(f"{file}.py did not call get_rope")
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
            "layer_type": "full_attention",
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


def opened(root: str, server: str = "vllm") -> Any:
    """The rotary package of an unpacked wheel."""
    stubs()
    sys.path.insert(0, root)
    package = PLACES[server][0]
    sys.meta_path.insert(0, Finder(package, Path(root)))
    return importlib.import_module(package)


def asked(package: Any, file: str, given: dict[str, Any], longer: bool = False) -> tuple[list[float], float]:
    """inv_freq and the factor on cos and sin: row 1 of the table that the first get_rope of the file makes.

    `longer`: of the table for lengths beyond the trained one, where there are two. Raises what the file raises.
    """
    scaling = given.get("rope_scaling") or None
    if scaling:
        # As patch_rope_scaling_dict of transformers_utils/config.py does.
        kind = scaling.get("rope_type", scaling.get("type"))
        scaling = {**scaling, "rope_type": {"su": "longrope", "mrope": "default"}.get(kind, kind)}
    package._ROPE_DICT.clear()
    made = ropes(file, types.SimpleNamespace(**{**REST, **given, "rope_scaling": scaling}), package)
    rows = getattr(made[0], "long_short_cos_sin_cache", None)
    trained = (scaling or {}).get("original_max_position_embeddings", 0)
    row = made[0].cos_sin_cache[1] if rows is None else rows[1 + (trained if longer else 0)]
    cos, sin = row.double().chunk(2)
    inv_freq = [float(f"{value:.9g}") for value in torch.atan2(sin, cos).tolist()]
    return inv_freq, round(float(torch.hypot(sin[0], cos[0])), 9)
