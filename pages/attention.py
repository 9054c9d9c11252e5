"""What does position do to the attention of one sentence?"""

from rope_viz.figures import attention
from rope_viz.figures.words import attention as words_attention
from rope_viz.studies.attention import DEFAULT_SENTENCE, split_words
from rope_viz.ui import choices, page

spec = page.spec()
place = page.start("Attention")
text = choices.sentence("Sentence", "attention.sentence", DEFAULT_SENTENCE, split_words)
with page.row():
    choices.knob("attention.offset", attention.OFFSET, 4096)
    shown = choices.pick("Show", attention.VIEWS, "attention.show")
    causal = choices.switch("Causal mask", "attention.causal", help="A word sees only itself and the words before it.")


@page.follow(place)
def maps(now: page.Now) -> page.Figure:
    """The four maps of the sentence."""
    offset = now.knob("attention.offset")
    return page.Figure(
        attention.maps(now.spec, text, offset=offset, causal=causal, shown=shown),
        "attention.maps",
        f"Attention {shown} of the sentence without position, with sinusoidal, RoPE and scaled RoPE",
        sentence=words_attention.maps(now.spec, text, offset=offset, causal=causal),
    )


place = page.section("Sinusoidal and RoPE")
left, right = page.columns(1, 1)
with left:

    @page.follow(place)
    def products(now: page.Now) -> page.Figure:
        """Products of sinusoidal encodings beside the mean cosine."""
        offset = now.knob("attention.offset")
        return page.Figure(
            attention.added_or_multiplied(now.spec, offset=offset),
            "attention.dots",
            "Products of sinusoidal encodings beside the mean of cos (m − n)θᵢ: the same map",
            sentence=words_attention.added_or_multiplied(now.spec, offset=offset),
        )


with right:

    @page.follow()
    def lengths(now: page.Now) -> page.Figure:
        """What position does to the length of a vector."""
        return page.Figure(
            attention.lengths(now.spec, text, offset=now.knob("attention.offset")),
            "attention.lengths",
            "Length of each word's vector after position over before, by encoding",
        )


place = page.section("Linear attention")
with page.row():
    choices.knob("attention.spacing", attention.SPACING, attention.usual_spacing(spec))
    cost = choices.pick("Cost", attention.COSTS, "attention.cost")
left, right = page.columns(1, 1)
with left:

    @page.follow(place)
    def weights(now: page.Now) -> page.Figure:
        """The weights of linear attention."""
        spacing = now.knob("attention.spacing")
        return page.Figure(
            attention.linear_weights(now.spec, text, spacing=spacing, causal=causal),
            "attention.linear",
            f"Weights of linear attention with RoPE, words {spacing} positions apart; some are negative",
            sentence=words_attention.linear_maps(now.spec, text, spacing=spacing, causal=causal),
        )


with right:

    @page.follow(place)
    def work(now: page.Now) -> page.Figure:
        """What all pairs and the running state cost."""
        return page.Figure(
            attention.costs(now.spec, causal=causal, shown=cost, live=now.live),
            "attention.costs",
            "Cost of linear attention over the tokens, by all pairs and by the running state",
            sentence=words_attention.costs(now.spec, causal=causal, shown=cost, live=now.live),
        )


page.explain("attention")
