"""Run tiny models of transformers 5.24.0 and see which vectors of their attention rotate: writes vectors.json.

Run from the root of the repository, where transformers and torch are installed: python tests/goldens/make_vectors.py
Every token and every layer gets the same hidden state, at two places that are `AWAY` positions apart. What differs
between the places was rotated: by which angle, in which channels, and in which pairing follows from the numbers alone.
Compressed keys are compared with what their norm returned before; the output with what the attention returned.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers.modeling_utils import AttentionInterface

from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.probe.shrink_config import shrink_config

PATH = Path(__file__).with_name("vectors.json")
AWAY = 1000
TOKENS, LONG = 24, 280
"""Positions; more of them where 128 are compressed into one."""
LIMITS = {"num_experts_per_tok": "num_local_experts", "num_global_key_value_heads": "num_attention_heads"}
"""{size of a class default or file: the small size that it must not exceed}."""
MOVED = 1e-7
"""Share of a head's length by which a channel must change to count as rotated."""


def list_configs() -> dict[str, dict[str, Any]]:
    """The small configs to run, by name: of the models of the list, and of the defaults of all other types."""
    sources = {model.id: model.whole for model in catalog().values()}
    known = {ModelConfig.read(config).model_type for config in sources.values()}
    for kind, record in all_architectures().items():
        if record.text is None and not record.not_text and not record.remote_code and kind not in known:
            sources[kind] = {"model_type": kind, **({"num_hidden_layers": 4} if not record.defaults else {})}
    found: dict[str, dict[str, Any]] = {}
    for name, source in sources.items():
        with contextlib.suppress(ValueError):
            config = shrink_config(ModelConfig.read(source))
            if not any(is_alike(config, other) for other in found.values()):
                found[name] = config
    return found


def is_alike(config: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two configs differ in numbers of the rotation alone."""
    free = ("rope_theta", "max_position_embeddings", "rope_scaling", "num_hidden_layers", "num_key_value_heads")
    one, two = ({key: value for key, value in each.items() if key not in free} for each in (config, other))
    return one == two


def build(config: dict[str, Any]) -> Any:
    """The model of a config, with random weights."""
    torch.manual_seed(0)
    read = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    for key, limit in LIMITS.items():
        value, most = (getattr(read, name, None) for name in (key, limit))
        if isinstance(value, int) and isinstance(most, int) and value > most:
            setattr(read, key, most)
    auto = transformers.AutoModelForCausalLM
    auto = auto if type(read) in auto._model_mapping else transformers.AutoModel
    model = auto.from_config(read, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and "emb" not in name:
                weight.normal_(std=weight.shape[-1] ** -0.5)
    return model


def find_layers(model: Any) -> torch.nn.ModuleList:
    """The decoder layers."""
    count = model.config.get_text_config().num_hidden_layers
    lists = [(name, each) for name, each in model.named_modules() if isinstance(each, torch.nn.ModuleList)]
    return min((name.count("."), each) for name, each in lists if len(each) == count and "layer" in name)[1]


def run(model: Any, first: int, tokens: int) -> dict[int, dict[str, np.ndarray]]:
    """{layer: {vector: (heads, positions, channels)}} at consecutive positions from `first`."""
    seen: dict[int, dict[str, Any]] = defaultdict(dict)
    now: dict[str, Any] = {"layer": -1, "inside": [], "projects": 0}
    hooks, constant = [], {}

    def enter_layer(number):
        def hook(module, args, kwargs):
            now["layer"], now["projects"] = number, 0
            if args:
                constant.setdefault(0, args[0][:, :1].clone())
                return (constant[0].expand_as(args[0]), *args[1:]), kwargs
            state = kwargs["hidden_states"]
            return args, {**kwargs, "hidden_states": constant.setdefault(0, state[:, :1].clone()).expand_as(state)}

        return hook

    def enter(module, args, kwargs=None):
        now["inside"].append(module)

    def leave(module, *_):
        now["inside"].pop()

    def keep_block(name):
        def hook(module, args, output):
            seen[now["layer"]][f"before {name}"] = output.unsqueeze(1)

        return hook

    def project(module, args):
        if now["projects"] == args[0].numel() and now["layer"] >= 0:
            seen[now["layer"]]["projected"], now["projects"] = args[0], 0

    for number, layer in enumerate(find_layers(model)):
        hooks.append(layer.register_forward_pre_hook(enter_layer(number), with_kwargs=True))
        for module in layer.modules():
            kind = type(module).__name__
            if kind.endswith("Indexer"):
                hooks.append(module.register_forward_pre_hook(enter))
                hooks.append(module.register_forward_hook(leave))
            if kind.endswith(("Indexer", "Compressor")) and hasattr(module, "kv_norm"):
                name = "index_k" if kind.endswith("Indexer") else "block"
                hooks.append(module.kv_norm.register_forward_hook(keep_block(name)))
            if isinstance(module, torch.nn.Linear):
                hooks.append(module.register_forward_pre_hook(project))
    get, matmul = AttentionInterface.get_interface, torch.matmul
    code = vars(importlib.import_module(type(model).__module__))
    functions = {name: each for name, each in code.items() if re.match(r"apply_.*rotary", name) and callable(each)}

    def watch(function):
        def rotate(*args, **kwargs):
            turned = function(*args, **kwargs)
            after = turned[0] if isinstance(turned, tuple) else turned
            if first == 0 and args and is_deinterleaved(args[0], after, tokens):
                seen[now["layer"]]["index order" if now["inside"] else "order"] = torch.ones(1, 1)
            return turned

        return rotate

    def get_interface(self, name, default):
        function = get(self, name, default)

        def attend(module, query, key, value, *args, **kwargs):
            output = function(module, query, key, value, *args, **kwargs)
            seen[now["layer"]] |= {"q": query, "k": key, "v": value, "output": output[0].transpose(1, 2)}
            now["projects"] = query.shape[1] * tokens * value.shape[-1]
            return output

        return attend

    def multiply(one, two, **more):
        if now["inside"] and "index_q" not in seen[now["layer"]] and one.dim() == 4:
            heads_first = one if one.shape[2] == tokens else one.transpose(1, 2)
            seen[now["layer"]] |= {"index_q": heads_first, "index_k": two.transpose(-1, -2)}
        product = matmul(one, two, **more)
        if "ALL_ATTENTION_FUNCTIONS" not in code and now["layer"] >= 0 and one.dim() == two.dim() == 4:
            mine = seen[now["layer"]]
            if "q" not in mine:
                mine |= {"q": one, "k": two.transpose(-1, -2)}
            elif "v" not in mine:
                mine |= {"v": two, "output": product}
                now["projects"] = product.numel()
        return product

    positions = torch.arange(first, first + tokens)[None]
    AttentionInterface.get_interface, torch.matmul = get_interface, multiply
    code.update({name: watch(function) for name, function in functions.items()})
    try:
        with torch.no_grad():
            model(input_ids=torch.full((1, tokens), 7), position_ids=positions, use_cache=False)
    finally:
        AttentionInterface.get_interface, torch.matmul = get, matmul
        code.update(functions)
        for hook in hooks:
            hook.remove()
    return {layer: {name: each[0].double().numpy() for name, each in found.items()} for layer, found in seen.items()}


def is_deinterleaved(before: Any, after: Any, tokens: int) -> bool:
    """Whether a rotation by 0 puts neighbours of a vector into its two halves: such a class interleaves its pairs."""
    if not isinstance(after, torch.Tensor) or before.shape != after.shape or tokens not in before.shape[1:3]:
        return False
    one, two = (each.select(1 + list(each.shape[1:3]).index(tokens), 0).double() for each in (before, after))
    one, two = (each / each.norm(dim=-1, keepdim=True) for each in (one, two))
    in_halves = torch.cat([one[..., 0::2], one[..., 1::2]], dim=-1)
    return bool(torch.allclose(two, in_halves, atol=1e-6)) and not bool(torch.allclose(two, one, atol=1e-6))


def describe(before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """What happened between two tensors (heads, positions, channels): which channels turned, and by what."""
    if not before.any():
        raise ValueError("a vector is 0 with random weights")
    before, after = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (before, after))
    moved = (np.abs(after - before) > MOVED).any(axis=(0, 1))
    if not moved.any():
        return {"size": len(moved), "channels": []}
    edges = np.flatnonzero(np.diff(np.concatenate([[0], moved.astype(int), [0]])))
    runs = edges.reshape(-1, 2).tolist()
    found: dict[str, Any] = {"size": len(moved), "channels": runs}
    for low, high in ((runs[0][0], runs[-1][1]), (0, len(moved))):
        if (high - low) % 2:
            continue
        for pairing in ("half", "interleaved"):
            turned, others = (to_pairs(each[..., low:high], pairing) for each in (after, before))
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = turned / others
            middle = np.exp(1j * np.angle(np.median(ratio.real, axis=0) + 1j * np.median(ratio.imag, axis=0)))
            away = np.median(np.abs(ratio - middle[None]), axis=(0, 1))
            if np.nanmax(away) < 1e-3:
                # A channel that is almost 0 hides that its pair moved.
                both = to_pairs(moved.astype(float)[low:high], pairing) != 0
                marks = np.zeros(len(moved), dtype=int)
                marks[low:high] = np.repeat(both, 2) if pairing == "interleaved" else np.tile(both, 2)
                edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]])))
                return found | {
                    "channels": edges.reshape(-1, 2).tolist(),
                    "pairing": pairing,
                    "angles": np.angle(middle),
                }
    return found


def to_pairs(x: np.ndarray, pairing: str) -> np.ndarray:
    """Channels as complex numbers, one per pair."""
    half = x.shape[-1] // 2
    if pairing == "interleaved":
        return x[..., 0::2] + 1j * x[..., 1::2]
    return x[..., :half] + 1j * x[..., half:]


def measure(model: Any, tokens: int) -> tuple[list[dict[str, Any]], list[list[float]]]:
    """What each layer does with its vectors, and the angles to which these refer, in turns."""
    turns: list[list[float]] = []
    near, far = run(model, 0, tokens), run(model, AWAY, tokens)
    rows = []
    for number, layer in enumerate(find_layers(model)):
        one, two, found = near.get(number, {}), far.get(number, {}), {}
        for name in ("q", "k", "v", "index_q", "index_k"):
            if name in one and f"before {name}" not in one:
                found[name] = describe(one[name][:, :tokens], two[name][:, :tokens])
        if "q" in one:
            heads, _, size = one["output"].shape
            both = [each["projected"].reshape(tokens, heads, size).transpose(1, 0, 2) for each in (one, two)]
            turned = [describe(each["output"], after) for each, after in zip((one, two), both, strict=True)]
            first, second = (each.get("angles") for each in turned)
            if turned[1]["channels"] and first is not None and second is not None:
                found["output"] = turned[1] | {"angles": second - first}
            elif is_scaled(one["output"], both[0]) and is_scaled(two["output"], both[1]):
                found["output"] = {"size": size, "channels": []}
        for name in ("block", "index_k"):
            if f"before {name}" in one:
                after = one[name] if name == "index_k" else one["k"][:, tokens:]
                found[name] = describe(one[f"before {name}"], after)
                found[name]["positions"] = find_positions(found[name].pop("angles"), average(found["q"]["angles"]))
        for name, each in found.items():
            order = "index order" if name.startswith("index") else "order"
            if order in one and each.get("pairing") == "half":
                each["pairing"] = "interleaved"
        if any(type(each).__name__.endswith("Indexer") for each in layer.modules()) and "index_k" not in found:
            raise ValueError("the indexer was not seen")
        if any(each["channels"] and "pairing" not in each for each in found.values()):
            raise ValueError("hidden states depend on the position in another way, too")
        rows.append({name: finish(each, turns) for name, each in found.items()})
    if not any(rows):
        raise ValueError("no layer uses the attention interface")
    record = all_architectures()[model.config.get_text_config().model_type]
    if record.vectors is not None and record.vectors.index and not any("index_q" in row for row in rows):
        raise ValueError("no layer has the indexer of its class")
    if not any(each["channels"] for row in rows for each in row.values()):
        raise ValueError("the model takes its positions from elsewhere")
    return rows, turns


def average(angles: np.ndarray) -> np.ndarray:
    """The mean of angles over the first axis, whatever turn they are counted from."""
    return np.angle(np.exp(1j * np.atleast_2d(angles)).mean(axis=0))


def find_positions(angles: np.ndarray, away: np.ndarray) -> list[float]:
    """The positions at which vectors were turned by `angles`, given the angles at position `AWAY`.

    Of the pairs that turn less than half as far as `AWAY`, the fastest tells most exactly.
    """
    pair = len(away) - 1
    while pair and 0 < away[pair] < away[pair - 1] < 2.5:
        pair -= 1
    return np.round(angles[:, pair] / away[pair] * AWAY, 1).tolist()


def is_scaled(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether every channel was multiplied by one number at all positions, as a gate does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = after / before
    return bool(np.nanmedian(np.abs(ratio - ratio[:, :1])) < 1e-4)


def finish(found: dict[str, Any], turns: list[list[float]]) -> dict[str, Any]:
    """The row as JSON, with the place of its angles in `turns`; `inverse` where these are turned back."""
    if "angles" not in found:
        return found
    angles = average(found.pop("angles")) / (2 * np.pi)
    for place, other in enumerate(turns):
        for sign in (1, -1):
            away = angles - sign * np.array(other) if len(other) == len(angles) else np.full(1, 0.5)
            if (np.abs(away - np.rint(away)) < 1e-6).all():
                return found | {"turns": place} | ({"inverse": True} if sign < 0 else {})
    turns.append([round(float(each), 7) for each in angles])
    return found | {"turns": len(turns) - 1}


def main() -> None:
    """Write every row, or with names those rows in place of their former ones."""
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    rows = {row["name"]: row for row in json.loads(PATH.read_text())["rows"]} if wanted else {}
    for name, config in list_configs().items():
        if wanted and name not in wanted:
            continue
        rows.pop(name, None)
        try:
            model = build(config)
            layers, turns = measure(model, LONG if config["model_type"] == "deepseek_v4" else TOKENS)
        except Exception as error:
            print(f"{name} ({config['model_type']}): {type(error).__name__}: {str(error)[:150]}", flush=True)
            continue
        kinds = [json.dumps(layer) for layer in layers]
        distinct = list(dict.fromkeys(kinds))
        places = [distinct.index(kind) for kind in kinds]
        seen = {"layers": places, "kinds": [json.loads(kind) for kind in distinct], "turns": turns}
        rows[name] = {"name": name, "config": config, **seen}
    about = "Made by make_vectors.py from the models of transformers 5.24.0 with random weights and equal tokens."
    lines = ",\n".join(json.dumps(rows[name]) for name in sorted(rows))
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "away": {AWAY}, "rows": [\n{lines}\n]}}\n')
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
