"""Run the minor releases of transformers 5 and keep what differs from 5.24.0: writes tests/goldens/releases_5.json.

Run from the root of the repository. First once for each release, with torch, its unpacked wheel and the libraries that
it asks for:
    PYTHONPATH=.:transformers-5.0.0 python tests/goldens/make_releases_5.py answers/5.0.0.json
Then with the folder of all answers:
    PYTHONPATH=. python tests/goldens/make_releases_5.py answers
The configuration class reads each config of releases_5_cases.py, and the model is built on the meta device, cut to the
layers that show every layer type, with its rotary modules on the CPU. `rows` are the cases of which releases that have
the type give other answers: {"layers": {layer type: [frequencies, factor]}, "scaling": of the attention classes}, what
the configuration or rotary class `raised`, or why the model was `not_built`. `same` are the names of all others. A
release may have been given fewer cases: those of `rows`, and one for each model type and type of scaling.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from releases_5_cases import list_cases

PATH = Path(__file__).with_name("releases_5.json")
NEWEST = "5.24.0"
LAYERS = ("full_attention", "sliding_attention")
TOLERANCE = 2e-6
# An error with one of these is about RoPE, whatever raised it.
ROPE = "rope_|'(factor|proportional|original_max_position_embeddings|full_attention)'"


def build_on_cpu(init: Any) -> Any:
    """Wrap the constructor of a rotary module, so that its frequencies have values."""
    import torch

    @functools.wraps(init)
    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        given = [None if isinstance(one, torch.device) else one for one in arguments]
        named = {name: None if isinstance(one, torch.device) else one for name, one in options.items()}
        with torch.device("cpu"):
            return init(self, *given, **named)

    run.on_cpu = True  # type: ignore[attr-defined]
    return run


def is_rotary(kind: type) -> bool:
    """Whether a class is a rotary module of a text."""
    name = kind.__name__
    return ("Rotary" in name or "Rope" in name) and "Attention" not in name and "Vision" not in name


def wrap_rotary_classes(module: Any) -> None:
    """Build the rotary modules of a model file on the CPU."""
    for kind in list(vars(module).values()):
        own = isinstance(kind, type) and kind.__module__ == module.__name__ and "__init__" in vars(kind)
        if own and is_rotary(kind) and not hasattr(kind.__init__, "on_cpu"):
            kind.__init__ = build_on_cpu(kind.__init__)


def cut_layers(text: Any) -> None:
    """Leave as many layers as show every layer type."""
    kinds, count = getattr(text, "layer_types", None), text.num_hidden_layers
    with contextlib.suppress(Exception):  # some classes do not let their sizes be changed
        least = max(4, *(1 + kinds.index(kind) for kind in set(kinds))) if kinds else 4
        if isinstance(count, int) and count > least:
            text.num_hidden_layers = least
            if kinds:
                text.layer_types = kinds[:least]


def read_frequencies(model: Any, length: int | None) -> dict[str, list[Any]]:
    """{place of the module and layer type: each [inv_freq, factor] of such modules once}."""
    import torch

    found: dict[str, list[Any]] = {}
    for path, module in model.named_modules():
        if not is_rotary(type(module)):
            continue
        if length is not None:
            layers = module.rope_type if isinstance(getattr(module, "rope_type", None), dict) else [None]
            for layer in layers:
                # The rotation itself may not fit the stand-in; the frequencies are set before it.
                with contextlib.suppress(RuntimeError, IndexError, TypeError):
                    named = {"layer_type": layer} if layer else {}
                    module(torch.zeros(1, 1, 1, 8), torch.tensor([[length - 1]]), **named)
        place = ".".join(part for part in path.split(".") if not part.isdigit())
        for name, buffer in module.named_buffers(recurse=False):
            if (
                not name.endswith("inv_freq")
                or "original" in name
                or "long_inv" in name
                or buffer.ndim != 1
                or buffer.is_meta
            ):
                continue
            layer = name.removesuffix("inv_freq")
            factor = getattr(module, f"{layer}attention_scaling", getattr(module, "attention_scaling", 1.0))
            values = [float(f"{value:.8g}") for value in buffer.double().flatten().tolist()]
            answers = found.setdefault(f"{place}|{layer.rstrip('_')}", [])
            if [values, float(f"{factor:.8g}")] not in answers:
                answers.append([values, float(f"{factor:.8g}")])
    return found


def read_scaling(model: Any) -> dict[str, list[float]]:
    """{attention class: the factors on its scores}."""
    found: dict[str, set[float]] = {}
    for path, module in model.named_modules():
        value = getattr(module, "scaling", getattr(module, "softmax_scale", None))
        if "ttention" in type(module).__name__ and isinstance(value, (int, float)) and "vision" not in path:
            found.setdefault(type(module).__name__, set()).add(float(f"{value:.8g}"))
    return {name: sorted(values) for name, values in found.items()}


def describe_error(error: Exception) -> str:
    """The class and the first line of what was raised."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def is_of_rope(error: Exception) -> bool:
    """Whether the rotary code raised, and not another part of the model."""
    frames = traceback.extract_tb(error.__traceback__)
    return any("modeling_rope_utils" in one.filename or "inv_freq" in (one.line or "") for one in frames)


def ask(config: dict[str, Any], length: int | None) -> dict[str, Any]:
    """What the installed release makes of a config."""
    import torch
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    if config["model_type"] not in CONFIG_MAPPING:
        return {"absent": True}
    try:
        whole = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        text = whole.get_text_config(decoder=True)
    except Exception as error:  # what it raises is the answer
        return {"error": describe_error(error), "stage": "config"}
    try:
        text = text if type(text) in MODEL_MAPPING else whole
        kind = MODEL_MAPPING[type(text)]
        kind = kind[0] if isinstance(kind, (tuple, list)) else kind
    except Exception as error:
        return {"error": describe_error(error), "stage": "lookup"}
    try:
        cut_layers(text)
        wrap_rotary_classes(sys.modules[kind.__module__])
        text._attn_implementation = "eager"
        with torch.device("meta"):
            model = kind(text)
        return {"rotary": read_frequencies(model, length), "scaling": read_scaling(model)}
    except Exception as error:
        return {"error": describe_error(error), "stage": "rope" if is_of_rope(error) else "model"}


def run_release(out: Path) -> None:
    """Ask the installed release about every case."""
    os.environ |= {"TRANSFORMERS_VERBOSITY": "critical", "HF_HUB_OFFLINE": "1"}
    warnings.simplefilter("ignore")
    import transformers
    from transformers.modeling_utils import PreTrainedModel

    PreTrainedModel.init_weights = lambda self, *_, **__: None
    rows = {name: ask(*case) for name, case in list_cases().items()}
    out.write_text(json.dumps({"version": transformers.__version__, "rows": rows}))
    print(transformers.__version__, len(rows))


def name_layer(place: str) -> str:
    """The layer type that a module's place and buffer name, empty where it serves all."""
    path, _, layer = place.partition("|")
    last = path.split(".")[-1]
    return layer or (last if last in LAYERS else "sliding_attention" if last == "rotary_emb_local" else "")


def read_answer(row: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """One answer in the form of the golden; modules of the same layer type that differ are left out."""
    if "absent" in row:
        return {"absent": True}
    if "error" in row:
        about_rope = row["stage"] == "rope" or (row["stage"] in ("config", "model") and re.search(ROPE, row["error"]))
        about_rope = about_rope or ("validate_layer_type" in row["error"] and "indexed_attention" in str(config))
        return {"raised" if about_rope else "not_built": row["error"]}
    layers: dict[str, Any] = {}
    for place, values in row["rotary"].items():
        layers.setdefault(name_layer(place), []).extend(one for one in values if len(one) == 2 and len(one[0]) <= 1024)
    alone = {layer: values[0] for layer, values in layers.items() if values and all(one == values[0] for one in values)}
    if not alone:
        return {"not_built": "it has no rotary module"}
    return {"layers": alone, "scaling": sorted({one for values in row["scaling"].values() for one in values})}


def are_close(ours: list[float], theirs: list[float]) -> bool:
    """Whether two lists of numbers are equal but for float32."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(abs(x - y) <= TOLERANCE * max(abs(x), abs(y)) for x, y in pairs)


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether two answers are the same; one embedding for all layers is that of each of them."""
    if "layers" not in ours or "layers" not in theirs:
        return ours.keys() == theirs.keys()
    names = {name for one in (ours, theirs) for name in one["layers"] if name} or {""}
    for name in names:
        found = [one["layers"].get(name, one["layers"].get("")) for one in (ours, theirs)]
        if None in found:
            if found != [None, None]:
                return False
        elif not are_close([*found[0][0], found[0][1]], [*found[1][0], found[1][1]]):
            return False
    # Some classes keep no such attribute.
    return not ours["scaling"] or not theirs["scaling"] or are_close(ours["scaling"], theirs["scaling"])


def merge(folder: Path) -> None:
    """Write the golden from the answers of all releases."""
    answers = {path.stem: json.loads(path.read_text())["rows"] for path in folder.glob("5.*.json")}
    order = sorted(answers, key=lambda version: [int(part) for part in version.split(".")])
    frequencies: list[list[float]] = []
    rows, same = [], []
    for name, (config, length) in list_cases().items():
        have = [version for version in order if name in answers[version]]
        if NEWEST not in have:
            continue
        found = {version: read_answer(answers[version][name], config) for version in have}
        spans: list[tuple[str, dict[str, Any]]] = []
        for version in have:
            if not spans or not agree(spans[-1][1], found[version]):
                spans.append((version, found[version]))
        spans = spans[1:] if len(spans) > 1 and "absent" in spans[0][1] and len(spans) == 2 else spans
        if len(spans) == 1:
            if "layers" in spans[0][1]:
                same.append(name)
            continue
        for _, answer in spans:
            for layer, (values, factor) in answer.get("layers", {}).items():
                if values not in frequencies:
                    frequencies.append(values)
                answer["layers"][layer] = [frequencies.index(values), factor]
        rows.append({"name": name, "config": config, "length": length, "answers": dict(spans)})
    about = "Made by make_releases_5.py: transformers 5, the last patch of each minor release, torch 2.13.0 CPU."
    head = f' "_about": {json.dumps(about)},\n "releases": {json.dumps(order)},\n "same": {json.dumps(same)}'
    parts = {"frequencies": frequencies, "rows": rows}
    body = ",\n".join(
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in part) + "\n ]" for key, part in parts.items()
    )
    PATH.write_text(f"{{\n{head},\n{body}\n}}\n")
    print(len(order), "releases;", len(rows), "cases differ,", len(same), "are the same;", PATH.stat().st_size, "bytes")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    merge(place) if place.is_dir() else run_release(place)
