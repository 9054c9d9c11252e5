"""What does position do to the attention of one sentence?"""

from rope_viz.attention import DEFAULT_SENTENCE, split_words
from rope_viz.figures import attention, words_attention
from rope_viz.ui import choices, page

spec = page.spec()
say = page.start("Attention")
text = choices.sentence("Sentence", "attention.sentence", DEFAULT_SENTENCE, split_words)
with page.row():
    offset = choices.knob("attention.offset", attention.OFFSET, 4096)
    shown = choices.pick("Show", attention.VIEWS, "attention.show")
    causal = choices.switch("Causal mask", "attention.causal", help="A word sees only itself and the words before it.")


@page.follow
def picture() -> None:
    """The sentence and the four maps."""
    say(words_attention.maps(page.spec(), text, offset=offset, causal=causal))
    page.show(
        attention.maps(page.spec(), text, offset=offset, causal=causal, shown=shown),
        "attention.maps",
        f"Attention {shown} of the sentence without position, with sinusoidal, RoPE and scaled RoPE",
    )


page.section("Sinusoidal and RoPE", words_attention.added_or_multiplied(spec, offset=offset))
maps, sizes = page.columns(1, 1)
with maps:
    page.show(
        attention.added_or_multiplied(spec, offset=offset),
        "attention.dots",
        "Products of sinusoidal encodings beside RoPE's mean cosine: the same map",
    )
with sizes:
    page.show(
        attention.lengths(spec, text, offset=offset),
        "attention.lengths",
        "Length of each word's vector after position over before, by encoding",
    )

page.section("Linear attention")
with page.row():
    spacing = choices.knob("attention.spacing", attention.SPACING, attention.usual_spacing(spec))
    cost = choices.pick("Cost", attention.COSTS, "attention.cost")
page.say(words_attention.linear_maps(spec, text, spacing=spacing, causal=causal))
page.say(words_attention.costs(spec, causal=causal, shown=cost, live=page.live()))
weights, work = page.columns(1, 1)
with weights:
    page.show(
        attention.linear_weights(spec, text, spacing=spacing, causal=causal),
        "attention.linear",
        f"Weights of linear attention with RoPE, words {spacing} positions apart; some are negative",
    )
with work:
    page.show(
        attention.costs(spec, causal=causal, shown=cost, live=page.live()),
        "attention.costs",
        "Cost of linear attention over the tokens, by all pairs and by the running state",
    )
page.explain("attention")
