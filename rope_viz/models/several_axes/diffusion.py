"""Diffusion transformers: a ladder per axis as blocks, adjacent dimensions paired by default; diffusers 0.42.1.

A rule has the class' own dimensions and base. Configs name the same things differently: `axes_dims_rope` (FLUX),
`rope_axes_dim` (HunyuanVideo), `axes_dim_rope` (Lumina 2), `axes_dims` (Z-Image), `attention_head_dim` (Wan) …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import (
    STILL,
    THW,
    AxesSpec,
    alternate_axes,
    interleave_sections,
    ladder_per_axis,
    mix_axes,
    place_frequencies,
    shared_ladder,
)
from rope_viz.embedding.scaling import Linear, NtkAware
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, Pairing, RopeSpec, Scaling
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import HEADS, WIDTH, ConfigReader
from rope_viz.models.several_axes.learned_directions import (
    HW,
    MAX_HEADS,
    WH,
    draw_uniform,
    find_known_name,
    learned_heads,
)
from rope_viz.models.several_axes.vision import Specs, join_parts, ladder, split_heads
from rope_viz.storage.decode_json import read_own
from rope_viz.texts.texts import join_items

Read: TypeAlias = Callable[[ConfigReader], Specs]

THWL = ("t", "h", "w", "l")
FRAME = ("frame", "h", "w")
AXES_DIM = tuple(
    """
    axes_dim axes_dims axes_dims_rope axes_dim_rope rope_axes_dim rope_axes_dims rope_dim rope_dim_list fhw_dim
    rope_dims
    """.split()
)


@dataclass(frozen=True)
class Blocks:
    """A rotation in blocks: the dimensions of each axis, and one base.

    `split` derives the dimensions from the head instead, where the config names none; `named` False where what the
    config calls so is something else (CogView 4's `rope_axes_dim` is a grid).
    """

    dims: tuple[int, ...] = (16, 56, 56)
    base: float = 10_000.0
    axes: tuple[str, ...] = THW
    pairing: Pairing = "interleaved"
    split: Callable[[int], tuple[int, ...]] | None = None
    head_dim: int = 128
    named: bool = True

    def __call__(self, settings: ConfigReader) -> AxesSpec:
        if self.named and isinstance(settings.value(*AXES_DIM), (list, tuple)):
            dims = tuple(settings.sizes(*AXES_DIM, least=2))
        else:
            dims = self.split(read_head_size(settings, self.head_dim)) if self.split else self.dims
        base = settings.base(self.base)
        ladders = [ladder(dim, base) for dim in dims]
        return ladder_per_axis(
            ladders, choose_axis_names(self.axes, len(dims)), pairing=self.pairing, head_dim=sum(dims)
        )


def read_head_size(settings: ConfigReader, default: int) -> int:
    """Return the head size, which the classes' arguments name like a width."""
    own = settings.size("attention_head_dim", "head_dim", "linear_head_dim", "rope_dim", least=2, most=MAX_HEAD_DIM)
    if own is not None:
        return own
    if settings.value(*HEADS) is not None and settings.value(*WIDTH) is not None:
        return settings.head_size()
    return settings.size(*WIDTH, default=default, least=2, most=MAX_HEAD_DIM)


def choose_axis_names(axes: Sequence[str], count: int) -> tuple[str, ...]:
    """Return names for this many axes: rows and columns if there are two; axes beyond the known ones are numbered."""
    if count == 2 != len(axes):
        return HW
    return (*axes, *(f"axis {k}" for k in range(len(axes), count)))[:count]


def split_sixths(size: int) -> tuple[int, ...]:
    """Return the split of Wan and Cosmos: 2·⌊d/6⌋ for rows and for columns, the rest for time."""
    side = 2 * (size // 6)
    return (size - 2 * side, side, side)


def split_eighths(size: int) -> tuple[int, ...]:
    """Return CogVideoX's split: a quarter for time, three eighths for rows and for columns."""
    return (size // 4, size // 8 * 3, size // 8 * 3)


def split_halves(size: int) -> tuple[int, ...]:
    """Return half the head for each of two axes."""
    return (size // 2, size // 2)


def chronoedit(settings: ConfigReader) -> AxesSpec:
    """ChronoEdit: Wan's split, but the table is cut by thirds, which for some sizes falls inside a pair."""
    size = read_head_size(settings, 128)
    if size // 3 % 2:
        raise ValueError(TEXTS("diffusion.chronoedit", size=size))
    return WAN(settings)


def cosmos(settings: ConfigReader) -> AxesSpec:
    """Cosmos 1: NTK-aware per axis by `rope_scale`, halves."""
    dims, base = split_sixths(read_head_size(settings, 128)), settings.base(10_000.0)
    factors = settings.numbers("rope_scale", default=(2.0, 1.0, 1.0), count=3)
    scalings = [Scaling() if factor == 1.0 else NtkAware(factor) for factor in factors]
    ladders = [replace(ladder(dim, base), scaling=each) for dim, each in zip(dims, scalings, strict=True)]
    return ladder_per_axis(ladders, THW, head_dim=sum(dims))


def lumina_next(settings: ConfigReader) -> AxesSpec:
    """Lumina-Next: one short ladder, h w h w …; `ntk_factor` multiplies the base, `linear_factor` divides."""
    size, base = (
        read_head_size(settings, 96),
        settings.base(10_000.0) * settings.number("ntk_factor", default=1.0, above=0.0),
    )
    linear = settings.number("linear_factor", default=1.0, above=0.0)
    one = replace(ladder(size // 2, base), scaling=Linear(linear))
    return ladder_per_axis([one, one], HW, order="pair by pair", pairing="interleaved", head_dim=size)


def minimax_h3(settings: ConfigReader) -> AxesSpec:
    """MiniMax-H3: one short ladder for every axis, halves of the first 6·n dimensions; the rest does not rotate."""
    rungs = settings.size("rope_freq_dim", default=16)
    size = settings.size("attention_head_dim", "head_dim", default=128)
    return ladder_per_axis([ladder(2 * rungs, settings.base(10_000.0))] * 3, THW, head_dim=max(size, 6 * rungs))


def concatenate_ladders(dims: Sequence[int], base: float) -> FloatArray:
    """Return the concatenated frequencies of one ladder per entry of `dims`."""
    return np.concatenate([ladder(dim, base).plain_inv_freq for dim in dims])


def ernie_image(settings: ConfigReader) -> AxesSpec:
    """ERNIE-Image: angles for adjacent pairs, applied to pairs half a head apart. Not a rotation; trained this way."""
    dims = settings.sizes(*AXES_DIM, default=(32, 48, 48), count=3, least=2)
    axis = [k for k, dim in enumerate(dims) for _ in range(dim // 2)]
    members = np.repeat(place_frequencies(concatenate_ladders(dims, settings.base(256.0)), axis, 3), 2, axis=0)
    first, second = np.split(members, 2)
    return AxesSpec(first, axes=THW, second=second, head_dim=len(members))


def mochi(settings: ConfigReader) -> list[AxesSpec]:
    """Mochi: a learned vector over time, row and column per head and pair; random by seed without `weights`.

    `weights` or `pos_frequencies` is (3, heads, pairs). Drawn ones are uniform in −1 … 1.
    """
    if settings.value("weights", "pos_frequencies") is not None:
        return learned_heads(settings.array("weights", "pos_frequencies"), THW)
    heads = settings.size("num_attention_heads", default=24, most=MAX_HEADS)
    pairs = settings.size("attention_head_dim", "head_dim", default=128, least=2, most=MAX_HEAD_DIM) // 2
    random = 2.0 * draw_uniform(settings.size("seed", default=0, least=0), 3 * heads * pairs) - 1.0
    return learned_heads(random.reshape(3, heads, pairs), THW)


def ltx(settings: ConfigReader) -> list[AxesSpec]:
    """LTX: rising frequencies π/2 … base·π/2 over the width of all heads, t h w t h w …, one spec per head.

    The first (width mod 6)/2 pairs do not rotate. `modality` "audio" has time alone; `rope_type` "split" pairs halves.
    """
    heads = settings.size("num_attention_heads", "num_heads", default=32, most=MAX_HEADS)
    width = settings.size(
        "inner_dim", "dim", "hidden_size", default=heads * settings.size("attention_head_dim", default=64)
    )
    if width % (2 * heads) or width // heads > MAX_HEAD_DIM:
        raise ValueError(TEXTS("diffusion.width", width=width, heads=heads, most=MAX_HEAD_DIM))
    axes = ("t",) if settings.choice("modality", options=("video", "audio")) == "audio" else THW
    each = width // (2 * len(axes))
    base = settings.number("theta", "rope_theta", default=10_000.0, above=1.0)
    rungs = base ** (np.arange(each) / max(each - 1, 1)) * math.pi / 2.0
    still = width // 2 - len(axes) * each
    inv_freq = np.concatenate([np.zeros(still), np.repeat(rungs, len(axes))])
    specs = split_heads(inv_freq, [STILL] * still + alternate_axes(len(axes) * each, range(len(axes))), axes, heads)
    if settings.choice("rope_type", options=("interleaved", "split")) == "split":
        return [AxesSpec(spec.weights, axes=spec.axes, head_dim=spec.head_dim) for spec in specs]
    return specs


def mrope(settings: ConfigReader, size: int) -> AxesSpec:
    """Ideogram 4 and Cosmos 3: M-RoPE interleaved in a diffusion transformer."""
    counts = settings.sizes("mrope_section", "rope_axes_dim", default=(24, 20, 20), count=3, least=0)
    spec = RopeSpec(head_dim=read_head_size(settings, size), base=settings.base(5_000_000.0))
    return shared_ladder(spec, interleave_sections(counts, spec.pairs))


def allegro(settings: ConfigReader) -> AxesSpec:
    """Allegro: a third of the head for every axis, each with its own half pairing."""
    return join_parts(read_head_size(settings, 96), settings.base(10_000.0), THW)


def sana_wm(settings: ConfigReader) -> AxesSpec:
    """SANA-WM: tables sized by `fhw_dim` but cut at d/6, so with another split rows get low frequencies of time."""
    size = read_head_size(settings, 112)
    dims = settings.sizes("fhw_dim", default=split_sixths(size), count=3)
    side = size // 6
    axis = [0] * (size // 2 - 2 * side) + [1] * side + [2] * side
    return mix_axes(place_frequencies(concatenate_ladders(dims, settings.base(10_000.0)), axis, 3), THW, head_dim=size)


FLUX = Blocks()
HUNYUAN = Blocks(base=256.0)
WAN = Blocks(split=split_sixths)
QWEN = Blocks(axes=FRAME)
SIDES = Blocks(axes=HW, pairing="half", split=split_halves, head_dim=40, named=False)

RULES: dict[str, Read] = {
    **dict.fromkeys(("flux", "flux1", "chroma", "fluxkontext", "bria", "briafibo", "ovisimage", "longcatimage"), FLUX),
    **dict.fromkeys(("hunyuanvideo", "hunyuanvideo15", "hunyuanvideoframepack", "motifvideo", "joyimage"), HUNYUAN),
    **dict.fromkeys(("wan", "skyreelsv2", "anyflow", "wananimate", "wanvace", "anyflowcausal"), WAN),
    **dict.fromkeys(("cogvideox", "consisid", "easyanimate"), Blocks(split=split_eighths, head_dim=64)),
    **dict.fromkeys(("cogview4", "glmimage"), SIDES),
    **dict.fromkeys(("qwenimage", "qwenimagelayered", "qwenimage21", "qwenimageedit", "nucleusmoeimage"), QWEN),
    **dict.fromkeys(("hidreamimage", "prx"), Blocks((32, 32), axes=THW)),
    **dict.fromkeys(("zimage", "briafibo2"), Blocks((32, 48, 48), 256.0)),
    **dict.fromkeys(("kandinsky5", "kandinsky6sr"), Blocks((16, 24, 24))),
    "kandinsky6": Blocks((32, 48, 48)),
    "flux2": Blocks((32, 32, 32, 32), 2000.0, THWL),
    "flux3": Blocks((32, 32, 32, 32), 10_000.0, THWL),
    "krea2": Blocks((32, 48, 48), 1000.0),
    "lumina2": Blocks((32, 32, 32)),
    "hunyuanimage": Blocks((64, 64), 256.0),
    "chronoedit": chronoedit,
    "sanavideo": Blocks(split=split_sixths, head_dim=112),
    "helios": Blocks((44, 42, 42)),
    "sanawm": sana_wm,
    "ernieimage": ernie_image,
    "minimaxh3": minimax_h3,
    "mochi": mochi,
    "cosmos": cosmos,
    **dict.fromkeys(("ltxvideo", "ltx2", "ltx2video", "sanawmltx2"), ltx),
    "ideogram4": partial(mrope, size=256),
    "cosmos3": partial(mrope, size=128),
    "luminanext": lumina_next,
    # HunyuanDiT: columns in the first half, rows in the second; the code names them the other way round.
    "hunyuandit": Blocks(axes=WH, split=split_halves, head_dim=88, named=False),
    "allegro": allegro,
}

# Other names of classes, functions and models for the same rule.
NAMES = read_own(__file__, "transformer_names.json")
ALSO: Mapping[str, str] = NAMES["names"]
ENDINGS: Sequence[str] = NAMES["endings"]
KNOWN = {name: ALSO.get(name, name) for name in (*RULES, *ALSO)}


def find_rule(name: str) -> str | None:
    """Return the key of the rule for a model, class or pipeline name; None if there is none."""
    return find_known_name(name, KNOWN, ENDINGS)


def require_rule(name: str) -> str:
    """Return the key of a rule as `find_rule` does; raise `ValueError` if there is none.

    >>> require_rule("Flux2PosEmbed"), require_rule("hunyuan-video"), require_rule("QwenImageTransformer2DModel")
    ('flux2', 'hunyuanvideo', 'qwenimage')
    """
    found = find_rule(name)
    if found is not None:
        return found
    if name.endswith("Pipeline"):
        raise ValueError(TEXTS("diffusion.pipeline"))
    raise ValueError(TEXTS("diffusion.unknown", name=name[:60], rules=join_items(sorted(RULES))))


def read_diffusion(kind: str, config: Mapping[str, Any]) -> Specs:
    """Return the rotation of a diffusion transformer, given the name of the model or its class."""
    return RULES[require_rule(kind)](ConfigReader(config))
