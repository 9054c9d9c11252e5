"""Pictures of the page Attention: how position changes the attention of one sentence."""

from __future__ import annotations

from rope_viz.pages.attention import figures, words
from rope_viz.pages.attention.figures import TEXTS
from rope_viz.picture.choices import Number, Pick, Switch, TextLine
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Page, embedding
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.studies.attention import DEFAULT_SENTENCE, split_words

SENTENCE = TextLine(
    key="attention.sentence", label=TEXTS("choices.sentence"), usual=DEFAULT_SENTENCE, check=split_words
)
OFFSET = Number(key="attention.offset", knob=figures.OFFSET, usual=4096)
SHOW = Pick(key="attention.show", label=TEXTS("choices.show"), options=figures.VIEWS)
CAUSAL = Switch(key="attention.causal", label=TEXTS("choices.causal"), help=TEXTS("choices.causal_help"))
SPACING = Number(
    key="attention.spacing", knob=figures.SPACING, usual=lambda request: figures.usual_spacing(request.spec)
)
COST = Pick(key="attention.cost", label=TEXTS("choices.cost"), options=figures.COSTS)
PAGE = Page(
    "attention",
    (SENTENCE, OFFSET, SHOW, CAUSAL, SPACING, COST),
    sees=lambda request: embedding(request, without=("context", "target")),
    door="explore",
)


@PAGE.picture(SENTENCE, OFFSET, SHOW, CAUSAL, narrow=480, crowded=True)
def maps(request: PictureRequest) -> Figure:
    """The sentence's attention without position, with sinusoidal, RoPE and scaled RoPE."""
    offset, causal, shown = request[OFFSET], request[CAUSAL], request[SHOW]
    return Figure(
        figures.maps(request.spec, request[SENTENCE], offset=offset, causal=causal, shown=shown),
        TEXTS("maps_title", shown=figures.VIEWS[shown].lower()),
        words.maps(request.spec, request[SENTENCE], offset=offset, causal=causal),
    )


@PAGE.picture(OFFSET, height=340, narrow=330)
def products(request: PictureRequest) -> Figure:
    """Products of sinusoidal encodings compared with the mean cosine."""
    return Figure(
        figures.added_or_multiplied(request.spec, offset=request[OFFSET]),
        TEXTS("products_title"),
        words.compare_products(request.spec, offset=request[OFFSET]),
    )


@PAGE.picture(SENTENCE, OFFSET, height=340)
def lengths(request: PictureRequest) -> Figure:
    """What position does to the length of each word's vector."""
    return Figure(
        figures.lengths(request.spec, request[SENTENCE], offset=request[OFFSET]),
        TEXTS("lengths_title"),
    )


@PAGE.picture(SENTENCE, SPACING, CAUSAL, height=460, shown_on="linear")
def weights(request: PictureRequest) -> Figure:
    """The weights of linear attention."""
    spacing, causal = request[SPACING], request[CAUSAL]
    return Figure(
        figures.linear_weights(request.spec, request[SENTENCE], spacing=spacing, causal=causal),
        TEXTS("weights_title", spacing=spacing),
        words.describe_linear_weights(request.spec, request[SENTENCE], spacing=spacing, causal=causal),
    )


@PAGE.picture(CAUSAL, COST, height=460, shown_on="linear")
def costs(request: PictureRequest) -> Figure:
    """What all pairs and the running state cost over the tokens."""
    return Figure(
        figures.costs(request.spec, causal=request[CAUSAL], shown=request[COST], live=request.coarse),
        TEXTS("costs_title"),
        words.compare_costs(request.spec, causal=request[CAUSAL], shown=request[COST], live=request.coarse),
        variant=f"costs-{request[COST]}",
    )
