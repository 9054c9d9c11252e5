"""Make probes, and compute their log-probabilities under hypotheses, by transformers: in a process of its own.

`worker_process` calls `answer` there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rope_viz.probe import row_attention
from rope_viz.probe.shrink_config import SMALLER
from rope_viz.probe.tokens import FIRST, LAST
from rope_viz.probe.weights import SEED, STRENGTH, draw_matrix, draw_vector

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.simplefilter("ignore")

BUFFER = re.compile(r"(?:(.*)_)?inv_freq")
NORM = re.compile(r"(^|[._])(q|k|query|key)_?(layer)?norm\b")
OTHER_MODULES = re.compile(r"vision|visual|audio|talker|speech")
RECURRENT = re.compile(r"A_log|dt_bias|conv1d|\.D$|lightning|slope")
ENDLESS = 1 << 30
SAMPLE = [FIRST + 7 * place % (LAST - FIRST) for place in range(160)]
"""A prompt by which a reference is compared with the untouched model."""
MOST_OFF = 1e-3
LARGEST = 16 << 20
"""Bytes of the weights of a probe."""
FEW_TOKENS, THREADS = 1024, torch.get_num_threads()


class Unsupported(Exception):  # noqa: N818 - an outcome, not an error of ours
    """What a hypothesis changes is not in this model."""


def build_model(config: Mapping[str, Any], folder: str = "") -> Any:
    """Return the model of a probe's config with its seeded weights, or with those of a folder.

    Raises `ValueError` with a sentence where transformers has no such causal language model.
    """
    auto = importlib.import_module("transformers")
    auto.logging.set_verbosity_error()
    values = dict(config)
    kind = values.pop("model_type")
    try:
        if folder:
            model = auto.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        else:
            read = auto.AutoConfig.for_model(kind, **fill_sizes(auto.AutoConfig.for_model(kind, **values), values))
            if type(read) not in auto.AutoModelForCausalLM._model_mapping:
                why = f"transformers {auto.__version__} has no causal language model of type {kind}"
                raise ValueError(f"{why}, so that nothing loads it without the other parts of its model")
            check_size(kind, auto.AutoModelForCausalLM, read)
            torch.manual_seed(SEED)  # for what is not drawn below
            model = auto.AutoModelForCausalLM.from_config(read, dtype=torch.float32)
            draw_weights(model)
    except (AttributeError, KeyError, TypeError, RuntimeError, ImportError, ZeroDivisionError, OSError) as error:
        raise ValueError(f"transformers {auto.__version__} cannot build {kind} that small: {describe(error)}") from None
    return model.eval()


def check_size(kind: str, auto: Any, read: Any) -> None:
    """Raise `ValueError` for a model of which a part stays large, without making its weights."""
    with torch.device("meta"):
        size = 4 * sum(one.numel() for one in auto.from_config(read).parameters())
    if size > LARGEST:
        raise ValueError(f"no small probe can be made of {kind}: it would have {size >> 20:,} MiB")


def fill_sizes(read: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with those small sizes for which its class has larger ones by default."""
    missing = {
        name: size
        for name, size in SMALLER.items()
        if name not in values and isinstance(getattr(read, name, None), int) and getattr(read, name) > size
    }
    return {**values, **missing}


def describe(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def draw_weights(model: Any) -> None:
    """Give a model its seeded weights: matrices, biases, and norms of q and k. Routers are constant."""
    tied = getattr(model.config, "tie_word_embeddings", False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if RECURRENT.search(name):
                continue
            shape = tuple(parameter.shape)
            if (
                re.search(r"(router|\bgate)\.(weight|classifier)|router\.layer|e_score_correction", name)
                and len(shape) < 3
            ):
                parameter.zero_()
            elif len(shape) > 1:
                transposed = "experts" in name and len(shape) == 3 and is_transposed(model, name)
                drawn = draw_matrix(name, (*shape[:-2], shape[-1], shape[-2]) if transposed else shape)
                parameter.copy_(torch.from_numpy(drawn.swapaxes(-1, -2).copy() if transposed else drawn))
            elif name.endswith("bias"):
                parameter.copy_(torch.from_numpy(draw_vector(name, shape[0])))
            elif NORM.search(name):
                # Some norms multiply by 1 + weight.
                parameter.add_(STRENGTH - 1.0)
    if tied:
        model.tie_weights()


def is_transposed(model: Any, name: str) -> bool:
    """Return whether the experts of a model keep their matrices with the inputs in rows."""
    owner = model.get_submodule(name.rsplit(".", 1)[0])
    return bool(getattr(owner, "is_transposed", False))


def make(task: Mapping[str, Any]) -> dict[str, Any]:
    """Write the weights of the probe of a config into a folder. Return that config with its class."""
    folder, config = Path(task["folder"]), task["config"]
    model = build_model(config)
    Reference(config, "", task["intended"])  # a probe without a reference is not made
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    sizes = {name: getattr(model.config, name) for name in SMALLER if hasattr(model.config, name)}
    return {**sizes, **config, "architectures": [type(model).__name__]}


class Reference:
    """A probe's model whose rotary embedding can be replaced by that of a hypothesis."""

    def __init__(self, config: Mapping[str, Any], folder: str, intended: Mapping[str, Any]) -> None:
        self.model = build_model(config, folder)
        right = choose_attention(self.model)
        row_attention.ROWS.layers = config.get("num_hidden_layers", 0)
        self.rotary = list(self.find_rotary(intended["layers"]))
        if not self.rotary:
            raise ValueError(f"{config['model_type']} keeps its frequencies where they cannot be replaced")
        self.intended = intended
        self.code = importlib.import_module(type(self.model).__module__)
        self.require_reference(config["model_type"], right)

    def require_reference(self, kind: str, right: Any) -> None:
        """Raise `ValueError` where the intended embedding does not give the answers of the untouched model."""
        targets = np.array([(row, token) for row, token in enumerate(SAMPLE)])
        found = self.run(SAMPLE, targets, self.intended)
        off = float(np.abs(np.array(found) - right[targets[:, 0], targets[:, 1]].double().numpy()).mean())
        if not off < MOST_OFF:
            raise ValueError(
                f"no reference: {kind} of transformers gives other answers than this config, off by {off:.2g}"
            )

    def find_rotary(self, layers: Mapping[str, Any]) -> Iterator[tuple[Any, str, str]]:
        """Yield module, prefix of its buffers, and layer type of every rotary embedding."""
        for path, module in self.model.named_modules():
            if OTHER_MODULES.search(path):
                continue
            for name, buffer in module.named_buffers(recurse=False):
                match = BUFFER.fullmatch(name)
                if match and not name.endswith(("original_inv_freq", "long_inv_freq")):
                    yield module, match[1] or "", find_layer(match[1] or "", path, buffer, layers)

    def compute(self, task: Mapping[str, Any]) -> list[list[float] | None]:
        """Return the log-probabilities of the targets under each hypothesis, None for one that does not fit."""
        targets = np.array(task["targets"], dtype=np.intp).reshape(-1, 2)
        # Several threads only wait for each other where there is little to compute.
        torch.set_num_threads(1 if len(task["prompt"]) < FEW_TOKENS else THREADS)
        found: list[list[float] | None] = []
        for hypothesis in task["hypotheses"]:
            try:
                found.append(self.run(task["prompt"], targets, hypothesis))
            except (Unsupported, RuntimeError, IndexError):  # such as other sizes than the layers have
                found.append(None)
        return found

    def run(self, prompt: Sequence[int], targets: Any, hypothesis: Mapping[str, Any]) -> list[float]:
        """Return the log-probabilities of the targets under one hypothesis."""
        rows, places = np.unique(targets[:, 0], return_inverse=True)
        with contextlib.ExitStack() as stack:
            own = (self.set_frequencies, self.set_pairing, self.set_softmax, self.set_windows, self.set_temperature)
            for change in (*own, round_angles):
                stack.enter_context(change(hypothesis))
            row_attention.ROWS.needed = torch.from_numpy(rows)
            ids = torch.tensor([prompt])
            positions = torch.arange(hypothesis["shift"], hypothesis["shift"] + len(prompt))[None]
            with torch.inference_mode():
                out = self.model(input_ids=ids, position_ids=positions, use_cache=False)
        found = out.logits[0, torch.from_numpy(rows)].float().log_softmax(-1).double().numpy()
        return [float(value) for value in found[places, targets[:, 1]]]

    @contextlib.contextmanager
    def set_frequencies(self, hypothesis: Mapping[str, Any]) -> Iterator[None]:
        """Replace frequencies and factors of every rotary module, and keep it from computing its own."""
        for module, prefix, layer in self.rotary:
            rotation = hypothesis["layers"][layer]
            start = f"{prefix}_" if prefix else ""
            setattr(module, f"{start}inv_freq", torch.tensor(rotation["inv_freq"], dtype=torch.float32))
            setattr(module, f"{start}attention_scaling", rotation["attention_factor"])
            kinds = getattr(module, "rope_type", "default")
            module.rope_type = dict.fromkeys(kinds, "default") if isinstance(kinds, dict) else "default"
        yield

    @contextlib.contextmanager
    def set_pairing(self, hypothesis: Mapping[str, Any]) -> Iterator[None]:
        """Reorder q and k around the function that rotates them, where the pairing is another one."""
        right = next(iter(self.intended["layers"].values()))["pairing"]
        if next(iter(hypothesis["layers"].values()))["pairing"] == right:
            yield
            return
        names = [name for name in vars(self.code) if re.match(r"_?apply_rotary(?!.*(vision|time))", name)]
        before = {name: getattr(self.code, name) for name in names}
        used: list[str] = []
        for name, function in before.items():
            setattr(self.code, name, reorder_around(function, right, used))
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(self.code, name, function)
        if not used:
            raise Unsupported

    @contextlib.contextmanager
    def set_softmax(self, hypothesis: Mapping[str, Any]) -> Iterator[None]:
        """Multiply the scale of every layer's scores."""
        ratio = hypothesis["softmax_multiplier"] / self.intended["softmax_multiplier"]
        if ratio == 1.0:
            yield
            return
        modules = [one for one in self.model.modules() if isinstance(getattr(one, "scaling", None), float)]
        if not modules:
            raise Unsupported
        before = [one.scaling for one in modules]
        for module in modules:
            module.scaling *= ratio
        try:
            yield
        finally:
            for module, value in zip(modules, before, strict=True):
                module.scaling = value

    @contextlib.contextmanager
    def set_windows(self, hypothesis: Mapping[str, Any]) -> Iterator[None]:
        """Make windows and chunks endless, or windows wider."""
        if hypothesis["has_windows"] and not hypothesis["wider"]:
            yield
            return
        config = self.model.config
        kinds = ("sliding_window",) if hypothesis["has_windows"] else ("sliding_window", "attention_chunk_size")
        names = [name for name in kinds if getattr(config, name, None)]
        if not names:
            raise Unsupported
        before = {name: getattr(config, name) for name in names}
        for name in names:
            setattr(config, name, before[name] + hypothesis["wider"] if hypothesis["has_windows"] else ENDLESS)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(config, name, value)

    @contextlib.contextmanager
    def set_temperature(self, hypothesis: Mapping[str, Any]) -> Iterator[None]:
        """Leave out the factor by which queries are multiplied, which depends on their position."""
        if hypothesis["has_temperature"]:
            yield
            return
        modules = [one for one in self.model.modules() if getattr(one, "attn_temperature_tuning", False)]
        name = find_temperature(self.code)
        if not modules and not name:
            raise Unsupported
        before = getattr(self.code, name, None)
        for module in modules:
            module.attn_temperature_tuning = False
        if name:
            setattr(self.code, name, lambda *_, **__: torch.ones(()))
        try:
            yield
        finally:
            for module in modules:
                module.attn_temperature_tuning = True
            if name:
                setattr(self.code, name, before)


def find_temperature(code: Any) -> str:
    """Return the name of the function of a modeling file that gives the factor on queries; empty where none does."""
    return next((name for name in vars(code) if name.startswith("get_") and name.endswith("attn_scale")), "")


def choose_attention(model: Any) -> Any:
    """Make a model compute only the rows that are needed, where that gives the same as its own attention.

    Return what it answers to the sample untouched, log-probabilities of shape (tokens, vocabulary).
    """
    row_attention.register()
    row_attention.ROWS.needed = None
    ids = torch.tensor([SAMPLE])
    with torch.inference_mode():
        model.set_attn_implementation("eager")
        right = model(input_ids=ids, use_cache=False).logits
        try:
            model.set_attn_implementation(row_attention.NAME)
            if torch.allclose(model(input_ids=ids, use_cache=False).logits, right, atol=1e-3):
                return right[0].float().log_softmax(-1)
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError):
            pass
        model.set_attn_implementation("eager")
    return right[0].float().log_softmax(-1)


def find_layer(prefix: str, path: str, buffer: Any, layers: Mapping[str, Any]) -> str:
    """Return the layer type of a rotary embedding: by its name, else by its numbers."""
    if len(layers) == 1 or prefix in layers:
        return prefix if prefix in layers else next(iter(layers))
    values = buffer.double().numpy()
    same = [
        layer
        for layer, rotation in layers.items()
        if len(rotation["inv_freq"]) == len(values) and np.allclose(rotation["inv_freq"], values, rtol=1e-4)
    ]
    if not same:
        raise ValueError(f"which layers {path} rotates is not known")
    return same[0]


def reorder_around(function: Callable[..., Any], pairing: str, used: list[str]) -> Callable[..., Any]:
    """Return a function that rotates the pairs of the other pairing by one that rotates those of this one."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def rotate(*values: Any, **named: Any) -> Any:
        given = dict(zip(names, values, strict=False)) | named
        table = next(given[name] for name in ("cos", "freqs_cis", "position_embeddings") if name in given)
        table = table[0] if isinstance(table, tuple) else table
        size = table.shape[-1]
        is_half_table = table.is_complex()
        first = [name for name in names if name in ("q", "k", "x", "xq", "xk", "tensor", "query", "key")]
        if not first:
            return function(*values, **named)
        size = 2 * size if is_half_table or is_repeated(table) else size
        used.append(function.__name__)
        # Some functions rotate the last dimensions of a head, and not the first ones.
        whole, turned = given[first[0]], function(**given)
        turned = turned[0] if isinstance(turned, tuple) else turned
        at_end = size < whole.shape[-1] and torch.equal(turned[..., :-size], whole[..., :-size])
        order = np.arange(size).reshape(2, -1).T.ravel() if pairing == "interleaved" else None
        order = np.arange(size).reshape(-1, 2).T.ravel() if order is None else order
        back = np.argsort(order)
        for name in first:
            given[name] = reorder(given[name], order, at_end)
        out = function(**given)
        return (
            tuple(reorder(one, back, at_end) for one in out) if isinstance(out, tuple) else reorder(out, back, at_end)
        )

    return rotate


def is_repeated(table: Any) -> bool:
    """Return whether a table of cosines has one number per pair, and not one per dimension."""
    half = table.shape[-1] // 2
    flat = table.reshape(-1, table.shape[-1])[-1]
    return not (torch.equal(flat[:half], flat[half:]) or torch.equal(flat[0::2], flat[1::2]))


def reorder(values: Any, order: Any, at_end: bool) -> Any:
    """Return the first or last dimensions of heads in another order."""
    if not isinstance(values, torch.Tensor):
        return values
    rest = values.shape[-1] - len(order)
    places = [np.arange(rest), order + rest] if at_end else [order, np.arange(rest) + len(order)]
    return values[..., torch.from_numpy(np.concatenate(places))]


@contextlib.contextmanager
def round_angles(hypothesis: Mapping[str, Any]) -> Iterator[None]:
    """Round the angles of which cosines and sines are taken to bfloat16."""
    if not hypothesis["rounds_angles"]:
        yield
        return
    cos, sin, used = torch.Tensor.cos, torch.Tensor.sin, []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def compute(values: Any) -> Any:
            used.append(True)
            return function(values.bfloat16().to(values.dtype))

        return compute

    torch.Tensor.cos, torch.Tensor.sin = wrap(cos), wrap(sin)  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.cos, torch.Tensor.sin = cos, sin  # type: ignore[method-assign]
    if not used:
        raise Unsupported


OPENED: dict[str, Reference] = {}
"""The reference of this process, once a task has opened it."""


def answer(text: str) -> str:
    """Return the result of a task, both as JSON. Raise `ValueError` with one line."""
    task = json.loads(text)
    try:
        return json.dumps(do_task(task))
    except ValueError as error:
        raise ValueError(describe(error)) from None


def do_task(task: Mapping[str, Any]) -> Any:
    """Return the result of a task."""
    if task["task"] == "make":
        return make(task)
    if task["task"] == "open":
        OPENED["reference"] = Reference(task["config"], task["folder"], task["intended"])
        return importlib.import_module("transformers").__version__
    return OPENED["reference"].compute(task)
