"""`rope-viz figure`: the figures of the pages as files. Plotly is loaded when one is drawn."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rope_viz.cli.spec import add_spec_flags, read_spec
from rope_viz.embedding.spec import RopeSpec

Made: TypeAlias = tuple[Any, str]
Maker: TypeAlias = Callable[[RopeSpec, Mapping[str, Any] | None, str], Made]
DECAY_LONGEST = 1 << 20


def add(commands: Any) -> None:
    """The command and its flags."""
    drawn = commands.add_parser(
        "figure",
        help="a figure of the pages as a file",
        description="Figures: " + "; ".join(f"{name}: {maker.__doc__}" for name, maker in FIGURES.items()),
    )
    drawn.add_argument("name", choices=FIGURES, metavar="NAME", help=", ".join(FIGURES))
    add_spec_flags(drawn)
    drawn.add_argument("-o", "--output", required=True, metavar="FILE", help="plot.svg, .pdf, .png, .html or .csv")
    drawn.add_argument("--theme", choices=("light", "dark"), default="light", help="light unless told otherwise")
    drawn.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """`figure`."""
    from rope_viz.figures import files, theme

    spec, config, layer = read_spec(parsed)
    fig, title = FIGURES[parsed.name](spec, config, layer or "")
    files.save(theme.darkened(fig) if parsed.theme == "dark" else fig, parsed.output, title=title)
    return 0


def wavelengths(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """tokens per turn of every pair"""
    from rope_viz.figures import frequencies

    return frequencies.wavelengths(spec), "Wavelength of each pair in tokens per turn, before and after scaling"


def heatmap(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """cos of every pair over the positions up to the target length"""
    from rope_viz.figures import frequencies

    stop = min(spec.target, frequencies.MAX_POSITION)
    return frequencies.heatmap(spec, stop=stop), f"cos of the angle of every pair over positions 0 to {stop}"


def scaled(view: str, doc: str) -> Maker:
    """One of the views of the page Scaling."""

    def make(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
        from rope_viz.figures import scaling

        curves = scaling.compared(spec, scaling.alternatives(spec, scaling.usual(spec)))
        made: Made = scaling.view(view, curves)
        return made

    make.__doc__ = doc
    return make


def decaying(view: str, doc: str) -> Maker:
    """One of the views of the page Decay, for equal energy in every pair."""

    def make(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
        from rope_viz.figures import decay, scaling
        from rope_viz.studies.scores import even_parts

        where = decay.Range.of(max(64, min(spec.target, DECAY_LONGEST)), None, log=True)
        made: Made = decay.main(view, decay.with_plain(scaling.compared(spec, [])), where, even_parts(spec), "iid")
        return made

    make.__doc__ = doc
    return make


def bases(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """which bases keep the mean cosine above zero up to the target length"""
    from rope_viz.figures import distance

    held = min(spec.target, distance.BASES_LONGEST)
    return distance.bases(spec, held), f"Bases whose mean cosine stays above zero up to {held} tokens"


def runtimes(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """each differing runtime's frequencies over those of transformers"""
    from rope_viz.advice import board
    from rope_viz.configs.models import from_config
    from rope_viz.figures import runtimes as drawn

    start = from_config(config)[layer] if config is not None else None
    asked = board.ask(spec, start=start, config=config, layer=layer, name="the model")
    return drawn.curves(board.board(asked), spec)


def conversion(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """scores by distance when weights of one pairing run with the other"""
    import numpy as np

    from rope_viz.figures import rotation
    from rope_viz.studies.conversion import conversion_mistakes

    found = conversion_mistakes(spec, np.arange(rotation.DISTANCES), length=spec.target)
    return rotation.mistakes(found), "Scores by distance when both, one or none of q and k were converted"


def precision(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """angle error of every pair by position with inv_freq in bf16"""
    from rope_viz.figures import precision as drawn

    where = next(iter(drawn.PLACES))
    return drawn.heatmap(spec, where, position=spec.target), f"{drawn.PLACES[where]}: angle error of every pair"


def errors(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str) -> Made:
    """largest error of cos or sin by position, by how the angle is made"""
    from rope_viz.figures import kernels
    from rope_viz.figures.words import kernels as words_kernels

    return kernels.errors(spec), words_kernels.ERRORS


FIGURES: dict[str, Maker] = {
    "wavelengths": wavelengths,
    "heatmap": heatmap,
    "speed": scaled("ratio", "scaled over plain speed of every pair, beside other methods"),
    "scaled-wavelengths": scaled("wavelength", "wavelengths after scaling, beside other methods"),
    "ramp": scaled("ramp", "share of plain speed kept against turns in training"),
    "paper-ramp": scaled("paper", "YaRN as released and as in its paper"),
    "decay": decaying("mean", "mean cosine over the head by distance"),
    "random": decaying("random", "percentiles of the score of random q and k by distance"),
    "bound": decaying("bound", "RoFormer's mean |S| by distance"),
    "bases": bases,
    "runtimes": runtimes,
    "conversion": conversion,
    "precision": precision,
    "errors": errors,
}
"""{name: what draws it}."""
