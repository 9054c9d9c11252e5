"""Pictures of the page Recall: which facts tiny_lm still finds under any scaling, and why."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import Knob, RopeSpec, Scaling
from rope_viz.figures import recall as figures
from rope_viz.figures import theme
from rope_viz.figures.scaling import short_label
from rope_viz.figures.words import recall as words
from rope_viz.pictures import vectors
from rope_viz.pictures.choices import Kept, Number, Pick, Several, length
from rope_viz.pictures.outputs import Figure
from rope_viz.pictures.page import Page
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.recall_queries import (
    TRAINED,
    is_known,
    kept_attention,
    label,
    margin,
    misfit,
    readers,
    reading,
    tiny_lm_spec,
)
from rope_viz.texts.numbers import format_tokens
from rope_viz.tiny_lm import attention_diagnosis, checkpoints
from rope_viz.tiny_lm import loss as chains
from rope_viz.tiny_lm.evaluation_plan import read_evaluation
from rope_viz.tiny_lm.recall import LENGTHS, LONGEST, How, Switch, needle_map, read_ahead
from rope_viz.tiny_lm.recall import recall as asked

QUICK = 2048
"""The longest text, in tokens, that is evaluated while a knob moves."""
STEPS = (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
NEAR = 16
"""Number of distances shown for the head that looks one token back."""
SWITCHED = (64, 128, 256, 512, 1024)


def usual_length(now: Now) -> float:
    """Return the default longest length: twice the target, from 2,048 to 4,096."""
    return float(2048 if misfit(now) else min(max(2 * tiny_lm_spec(now).target, 2048), 4096))


def default_length(now: Now) -> float:
    """Return the target, or four times the trained length for a target within it, at most `QUICK`."""
    target = TRAINED.context if misfit(now) else tiny_lm_spec(now).target
    return float(min(target if target > TRAINED.context else 4 * TRAINED.context, QUICK))


def default_carry_length(now: Now) -> float:
    """Return `default_length`, at most 512: short enough to be evaluated once per pair."""
    return min(default_length(now), 512.0)


def alone(now: Now) -> bool:
    """True if a range of pairs is chosen rather than a band."""
    return now[BAND] == "range"


COMPARE = Several(
    key="recall.with",
    label="Compare with",
    options={name: short_label(name) for name in checkpoints.MAIN_METHODS},
    offered=lambda now: {name: short_label(name) for name in checkpoints.MAIN_METHODS if name != now.spec.scaling.name},
    usual=lambda now: [name for name in ("none", "linear", "yarn", "ntk") if name != now.spec.scaling.name][:3],
)
UP_TO = length("recall.length", "Lengths up to", usual_length, least=512, most=LONGEST)
AT = length("recall.at", "Length of the text", default_carry_length, least=64, most=1024)
BAND = Pick(
    key="recall.band",
    label="Pairs",
    options={
        "none": "As they are",
        "fast": "Fastest quarter",
        "slow": "Slowest quarter",
        "kept": "Kept pairs",
        "blended": "Blended pairs",
        "divided": "Divided pairs",
        "range": "A range",
    },
)
TURNS: dict[How, str] = {"still": "Still", "plain": "Plain", "divided": "Divided"}
HOW: Pick[How] = Pick(key="recall.how", label="How they turn", options=TURNS)
FIRST = Number(key="recall.first", knob=Knob("First pair", 0, 15, "", integer=True), usual=0, when=alone, needs=(BAND,))
LAST = Number(key="recall.last", knob=Knob("Last pair", 0, 15, "", integer=True), usual=3, when=alone, needs=(BAND,))
READ_TO = length("recall.chain", "Length of the chain", 1024, least=128, most=QUICK)
TUNED = Several(
    key="recall.tuned",
    label="Fine-tuned with",
    options={name: short_label(name) for name in checkpoints.MAIN_METHODS},
    usual=lambda now: ("none", "linear", "yarn"),
)
ASKED = Kept(
    key="recall.file",
    label="An evaluation",
    help="What `rope-viz evaluate MODEL -o recall.json` writes: the same asked of a real model, by depth and length.",
    decode=lambda content: read_evaluation(content.partition(b"\0")[2]),
    load=lambda written: vectors.filed(Path(written).name, Path(written).read_bytes()),
    suffixes=(".json",),
    instead="Not shown",
)
PAGE = Page("recall", (COMPARE, UP_TO, AT, BAND, HOW, FIRST, LAST, READ_TO, TUNED, ASKED))


def compared(now: Now) -> list[RopeSpec]:
    """Return tiny_lm's spec under each method to compare, with the factor that just reaches the target."""
    spec = tiny_lm_spec(now)
    reach = max(spec.target / spec.context, 1.0)
    found = []
    for name in now[COMPARE]:
        kind = checkpoints.MAIN_METHODS[name]
        scaling = kind() if name == "none" else kind(factor=reach)  # type: ignore[call-arg]
        found.append(dataclasses.replace(spec, scaling=scaling))
    return found


def parts(now: Now) -> int:
    """Return the number of parts: to 1,024 tokens, 2,048 and each doubling to 8,192; one per seed beyond that."""
    longest = int(now[UP_TO])
    return 1 + sum(longest > tokens for tokens in (1024, 2048, 4096)) + 3 * (longest > 8192)


def stages_so_far(now: Now) -> list[tuple[int, int]]:
    """Return (longest length, seeds) of the parts up to the current one."""
    stages = [(1024, 3), (2048, 3), (4096, 3), (8192, 3), (LONGEST, 1), (LONGEST, 2), (LONGEST, 3)]
    return stages[: min(now.part + 1, parts(now))]


def n_texts(now: Now, tokens: int) -> int:
    """Return the number of texts at a length, with 16 questions each: fewer for long ones and in the first part."""
    many = 4 if tokens <= 512 else 2 if tokens <= 2048 else 1
    return many if now.part else max(1, many // 2)


def seeds_at(now: Now, tokens: int) -> int:
    """Return how many seeds have evaluated this length so far."""
    return max((seeds for longest, seeds in stages_so_far(now) if tokens <= longest), default=0)


def line_points(now: Now, spec: RopeSpec) -> list[tuple[int, int, int]]:
    """Return (tokens, texts, seeds) of a line's points so far; few while a knob moves, unless they are cached."""
    full = [(tokens, n_texts(now, tokens), seeds_at(now, tokens)) for tokens in LENGTHS if tokens <= now[UP_TO]]
    full = [each for each in full if each[2]]
    if not now.coarse or all(is_known(spec, *each) for each in full):
        return full
    return [(tokens, 1, 1) for tokens in LENGTHS if tokens <= min(QUICK, now[UP_TO])]


def recall_line(spec: RopeSpec, questions: list[tuple[int, int, int]], colour: str, dash: str) -> figures.Line:
    """Return recall over length for a spec, at these points."""
    found = [(tokens, reading(spec, tokens, *many)) for tokens, *many in questions]
    rows = [(tokens, each.share, *each.interval) for tokens, each in found]
    return figures.Line(label(spec), colour, dash, *np.array(rows, dtype=float).T)


@PAGE.picture(COMPARE, UP_TO, refuses=misfit, parts=parts)
def lengths(now: Now) -> Figure:
    """The share of facts that tiny_lm finds over the length of the text, with a 95 % band for each method."""
    spec = tiny_lm_spec(now)
    looks = {spec: (theme.CURRENT, "solid")}
    looks |= {other: figures.STYLES[other.scaling.name] for other in compared(now) if other.scaling != spec.scaling}
    questions = {each: line_points(now, each) for each in looks}
    few = [each for each, of in questions.items() if all(many == [1, 1] for _, *many in of)]
    if few:
        read_ahead(readers()[0], few, [tokens for tokens, *_ in questions[few[0]]])
    lines = [recall_line(each, questions[each], *look) for each, look in looks.items()]
    most = now[UP_TO]
    fig = figures.over_lengths(lines, trained=TRAINED.context, target=spec.target, ends=(LENGTHS[0], most))
    return Figure(fig, "Recall over the length of the text", verdict(now, spec))


def verdict(now: Now, spec: RopeSpec) -> str:
    """Return the sentence on recall at the target, and on the two heads' part in it."""
    tokens = int(min(default_length(now), stages_so_far(now)[-1][0]))
    share = reading(spec, tokens, 1, 1).share if now.coarse else reading(spec, tokens, n_texts(now, tokens)).share
    plain = dataclasses.replace(spec, scaling=Scaling())
    many = (1, 1) if now.coarse and not is_known(plain, tokens, n_texts(now, tokens), 3) else (n_texts(now, tokens), 3)
    without = None if spec.scaling.name == "none" else reading(plain, tokens, *many).share
    return words.over_lengths(
        label(spec), tokens, TRAINED.context, share, without, *kept_attention(spec, tokens)
    ) + progress(now)


def progress(now: Now) -> str:
    """Return a note on the progress of a picture in parts, "" when it is complete."""
    done, of = min(now.part + 1, parts(now)), parts(now)
    if now.coarse or done == of:
        return ""
    return f" *Read to {format_tokens(stages_so_far(now)[-1][0])} tokens so far, part {done} of {of}.*"


@PAGE.picture(UP_TO, refuses=misfit, parts=parts, still=True, narrow=620)
def needle(now: Now) -> Figure:
    """Recall by depth and length of the text, without scaling and with it."""
    spec = tiny_lm_spec(now)
    lengths = tuple(tokens for tokens in STEPS if tokens <= max(now[UP_TO], 512))
    specs = [dataclasses.replace(spec, scaling=Scaling())]
    if spec.scaling.name != "none":
        specs.append(spec)
    maps = []
    for each in specs:
        found = [
            reading(each, tokens, n_texts(now, tokens), seeds) for tokens in lengths if (seeds := seeds_at(now, tokens))
        ]
        values = np.full((16, len(lengths)), np.nan)
        values[:, : len(found)] = needle_map(found)
        maps.append(("Without scaling" if each.scaling.name == "none" else label(each), values))
    sentence = words.maps(lengths, maps[0][1], maps[-1][1], maps[-1][0]) if len(maps) > 1 else words.MAP_ALONE
    fig = figures.needle_maps(maps, lengths)
    return Figure(fig, "Recall by depth and length", sentence + progress(now), variant=f"{len(maps)}")


def trained_and_current(now: Now) -> list[tuple[str, RopeSpec, Switch | None]]:
    """Return tiny_lm as trained and as it is now, with the switched pairs."""
    return [("as trained", TRAINED, None), ("now", tiny_lm_spec(now), switch(now))]


def switched_pairs(now: Now) -> tuple[int, ...]:
    """Return the pairs to switch."""
    spec, band = tiny_lm_spec(now), now[BAND]
    if band == "range":
        first, last = sorted((int(now[FIRST]), int(now[LAST])))
        return tuple(range(first, last + 1))
    if band == "none":
        return ()
    if band in ("fast", "slow"):
        return tuple(range(4)) if band == "fast" else tuple(range(spec.pairs - 4, spec.pairs))
    kinds = spectrum.bands(spec, length=spec.target).kind
    return tuple(int(pair) for pair in np.flatnonzero(kinds == ("kept", "blended", "divided").index(band)))


def switch(now: Now) -> Switch | None:
    """Return the user's switch, None if the band has no pairs."""
    pairs = switched_pairs(now)
    return Switch(pairs, now[HOW]) if pairs and max(pairs) < tiny_lm_spec(now).pairs else None


SWITCHES = (BAND, HOW, FIRST, LAST)


@PAGE.picture(*SWITCHES, refuses=misfit)
def switched(now: Now) -> Figure:
    """Recall over length with some pairs at zero, plain or divided frequency, compared with recall as it is."""
    spec, turned = tiny_lm_spec(now), switch(now)
    seeds, sequences = (1, 1) if now.coarse else (3, 2)
    lines = []
    ways: list[tuple[str, str, str, Switch | None]] = [("as it is", theme.CURRENT, "solid", None)]
    if turned:
        ways.append(("switched", theme.DIVIDED, "dash", turned))
    for name, colour, dash, how in ways:
        found = [asked(readers()[:seeds], spec, n, sequences=sequences, switch=how) for n in SWITCHED]
        rows = [(one.length, one.share, *one.interval) for one in found]
        lines.append(figures.Line(name, colour, dash, *np.array(rows, dtype=float).T))
    fig = figures.over_lengths(lines, trained=TRAINED.context, target=spec.target, ends=(SWITCHED[0], SWITCHED[-1]))
    before, after = (float(lines[which].mean[SWITCHED.index(256)]) for which in (0, -1))
    sentence = words.switched(switched_pairs(now), now[HOW], after, before) if turned else words.NO_PAIRS
    if now[BAND] == "none":
        sentence = words.CHOOSE
    return Figure(fig, "Recall with some pairs switched", sentence)


@PAGE.picture(HOW, AT, refuses=misfit, zooms=True, parts=lambda now: 2, height=theme.SIDE_HEIGHT)
def carry(now: Now) -> Figure:
    """Recall with one pair switched, pair by pair: which of them matter. A zoomed range is switched as a whole."""
    spec, how, tokens = tiny_lm_spec(now), now[HOW], int(now[AT])
    seeds, sequences = (1 if now.coarse or not now.part else 3), 1

    def share(pairs: tuple[int, ...]) -> float:
        turned = Switch(pairs, how) if pairs else None
        return asked(readers()[:seeds], spec, tokens, sequences=sequences, switch=turned).share

    values = np.array([share((pair,)) for pair in range(spec.pairs)])
    seen = now.visible_range((-0.5, spec.pairs - 0.5))
    brushed = () if seen is None else tuple(range(math.ceil(seen[0]), math.floor(seen[1]) + 1))
    sentence = words.carried(values, share(()), how, tokens)
    if brushed:
        sentence += " " + words.switched(brushed, how, share(brushed), share(()), tokens)
    bands = spectrum.bands(spec, length=spec.target)
    return Figure(figures.carried(values, share(()), bands), "Recall with one pair switched", sentence, pins="")


@PAGE.picture(*SWITCHES, AT, refuses=misfit, height=theme.SIDE_HEIGHT)
def previous(now: Now) -> Figure:
    """Attention by distance of the head that looks one token back, as trained and now."""
    reader, curves, hits = readers()[0], [], []
    for name, spec, turned in trained_and_current(now):
        trained = name == "as trained"
        work = attention_diagnosis.previous_token(
            reader, spec, TRAINED.context if trained else int(now[AT]), switch=turned
        )
        late = work.rows >= NEAR
        places = work.rows[late][:, None] - np.arange(NEAR)
        near = np.take_along_axis(work.attention[late], places, axis=1).mean(axis=0)
        curves.append((name, *((theme.PLAIN, "dot") if trained else (theme.CURRENT, "solid")), near))
        hits.append(work.hit)
    fig = figures.attention_by_distance(curves, most=NEAR)
    return Figure(fig, "Attention of the head that looks one token back", words.head("looks one token back", *hits))


@PAGE.picture(*SWITCHES, AT, refuses=misfit, height=theme.SIDE_HEIGHT)
def finder(now: Now) -> Figure:
    """Attention of the head that finds the key, on the right token by its distance, as trained and now."""
    reader, works = readers()[0], []
    for (name, spec, turned), colour in zip(trained_and_current(now), (theme.PLAIN, theme.CURRENT), strict=True):
        tokens = TRAINED.context if name == "as trained" else int(now[AT])
        works.append((name, colour, attention_diagnosis.finder(reader, spec, tokens, switch=turned)))
    fig = figures.attention_on_target(works, title="attention on the right token")
    hits = (work.hit for _, _, work in works)
    return Figure(fig, "Attention of the head that finds the key", words.head("finds the key", *hits))


@PAGE.picture(*SWITCHES, AT, refuses=misfit, height=theme.SIDE_HEIGHT)
def previous_pairs(now: Now) -> Figure:
    """The contribution of each pair to the logit of the token before, by band; as trained for comparison."""
    return by_pair(now, "previous_token", "the token before")


@PAGE.picture(*SWITCHES, AT, refuses=misfit, height=theme.SIDE_HEIGHT)
def finder_pairs(now: Now) -> Figure:
    """The contribution of each pair to the logit of the fact asked for, by band; as trained for comparison."""
    return by_pair(now, "finder", "the fact asked for")


def by_pair(now: Now, name: str, what: str) -> Figure:
    """Return the figure of the contributions by pair for one of the two heads."""
    reader, work = readers()[0], getattr(attention_diagnosis, name)
    spec = tiny_lm_spec(now)
    values = work(reader, spec, int(now[AT]), switch=switch(now)).parts
    before = work(reader, TRAINED, TRAINED.context).parts
    fig = figures.parts(values, spectrum.bands(spec, length=spec.target), before=before)
    return Figure(fig, f"What each pair adds to {what}", words.by_pair(values, what))


@PAGE.picture(TUNED)
def recover(now: Now) -> Figure:
    """Recall over steps of fine-tuning at four times the length, at that length and at the trained one."""
    lines, recalls = [], {}
    rows = checkpoints.measured()["recover"]
    for method in now[TUNED]:
        mine = [row for row in rows if row["method"] == method]
        pair = []
        for place in ("target", "trained"):
            at = sorted((row["step"], row["recall"], *margin(row)) for row in mine if row["at"] == place)
            colour, dash = figures.STYLES[method]
            pair.append(figures.Line(short_label(method), colour, dash, *np.array(at, dtype=float).T))
        lines.append((pair[0], pair[1]))
        recalls[short_label(method)] = (pair[0].mean[0], pair[0].mean[-1], pair[1].mean[0], pair[1].mean[-1])
    last = max(row["step"] for row in rows)
    fig = figures.recover(lines, target=checkpoints.TUNED_LENGTH, trained=TRAINED.context)
    return Figure(fig, "Recall over steps of fine-tuning", words.recover(recalls, last))


@PAGE.picture(READ_TO, refuses=misfit, still=True, parts=lambda now: 2)
def loss(now: Now) -> Figure:
    """Loss by position on Markov chains, without scaling and with it, compared with the lowest possible loss."""
    spec, tokens = tiny_lm_spec(now), int(now[READ_TO])
    plain = dataclasses.replace(spec, scaling=Scaling())
    drawn = [("none", plain, *figures.STYLES["none"])]
    if spec.scaling.name != "none":
        drawn.append((label(spec), spec, theme.CURRENT, "solid"))
    lines, trained, beyond, best = [], 0.0, None, None
    for name, each, colour, dash in drawn:
        found = chains.chain_loss(readers()[: 3 if now.part else 1], each, tokens, sequences=8 if now.part else 2)
        x, y = chains.smoothed(found.loss.mean(axis=0))
        lines.append(("plain" if name == "none" else name, colour, dash, x, y))
        best = np.stack(chains.smoothed(found.best))
        excess = found.loss.mean(axis=0) - found.best
        trained = float(excess[32 : TRAINED.context].mean())
        beyond = float(excess[TRAINED.context :].mean()) if tokens > TRAINED.context else None
    fig = figures.losses(lines, best, trained=TRAINED.context)  # type: ignore[arg-type]
    return Figure(fig, "Loss by position", words.chains(trained, beyond, TRAINED.context), variant=f"{len(lines)}")


@PAGE.picture(ASKED)
def yours(now: Now) -> Figure:
    """Recall of another model over the length of the text, from an evaluation file; without one, seed 0's."""
    held, lines = now[ASKED], []
    found = read_evaluation(checkpoints.FOLDER / "evaluated.json") if held is None else held.value
    for index, method in enumerate(found.methods):
        colour, dash = figures.STYLES.get(method, (theme.FURTHER[index % 4], theme.DASHES[index % 4]))
        x = np.array(found.lengths, dtype=float)
        lines.append(figures.Line(method, colour, dash, x, *found.over_lengths(method)))
    first, last = found.lengths[0], found.lengths[-1]
    fig = figures.over_lengths(lines, trained=first, target=first, ends=(first, last))
    fig.update_layout(shapes=fig.layout.shapes[1:])  # the model's trained length is unknown
    return Figure(
        fig,
        "Recall of your own model",
        words.yours("" if held is None else found.model, len(found.rows)),
        variant=found.model,
    )
