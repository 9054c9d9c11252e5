"""Configurations and rotary modules of transformers 5.24.0, for the scripts beside this file that make goldens."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib
import inspect
import os
import re
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import CONFIG_MAPPING, PreTrainedConfig  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES  # noqa: E402

MODELS = Path(transformers.__file__).parent / "models"
# Positions on a plane or in a volume: their rotary modules take part of the head per axis.
NOT_TEXT = re.compile(r"vision(?!_text)|_vit|dinov3|sam2|sam3|edgetam|loftr|eomt|mlcd|pixtral|vjepa|chmv2|sapiens")
OWN_CODE = ("roformer", "gptj", "codegen", "esm")


def build(kind: type, **values: Any) -> PreTrainedConfig | None:
    """The configuration with these values, None where the class refuses them."""
    try:
        return kind(**copy.deepcopy(values))
    except Exception:
        return None


def attribute(config: PreTrainedConfig | None, key: str) -> Any:
    """An attribute of a configuration, None where it has none or where it differs between layers."""
    try:
        return getattr(config, key, None)
    except (ValueError, RuntimeError):
        return config.__dict__.get(key)


@functools.cache
def rotary_config_classes() -> dict[str, tuple[str, str]]:
    """{configuration class: (module, rotary class)}, from the annotations in the modeling files."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(MODELS.glob("*/modeling_*.py")):
        module = f"transformers.models.{path.parent.name}.{path.stem}"
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and "compute_default_rope_parameters" in ast.unparse(node):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                        for argument in method.args.args:
                            if argument.arg == "config" and argument.annotation is not None:
                                name = re.sub(r"\W", "", ast.unparse(argument.annotation))
                                found.setdefault(name, (module, node.name))
    return found


def lender(model_type: str) -> str:
    """The type whose model AutoModel builds for a type that has no modeling file of its own; else the type."""
    folder = Path(importlib.import_module(CONFIG_MAPPING[model_type].__module__).__file__ or "").parent
    if model_type not in MODEL_MAPPING_NAMES or any(folder.glob("modeling_*.py")):
        return model_type
    named = MODEL_MAPPING_NAMES[model_type]
    lenders = (one for one, model in MODEL_MAPPING_NAMES.items() if model == named and one != model_type)
    return next((one for one in lenders if (MODELS / one / f"modeling_{one}.py").exists()), model_type)


def rotary_class(kind: type) -> type | None:
    """The rotary module that goes with a configuration class."""
    kind = CONFIG_MAPPING[lender(kind.model_type)]
    place = rotary_config_classes().get(kind.__name__)
    if place is None:
        folder = kind.__module__.rsplit(".", 1)[0]
        places = [p for p in rotary_config_classes().values() if p[0].startswith(folder + ".") and "Vision" not in p[1]]
        place = places[0] if places else None
    return getattr(importlib.import_module(place[0]), place[1]) if place else None


@functools.cache
def text_types() -> frozenset[str]:
    """The model types with a rotary embedding of their own over one-dimensional positions."""
    found = set(OWN_CODE)
    for name in CONFIG_MAPPING:
        config = build(CONFIG_MAPPING[name])
        if config is None or NOT_TEXT.search(name) or not config.__dict__.get("rope_parameters"):
            continue
        if type(config.get_text_config(decoder=True)) is not type(config):
            continue
        if rotary_class(type(config)) is not None and rotary_frequencies(config):
            found.add(name)
    return frozenset(found)


def rotary_frequencies(config: PreTrainedConfig, length: int | None = None) -> dict[str, tuple[np.ndarray, float]]:
    """{layer type: (inv_freq, attention factor)} that the rotary module computes, at a current length if given."""
    kind = rotary_class(type(config))
    if config.model_type in ("gptj", "codegen", "roformer"):
        return {"": (table_frequencies(config), 1.0)}
    if kind is None:
        return {}
    try:
        module = kind(config=config)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, ZeroDivisionError, OverflowError):
        return {}
    if length is not None:
        run(module, length)
    found = {}
    for name, buffer in list(module.named_buffers()):
        if name == "inv_freq":
            found[""] = (buffer.double().numpy(), float(module.attention_scaling))
        elif name.endswith("_inv_freq") and not name.endswith(("original_inv_freq", "long_inv_freq")):
            layer = name.removesuffix("_inv_freq")
            found[layer] = (buffer.double().numpy(), float(getattr(module, f"{layer}_attention_scaling")))
    return {layer: value for layer, value in found.items() if layer != "original"}


def run(module: torch.nn.Module, length: int) -> None:
    """One forward pass whose largest position is length - 1: dynamic and longrope modules adapt to it."""
    x = torch.zeros(1, 1, 1, 8)
    positions = torch.tensor([[length - 1]])
    layers = module.rope_type if isinstance(getattr(module, "rope_type", None), dict) else [None]
    for layer in layers:
        # The rotation itself may not fit the stand-in x; the frequencies are set before it.
        with contextlib.suppress(RuntimeError, IndexError, TypeError):
            module(x, positions, **({"layer_type": layer} if layer else {}))


def table_frequencies(config: PreTrainedConfig) -> np.ndarray:
    """inv_freq of the classes that keep a table of sines and cosines: the angle in the row of position 1."""
    if config.model_type == "roformer":
        from transformers.models.roformer.modeling_roformer import RoFormerSinusoidalPositionalEmbedding as Table

        size = config.hidden_size // config.num_attention_heads
        table = Table(2, size)
        weight = table.create_weight() if hasattr(table, "create_weight") else table.weight
    else:
        from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions

        size = config.rotary_dim or config.hidden_size // config.num_attention_heads
        weight = create_sinusoidal_positions(2, size)
    sin, cos = weight[1].detach().double().split(weight.shape[1] // 2)
    return torch.atan2(sin, cos).numpy()


@functools.cache
def interleaves(kind: type) -> bool:
    """Whether this architecture's code rotates neighbours (2i, 2i+1) rather than halves (i, i + n)."""
    if build(kind).model_type in ("gptj", "codegen", "roformer"):
        return True
    rotary = rotary_class(kind)
    source = inspect.getsource(importlib.import_module(rotary.__module__)) if rotary else ""
    own = inspect.getsource(rotary) if rotary else ""
    if "apply_rotary_pos_emb_interleave" in source and "Audio" not in kind.__name__:
        return True
    if "view_as_complex" in source or "torch.polar" in own:
        return True
    rotation = re.search(r"def rotate_half\(.*?(?=\n(?:def|class|@))", source, re.S)
    return "repeat_interleave" in own or bool(rotation and "::2]" in rotation.group())
