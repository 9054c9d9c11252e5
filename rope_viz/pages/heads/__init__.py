"""Pictures of the page Heads: which pairs a real model's heads use, from q and k captured before rotation."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import FloatArray, Knob, RopeSpec
from rope_viz.figures import head_curves, theme
from rope_viz.figures.band_words import TEXTS as BAND_TEXTS
from rope_viz.figures.band_words import explain_no_change
from rope_viz.figures.compared import short_label
from rope_viz.pages.heads import band_groups, figures, whole_model, words
from rope_viz.pages.heads.figures import LETTERS, TEXTS
from rope_viz.pages.heads.whole_model import CARRIED, Rebuilt
from rope_viz.picture import choices
from rope_viz.picture.band_choices import make_change_menu
from rope_viz.picture.choices import Menu, Number, Pick, StoredChoice, StoredValue, make_tab_choice
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Choice, PictureRequest
from rope_viz.real_models.band_table import BandTable, load_band_table
from rope_viz.real_models.measured_file import MeasuredModel, read_measured
from rope_viz.studies import heads as studies
from rope_viz.studies.capture_file import LARGEST, Captured
from rope_viz.studies.heads import Heads, PairStatistics, Turning
from rope_viz.studies.real_model import (
    HeadMap,
    MeasuredHead,
    find_head,
    load_heads,
    load_mean_logits,
    load_results,
    load_sentence,
    load_sums,
    real_spec,
)
from rope_viz.studies.sums_file import CapturedSums, SummedLayer, read_capture_or_sums
from rope_viz.texts import cache_by_language, join
from rope_viz.texts.texts import join_items
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.attention_diagnosis import OwnCapture
from rope_viz.tiny_lm.checkpoints import scaled

FIRST_HEAD = "L16H0"
"""The head that the page opens with: the strongest previous-token head."""

NAME = re.compile(r"L\d{1,3}H\d{1,3}")

MEASURED = choices.json_file(
    read_measured,
    key="heads.measured",
    label=TEXTS("choices.measured"),
    help=TEXTS("choices.measured_help"),
    instead=TEXTS("choices.file_fallback"),
)


def own_model(request: PictureRequest) -> MeasuredModel | None:
    """Return the user's measured model, None without a file."""
    held = request[MEASURED]
    return None if held is None else held.value


def head_map(request: PictureRequest) -> HeadMap:
    """Return the heads of the user's model, or of the real model."""
    own = own_model(request)
    return load_heads() if own is None else own.heads


@cache_by_language(4)
def list_heads(heads: HeadMap) -> Mapping[str, str]:
    """Return {name: label} of all heads, layer by layer, as a click on the map counts them."""
    found = {}
    for (layer, head), each in sorted(heads.heads.items()):
        jobs = join_items([TEXTS(f"job_words.{job}") for job in each.jobs])
        key = "real.head_jobs" if jobs else "real.head"
        found[f"L{layer}H{head}"] = TEXTS(key, layer=layer, head=head, jobs=jobs)
    return found


def example_head(request: PictureRequest) -> str:
    """Return the name of the strongest previous-token head, with which the page opens."""
    if own_model(request) is None:
        return FIRST_HEAD
    layer, head = np.unravel_index(np.argmax(head_map(request).scores("previous token")), head_map(request).shape)
    return f"L{layer}H{head}"


CHOSEN = Menu(
    key="heads.real",
    label=TEXTS("choices.real"),
    entries=lambda request: list_heads(head_map(request)),
    usual=example_head,
    check=lambda text: NAME.fullmatch(text) is not None,
    needs=(MEASURED,),
    width=340,
)

THRESHOLDS = {job.split()[0]: least for job, least in load_results("heads")["about"]["thresholds"].items()}
"""{first word of a job: mean attention on the right tokens above which a head has it}."""

ROTATIONS = TEXTS.group("rotations", only=[name for name in TEXTS.group("rotations") if name != "trained"])

ROTATION = Pick(
    key="heads.rotation",
    label=TEXTS("choices.rotation"),
    options=ROTATIONS,
    usual=lambda request: "linear 2",
    when=lambda request: own_model(request) is None,
    needs=(MEASURED,),
)


def chosen_head(request: PictureRequest) -> MeasuredHead:
    """Return the chosen head."""
    return head_map(request).heads[find_head(request[CHOSEN])]


def chosen_spec(request: PictureRequest) -> RopeSpec:
    """Return the embedding of the chosen head as trained."""
    own = own_model(request)
    return real_spec() if own is None else own.spec(chosen_head(request).layer)


def explain_no_sentence(request: PictureRequest) -> str:
    """Return why the sentence is not shown, "" if it is: its q and k are those of the real model."""
    return "" if own_model(request) is None else TEXTS("real.no_sentence")


def scaled_spec(rotation: str, spec: RopeSpec | None = None) -> RopeSpec:
    """Return an embedding, the real model's by default, under a rotation such as "yarn 2"."""
    method, factor = rotation.split()
    spec = spec or real_spec()
    return scaled(spec, method, int(factor) * spec.context)


def attend(head: MeasuredHead, spec: RopeSpec) -> FloatArray:
    """Return the attention of a head on the sentence, (tokens, tokens), rotated by `spec`."""
    layer = load_sentence()[0].layer(head.layer).as_heads(spec)
    rows = studies.sample_queries(layer.tokens, layer.tokens)
    return studies.weights(layer, head.head, rows, Turning.from_spec(spec))


Capture: TypeAlias = Captured | CapturedSums | OwnCapture
NEAR = 64
"""Number of distances at which attention is drawn."""
COLUMNS = 600
"""Columns of the curve over distance; each holds the minimum and maximum of its distances."""
KEPT_LAYERS = 4


@dataclass(frozen=True, eq=False)
class Looked:
    """One layer of a capture with its analysis; `order` lists the heads from positional to semantic.

    `tensors` has whole q and k, `positional` how much of each head's logits distance explains; a file of sums has
    neither, and its heads are in their own order. `numbers` are the heads' indices in the model.
    """

    name: str
    number: int
    numbers: tuple[int, ...]
    spec: RopeSpec
    by_pair: PairStatistics
    order: tuple[int, ...]
    tensors: Heads | None = None
    positional: FloatArray | None = None

    @property
    def heads(self) -> Heads:
        """Return whole q and k. Raise `ValueError` for a file of sums."""
        if self.tensors is None:
            raise ValueError(TEXTS("layer.sums"))
        return self.tensors

    @property
    def unrotated(self) -> int:
        """Return the number of columns (pairs of dimensions) that do not rotate."""
        return int(self.by_pair.strength.shape[1]) - self.spec.pairs

    def label(self, head: int) -> str:
        return TEXTS("head", number=self.number_of(head))

    def number_of(self, head: int) -> int:
        return self.numbers[head] if self.numbers else head


def load(written: str) -> bytes:
    """Read a capture from a file. Its largest size is that of the layers in it, which a command may draw."""
    return choices.load_file(written, LARGEST)


def decode(content: bytes) -> Captured | CapturedSums:
    """Decode a stored capture. Raise `ValueError` with one sentence, before computing anything."""
    return read_capture_or_sums(choices.data_of(content))


def require_drawable(held: StoredValue[Captured | CapturedSums], request: PictureRequest) -> object:
    """Raise `ValueError` if the layer cannot be drawn."""
    return looked(request)


FILE = StoredChoice(
    key="heads.file",
    label=TEXTS("choices.file"),
    help=TEXTS("choices.file_help"),
    decode=decode,
    load=load,
    check=require_drawable,
    suffixes=(".safetensors",),
    instead=TEXTS("choices.file_fallback"),
    missing="",  # the sentence of the picture says what is shown
)

LIVE = StoredChoice(
    key="heads.live",
    label=TEXTS("choices.live"),
    help=TEXTS("choices.live_help"),
    decode=decode,
    load=load,
)


@functools.cache
def demo_capture() -> OwnCapture:
    """Return the capture shown without a file: q and k of tiny_lm on a text with facts, 256 tokens."""
    return OwnCapture(checkpoints.load_tiny_lm(checkpoints.SEEDS[0]), 256)


def source(request: PictureRequest) -> Capture:
    """Return the user's capture, else that of the text read on the page, else that of tiny_lm."""
    held = request[FILE] or request[LIVE]
    return demo_capture() if held is None else held.value


def layer_at(request: PictureRequest) -> int:
    """Return the number of the chosen layer."""
    layers = source(request).layers
    return layers[min(int(request[LAYER]), len(layers) - 1)]


def count(request: PictureRequest) -> int:
    """Return the number of heads of the layer, from the file's header only."""
    found = source(request)
    if isinstance(found, OwnCapture):
        return found.tiny_lm.heads
    if isinstance(found, CapturedSums):
        return int(found.layer(layer_at(request)).sums.q.shape[1])
    return found.file.entries[f"layers.{layer_at(request)}.q"].shape[0]


LAYER = Number(
    key="heads.layer",
    knob=Knob(TEXTS("choices.layer"), 0, 511, "", integer=True),
    usual=0,
    limit=lambda request: max(len(source(request).layers) - 1, 0),
    needs=(FILE, LIVE),
)
SHOW: Pick[str] = Pick(key="heads.show", label=TEXTS("choices.show"), options=figures.QUANTITIES)
HEAD = Number(
    key="heads.head",
    knob=Knob(TEXTS("choices.head"), 0, 1023, "", integer=True),
    usual=0,
    limit=lambda request: count(request) - 1,
    needs=(FILE, LIVE, LAYER),
)


def summed_model(request: PictureRequest) -> CapturedSums:
    """Return the sums of the user's capture, else those of the real model."""
    held = request[FILE] or request[LIVE]
    return load_sums() if held is None else whole_model.sum_up(held.value)


CARRIES: Pick[str] = Pick(key="heads.carries", label=TEXTS("choices.carries"), options=CARRIED)
OF_LAYER = Number(
    key="heads.of",
    knob=Knob(TEXTS("choices.of"), 0, 511, "", integer=True),
    usual=lambda request: min(16, len(summed_model(request).layers) - 1),
    limit=lambda request: len(summed_model(request).layers) - 1,
    needs=(FILE, LIVE),
)
OF_HEAD = Number(
    key="heads.which",
    knob=Knob(TEXTS("choices.which"), 0, 1023, "", integer=True),
    usual=0,
    limit=lambda request: len(opened_layer(request)[1].heads) - 1,
    needs=(FILE, LIVE, OF_LAYER),
)


def band_table(request: PictureRequest) -> BandTable:
    """Return the table of the user's measured model, where it has one, or that of the real model."""
    own = own_model(request)
    return load_band_table() if own is None or own.bands is None else own.bands


CHANGE = make_change_menu("heads", band_table, (MEASURED,))
MEASURE: Pick[str] = Pick(key="heads.measure", label=BAND_TEXTS("choices.measure"), options=BAND_TEXTS.group("measure"))
TABS: dict[str, tuple[Choice[Any], ...]] = {
    "head": (),
    "whole": (CHANGE, MEASURE, CARRIES, OF_LAYER, OF_HEAD),
    "own": (MEASURED, FILE, LIVE, LAYER, SHOW, HEAD),
}
"""{tab: the choices that it shows}."""
TAB = make_tab_choice("heads", TABS, TEXTS)
PAGE = Page(
    "heads",
    (TAB, MEASURED, CHOSEN, ROTATION, FILE, LIVE, LAYER, SHOW, HEAD, CARRIES, OF_LAYER, OF_HEAD, CHANGE, MEASURE),
    sees=lambda request: drawn_embeddings(request),
    door="lab",
)


def looked(request: PictureRequest) -> Looked:
    """Return the chosen layer with its analysis, cached. Raise `ValueError` for values that are not numbers."""
    return analyse_layer(source(request), layer_at(request))


@functools.lru_cache(maxsize=KEPT_LAYERS)
def analyse_layer(capture: Capture, number: int) -> Looked:
    """Analyse a layer. Raise `ValueError` for values that are not numbers."""
    spec = capture.spec(number)
    if isinstance(capture, CapturedSums):
        summed = capture.layer(number)
        by_pair = studies.statistics_of_sums(summed.sums, summed.scale)
        return Looked(capture.name, number, summed.heads, spec, by_pair, tuple(range(len(by_pair.strength))))
    layer = capture.layer(number)
    heads = layer.as_heads(spec)
    positional = studies.positional_share(heads, Turning.from_spec(spec, heads.tokens))
    order = tuple(int(head) for head in np.argsort(-positional, kind="stable"))
    by_pair = studies.pair_statistics(heads, spec.pairs)
    return Looked(capture.name, number, layer.heads, spec, by_pair, order, heads, positional)


def problem(request: PictureRequest) -> str:
    """Return why a capture cannot be drawn, "" if it can."""
    try:
        looked(request)
    except ValueError as error:
        return join(TEXTS("layer.problem", error=error), TEXTS("layer.repair"))
    return ""


def explain_no_tensors(request: PictureRequest) -> str:
    """Return why a picture that needs whole q and k cannot be drawn, "" if it can."""
    return problem(request) or (TEXTS("layer.sums") if looked(request).tensors is None else "")


def compared_specs(request: PictureRequest, captured: RopeSpec) -> list[tuple[str, str, str, RopeSpec]]:
    """Return (label, colour, dash, spec) as captured and, if different, under the chosen method."""
    out: list[tuple[str, str, str, RopeSpec]] = [(TEXTS("captured"), theme.PLAIN, "dot", captured)]
    try:
        spec = checkpoints.spec_for(request.spec, captured)
    except ValueError:  # the method's lists are for another number of pairs
        return out
    if spec.scaling != captured.scaling or spec.base != captured.base:
        out.append((short_label(spec.scaling.name), theme.CURRENT, "solid", spec))
    return out


def drawn_embeddings(request: PictureRequest) -> Hashable:
    """Return what the page depends on of the sidebar's model: the frequencies and factors that it compares."""
    specs = [spec for *_, spec in compared_specs(request, source(request).spec(layer_at(request)))]
    return tuple(
        (spec.scaling.name, spec.inv_freq(length).tobytes(), spec.attention_factor(length))
        for spec in specs
        for length in (None, spec.target)
    )


def bands(spec: RopeSpec) -> spectrum.Bands:
    """Return the bands at the target length."""
    return spectrum.bands(spec, length=spec.target)


def scored_job(request: PictureRequest) -> str | None:
    """Return the job of the chosen head whose score was measured under other rotations, or None."""
    head = chosen_head(request)
    return next((job for job in head.jobs if "linear 2" in head.changed.get(job, ())), None)


def explain_no_score(request: PictureRequest) -> str:
    """Return why no other rotation can be shown for the chosen head, "" if it can."""
    job = next((job for job in chosen_head(request).jobs if job in LETTERS), None)
    return "" if scored_job(request) else TEXTS("real.no_rotations" if job else "real.no_score")


@PAGE.picture(CHOSEN, sets=CHOSEN, height=figures.REAL_MAP_HEIGHT, narrow=figures.NARROW_MAP_HEIGHT)
def jobs(request: PictureRequest) -> Figure:
    """The jobs of all 270 heads of a real model: previous token, copying, same token, first token."""
    heads, head, own = head_map(request), chosen_head(request), own_model(request)
    fig = figures.job_map(heads, (head.layer, head.head))
    sentence = words.describe_jobs(
        heads, heads.heads[find_head(example_head(request))], "" if own is None else own.name
    )
    title = TEXTS("jobs_title") if own is None else TEXTS("own_jobs_title", model=own.name)
    return Figure(fig, title, sentence, pins="cell", variant="" if own is None else own.name)


@PAGE.picture(CHOSEN, height=figures.SIDE_HEIGHT)
def uses(request: PictureRequest) -> Figure:
    """What each pair of a head of the real model adds to the logit of the right token."""
    head, spec = chosen_head(request), chosen_spec(request)
    job = next(iter(head.jobs), None)
    margin = head.margin if job is None else head.job_margin[job]
    first = spec.pairs - int((spec.context * spec.plain_inv_freq < 2 * np.pi).sum())
    scaling = short_label(spec.scaling.name) if spec.is_scaled else ROTATIONS["yarn 2"]
    label = list_heads(head_map(request))[request[CHOSEN]]
    sentence = words.describe_uses(label, margin, first, spec.context, scaling)
    return Figure(figures.pair_margins(head, job, shown_bands(spec)), TEXTS("uses_title"), sentence)


@PAGE.picture(CHOSEN, height=figures.SIDE_HEIGHT, refuses=explain_no_score)
def changed(request: PictureRequest) -> Figure:
    """What linear interpolation, NTK and YaRN do to the score of a head of the real model."""
    head, job = chosen_head(request), scored_job(request)
    if job is None:
        raise ValueError(explain_no_score(request))
    sentence = words.describe_rotations(head, job)
    return Figure(figures.changed_scores(head, job), TEXTS("changed_title"), sentence)


@PAGE.picture(CHOSEN, ROTATION, narrow=420, refuses=explain_no_sentence)
def sentence(request: PictureRequest) -> Figure:
    """The attention of a head of the real model on a sentence, as trained and under another rotation."""
    head, name = chosen_head(request), request[ROTATION]
    both = [(TEXTS("rotations.trained"), real_spec()), (ROTATIONS[name], scaled_spec(name))]
    tokens = load_sentence()[1]
    fig = figures.sentence_attention([(label, attend(head, spec)) for label, spec in both], tokens)
    return Figure(fig, TEXTS("sentence_title"), TEXTS("real.sentence", tokens=len(tokens)))


@PAGE.picture(
    FILE, LIVE, LAYER, SHOW, pin=True, sets=HEAD, refuses=problem, height=figures.MAP_HEIGHT, query="heads.tab=own"
)
def across(request: PictureRequest) -> Figure:
    """What every head of a layer carries in every pair, heads from positional to semantic."""
    what = looked(request)
    rows = list(what.order)
    values = np.asarray(getattr(what.by_pair, request[SHOW]))[rows]
    names = [what.label(head) for head in rows]
    drawn = compared_specs(request, what.spec)[-1][3]
    fig = figures.heads_map(
        values, names, bands(drawn), quantity=request[SHOW], unrotated=what.unrotated, pin=request.pin
    )
    sentence = words.describe_layer(what.name, what.number, what.by_pair.strength, what.positional, what.unrotated)
    return Figure(fig, TEXTS("across_title"), sentence, variant=f"{what.name} {what.number}", pins="y")


def positional_share(what: Looked, head: int) -> float:
    """Return the share of a head's logits that distance explains. Raise `ValueError` for a file of sums."""
    if what.positional is None:
        raise ValueError(TEXTS("layer.sums"))
    return float(what.positional[head])


def open_head(request: PictureRequest) -> tuple[Looked, int]:
    """Return the layer and the index of the open head."""
    what = looked(request)
    return what, what.order[int(request[HEAD])]


@PAGE.picture(FILE, LIVE, LAYER, HEAD, refuses=explain_no_tensors, query="heads.tab=own")
def distance(request: PictureRequest) -> Figure:
    """The mean logit of the open head by distance, over all pairs of tokens, as captured and as chosen."""
    what, head = open_head(request)
    one = one_head(what, head)
    curves, near, last = [], [], what.spec
    for label, colour, dash, spec in compared_specs(request, what.spec):
        values = studies.mean_logit(one, Turning.from_spec(spec, one.tokens))[0]
        curves.append((label, colour, dash, *columns(values)))
        near.append(float(studies.attention_by_distance(one, 0, Turning.from_spec(spec, one.tokens))[:NEAR].sum()))
        last = spec
    parts = studies.contributions(one, 0, Turning.from_spec(last, one.tokens))
    sentence = join(
        words.describe_head(what.number_of(head), positional_share(what, head), bands(last), parts),
        words.describe_change(NEAR, min(near[0], 1.0), min(near[-1], 1.0)) if len(near) > 1 else "",
    )
    fig = figures.mean_logits(curves, tokens=one.tokens)
    return Figure(fig, TEXTS("distance_title"), sentence, variant=f"{one.tokens}")


@PAGE.picture(FILE, LIVE, LAYER, HEAD, refuses=explain_no_tensors, height=theme.SIDE_HEIGHT, query="heads.tab=own")
def attention(request: PictureRequest) -> Figure:
    """Mean attention of the open head to the tokens at each distance, as captured and under the chosen method."""
    what, head = open_head(request)
    one = one_head(what, head)
    curves = [
        (label, colour, dash, studies.attention_by_distance(one, 0, Turning.from_spec(spec, one.tokens)))
        for label, colour, dash, spec in compared_specs(request, what.spec)
    ]
    fig = head_curves.attention_by_distance(curves, most=min(NEAR, one.tokens))
    return Figure(fig, TEXTS("attention_title"))


@PAGE.picture(FILE, LIVE, LAYER, HEAD, refuses=explain_no_tensors, height=theme.SIDE_HEIGHT, query="heads.tab=own")
def pairs(request: PictureRequest) -> Figure:
    """What each pair adds to the logits of the tokens attended to, by band; marked what it added as captured."""
    what, head = open_head(request)
    one = one_head(what, head)
    drawn = compared_specs(request, what.spec)
    found = [studies.contributions(one, 0, Turning.from_spec(spec, one.tokens)) for *_, spec in drawn]
    before = found[0] if len(found) > 1 else None
    fig = head_curves.parts(found[-1], bands(drawn[-1][3]), before=before, still=what.unrotated)
    return Figure(fig, TEXTS("pairs_title"))


def one_head(what: Looked, head: int) -> Heads:
    """Return one query head with its key head."""
    heads = what.heads
    sinks = None if heads.sinks is None else heads.sinks[head : head + 1]
    q, k = heads.q[head : head + 1], heads.key_of(head)[None]
    return Heads(q, k, heads.pairing, heads.scale, heads.cap, heads.window, sinks)


def columns(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (distance, minimum, maximum) in at most `COLUMNS` columns, log-spaced from distance 1 on."""
    edges = np.unique(np.geomspace(1, len(values), COLUMNS + 1).round().astype(int))
    starts = edges[:-1]
    if not len(starts):
        return np.ones(1), values[-1:], values[-1:]
    low, high = (part.reduceat(values, starts) for part in (np.minimum, np.maximum))
    return np.sqrt(starts * (edges[1:] - 1.0).clip(1)), low, high


def opened_layer(request: PictureRequest) -> tuple[int, SummedLayer]:
    """Return the number of the layer that is open on the whole model, and its sums."""
    model = summed_model(request)
    number = model.layers[min(int(request[OF_LAYER]), len(model.layers) - 1)]
    return number, model.layer(number)


def unreadable(request: PictureRequest) -> str:
    """Return why the sums of a capture cannot be made, "" if they can."""
    try:
        summed_model(request)
    except ValueError as error:
        return join(TEXTS("layer.problem", error=error), TEXTS("layer.repair"))
    return ""


def shown_bands(spec: RopeSpec) -> spectrum.Bands:
    """Return the bands of a spec, those of YaRN × 2 where it is not scaled."""
    return bands(spec if spec.is_scaled else scaled_spec("yarn 2", spec))


@PAGE.picture(
    FILE,
    LIVE,
    CARRIES,
    OF_LAYER,
    pin=True,
    sets=OF_LAYER,
    refuses=unreadable,
    height=figures.MAP_HEIGHT,
    query="heads.tab=whole",
)
def layers(request: PictureRequest) -> Figure:
    """What every layer of a model carries in every pair: where the energy of q and k is."""
    model, what = summed_model(request), request[CARRIES]
    values = whole_model.average_layers(model, what)
    names = [TEXTS("whole.layer", number=number) for number in model.layers]
    spec = max((model.spec(number) for number in model.layers), key=lambda one: one.pairs)
    fig = figures.heads_map(values, names, shown_bands(spec), quantity=what, pin=request.pin, labels=CARRIED)
    return Figure(fig, TEXTS("layers_title"), whole_model.describe(model, what), variant=model.name, pins="y")


@PAGE.picture(
    FILE, LIVE, CARRIES, OF_LAYER, pin=True, refuses=unreadable, height=figures.MAP_HEIGHT, query="heads.tab=whole"
)
def carried(request: PictureRequest) -> Figure:
    """What every head of one layer carries in every pair, from sums over tokens."""
    model, what = summed_model(request), request[CARRIES]
    number, layer = opened_layer(request)
    spec, values = model.spec(number), whole_model.read_quantity(layer, what)
    of_query = len(values) == len(layer.heads)
    names = [
        TEXTS("head", number=layer.heads[row]) if of_query else TEXTS("whole.key_head", number=row)
        for row in range(len(values))
    ]
    fig = figures.heads_map(
        values,
        names,
        shown_bands(spec),
        quantity=what,
        unrotated=values.shape[1] - spec.pairs,
        pin=request.pin,
        labels=CARRIED,
    )
    top = np.unravel_index(int(np.argmax(values)), values.shape)
    largest = {"head": names[top[0]], "pair": int(top[1]), "value": float(values[top])}
    sentence = TEXTS("whole.most_of_layer", what=CARRIED[what], layer=number, **largest)
    return Figure(fig, TEXTS("carried_title", layer=number), sentence, variant=f"{model.name} {number}")


@PAGE.picture(FILE, LIVE, refuses=unreadable, height=theme.SIDE_HEIGHT, query="heads.tab=whole")
def concentration(request: PictureRequest) -> Figure:
    """How concentrated q and k are before rotation: the mean resultant length R of every pair of every head."""
    model = summed_model(request)
    fig = whole_model.draw_concentrations(model)
    return Figure(fig, TEXTS("concentration_title"), whole_model.describe_concentrations(model))


def rebuilt_heads(request: PictureRequest) -> list[Rebuilt]:
    """Return the mean logits of the heads of the open layer: exact, and from the means of q and k.

    Raise `ValueError` for a file of sums, which does not have the exact ones.
    """
    held = request[FILE] or request[LIVE]
    number, layer = opened_layer(request)
    spec = summed_model(request).spec(number)
    if held is None:
        distances, by_layer = load_mean_logits()
        near = distances <= distances[-1] // 2
        distances, exact = distances[near], by_layer[number][:, near]
        turn = Turning.from_spec(spec, int(distances[-1]) + 1)
    elif isinstance(held.value, CapturedSums):
        raise ValueError(TEXTS("layer.sums"))
    else:
        whole = held.value.layer(number).as_heads(spec)
        # Few pairs of tokens have larger distances, and many heads attend to the first token, which most of them have.
        distances, turn = whole_model.choose_distances(whole.tokens // 2), Turning.from_spec(spec, whole.tokens)
        exact = studies.mean_logit(whole, turn)[:, distances]
    return whole_model.rebuild(layer.sums, layer.scale, turn, distances, exact)


def explain_no_curve(request: PictureRequest) -> str:
    """Return why the exact mean logit cannot be drawn, "" if it can."""
    held = request[FILE] or request[LIVE]
    return unreadable(request) or (
        TEXTS("layer.sums") if held is not None and isinstance(held.value, CapturedSums) else ""
    )


@PAGE.picture(
    FILE, LIVE, OF_LAYER, OF_HEAD, refuses=explain_no_curve, height=theme.SIDE_HEIGHT, query="heads.tab=whole"
)
def rebuilt(request: PictureRequest) -> Figure:
    """The mean logit of a head by distance, exact and rebuilt from its mean q and mean k, with their correlation."""
    number, layer = opened_layer(request)
    found, row = rebuilt_heads(request), int(request[OF_HEAD])
    sentence = whole_model.describe_rebuilt(found, row, number, layer.heads[row])
    return Figure(whole_model.draw_rebuilt(found[row]), TEXTS("rebuilt_title"), sentence)


def explain_no_groups(request: PictureRequest) -> str:
    """Return why no change of pairs can be drawn, "" if one can."""
    return explain_no_change(band_table(request), request[CHANGE])


@PAGE.picture(CHANGE, MEASURE, MEASURED, query="heads.tab=whole", refuses=explain_no_groups)
def groups(request: PictureRequest) -> Figure:
    """What a change of each group of pairs does to the loss and the recall of a real model, for some sets of heads."""
    table, own, held = band_table(request), own_model(request), request[MEASURED]
    is_own = own is not None and own.bands is not None
    model = own.name if is_own and own is not None else ""
    fig = band_groups.draw_groups(table, request[CHANGE], request[MEASURE])
    title = BAND_TEXTS("groups.title", model=model or BAND_TEXTS("model"))
    variant = f"{request[MEASURE]} {held.name if is_own and held is not None else ''}"
    return Figure(fig, title, band_groups.describe_groups(table, request[CHANGE], model), variant=variant)
