"""Pictures of the page Attention: how position changes the attention of one sentence."""

from __future__ import annotations

from rope_viz.pages.attention import figures, words
from rope_viz.pages.attention.figures import TEXTS
from rope_viz.picture.choices import Line, Number, Pick, Switch
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Page, embedding
from rope_viz.picture.picture_request import Now
from rope_viz.studies.attention import DEFAULT_SENTENCE, split_words

SENTENCE = Line(key="attention.sentence", label=TEXTS("choices.sentence"), usual=DEFAULT_SENTENCE, check=split_words)
OFFSET = Number(key="attention.offset", knob=figures.OFFSET, usual=4096)
SHOW = Pick(key="attention.show", label=TEXTS("choices.show"), options=figures.VIEWS)
CAUSAL = Switch(key="attention.causal", label=TEXTS("choices.causal"), help=TEXTS("choices.causal_help"))
SPACING = Number(key="attention.spacing", knob=figures.SPACING, usual=lambda now: figures.usual_spacing(now.spec))
COST = Pick(key="attention.cost", label=TEXTS("choices.cost"), options=figures.COSTS)
PAGE = Page(
    "attention",
    (SENTENCE, OFFSET, SHOW, CAUSAL, SPACING, COST),
    sees=lambda now: embedding(now, without=("context", "target")),
)


@PAGE.picture(SENTENCE, OFFSET, SHOW, CAUSAL, narrow=560)
def maps(now: Now) -> Figure:
    """The sentence's attention without position, with sinusoidal, RoPE and scaled RoPE."""
    offset, causal, shown = now[OFFSET], now[CAUSAL], now[SHOW]
    return Figure(
        figures.maps(now.spec, now[SENTENCE], offset=offset, causal=causal, shown=shown),
        TEXTS("maps_title", shown=figures.VIEWS[shown].lower()),
        words.maps(now.spec, now[SENTENCE], offset=offset, causal=causal),
    )


@PAGE.picture(OFFSET, height=340, narrow=330)
def products(now: Now) -> Figure:
    """Products of sinusoidal encodings compared with the mean cosine."""
    return Figure(
        figures.added_or_multiplied(now.spec, offset=now[OFFSET]),
        TEXTS("products_title"),
        words.compare_products(now.spec, offset=now[OFFSET]),
    )


@PAGE.picture(SENTENCE, OFFSET, height=340)
def lengths(now: Now) -> Figure:
    """What position does to the length of each word's vector."""
    return Figure(
        figures.lengths(now.spec, now[SENTENCE], offset=now[OFFSET]),
        TEXTS("lengths_title"),
    )


@PAGE.picture(SENTENCE, SPACING, CAUSAL, height=460)
def weights(now: Now) -> Figure:
    """The weights of linear attention."""
    spacing, causal = now[SPACING], now[CAUSAL]
    return Figure(
        figures.linear_weights(now.spec, now[SENTENCE], spacing=spacing, causal=causal),
        TEXTS("weights_title", spacing=spacing),
        words.describe_linear_weights(now.spec, now[SENTENCE], spacing=spacing, causal=causal),
    )


@PAGE.picture(CAUSAL, COST, height=460)
def costs(now: Now) -> Figure:
    """What all pairs and the running state cost over the tokens."""
    return Figure(
        figures.costs(now.spec, causal=now[CAUSAL], shown=now[COST], live=now.coarse),
        TEXTS("costs_title"),
        words.compare_costs(now.spec, causal=now[CAUSAL], shown=now[COST], live=now.coarse),
        variant=f"costs-{now[COST]}",
    )
