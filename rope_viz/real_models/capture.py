"""Capture q and k of a transformers model just before it rotates them.

    with rope_viz.capture(model) as taken:
        model(**inputs)
    taken.save("qk.safetensors")

Within the block, the rotation and attention functions of the modeling file are wrapped. The attention wrapper sees the
final q and k, finds the output of a rotation in them, and replaces it by that rotation's input. So norms before the
rotation are included, and parts that never rotate too (partial rotary, MLA), whatever the layout of the heads.
"""

from __future__ import annotations

import fnmatch
import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.formats.gguf import is_gguf, read_header
from rope_viz.models.model_config import from_config
from rope_viz.real_models.gguf_model import load_gguf, make_config, make_tokenizer
from rope_viz.studies.capture_file import CapturedLayer, write_capture
from rope_viz.studies.pair_sums import add_up
from rope_viz.studies.sums_file import SummedLayer, write_sums
from rope_viz.tiny_lm import numpy_model

Tensor: TypeAlias = Any
ROTATIONS = ("apply_rotary_pos_emb*", "apply_rotary_emb*", "apply_multimodal_rotary_pos_emb*")
NOT_TEXT = ("*vision*", "*time*")
ATTENTION = "ALL_ATTENTION_FUNCTIONS"
Shard: TypeAlias = tuple[int, int]
"""The number of a shard, from 0, and the number of shards: it has every so many-th piece of the text."""
WHOLE: Shard = (0, 1)


@dataclass
class CapturedLayers:
    """The layers captured so far: {layer index: `CapturedLayer`}, in the order the layers ran.

    `skipped` are layers that attended without a rotation. With `takes_sums`, `summed` has sums over all tokens of all
    passes in place of `layers`.
    """

    config: dict[str, Any]
    name: str
    layers: dict[int, CapturedLayer] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)
    takes_sums: bool = False
    summed: dict[int, SummedLayer] = field(default_factory=dict)

    @property
    def specs(self) -> dict[str, RopeSpec]:
        """Return {layer type: embedding} according to the model's config."""
        return from_config(self.config)

    def spec(self, layer: int) -> RopeSpec:
        return self.specs[self.layers[layer].kind]

    def add(self, index: int, layer: CapturedLayer) -> None:
        """Keep a layer, or with `takes_sums` add it to the sums of that layer."""
        if not self.takes_sums:
            self.layers[index] = layer
            return
        spec = self.specs[layer.kind]
        sums = add_up(layer.q, layer.k, spec.pairs, spec.pairing)
        found = SummedLayer(sums, layer.kind, layer.scale, layer.heads)
        self.summed[index] = self.summed[index] + found if index in self.summed else found

    def save(self, path: str | Path, *, dtype: str = "float16") -> None:
        """Write a safetensors file for the Heads page and `read_capture`. Raises `ValueError` without layers."""
        if not (self.layers or self.summed):
            raise ValueError("nothing was taken: run the model within the `with` block")
        if self.takes_sums:
            write_sums(path, self.summed, config=self.config, name=self.name)
            return
        write_capture(path, self.layers, config=self.config, name=self.name, dtype=dtype)


@contextmanager
def capture(
    model: Any,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    sums: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[CapturedLayers]:
    """Capture q and k of these layers and query heads (all, if None) in the first forward pass within the block.

    With `sums`, sums over the tokens of all passes are captured in place of whole tensors.
    Only the first sequence of a batch is captured; its positions must be 0, 1, 2 and so on. `progress` is called with
    the number of finished and of all layers. Raises `ValueError` for a model whose attention cannot be wrapped.
    """
    config = model.config.get_text_config().to_dict()
    taken = CapturedLayers(config, str(getattr(model.config, "_name_or_path", "") or type(model).__name__))
    taken.takes_sums = sums
    total = int(config.get("num_hidden_layers") or 0)
    pieces: list[tuple[Tensor, Tensor]] = []
    kinds: dict[int, str] = {}

    def attend(
        function: Callable[..., Any], module: Any, query: Tensor, key: Tensor, *rest: Any, **options: Any
    ) -> Any:
        index = int(getattr(module, "layer_idx", len(taken.layers)))
        if index not in taken.layers and (layers is None or index in layers):
            if pieces:
                taken.add(index, layer_of(module, query, key, pieces, options, heads, kinds.get(index, "")))
            elif index not in taken.skipped:
                taken.skipped.append(index)
        pieces.clear()
        if progress is not None:
            progress(min(index + 1, total), total)
        return function(module, query, key, *rest, **options)

    with wrap_attention(model, attend, pieces):
        # A model that cannot be captured may have no rotary embedding either: it is refused before this.
        kinds |= layer_kinds(config)
        yield taken


@contextmanager
def wrap_attention(model: Any, attend: Callable[..., Any], pieces: list[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Call `attend(function, module, query, key, value, …)` in place of the attention functions within the block.

    Inputs and outputs of rotations are appended to `pieces`. Raises `ValueError` for a model whose attention cannot be
    wrapped.
    """
    modules = modeling_modules(model)
    wrapped = [(module, name) for module in modules for name in vars(module) if rotates(name)]
    reached = [module for module in modules if hasattr(module, ATTENTION)]
    if not wrapped or not reached:
        raise ValueError(
            f"{type(model).__name__} cannot be captured: its code calls no apply_rotary_pos_emb, "
            "or does not attend through transformers' attention interface"
        )
    before = [(module, name, getattr(module, name)) for module, name in wrapped]
    before += [(module, ATTENTION, getattr(module, ATTENTION)) for module in reached]
    try:
        for module, name, function in before:
            replaced = Interface(function, attend) if name == ATTENTION else record_rotation(function, pieces)
            setattr(module, name, replaced)
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def capture_folder(
    folder: str | Path,
    text: str,
    *,
    tokens: int,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    device: str = "cpu",
    sums: bool = False,
    shard: Shard = WHOLE,
    progress: Callable[[int, int], None] | None = None,
) -> CapturedLayers:
    """Capture q and k of the transformers model in a folder on the first `tokens` of a text; nothing is downloaded.

    With `sums`, the whole text is read in pieces of that many tokens, and sums are captured; `shard` chooses pieces.
    Raises `ValueError` without PyTorch and transformers, for a text of less than two tokens, and for layers that the
    model does not have.
    """
    try:
        import torch
        import transformers
    except ImportError:
        raise ValueError("capture needs PyTorch and transformers: pip install 'rope-viz[transformers]'") from None
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    longest = {} if sums else {"truncation": True, "max_length": tokens}
    parts = cut_text(tokenizer(text, return_tensors="np", verbose=False, **longest)["input_ids"][0], tokens, shard)
    # Without the head, because the logits are not needed.
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, dtype="auto").to(device).eval()
    with capture(model, layers=layers, heads=heads, sums=sums, progress=progress) as taken, torch.inference_mode():
        for ids in parts:
            model(input_ids=torch.from_numpy(ids.astype(np.int64))[None].to(device), use_cache=False)
    taken.name = Path(folder).resolve().name
    missing = sorted(set(layers or ()) - set(taken.layers) - set(taken.summed) - set(taken.skipped))
    if missing:
        raise ValueError(f"the model has no layer {', '.join(map(str, missing))}")
    return taken


class Interface:
    """Wrapper of transformers' attention interface. `attend` gets its functions as first argument, and calls them."""

    def __init__(self, interface: Any, attend: Callable[..., Any]) -> None:
        self.interface, self.attend = interface, attend

    def get_interface(self, name: str, default: Any) -> Callable[..., Any]:
        """Return `attend` with the function that the model would use."""
        return functools.partial(self.attend, self.interface.get_interface(name, default))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.interface, name)

    def __getitem__(self, name: str) -> Any:
        return self.interface[name]


def record_rotation(function: Callable[..., Any], pieces: list[tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """Return the rotation, wrapped to record each input tensor with its output."""

    def rotation(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        outputs = result if isinstance(result, tuple) else (result,)
        inputs = [each for each in (*arguments, *named.values()) if getattr(each, "ndim", 0) == 4]
        pieces.extend((one.detach(), other.detach()) for one, other in zip(inputs, outputs, strict=False))
        return result

    return rotation


def layer_of(
    module: Any,
    query: Tensor,
    key: Tensor,
    pieces: list[tuple[Tensor, Tensor]],
    options: dict[str, Any],
    heads: Sequence[int] | None,
    kind: str,
) -> CapturedLayer:
    """Return one layer from the arguments of its attention."""
    if query.shape[2] != key.shape[2]:
        raise ValueError("capture takes a whole sequence in one pass: run the model without a cache of earlier tokens")
    q, k = (unrotated(each, pieces, name) for each, name in ((query, "q"), (key, "k")))
    if heads is not None:
        if not heads or min(heads) < 0 or max(heads) >= len(q):
            raise ValueError(f"heads must be from 0 to {len(q) - 1}, got {list(heads)}")
        k = k[[head * len(k) // len(q) for head in heads]]
        q = q[list(heads)]
    scale = options.get("scaling")
    window, sinks = options.get("sliding_window"), options.get("s_aux", getattr(module, "sinks", None))
    sinks = None if sinks is None else as_numpy(sinks)
    return CapturedLayer(
        q=q,
        k=k,
        kind=kind,
        scale=float(query.shape[-1] ** -0.5 if scale is None else scale),
        cap=options.get("softcap"),
        window=None if window is None else int(window),
        sinks=sinks if sinks is None or heads is None else sinks[list(heads)],
        heads=tuple(range(len(q))) if heads is None else tuple(heads),
    )


def unrotated(final: Tensor, pieces: list[tuple[Tensor, Tensor]], name: str) -> NDArray[np.float32]:
    """Return `final` (batch, heads, tokens, head_dim) with rotated parts replaced by their inputs, those first."""
    for before, after in pieces:
        for one, other in ((before, after), (before.transpose(1, 2), after.transpose(1, 2))):
            size = other.shape[-1]
            if other.shape[2] != final.shape[2] or other.shape[1] not in (1, final.shape[1]) or size > final.shape[-1]:
                continue
            for first in {0, final.shape[-1] - size}:
                if bool((final[:1, ..., first : first + size] == other[:1]).all()):
                    values = as_numpy(final[0])
                    rest = np.delete(values, np.s_[first : first + size], axis=-1)
                    inputs = np.broadcast_to(as_numpy(one[0]), (*values.shape[:-1], size))
                    return np.concatenate([inputs, rest], axis=-1)
    raise ValueError(f"this model changes {name} after rotating it, so what is rotated is not what attends")


def modeling_modules(model: Any) -> list[Any]:
    """Return the Python modules that define the model's parts."""
    names = {type(part).__module__ for part in model.modules()}
    return [sys.modules[name] for name in sorted(names) if re.search(r"\bmodeling_\w+$", name)]


def rotates(name: str) -> bool:
    """True if a function of this name rotates q and k of text."""
    return any(fnmatch.fnmatch(name, one) for one in ROTATIONS) and not any(fnmatch.fnmatch(name, n) for n in NOT_TEXT)


def layer_kinds(config: dict[str, Any]) -> dict[int, str]:
    """Return {layer: its layer type} for a model whose layer types have different embeddings."""
    specs, kinds = from_config(config), config.get("layer_types") or []
    return {index: kind for index, kind in enumerate(kinds) if kind in specs}


def as_numpy(tensor: Tensor) -> NDArray[np.float32]:
    """Return the tensor as float32 on the CPU."""
    return np.asarray(tensor.detach().float().cpu().numpy(), dtype=np.float32)


def find_gguf(path: str | Path) -> Path | None:
    """Return the GGUF file at a path, or the only one in a folder; None if there is none.

    Raises `ValueError` for a folder with several.
    """
    path = Path(path)
    if path.is_file():
        return path if is_gguf(path) else None
    found = sorted(path.glob("*.gguf")) if path.is_dir() else []
    if len(found) > 1:
        raise ValueError(f"{path} has {len(found)} GGUF files: name one of them, such as {found[0].name}")
    return found[0] if found else None


def capture_gguf(
    path: str | Path,
    text: str,
    *,
    tokens: int,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    sums: bool = False,
    shard: Shard = WHOLE,
    progress: Callable[[int, int], None] | None = None,
) -> CapturedLayers:
    """Capture q and k of these layers and query heads (all, if None) on the first `tokens` of a text.

    With `sums`, the whole text is read in pieces of that many tokens, and sums are captured; `shard` chooses pieces.
    Raises `ValueError` for a model or a tokenizer that is not built in, a text of less than two tokens, and layers or
    heads that the model does not have.
    """
    header = read_header(path, long_arrays=True)
    config = make_config(header)
    check_range("layer", layers, config["num_hidden_layers"])
    check_range("head", heads, config["num_attention_heads"])
    ids = make_tokenizer(header).encode(text).ids
    parts = cut_text(np.asarray(ids if sums else ids[:tokens]), tokens, shard)
    model = load_gguf(path)
    taken = CapturedLayers(config, model.name, takes_sums=sums)

    def record(index: int, inputs: numpy_model.AttentionInputs) -> None:
        if layers is None or index in layers:
            taken.add(index, choose_heads(inputs, heads))
        if progress is not None:
            progress(index + 1, len(model.layers))

    for part in parts:
        numpy_model.hidden(model, part, None, np.arange(len(part)), record)
    return taken


def cut_text(ids: NDArray[Any], tokens: int, shard: Shard) -> list[NDArray[Any]]:
    """Return the pieces of a shard, `tokens` tokens each but for the last. Raises `ValueError` if it has none."""
    pieces = [ids[first : first + tokens] for first in range(0, len(ids), tokens)]
    number, of = shard
    chosen = [piece for piece in pieces[number::of] if len(piece) > 1]
    if not chosen:
        raise ValueError("the text must have at least two tokens" + (f" for each of {of} shards" if of > 1 else ""))
    return chosen


def choose_heads(inputs: numpy_model.AttentionInputs, heads: Sequence[int] | None) -> CapturedLayer:
    """Return one layer with these query heads and the key head of each."""
    q, k = inputs.q, inputs.k
    if heads is not None:
        q, k = q[list(heads)], k[[head * len(k) // len(q) for head in heads]]
    numbers = range(len(q)) if heads is None else heads
    return CapturedLayer(q, k, scale=float(q.shape[-1] ** -0.5), heads=tuple(numbers))


def check_range(name: str, wanted: Sequence[int] | None, count: int) -> None:
    """Raise `ValueError` for an index that the model does not have."""
    wrong = [index for index in wanted or () if not 0 <= index < count]
    if wrong:
        raise ValueError(f"{name}s must be from 0 to {count - 1}, got {wrong}")
