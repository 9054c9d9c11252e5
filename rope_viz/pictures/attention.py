"""Pictures of the page Attention: how position changes the attention of one sentence."""

from __future__ import annotations

from rope_viz.figures import attention
from rope_viz.figures.words import attention as words
from rope_viz.pictures.choices import Line, Number, Pick, Switch
from rope_viz.pictures.outputs import Figure
from rope_viz.pictures.page import Page
from rope_viz.pictures.picture_request import Now
from rope_viz.studies.attention import DEFAULT_SENTENCE, split_words

SENTENCE = Line(key="attention.sentence", label="Sentence", usual=DEFAULT_SENTENCE, check=split_words)
OFFSET = Number(key="attention.offset", knob=attention.OFFSET, usual=4096)
SHOW = Pick(key="attention.show", label="Show", options=attention.VIEWS)
CAUSAL = Switch(key="attention.causal", label="Causal mask", help="A word sees only itself and the words before it.")
SPACING = Number(key="attention.spacing", knob=attention.SPACING, usual=lambda now: attention.usual_spacing(now.spec))
COST = Pick(key="attention.cost", label="Cost", options=attention.COSTS)
PAGE = Page("attention", (SENTENCE, OFFSET, SHOW, CAUSAL, SPACING, COST))


@PAGE.picture(SENTENCE, OFFSET, SHOW, CAUSAL, narrow=560)
def maps(now: Now) -> Figure:
    """The sentence's attention without position, with sinusoidal, RoPE and scaled RoPE."""
    offset, causal, shown = now[OFFSET], now[CAUSAL], now[SHOW]
    return Figure(
        attention.maps(now.spec, now[SENTENCE], offset=offset, causal=causal, shown=shown),
        f"Attention {shown} of the sentence without position, with sinusoidal, RoPE and scaled RoPE",
        words.maps(now.spec, now[SENTENCE], offset=offset, causal=causal),
    )


@PAGE.picture(OFFSET, height=340, narrow=330)
def products(now: Now) -> Figure:
    """Products of sinusoidal encodings compared with the mean cosine."""
    return Figure(
        attention.added_or_multiplied(now.spec, offset=now[OFFSET]),
        "Products of sinusoidal encodings beside the mean of cos (m − n)θᵢ: the same map",
        words.added_or_multiplied(now.spec, offset=now[OFFSET]),
    )


@PAGE.picture(SENTENCE, OFFSET, height=340)
def lengths(now: Now) -> Figure:
    """What position does to the length of each word's vector."""
    return Figure(
        attention.lengths(now.spec, now[SENTENCE], offset=now[OFFSET]),
        "Length of each word's vector after position over before, by encoding",
    )


@PAGE.picture(SENTENCE, SPACING, CAUSAL, height=460)
def weights(now: Now) -> Figure:
    """The weights of linear attention."""
    spacing, causal = now[SPACING], now[CAUSAL]
    return Figure(
        attention.linear_weights(now.spec, now[SENTENCE], spacing=spacing, causal=causal),
        f"Weights of linear attention with RoPE, words {spacing} positions apart; some are negative",
        words.linear_maps(now.spec, now[SENTENCE], spacing=spacing, causal=causal),
    )


@PAGE.picture(CAUSAL, COST, height=460)
def costs(now: Now) -> Figure:
    """What all pairs and the running state cost over the tokens."""
    return Figure(
        attention.costs(now.spec, causal=now[CAUSAL], shown=now[COST], live=now.coarse),
        "Cost of linear attention over the tokens, by all pairs and by the running state",
        words.costs(now.spec, causal=now[CAUSAL], shown=now[COST], live=now.coarse),
        variant=f"costs-{now[COST]}",
    )
