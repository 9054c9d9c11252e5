"""How does the score of a query and a key change with their distance?"""

from rope_viz.figures import decay, distance, scaling, words_decay
from rope_viz.ui import choices, own, page

spec = page.spec()
sentence = page.start("Decay")
with page.row():
    shown = choices.pick("Show", decay.VIEWS, "decay.show")
    length = choices.length("decay.length", "Distances up to", spec.target, least=64, most=decay.LONGEST)
    log = choices.switch("Log axis", "decay.log", default=True)
kind = choices.pick("Vectors", decay.KINDS, "decay.kind") if shown == "random" else "iid"
mine = own.query_and_key(spec, "decay", ask=shown in ("own", "softmax"))
names = choices.several("Compare with", scaling.choices(spec), "decay.with", []) if shown in ("mean", "own") else []
models = choices.models("decay.models") if shown == "mean" else {}
backend = choices.hidden("decay.backend", decay.backends())


@page.follow
def picture() -> None:
    """The sentence and the curves."""
    spec, figure = page.spec(), f"decay.{shown}.log" if log else f"decay.{shown}"
    view = page.view(figure, decay.whole(length, log))
    where = decay.Range.of(length, view, log=log, quick=page.live(), backend=backend)
    curves = decay.with_plain(scaling.compared(spec, scaling.alternatives(spec, names), models))
    parts = mine.parts if len(mine.a) == spec.pairs else own.query_and_key(spec, "decay", ask=False).parts
    sentence(words_decay.decay(spec, shown, length, kind, parts))
    drawn, title = decay.main(shown, curves, where, parts, kind)
    page.show(drawn, figure, title, zooms=True, pins="x", on_pin=choices.setter("decay.at"))


choices.menu("Compute with", decay.backends(), "decay.backend")

page.section("Pair by pair at one distance")
at = choices.length("decay.at", "Distance", min(1000, length - 1), least=1, most=length)
even = own.even(spec)
page.say(words_decay.pair_by_pair(spec, at, distance.total(spec, at, even)))
page.show(distance.contributions(spec, at, *even, pin=page.pin()), "decay.pairs", words_decay.PAIRS, pins="x")

page.section("The attention map", words_decay.MAP)
with page.row():
    weights = choices.pick("Show", {"weights": "Softmax weights", "logits": "Logits"}, "decay.map")
    first = choices.length("decay.first", "First position", 16, least=1, most=1_000_000)
page.show(distance.attention_map(spec, first, mine.parts, weights == "weights"), "decay.attention", words_decay.MAP)

held = min(spec.target, distance.BASES_LONGEST)
page.section("Which bases hold a context", words_decay.bases(spec, held))
page.show(distance.bases(spec, held, quick=page.live()), "decay.bases", words_decay.BASES)
page.explain("decay")
