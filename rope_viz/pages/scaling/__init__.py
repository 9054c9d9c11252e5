"""Pictures of the page Scaling: the effect of the scaling method on every pair, compared with other methods."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import compared, theme
from rope_viz.models.spec_url import SIZES, with_first_method
from rope_viz.models.variant import Variant
from rope_viz.pages.scaling import figures, words
from rope_viz.pages.scaling.figures import TEXTS
from rope_viz.picture.axis_choice import axis_of, axis_sentence, looked
from rope_viz.picture.choices import Pick, Several
from rope_viz.picture.outputs import ROW, Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies.distance_maps import SHORTEST, Chunks, Groups
from rope_viz.texts import join

SHOW = Pick(key="scaling.show", label=TEXTS("choices.show"), options=figures.VIEWS)
EXAMPLE = Pick(
    key="scaling.example",
    label=TEXTS("choices.example"),
    options={name: compared.short_label(name) for name in ("yarn", "linear", "ntk", "llama3")}
    | {"none": TEXTS("choices.no_example")},
    when=lambda request: not request.spec.is_scaled,
)
COMPARE = Several(
    key="scaling.with",
    label=TEXTS("choices.compare"),
    options={name: compared.short_label(name) for name in METHODS if name != "none"},
    offered=lambda request: compared.choices(shown(request, request.spec)),
    usual=lambda request: figures.usual(shown(request, request.spec)),
    drawn=lambda request: (
        ()
        if request[SHOW] == "paper"
        else compared.choices(shown(request, request.spec), ramps=request[SHOW] == "ramp")
    ),
    needs=(EXAMPLE,),
)
AXIS = axis_of("scaling")
get_sizes = operator.attrgetter(*SIZES.values())
PAGE = Page(
    "scaling",
    (SHOW, AXIS, EXAMPLE, COMPARE),
    # The compared methods depend on fields that the present one may not use.
    sees=lambda request: (request.layer, request.spec.scaling, get_sizes(request.spec)),
    door="explore",
    method_first=True,
)


@PAGE.picture(
    SHOW,
    AXIS,
    EXAMPLE,
    COMPARE,
    pin=True,
    variants=True,
    config=True,
    height=lambda request: theme.height_of_bars(
        1 + len(request[COMPARE]) + len(drawn_variants(request)) if request[SHOW] in ("ratio", "wavelength") else 1
    ),
)
def comparison(request: PictureRequest) -> Figure:
    """The model's own method compared with others."""
    spec = shown(request, looked(request, AXIS))
    curves = compared.compared(spec, other_methods(request), drawn_variants(request), current=request.current)
    if is_example := spec.scaling != request.spec.scaling:
        curves[0] = dataclasses.replace(curves[0], label=TEXTS("example_line", method=curves[0].label))
    figure, title = figures.view(request[SHOW], curves, pin=request.pin)
    if request[AXIS] != "all":
        # The pairs of one axis may have gaps: connect the lines across them and mark the actual pairs by points.
        figure.update_traces(connectgaps=True, mode="lines+markers", selector={"type": "scatter", "mode": "lines"})
    pins = "" if request[SHOW] == "ramp" else "x"
    sentence = join(axis_sentence(request, AXIS), words.describe_scaling(spec, example=is_example))
    return Figure(figure, title, sentence, variant=request[SHOW], pins=pins)


@PAGE.picture(AXIS, EXAMPLE, COMPARE, config=True, height=lambda request: ROW * (2 + len(request[COMPARE])))
def methods(request: PictureRequest) -> Table:
    """The methods in numbers, one row each."""
    names = request[COMPARE]
    spec = shown(request, looked(request, AXIS))
    curves = compared.compared(spec, compared.alternatives(spec, names))
    return Table(figures.summary(curves), TEXTS("methods_title"), words.describe_attention_factor(spec))


def other_methods(request: PictureRequest) -> list[RopeSpec]:
    """Return the spec under each method that the main figure compares."""
    names = [name for name in request[COMPARE] if name in COMPARE.visible(request)]
    return compared.alternatives(shown(request, looked(request, AXIS)), names)


def has_variants(request: PictureRequest) -> bool:
    """True if the main figure draws pinned curves: not next to one axis, nor next to the paper's ramp."""
    return request[AXIS] == "all" and request[SHOW] != "paper"


def drawn_variants(request: PictureRequest) -> Mapping[int, Variant]:
    """Return the pinned curves that the main figure draws."""
    return request.variants if has_variants(request) else {}


def shown(request: PictureRequest, spec: RopeSpec) -> RopeSpec:
    """Return the spec, under the example method if the model is not scaled, as if the user had chosen that method."""
    if request.spec.is_scaled or request[EXAMPLE] == "none":
        return spec
    try:
        chosen = with_first_method(request.spec, request[EXAMPLE], request.subject.start)
        return dataclasses.replace(spec, target=chosen.target, scaling=chosen.scaling)
    except ValueError:
        return spec


def find_chunks(request: PictureRequest) -> tuple[int, Chunks] | None:
    """Return the trained length and the chunks of the model's own dual chunk attention, None where it has none."""
    if request.subject.model_config is None:
        return None
    given = request.subject.model_config.part.config.get("dual_chunk_attention_config")
    if not isinstance(given, Mapping):
        return None
    found = [given.get(key) for key in ("original_max_position_embeddings", "chunk_size", "local_size")]
    sizes = [size for size in found if isinstance(size, int) and not isinstance(size, bool)]
    if len(sizes) != len(found):
        return None
    trained, size, local = sizes
    return (trained, Chunks(size, local)) if SHORTEST <= size <= trained and 0 < local < size else None


def lengths_of_maps(request: PictureRequest) -> tuple[int, int, Chunks]:
    """Return the trained length, the target and the chunks that the maps of distances show."""
    own, spec = find_chunks(request), shown(request, request.spec)
    trained = max(spec.context, SHORTEST)
    trained, chunks = (trained, Chunks.from_length(trained)) if own is None else own
    return trained, max(spec.target, trained), chunks


def needs_maps(request: PictureRequest) -> bool:
    """True if the target is beyond the trained length, so that methods which change distances have a use."""
    trained, target, _ = lengths_of_maps(request)
    return target > trained


@PAGE.picture(EXAMPLE, config=True, height=figures.HEIGHT, narrow=figures.NARROW_HEIGHT, crowded=True)
def maps(request: PictureRequest) -> Figure:
    """The distance that dual chunk attention and SelfExtend give to each query and key, next to that of RoPE."""
    trained, target, chunks = lengths_of_maps(request)
    groups = Groups.from_lengths(trained, target)
    sentence = words.describe_maps(trained, chunks, groups, own=find_chunks(request) is not None)
    return Figure(figures.maps(trained, target, chunks, groups), TEXTS("maps.title"), sentence)
