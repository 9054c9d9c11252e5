"""How does the score of a query and a key change with their distance?"""

from rope_viz.figures import decay, distance, scaling
from rope_viz.figures.words import decay as words_decay
from rope_viz.studies.scores import even_parts
from rope_viz.ui import choices, own, page

spec = page.spec()
place = page.start("Decay")
with page.row():
    shown = choices.pick("Show", decay.VIEWS, "decay.show")
    length = choices.length("decay.length", "Distances up to", spec.target, least=64, most=decay.LONGEST)
    log = choices.switch("Log axis", "decay.log", default=True)
kind = choices.pick("Vectors", decay.KINDS, "decay.kind") if shown == "random" else "iid"
mine = own.query_and_key(spec, "decay", ask=shown in ("own", "softmax"))
names = choices.several("Compare with", scaling.choices(spec), "decay.with", []) if shown in ("mean", "own") else []
models = choices.models("decay.models") if shown == "mean" else {}
backend = choices.hidden("decay.backend", decay.backends())


@page.follow(place)
def curves(now: page.Now) -> page.Figure:
    """The score over the distance."""
    spec, key, length = now.spec, f"decay.{shown}.log" if log else f"decay.{shown}", now.knob("decay.length")
    view = now.view(key, decay.whole(length, log))
    where = decay.Range.of(length, view, log=log, quick=now.live, backend=backend)
    compared = decay.with_plain(scaling.compared(spec, scaling.alternatives(spec, names), models))
    chosen = mine(now)
    sequence = None if now.live else chosen.sequence
    figure, title = decay.main(shown, compared, where, chosen.parts, kind, sequence)
    sentence = words_decay.decay(spec, shown, length, kind, chosen.parts, tokens=chosen.tokens)
    return page.Figure(figure, key, title, sentence=sentence, zooms=True, pins="x", on_pin=choices.setter("decay.at"))


choices.menu("Compute with", decay.backends(), "decay.backend")

page.section("Pair by pair at one distance")
choices.length("decay.at", "Distance", min(1000, length - 1), least=1, most=length)


@page.follow()
def pairs(now: page.Now) -> page.Figure:
    """What every pair adds to the score at one distance."""
    spec, at = now.spec, now.knob("decay.at")
    parts = mine(now).parts if shown == "own" else even_parts(spec)
    figure = distance.contributions(spec, at, parts, pin=now.pin)
    sentence = words_decay.pair_by_pair(spec, at, parts)
    return page.Figure(figure, "decay.pairs", words_decay.PAIRS, sentence=sentence, pins="x")


page.section("The attention map", words_decay.MAP)
with page.row():
    weights = choices.pick("Show", {"weights": "Softmax weights", "logits": "Logits"}, "decay.map") == "weights"
    choices.length("decay.first", "First position", 16, least=1, most=1_000_000)


@page.follow()
def attention(now: page.Now) -> page.Figure:
    """The scores or weights of a window of queries and keys."""
    figure = distance.attention_map(now.spec, now.knob("decay.first"), mine(now).parts, weights)
    return page.Figure(figure, "decay.attention", words_decay.MAP)


@page.follow(page.section("Which bases hold a context"))
def bases(now: page.Now) -> page.Figure:
    """The bases whose mean cosine stays at or above 0."""
    held = min(now.spec.target, distance.BASES_LONGEST)
    figure = distance.bases(now.spec, held, quick=now.live)
    return page.Figure(
        figure, "decay.bases", words_decay.BASES, sentence=words_decay.bases(now.spec, held, quick=now.live)
    )


page.explain("decay")
