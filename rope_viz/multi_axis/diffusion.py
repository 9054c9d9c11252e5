"""Diffusion transformers: a ladder per axis as blocks, adjacent dimensions paired unless said; diffusers 0.42.1.

A rule has the class' own dimensions and base. Configs name the same things differently: `axes_dims_rope` (FLUX),
`rope_axes_dim` (HunyuanVideo), `axes_dim_rope` (Lumina 2), `axes_dims` (Z-Image), `attention_head_dim` (Wan) …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding.axes_spec import (
    STILL,
    THW,
    AxesSpec,
    Order,
    alternating,
    directions,
    interleaved,
    joined,
    ladder_per_axis,
    placed,
    shared_ladder,
    without_rotation,
)
from rope_viz.embedding.scaling import Linear, NtkAware
from rope_viz.embedding.spec import MAX_HEAD_DIM, Pairing, RopeSpec
from rope_viz.models.config_reader import HEADS, WIDTH, ConfigReader
from rope_viz.multi_axis.learned_directions import MAX_HEADS
from rope_viz.multi_axis.names import find_known_name
from rope_viz.multi_axis.torch_random import uniform
from rope_viz.multi_axis.vision import Specs, ladder, split_heads

Read: TypeAlias = Callable[[ConfigReader], Specs]

THWL = ("t", "h", "w", "l")
FRAME = ("frame", "h", "w")
AXES_DIM = (
    *("axes_dim", "axes_dims", "axes_dims_rope", "axes_dim_rope", "rope_axes_dim", "rope_axes_dims", "rope_dim"),
    *("rope_dim_list", "fhw_dim", "rope_dims"),
)


@dataclass(frozen=True)
class Blocks:
    """Axes with so many dimensions each and one base.

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

    def __call__(self, given: ConfigReader) -> AxesSpec:
        if self.named and isinstance(given.value(*AXES_DIM), (list, tuple)):
            dims = tuple(given.sizes(*AXES_DIM, least=2))
        else:
            dims = self.split(head(given, self.head_dim)) if self.split else self.dims
        base = given.base(self.base)
        ladders = [ladder(dim, base) for dim in dims]
        return ladder_per_axis(ladders, names(self.axes, len(dims)), pairing=self.pairing, head_dim=sum(dims))


def head(given: ConfigReader, default: int) -> int:
    """The size of a head, which the classes' own arguments call by the names of a width."""
    own = ("attention_head_dim", "head_dim", "linear_head_dim", "rope_dim")
    if given.value(*own) is not None:
        return given.required(*own, least=2, most=MAX_HEAD_DIM)
    if given.value(*HEADS) is not None and given.value(*WIDTH) is not None:
        return given.head_size()
    return given.size(*WIDTH, default=default, least=2, most=MAX_HEAD_DIM)


def names(axes: Sequence[str], count: int) -> tuple[str, ...]:
    """As many axis names: rows and columns alone where there are two, further ones by number."""
    if count == len(axes):
        return tuple(axes)
    if count == 2:
        return ("h", "w")
    return tuple(axes[:count]) if count < len(axes) else (*axes, *(f"axis {k}" for k in range(len(axes), count)))


def sixths(size: int) -> tuple[int, ...]:
    """Wan's split of a head: 2·⌊d/6⌋ for rows and for columns, the rest for time."""
    side = 2 * (size // 6)
    return (size - 2 * side, side, side)


def chronoedit(given: ConfigReader) -> AxesSpec:
    """ChronoEdit: Wan's split, but the table is cut by thirds, which for some sizes falls inside a pair."""
    size = head(given, 128)
    if size // 3 % 2:
        raise ValueError(f"attention_head_dim {size} cannot be rotated: ChronoEdit cuts its table inside a pair")
    return WAN(given)


def eighths(size: int) -> tuple[int, ...]:
    """CogVideoX's split: a quarter for time, three eighths for rows and for columns."""
    return (size // 4, size // 8 * 3, size // 8 * 3)


def halved(size: int) -> tuple[int, ...]:
    """Half the head for rows, half for columns."""
    return (size // 2, size // 2)


def cosmos(given: ConfigReader) -> AxesSpec:
    """Cosmos 1: NTK-aware per axis by `rope_scale`, halves."""
    dims = sixths_even(head(given, 128))
    scale = given.numbers("rope_scale", default=(2.0, 1.0, 1.0), count=3)
    base = given.base(10_000.0)
    ladders = [stretched(dim, base, factor) for dim, factor in zip(dims, scale, strict=True)]
    return ladder_per_axis(ladders, THW, pairing="half", head_dim=sum(dims))


def sixths_even(size: int) -> tuple[int, ...]:
    """Cosmos' split: 2·⌊d/6⌋ for rows and for columns, the rest for time."""
    side = size // 6 * 2
    return (size - 2 * side, side, side)


def stretched(dim: int, base: float, factor: float) -> RopeSpec:
    """A ladder whose base is NTK-aware scaled."""
    plain = ladder(dim, base)
    return plain if factor == 1.0 else RopeSpec(plain.head_dim, plain.rotary_dim, base, scaling=NtkAware(factor))


def lumina_next(given: ConfigReader) -> AxesSpec:
    """Lumina-Next: h w h w … of one short ladder; `ntk_factor` multiplies the base itself, `linear_factor` divides."""
    size = head(given, 96)
    ntk = given.number("ntk_factor", default=1.0, above=0.0)
    linear = given.number("linear_factor", default=1.0, above=0.0)
    plain = ladder(size // 2, given.base(10_000.0) * ntk)
    one = RopeSpec(plain.head_dim, plain.rotary_dim, plain.base, scaling=Linear(linear))
    return ladder_per_axis([one, one], ("h", "w"), order="pair by pair", pairing="interleaved", head_dim=size)


def minimax_h3(given: ConfigReader) -> AxesSpec:
    """MiniMax-H3: one short ladder for every axis, halves of the first 6·n dimensions; the rest stands still."""
    rungs = given.size("rope_freq_dim", default=16)
    one = ladder(2 * rungs, given.base(10_000.0))
    size = given.size("attention_head_dim", "head_dim", default=128)
    return ladder_per_axis([one] * 3, THW, pairing="half", head_dim=max(size, 6 * rungs))


def ernie_image(given: ConfigReader) -> AxesSpec:
    """ERNIE-Image: angles laid out for adjacent pairs, partners half a head apart. No rotation, as it was trained."""
    dims = given.sizes(*AXES_DIM, default=(32, 48, 48), count=3, least=2)
    base = given.base(256.0)
    speeds = np.concatenate([ladder(dim, base).plain_inv_freq for dim in dims])
    axis = [k for k, dim in enumerate(dims) for _ in range(dim // 2)]
    pairs = len(speeds)
    member = np.repeat(np.arange(pairs), 2)
    place = placed(speeds, axis, 3)
    first = AxesSpec(place[member[:pairs]], axes=THW, head_dim=2 * pairs)
    return without_rotation(first, place[member[pairs:]])


def mochi(given: ConfigReader) -> list[AxesSpec]:
    """Mochi: per head and pair a learned vector over time, row and column; without `weights`, drawn from a seed.

    `weights` or `pos_frequencies` is (3, heads, pairs). Drawn ones are uniform in −1 … 1.
    """
    if given.value("weights", "pos_frequencies") is not None:
        array = given.array("weights", "pos_frequencies")
    else:
        heads = given.size("num_attention_heads", default=24, most=MAX_HEADS)
        pairs = given.size("attention_head_dim", "head_dim", default=128, least=2, most=MAX_HEAD_DIM) // 2
        drawn = 2.0 * uniform(given.size("seed", default=0, least=0), 3 * heads * pairs) - 1.0
        array = drawn.reshape(3, heads, pairs)
    if array.ndim != 3 or array.shape[0] != 3:
        raise ValueError(f"weights must have shape (3, heads, pairs), got {array.shape}")
    return [directions(array[:, head].T, THW) for head in range(array.shape[1])]


def ltx(given: ConfigReader) -> list[AxesSpec]:
    """LTX: rising speeds π/2 … base·π/2 over the width of all heads, t h w t h w …; the first (width mod 6)/2 still.

    One per head. Sound (LTX-2, `modality` "audio") has time alone. `rope_type` "split" pairs halves of each head.
    """
    heads = given.size("num_attention_heads", "num_heads", default=32, most=MAX_HEADS)
    width = given.size("inner_dim", "dim", "hidden_size", default=heads * given.size("attention_head_dim", default=64))
    if width % heads or not 2 <= width // heads <= MAX_HEAD_DIM:
        raise ValueError(f"the width {width:,} must be {heads} heads of 2 to {MAX_HEAD_DIM:,} dimensions each")
    axes = ("t",) if given.choice("modality", options=("video", "audio"), default="video") == "audio" else THW
    each = width // (2 * len(axes))
    rungs = (
        given.number("theta", "rope_theta", default=10_000.0, above=1.0) ** (np.arange(each) / max(each - 1, 1))
        * math.pi
        / 2.0
    )
    still = width // 2 - len(axes) * each
    speeds = np.concatenate([np.zeros(still), np.repeat(rungs, len(axes))])
    axis = [STILL] * still + alternating(len(axes) * each, range(len(axes)))
    if width % (2 * heads):
        raise ValueError(f"the width must divide into {heads} heads of adjacent pairs, got {width}")
    specs = split_heads(speeds, axis, axes, heads)
    if given.choice("rope_type", options=("interleaved", "split"), default="interleaved") == "split":
        return [AxesSpec(spec.weights, axes=spec.axes, head_dim=spec.head_dim) for spec in specs]
    return specs


def mrope(sections: tuple[int, ...], base: float, size: int) -> Read:
    """Ideogram 4 and Cosmos 3: M-RoPE interleaved in a diffusion transformer."""

    def read(given: ConfigReader) -> AxesSpec:
        counts = given.sizes("mrope_section", "rope_axes_dim", default=sections, count=3, least=0)
        spec = RopeSpec(head_dim=head(given, size), base=given.base(base))
        return shared_ladder(spec, interleaved(counts, spec.pairs))

    return read


def allegro(given: ConfigReader) -> AxesSpec:
    """Allegro: a third of the head for every axis, each a rotate-half of its own."""
    size = head(given, 96)
    one = ladder(size // 3, given.base(10_000.0))
    parts = [AxesSpec(placed(one.plain_inv_freq, [k] * one.pairs, 3), axes=THW, head_dim=size // 3) for k in range(3)]
    return joined(parts)


def sana_wm(given: ConfigReader) -> AxesSpec:
    """SANA-WM: tables made by `fhw_dim` but cut by d/6, so another split gives the rows time's slow rungs."""
    size = head(given, 112)
    dims = tuple(given.sizes("fhw_dim", count=3)) if given.value("fhw_dim") is not None else sixths(size)
    base = given.base(10_000.0)
    speeds = np.concatenate([ladder(dim, base).plain_inv_freq for dim in dims])
    side = size // 6
    axis = [0] * (size // 2 - 2 * side) + [1] * side + [2] * side
    return directions(placed(speeds, axis, 3), THW, head_dim=size)


def hunyuan_dit(given: ConfigReader) -> AxesSpec:
    """HunyuanDiT: columns in the first half, rows in the second, whatever the code calls them."""
    size = head(given, 88)
    one = ladder(size // 2, given.base(10_000.0))
    order: Order = "blocks"
    return ladder_per_axis([one, one], ("w", "h"), order=order, pairing="interleaved", head_dim=size)


FLUX = Blocks()
FLUX2 = Blocks((32, 32, 32, 32), 2000.0, THWL)
HUNYUAN = Blocks(base=256.0)
WAN = Blocks(split=sixths)
COGVIDEO = Blocks(split=eighths, head_dim=64)
SIDES = Blocks(axes=("h", "w"), pairing="half", split=halved, head_dim=40, named=False)
QWEN = Blocks(axes=FRAME)
Z_IMAGE = Blocks((32, 48, 48), 256.0)

RULES: dict[str, Read] = {
    **dict.fromkeys(("flux", "flux1", "chroma", "fluxkontext", "bria", "briafibo", "ovisimage", "longcatimage"), FLUX),
    "flux2": FLUX2,
    "flux3": Blocks((32, 32, 32, 32), 10_000.0, THWL),
    "krea2": Blocks((32, 48, 48), 1000.0),
    "hidreamimage": Blocks((32, 32), axes=THW),
    "prx": Blocks((32, 32), axes=THW),
    "lumina2": Blocks((32, 32, 32)),
    "zimage": Z_IMAGE,
    "briafibo2": Z_IMAGE,
    **dict.fromkeys(("hunyuanvideo", "hunyuanvideo15", "hunyuanvideoframepack", "motifvideo", "joyimage"), HUNYUAN),
    "hunyuanimage": Blocks((64, 64), 256.0),
    **dict.fromkeys(("wan", "skyreelsv2", "anyflow", "wananimate", "wanvace", "anyflowcausal"), WAN),
    "chronoedit": chronoedit,
    "sanavideo": Blocks(split=sixths, head_dim=112),
    "helios": Blocks((44, 42, 42)),
    "sanawm": sana_wm,
    **dict.fromkeys(("cogvideox", "consisid", "easyanimate"), COGVIDEO),
    **dict.fromkeys(("cogview4", "glmimage"), SIDES),
    **dict.fromkeys(("qwenimage", "qwenimagelayered", "qwenimage21", "qwenimageedit", "nucleusmoeimage"), QWEN),
    "ernieimage": ernie_image,
    "minimaxh3": minimax_h3,
    "mochi": mochi,
    "cosmos": cosmos,
    "kandinsky5": Blocks((16, 24, 24)),
    "kandinsky6": Blocks((32, 48, 48)),
    "kandinsky6sr": Blocks((16, 24, 24)),
    **dict.fromkeys(("ltxvideo", "ltx2", "ltx2video", "sanawmltx2"), ltx),
    "ideogram4": mrope((24, 20, 20), 5_000_000.0, 256),
    "cosmos3": mrope((24, 20, 20), 5_000_000.0, 128),
    "luminanext": lumina_next,
    "hunyuandit": hunyuan_dit,
    "allegro": allegro,
}

# Names of classes, pipelines and papers for the same rule.
ALSO = {
    **{"hunyuanvideo1.5": "hunyuanvideo15", "framepack": "hunyuanvideoframepack", "motif": "motifvideo"},
    **{"kontext": "fluxkontext", "fluxkontextdev": "fluxkontext", "ovis": "ovisimage", "longcat": "longcatimage"},
    **{"hidream": "hidreamimage", "hidreami1": "hidreamimage", "fibo": "briafibo", "fibo2": "briafibo2"},
    **{"wan2": "wan", "wan21": "wan", "wan22": "wan", "wan2x": "wan", "skyreels": "skyreelsv2"},
    **{"cogvideo": "cogvideox", "cogvideox15": "cogvideox", "get3drotaryposembed": "cogvideox"},
    **{"qwen": "qwenimage", "qwenimagelayer3d": "qwenimagelayered", "qwenlayer3d": "qwenimagelayered"},
    "qwenembedlayer3drope": "qwenimagelayered",
    **{"nucleusmoe": "nucleusmoeimage", "kandinsky": "kandinsky5", "cosmos1": "cosmos", "ltx": "ltxvideo"},
    **{"ltx2audiovideo": "ltx2", "luminanext2": "luminanext", "lumina": "luminanext", "cosmos3vltext": "cosmos3"},
    **{"get2drotaryposembedlumina": "luminanext", "get2drotaryposembed": "hunyuandit", "ernie": "ernieimage"},
    **{"ideogram": "ideogram4", "krea": "krea2", "z": "zimage", "minimax": "minimaxh3", "joyimageedit": "joyimage"},
    **{"luminanextdit": "luminanext", "wananimate2": "wananimate", "luminanextdit2d": "luminanext"},
    **{"sanawmltx2audiovideo": "ltx2", "anyflowfar": "anyflowcausal", "joyimageeditplus": "joyimage"},
    **dict.fromkeys(("flux1dev", "flux1schnell", "flux1kontext", "flux1kontextdev"), "fluxkontext"),
    **dict.fromkeys(("chroma1", "chroma1hd", "chromaradiance"), "chroma"),
    **dict.fromkeys(("hunyuanimage21", "hunyuanimage2"), "hunyuanimage"),
    **dict.fromkeys(("luminaimage2", "luminaimage20", "lumina20"), "lumina2"),
    **dict.fromkeys(("qwenimageeditplus", "qwenimageedit2509", "qwenimageedit2511"), "qwenimageedit"),
    **dict.fromkeys(("cosmos10", "cosmospredict1", "cosmospredict2", "cosmospredict25"), "cosmos"),
    **{"zimageturbo": "zimage", "zimagebase": "zimage", "mochi1": "mochi", "nucleusimage": "nucleusmoeimage"},
    **{
        "sanawmltx2refiner": "ltx2",
        "get3drotaryposembedallegro": "allegro",
        "flux2dev": "flux2",
        "flux2klein": "flux2",
    },
    **{"get2drotaryposembedfromgrid": "hunyuandit", "hidreami1full": "hidreamimage", "hunyuan2d": "hunyuandit"},
    **{"qwenimage2": "qwenimage21", "cogvideox3d": "cogvideox", "consisid3d": "consisid", "skyreels2": "skyreelsv2"},
}
KNOWN = {name: ALSO.get(name, name) for name in (*RULES, *ALSO)}
ENDINGS = (
    *("rotaryposembed", "rotaryembedding", "posembed", "embednd3", "embednd", "embedrope"),
    *(
        "ropeembedder",
        "mrope",
        "rope3d",
        "rope",
        "transformer2dmodel",
        "transformer3dmodel",
        "transformer",
        "2dmodel",
        "model",
    ),
)


def canonical(name: str) -> str:
    """The key of a rule for the name of a model, a class or a pipeline; `ValueError` where there is none.

    >>> canonical("Flux2PosEmbed"), canonical("hunyuan-video"), canonical("QwenImageTransformer2DModel")
    ('flux2', 'hunyuanvideo', 'qwenimage')
    """
    found = find_known_name(name, KNOWN, ENDINGS)
    if found is not None:
        return found
    if name.endswith("Pipeline"):
        raise ValueError("this is the index of a diffusion pipeline: the config.json of its transformer is meant")
    raise ValueError(f"there is no diffusion transformer '{name[:60]}' here; there are {', '.join(sorted(RULES))}")


def read_diffusion(kind: str, config: Mapping[str, Any]) -> Specs:
    """The rotation of a diffusion transformer by the name of the model or of its class."""
    return RULES[canonical(kind)](ConfigReader(config))
