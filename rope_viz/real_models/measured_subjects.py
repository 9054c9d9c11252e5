"""Models whose heads and losses can be measured: of a GGUF file, and of a folder of transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.formats.gguf import read_header
from rope_viz.models.model_config import from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.real_models import TEXTS
from rope_viz.real_models.band_change import BandChange
from rope_viz.real_models.capture import capture, layer_kinds, wrap_attention
from rope_viz.real_models.gguf_model import load_gguf, make_tokenizer
from rope_viz.real_models.head_jobs import LayerInput, See, turn_pairs
from rope_viz.real_models.torch_forward import TorchLm
from rope_viz.studies.capture_file import CapturedLayer
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm.checkpoints import scaled
from rope_viz.tiny_lm.numpy_model import Floats
from rope_viz.tiny_lm.tasks import Tokens

Encode: TypeAlias = Callable[[str], Tokens]
ROWS = 256
"""Positions whose losses are computed at once."""


class GgufSubject:
    """The model of a GGUF file, in float32, with our own forward pass."""

    def __init__(self, model: TorchLm, prefix: tuple[int, ...] = ()) -> None:
        self.model, self.prefix = model, prefix
        self.name, self.config = model.model.name, dict(model.model.config)
        self.vocabulary, self.dtype = len(model.model.embedding), str(model.dtype).removeprefix("torch.")
        self.kinds: dict[int, str] = {}

    @property
    def spec(self) -> RopeSpec:
        return self.model.model.spec

    def see_layers(self, ids: Tokens, see: See) -> None:
        spec, scale = self.spec, self.model.model.head_dim**-0.5
        self.model.hidden(ids, see=lambda index, q, k: see(index, LayerInput(q.float(), k.float(), spec, scale)))

    def losses(self, ids: Tokens, spec: RopeSpec, change: BandChange | None = None) -> Floats:
        """Return the loss in nats of every token but the first under an embedding, (tokens − 1,)."""
        return self.model.losses(ids, Turning.from_spec(spec, len(ids)), change=change)

    def last_logits(self, ids: Tokens, count: int, change: BandChange | None = None) -> Tensor:
        """Return the logits of the last `count` tokens, each given those before it, (count, vocabulary)."""
        return self.model.last_logits(ids, count, change)


class FolderSubject:
    """The model in a folder of transformers, in the data type of its files.

    Raises `ValueError` for a model whose attention cannot be captured.
    """

    def __init__(self, model: Any, name: str, prefix: tuple[int, ...] = ()) -> None:
        self.model, self.name, self.prefix = model, name, prefix
        self.config: dict[str, Any] = model.config.get_text_config().to_dict()
        self.specs = from_config(self.config)
        self.main = find_main_layer(self.specs)
        self.vocabulary = int(self.config["vocab_size"])
        self.dtype = str(model.dtype).removeprefix("torch.")
        self.kinds = layer_kinds(self.config)

    @property
    def spec(self) -> RopeSpec:
        return self.specs[self.main]

    @torch.inference_mode()
    def see_layers(self, ids: Tokens, see: See) -> None:
        """Read a sequence, and call `see` with the number and the input of every layer, as trained.

        Raises `ValueError` for a model with layers that do not rotate.
        """
        device = self.model.device
        with capture(self.model) as taken:
            self.model.base_model(input_ids=torch.from_numpy(ids)[None].to(device), use_cache=False)
        if taken.skipped:
            numbers = ", ".join(map(str, taken.skipped))
            raise ValueError(TEXTS("measured.layers", numbers=numbers))
        for index in sorted(taken.layers):
            see(index, make_input(taken.layers.pop(index), self.specs, device))

    @torch.inference_mode()
    def losses(self, ids: Tokens, spec: RopeSpec, change: BandChange | None = None) -> Floats:
        """Return the loss in nats of every token but the first with an embedding of the main layers, (tokens − 1,).

        Raises `ValueError` if the model's frequencies are not those of its config, and as `changed` does.
        """
        tokens = torch.from_numpy(ids).to(self.model.device)
        with self.rotated(spec, len(ids)), self.changed(change):
            logits = self.model(input_ids=tokens[None], use_cache=False).logits[0, :-1]
        parts = [
            functional.cross_entropy(
                logits[first : first + ROWS].float(), tokens[1:][first : first + ROWS], reduction="none"
            )
            for first in range(0, len(logits), ROWS)
        ]
        found: Floats = torch.cat(parts).cpu().numpy()
        return found

    @torch.inference_mode()
    def last_logits(self, ids: Tokens, count: int, change: BandChange | None = None) -> Tensor:
        """Return the logits of the last `count` tokens, each given those before it, (count, vocabulary)."""
        tokens = torch.from_numpy(ids).to(self.model.device)
        with self.changed(change):
            logits: Tensor = self.model(input_ids=tokens[None], use_cache=False, logits_to_keep=count + 1).logits
        return logits[0, :-1].float()

    @contextlib.contextmanager
    def changed(self, change: BandChange | None) -> Iterator[None]:
        """Change some pairs of some heads within the block.

        Raises `ValueError`, from the model, if the numbers that it rotates are not the first of each head.
        """
        if change is None:
            yield
            return
        pieces: list[tuple[Tensor, Tensor]] = []
        if not any(find_frequencies(self.model, self.spec)):
            raise ValueError("the frequencies of this model are not those of its config, so they cannot be changed")

        def attend(
            function: Callable[..., Any], module: Any, q: Tensor, k: Tensor, v: Tensor, *rest: Any, **options: Any
        ) -> Any:
            spec = self.specs[self.kinds.get(module.layer_idx, self.main)]
            if not all(is_rotated(x, pieces, 2 * spec.pairs) for x in (q, k)):
                raise ValueError(f"layer {module.layer_idx} rotates other numbers than the first of each head")
            pieces.clear()
            q, k = change.apply(module.layer_idx, q, k, spec.inv_freq(q.shape[2]), pairing=spec.pairing)
            groups = getattr(module, "num_key_value_groups", 1)
            if k.shape[1] == v.shape[1]:
                return function(module, q, k, v, *rest, **options)
            module.num_key_value_groups = 1
            try:
                return function(module, q, k, v.repeat_interleave(groups, dim=1), *rest, **options)
            finally:
                module.num_key_value_groups = groups

        with wrap_attention(self.model, attend, pieces):
            yield

    @contextlib.contextmanager
    def rotated(self, spec: RopeSpec, length: int) -> Iterator[None]:
        """Give the main layers the frequencies and the factor of an embedding within the block."""
        if spec == self.spec:
            yield
            return
        places = list(find_frequencies(self.model, self.spec))
        if not places:
            raise ValueError(TEXTS("measured.rotated"))
        turn, before = Turning.from_spec(spec, length), []
        for module, name in places:
            values, factor = getattr(module, name), name.replace("inv_freq", "attention_scaling")
            before.append((module, name, values, factor, getattr(module, factor)))
            setattr(module, name, torch.tensor(turn.inv_freq).to(values.device, values.dtype))
            setattr(module, factor, turn.attention_factor)
        try:
            yield
        finally:
            for module, name, values, factor, value in before:
                setattr(module, name, values)
                setattr(module, factor, value)


def find_frequencies(model: Any, spec: RopeSpec) -> Iterator[tuple[Any, str]]:
    """Yield (module, name) of the buffers that hold the frequencies of an embedding, with the factor next to them.

    transformers names them `inv_freq`, or `full_attention_inv_freq` where layer types differ.
    """
    wanted = torch.tensor(spec.inv_freq()).float()
    for module in model.modules():
        for name, values in module.named_buffers(recurse=False):
            if not name.endswith("inv_freq") or name.endswith("original_inv_freq"):
                continue
            same = values.shape == wanted.shape and torch.allclose(values.float().cpu(), wanted, rtol=1e-3)
            if same and hasattr(module, name.replace("inv_freq", "attention_scaling")):
                yield module, name


def is_rotated(final: Tensor, pieces: list[tuple[Tensor, Tensor]], width: int) -> bool:
    """True if the first `width` numbers of each head, (batch, heads, tokens, d), are those that a rotation returned."""
    outputs = (each for _, after in pieces for each in (after, after.transpose(1, 2)))
    return any(
        width <= each.shape[-1] <= final.shape[-1] and torch.equal(final[..., : each.shape[-1]], each)
        for each in outputs
        if each.shape[:3] == final.shape[:3]
    )


def make_input(layer: CapturedLayer, specs: dict[str, RopeSpec], device: Any) -> LayerInput:
    """Return a captured layer with its q and k rotated, pairs in halves."""
    spec = specs[layer.kind]
    q, k = (halves(torch.from_numpy(np.ascontiguousarray(part)).to(device), spec) for part in (layer.q, layer.k))
    turn = Turning.from_spec(spec, q.shape[1])
    angle = np.outer(np.arange(q.shape[1]), turn.inv_freq)
    cos, sin = (
        torch.from_numpy((turn.attention_factor * part).astype(np.float32)).to(device)
        for part in (np.cos(angle), np.sin(angle))
    )
    q, k = (torch.stack([turn_pairs(head, spec.pairs, cos, sin) for head in part]) for part in (q, k))
    sinks = None if layer.sinks is None else torch.from_numpy(np.float32(layer.sinks)).to(device)
    return LayerInput(q, k, spec, layer.scale, layer.cap, layer.window, sinks)


def halves(x: Tensor, spec: RopeSpec) -> Tensor:
    """Return (heads, tokens, d) with the rotating dimensions in the order of pairs (i, i + pairs)."""
    if spec.pairing == "half":
        return x
    width = 2 * spec.pairs
    return torch.cat([x[..., 0:width:2], x[..., 1:width:2], x[..., width:]], dim=-1)


def find_prefix(encode: Callable[[str, bool], list[int]]) -> tuple[int, ...]:
    """Return the tokens that a tokenizer puts before a text; `encode` takes a text, and whether to add them."""
    whole, bare = encode("a", True), encode("a", False)
    return tuple(whole[: whole.index(bare[0])]) if bare and bare[0] in whole else ()


def load_gguf_subject(path: Path, device: str) -> tuple[GgufSubject, Encode]:
    """Load the model of a GGUF file, and return the function that gives the tokens of a text without the prefix."""
    tokenizer = make_tokenizer(read_header(path, long_arrays=True))

    def encode(text: str, special: bool = False) -> list[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=special).ids
        return found

    return GgufSubject(TorchLm(load_gguf(path), device), find_prefix(encode)), make_encode(encode)


def load_folder_subject(folder: Path, device: str) -> tuple[FolderSubject, Encode]:
    """Load the model in a folder of transformers, and return the function as `load_gguf_subject` does.

    No code from the folder runs, and nothing is downloaded.
    """
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    def encode(text: str, special: bool = False) -> list[int]:
        found: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return found

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype="auto")
    subject = FolderSubject(model.to(device).eval(), folder.resolve().name, find_prefix(encode))
    return subject, make_encode(encode)


def make_encode(encode: Callable[[str], list[int]]) -> Encode:
    """Return the function with an array as result."""
    return lambda text: np.asarray(encode(text), dtype=np.int64)


def spec_under(subject: GgufSubject | FolderSubject, method: str, factor: float) -> RopeSpec:
    """Return the embedding under a method; "none" is the embedding as trained."""
    spec = subject.spec
    return spec if method == "none" else scaled(spec, method, round(factor * spec.context))
