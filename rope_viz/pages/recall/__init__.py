"""Pictures of the page Recall: which facts tiny_lm still finds under any scaling, and why."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import build_method
from rope_viz.embedding.spec import RopeSpec, Scaling
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.evaluation.search_results import SearchResult, read_search
from rope_viz.figures import head_curves, theme
from rope_viz.figures.compared import short_label
from rope_viz.figures.line_styles import METHODS, take_slots
from rope_viz.pages.recall import bands as bands
from rope_viz.pages.recall import figures, words
from rope_viz.pages.recall import real_model as real_model
from rope_viz.pages.recall.choices import (
    ASKED,
    AT,
    BAND,
    COMPARE,
    FIRST,
    HOW,
    LAST,
    PAGE,
    QUICK,
    READ_TO,
    SEARCH_FILE,
    SEARCHED,
    TRAINED,
    TUNED,
    UP_TO,
    default_length,
    explain_misfit,
    find_interval,
    is_known,
    load_models,
    measure_kept_attention,
    measure_recall,
    name_method,
    tiny_lm_spec,
)
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture.outputs import ROW, Figure, Table
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import Sentence, join
from rope_viz.tiny_lm import attention_diagnosis, checkpoints, recall
from rope_viz.tiny_lm.recall import LENGTHS, LONGEST, PairChange, needle_map, read_ahead
from rope_viz.tiny_lm.recall import recall as evaluate


@functools.cache
def load_example() -> SearchResult:
    """Return the search of docs/scaling.md with seed 0, as measured."""
    return read_search((checkpoints.FOLDER / "searched.json").read_bytes())


def find_search(request: PictureRequest) -> tuple[SearchResult, str]:
    """Return the user's file, else the search started on the page, else the measured one, and the name of its content.

    The name is "" for the measured one.
    """
    held = request[SEARCH_FILE] or request[SEARCHED]
    return (load_example(), "") if held is None else (held.value, held.name)


def count_parts(request: PictureRequest) -> int:
    """Return the number of parts: to 1,024 tokens, 2,048 and each doubling to 8,192; one per seed beyond that."""
    longest = int(request[UP_TO])
    return 1 + sum(longest > tokens for tokens in (1024, 2048, 4096)) + 3 * (longest > 8192)


def list_stages(request: PictureRequest) -> list[tuple[int, int]]:
    """Return (longest length, seeds) of the parts up to the current one."""
    stages = [(1024, 3), (2048, 3), (4096, 3), (8192, 3), (LONGEST, 1), (LONGEST, 2), (LONGEST, 3)]
    return stages[: min(request.part + 1, count_parts(request))]


def count_texts(request: PictureRequest, tokens: int) -> int:
    """Return the number of texts at a length, with 16 questions each: fewer for long ones and in the first part."""
    many = 4 if tokens <= 512 else 2 if tokens <= 2048 else 1
    return many if request.part else max(1, many // 2)


def count_seeds(request: PictureRequest, tokens: int) -> int:
    """Return how many seeds have evaluated this length so far."""
    return max((seeds for longest, seeds in list_stages(request) if tokens <= longest), default=0)


def choose_points(request: PictureRequest, spec: RopeSpec) -> list[tuple[int, int, int]]:
    """Return (tokens, texts, seeds) of a line's points so far; few while a knob moves, unless they are cached."""
    full = [
        (tokens, count_texts(request, tokens), count_seeds(request, tokens))
        for tokens in LENGTHS
        if tokens <= request[UP_TO]
    ]
    full = [each for each in full if each[2]]
    if not request.coarse or all(is_known(spec, *each) for each in full):
        return full
    return [(tokens, 1, 1) for tokens in LENGTHS if tokens <= min(QUICK, request[UP_TO])]


def find_switched_pairs(request: PictureRequest) -> tuple[int, ...]:
    """Return the pairs to switch."""
    spec, band = tiny_lm_spec(request), request[BAND]
    if band == "range":
        first, last = sorted((int(request[FIRST]), int(request[LAST])))
        return tuple(range(first, last + 1))
    if band == "none":
        return ()
    if band == "all":
        return tuple(range(spec.pairs))
    if band in ("fast", "slow"):
        return tuple(range(4)) if band == "fast" else tuple(range(spec.pairs - 4, spec.pairs))
    kinds = spectrum.bands(spec, length=spec.target).kind
    return tuple(int(pair) for pair in np.flatnonzero(kinds == ("kept", "blended", "divided").index(band)))


def make_switch(request: PictureRequest) -> PairChange | None:
    """Return the user's switch, None if the band has no pairs."""
    pairs = find_switched_pairs(request)
    return PairChange(pairs, request[HOW]) if pairs and max(pairs) < tiny_lm_spec(request).pairs else None


STEPS = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
NEAR = 16
"""Number of distances shown for the head that looks one token back."""
SWITCHED = (64, 128, 256, 512, 1024)


def list_compared(request: PictureRequest) -> list[RopeSpec]:
    """Return tiny_lm's spec under each method to compare, with the factor that just reaches the target."""
    spec = tiny_lm_spec(request)
    reach = max(spec.target / spec.context, 1.0)
    return [dataclasses.replace(spec, scaling=build_method(name, reach)) for name in request[COMPARE]]


def evaluate_line(spec: RopeSpec, questions: list[tuple[int, int, int]], colour: str, dash: str) -> figures.RecallCurve:
    """Return recall over length for a spec, at these points."""
    found = [(tokens, measure_recall(spec, tokens, *many)) for tokens, *many in questions]
    rows = [(tokens, each.share, *each.interval) for tokens, each in found]
    return figures.RecallCurve(name_method(spec), colour, dash, *np.array(rows, dtype=float).T)


@PAGE.picture(COMPARE, UP_TO, refuses=explain_misfit, parts=count_parts)
def lengths(request: PictureRequest) -> Figure:
    """The share of facts that tiny_lm finds over the length of the text, with a 95 % band for each method."""
    spec = tiny_lm_spec(request)
    looks = {spec: (theme.CURRENT, "solid")}
    looks |= {other: METHODS[other.scaling.name] for other in list_compared(request) if other.scaling != spec.scaling}
    questions = {each: choose_points(request, each) for each in looks}
    few = [each for each, of in questions.items() if all(many == [1, 1] for _, *many in of)]
    if few:
        read_ahead(load_models()[0], few, [tokens for tokens, *_ in questions[few[0]]])
    lines = [evaluate_line(each, questions[each], *look) for each, look in looks.items()]
    most = request[UP_TO]
    fig = figures.over_lengths(lines, trained=TRAINED.context, target=spec.target, ends=(LENGTHS[0], most))
    return Figure(fig, TEXTS("lengths_title"), describe_recall(request, spec))


def describe_recall(request: PictureRequest, spec: RopeSpec) -> Sentence:
    """Return the sentence on recall at the target, and on the two heads' part in it."""
    tokens = int(min(default_length(request), list_stages(request)[-1][0]))
    share = measure_recall(spec, tokens, *((1, 1) if request.coarse else (count_texts(request, tokens), 3))).share
    plain = dataclasses.replace(spec, scaling=Scaling())
    many = (count_texts(request, tokens), 3)
    if request.coarse and not is_known(plain, tokens, *many):
        many = (1, 1)
    without = measure_recall(plain, tokens, *many).share if spec.is_scaled else None
    kept = measure_kept_attention(spec, tokens)
    sentence = words.describe_recall(name_method(spec), tokens, TRAINED.context, share, without, *kept)
    return join(sentence, describe_progress(request))


def describe_progress(request: PictureRequest) -> Sentence:
    """Return a note on the progress of a picture in parts, "" when it is complete."""
    part, last = min(request.part + 1, count_parts(request)), count_parts(request)
    if request.coarse or part == last:
        return Sentence()
    return TEXTS("progress", evaluated=list_stages(request)[-1][0], part=part, parts=last)


@PAGE.picture(UP_TO, refuses=explain_misfit, parts=count_parts, still=True, narrow=620, query="recall.tab=pairs")
def needle(request: PictureRequest) -> Figure:
    """Recall by depth and length of the text, without scaling and with it."""
    spec = tiny_lm_spec(request)
    lengths = tuple(tokens for tokens in STEPS if tokens <= max(request[UP_TO], 512))
    specs = [dataclasses.replace(spec, scaling=Scaling())]
    if spec.is_scaled:
        specs.append(spec)
    maps = []
    for each in specs:
        found = [
            measure_recall(each, tokens, count_texts(request, tokens), seeds)
            for tokens in lengths
            if (seeds := count_seeds(request, tokens))
        ]
        values = np.full((16, len(lengths)), np.nan)
        values[:, : len(found)] = needle_map(found)
        maps.append((name_method(each) if each.is_scaled else TEXTS("lines.unscaled_map"), values))
    (_, plain), (method, current) = maps[0], maps[-1]
    alone = len(maps) == 1
    sentence = words.describe_one_map() if alone else words.describe_maps(lengths, plain, current, method)
    fig = figures.needle_maps(maps, lengths)
    return Figure(fig, TEXTS("maps_title"), join(sentence, describe_progress(request)), variant=f"{len(maps)}")


def list_states(request: PictureRequest) -> list[tuple[str, RopeSpec, PairChange | None]]:
    """Return (text key, spec, switch) of tiny_lm as trained and as it is now, with the switched pairs."""
    return [("trained", TRAINED, None), ("now", tiny_lm_spec(request), make_switch(request))]


SWITCHES = (BAND, HOW, FIRST, LAST)


@PAGE.picture(*SWITCHES, refuses=explain_misfit, query="recall.tab=pairs")
def switched(request: PictureRequest) -> Figure:
    """Recall over length with some pairs at zero, plain or divided frequency, compared with recall as it is."""
    spec, turned = tiny_lm_spec(request), make_switch(request)
    seeds, sequences = (1, 1) if request.coarse else (3, 2)
    lines = []
    ways: list[tuple[str, str, str, PairChange | None]] = [(TEXTS("lines.unchanged"), theme.CURRENT, "solid", None)]
    if turned:
        ways.append((TEXTS("lines.switched"), theme.DIVIDED, "dash", turned))
    for name, colour, dash, how in ways:
        found = [evaluate(load_models()[:seeds], spec, n, sequences=sequences, switch=how) for n in SWITCHED]
        rows = [(one.length, one.share, *one.interval) for one in found]
        lines.append(figures.RecallCurve(name, colour, dash, *np.array(rows, dtype=float).T))
    fig = figures.over_lengths(lines, trained=TRAINED.context, target=spec.target, ends=(SWITCHED[0], SWITCHED[-1]))
    before, after = (float(lines[which].mean[SWITCHED.index(256)]) for which in (0, -1))
    if turned:
        drops_all = len(turned.pairs) == spec.pairs and turned.how == "still"
        sentence = words.describe_switch(turned.pairs, turned.how, after, before)
        sentence = join(sentence, TEXTS("switched.dropped") if drops_all else "")
    else:
        sentence = TEXTS("switched.choose" if request[BAND] == "none" else "switched.none")
    return Figure(fig, TEXTS("switched_title"), sentence)


@PAGE.picture(
    HOW,
    AT,
    refuses=explain_misfit,
    zooms=True,
    parts=lambda request: 2,
    height=theme.SIDE_HEIGHT,
    query="recall.tab=pairs",
)
def carry(request: PictureRequest) -> Figure:
    """Recall with one pair switched, pair by pair: which of them matter. A zoomed range is switched as a whole."""
    spec, how, tokens = tiny_lm_spec(request), request[HOW], int(request[AT])
    seeds, sequences = (1 if request.coarse or not request.part else 3), 1

    def share(pairs: tuple[int, ...]) -> float:
        turned = PairChange(pairs, how) if pairs else None
        return evaluate(load_models()[:seeds], spec, tokens, sequences=sequences, switch=turned).share

    values = np.array([share((pair,)) for pair in range(spec.pairs)])
    seen = request.visible_range((-0.5, spec.pairs - 0.5))
    brushed = () if seen is None else tuple(range(math.ceil(seen[0]), math.floor(seen[1]) + 1))
    sentence = words.describe_single_pairs(values, share(()), how, tokens)
    if brushed:
        sentence = join(sentence, words.describe_switch(brushed, how, share(brushed), share(()), tokens))
    bands = spectrum.bands(spec, length=spec.target)
    return Figure(figures.carried(values, share(()), bands), TEXTS("carry_title"), sentence, pins="")


@PAGE.picture(*SWITCHES, AT, refuses=explain_misfit, height=theme.SIDE_HEIGHT, query="recall.tab=pairs")
def previous(request: PictureRequest) -> Figure:
    """Attention of the previous-token head by distance, as trained and now."""
    model, curves, hits = load_models()[0], [], []
    for name, spec, turned in list_states(request):
        trained = name == "trained"
        work = attention_diagnosis.previous_token(
            model, spec, TRAINED.context if trained else int(request[AT]), switch=turned
        )
        late = work.rows >= NEAR
        places = work.rows[late][:, None] - np.arange(NEAR)
        near = np.take_along_axis(work.attention[late], places, axis=1).mean(axis=0)
        curves.append((TEXTS(f"lines.{name}"), *((theme.PLAIN, "dot") if trained else (theme.CURRENT, "solid")), near))
        hits.append(work.hit)
    fig = head_curves.attention_by_distance(curves, most=NEAR)
    return Figure(fig, TEXTS("previous_title"), words.describe_attention("previous", *hits))


@PAGE.picture(*SWITCHES, AT, refuses=explain_misfit, height=theme.SIDE_HEIGHT, query="recall.tab=pairs")
def finder(request: PictureRequest) -> Figure:
    """Attention of the induction head on the correct token by its distance, as trained and now."""
    model, works = load_models()[0], []
    for (name, spec, turned), colour in zip(list_states(request), (theme.PLAIN, theme.CURRENT), strict=True):
        tokens = TRAINED.context if name == "trained" else int(request[AT])
        works.append((TEXTS(f"lines.{name}"), colour, attention_diagnosis.finder(model, spec, tokens, switch=turned)))
    fig = figures.attention_on_target(works, title=TEXTS("axes.target"))
    hits = (work.hit for _, _, work in works)
    return Figure(fig, TEXTS("finder_title"), words.describe_attention("finder", *hits))


@PAGE.picture(*SWITCHES, AT, refuses=explain_misfit, height=theme.SIDE_HEIGHT, query="recall.tab=pairs")
def previous_pairs(request: PictureRequest) -> Figure:
    """The contribution of each pair to the logit of the previous token, by band; as trained for comparison."""
    return draw_contributions(request, "previous", attention_diagnosis.previous_token)


@PAGE.picture(*SWITCHES, AT, refuses=explain_misfit, height=theme.SIDE_HEIGHT, query="recall.tab=pairs")
def finder_pairs(request: PictureRequest) -> Figure:
    """The contribution of each pair to the logit of the value asked for, by band; as trained for comparison."""
    return draw_contributions(request, "finder", attention_diagnosis.finder)


def draw_contributions(request: PictureRequest, head: str, diagnose: Callable[..., attention_diagnosis.Work]) -> Figure:
    """Return the figure of the contributions by pair for one of the two heads."""
    model, spec = load_models()[0], tiny_lm_spec(request)
    values = diagnose(model, spec, int(request[AT]), switch=make_switch(request)).parts
    before = diagnose(model, TRAINED, TRAINED.context).parts
    fig = head_curves.parts(values, spectrum.bands(spec, length=spec.target), before=before)
    title = TEXTS("contributions_title", target=TEXTS(f"contributions.{head}"))
    return Figure(fig, title, words.describe_contributions(values, head))


@PAGE.picture(TUNED, query="recall.tab=training")
def recover(request: PictureRequest) -> Figure:
    """Recall over steps of fine-tuning at four times the length, at that length and at the trained one."""
    lines, recalls = [], {}
    rows = checkpoints.measured()["recover"]
    for method in request[TUNED]:
        mine = [row for row in rows if row["method"] == method]
        pair = []
        for place in ("target", "trained"):
            at = sorted((row["step"], row["recall"], *find_interval(row)) for row in mine if row["at"] == place)
            colour, dash = METHODS[method]
            pair.append(figures.RecallCurve(short_label(method), colour, dash, *np.array(at, dtype=float).T))
        lines.append((pair[0], pair[1]))
        recalls[short_label(method)] = (pair[0].mean[0], pair[0].mean[-1], pair[1].mean[0], pair[1].mean[-1])
    last = max(row["step"] for row in rows)
    fig = figures.recover(lines, target=checkpoints.TUNED_LENGTH, trained=TRAINED.context)
    sentence = words.describe_recovery(recalls, last, checkpoints.TUNED_LENGTH, TRAINED.context)
    return Figure(fig, TEXTS("recover_title"), sentence)


@PAGE.picture(READ_TO, refuses=explain_misfit, still=True, parts=lambda request: 2, query="recall.tab=training")
def loss(request: PictureRequest) -> Figure:
    """Loss by position on Markov chains, without scaling and with it, compared with the lowest possible loss."""
    spec, tokens = tiny_lm_spec(request), int(request[READ_TO])
    plain = dataclasses.replace(spec, scaling=Scaling())
    drawn = [("none", plain, *METHODS["none"])]
    if spec.is_scaled:
        drawn.append((name_method(spec), spec, theme.CURRENT, "solid"))
    lines, trained, beyond, best = [], 0.0, None, None
    for name, each, colour, dash in drawn:
        found = recall.chain_loss(
            load_models()[: 3 if request.part else 1], each, tokens, sequences=8 if request.part else 2
        )
        x, y = recall.smoothed(found.loss.mean(axis=0))
        lines.append((TEXTS("lines.unscaled") if name == "none" else name, colour, dash, x, y))
        best = np.stack(recall.smoothed(found.best))
        excess = found.loss.mean(axis=0) - found.best
        trained = float(excess[32 : TRAINED.context].mean())
        beyond = float(excess[TRAINED.context :].mean()) if tokens > TRAINED.context else None
    sentence = words.describe_loss(trained, beyond, TRAINED.context)
    fig = figures.losses(lines, best, trained=TRAINED.context)  # type: ignore[arg-type]
    return Figure(fig, TEXTS("loss_title"), sentence, variant=f"{len(lines)}")


@PAGE.picture(ASKED, query="recall.tab=own")
def yours(request: PictureRequest) -> Figure:
    """Recall of another model over the length of the text, from an evaluation file; without one, seed 0's."""
    held, lines = request[ASKED], []
    found = read_evaluation(checkpoints.FOLDER / "evaluated.json") if held is None else held.value
    others = [method for method in found.methods if method not in METHODS]
    taken = [METHODS[method] for method in found.methods if method in METHODS]
    looks = METHODS | dict(zip(others, take_slots(len(others), taken), strict=True))
    for method in found.methods:
        colour, dash = looks[method]
        x = np.array(found.lengths, dtype=float)
        lines.append(figures.RecallCurve(method, colour, dash, x, *found.over_lengths(method)))
    fig = figures.over_lengths(lines, ends=(found.lengths[0], found.lengths[-1]))
    return Figure(
        fig,
        TEXTS("yours_title"),
        words.describe_evaluation("" if held is None else found.model, len(found.rows)),
        variant=found.model,
    )


@PAGE.picture(SEARCH_FILE, SEARCHED, query="recall.tab=training")
def searched(request: PictureRequest) -> Figure:
    """The frequencies that a search found for a longer text, next to YaRN's; without one of yours, as measured."""
    result, name = find_search(request)
    fig = figures.compare_with_yarn(result.spec)
    return Figure(fig, figures.make_title(result), words.describe_search(result, own=bool(name)), variant=name)


@PAGE.picture(
    SEARCH_FILE,
    SEARCHED,
    height=lambda request: ROW * (2 + len(find_search(request)[0].starts)),
    query="recall.tab=training",
)
def searched_scores(request: PictureRequest) -> Table:
    """Right answers and their loss with the frequencies that a search found, and with those that it started from."""
    result, name = find_search(request)
    title = TEXTS("search.scores_title")
    return Table(words.list_scores(result), title, words.describe_gain(result), words=True, variant=name)
