"""Pictures of the page Decay: how the score of a query and a key changes with their distance."""

from __future__ import annotations

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import compared
from rope_viz.figures.compared import name_variants
from rope_viz.figures.words.common import plain as plain_name
from rope_viz.models.query_temperature import Temperature, find_temperature
from rope_viz.models.variant import Variant
from rope_viz.pages.decay import figures, per_distance, words
from rope_viz.pages.decay.words import TEXTS
from rope_viz.picture import vectors
from rope_viz.picture.axis_choice import axis_of, axis_sentence, looked
from rope_viz.picture.choices import Number, Pick, Several, Switch, length
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import Now
from rope_viz.studies.scores import even_parts
from rope_viz.texts import Texts, join
from rope_viz.texts.texts import join_list

APP = Texts("app")


def _has_qk(now: Now) -> bool:
    """True if the page shows a q and k chosen by the user."""
    return now[SHOW] in ("own", "softmax")


SHOW = Pick(key="decay.show", label=TEXTS("choices.show"), options=figures.VIEWS)
LENGTH = length("decay.length", TEXTS("choices.length"), lambda now: now.spec.target, least=64, most=figures.LONGEST)
LOG = Switch(key="decay.log", label=TEXTS("choices.log"), on=True)
KIND = Pick(
    key="decay.kind",
    label=TEXTS("choices.kind"),
    options=figures.KINDS,
    when=lambda now: now[SHOW] == "random",
    needs=(SHOW,),
)
SOURCE = Pick(key="decay.source", label=TEXTS("choices.source"), options=vectors.SOURCES, when=_has_qk, needs=(SHOW,))
SEED = Number(
    key="decay.seed",
    knob=vectors.SEED,
    usual=0,
    when=lambda now: _has_qk(now) and now[SOURCE] in ("seed", "same"),
    needs=(SHOW, SOURCE),
)
TYPED = vectors.texts(
    "decay.typed",
    lambda now: vectors.random(now.spec),
    label=TEXTS("choices.typed"),
    instead=TEXTS("choices.file_fallback"),
    when=lambda now: _has_qk(now) and now[SOURCE] == "typed",
    needs=(SHOW, SOURCE),
)
FILE = vectors.file(
    "decay.file",
    label=TEXTS("choices.file"),
    help=TEXTS("choices.file_help"),
    instead=TEXTS("choices.file_fallback"),
    when=lambda now: _has_qk(now) and now[SOURCE] == "file",
    needs=(SHOW, SOURCE),
)
COMPARE = Several(
    key="decay.with",
    label=TEXTS("choices.compare"),
    options={name: compared.short_label(name) for name in METHODS if name != "none"},
    offered=lambda now: compared.choices(now.spec),
    usual=lambda now: (),
    when=lambda now: now[SHOW] in ("mean", "own"),
    needs=(SHOW,),
)
BACKEND = Pick(
    key="decay.backend",
    label=TEXTS("choices.backend"),
    options=figures.BACKENDS,
    offered=lambda now: figures.backends(),
    menu=220,
)
AT = length(
    "decay.at",
    TEXTS("choices.at"),
    lambda now: min(1000, now[LENGTH] - 1),
    least=1,
    most=figures.LONGEST,
    limit=lambda now: now[LENGTH],
    needs=(LENGTH,),
)
WEIGHTS = Pick(key="decay.map", label=TEXTS("choices.map"), options=TEXTS.group("maps"))
FIRST = length("decay.first", TEXTS("choices.first"), 16, least=1, most=1_000_000)
AXIS = axis_of("decay")
MINE = (SHOW, SOURCE, SEED, TYPED, FILE)
PAGE = Page("decay", (*MINE, AXIS, LENGTH, LOG, KIND, COMPARE, BACKEND, AT, WEIGHTS, FIRST))


def user_qk(now: Now) -> vectors.Own:
    """Return the q and k that the user chose, or the default random ones if the view needs none."""
    return vectors.select_head(now, now[SOURCE] if _has_qk(now) else "seed", now[SEED], now[TYPED], now[FILE])


def other_methods(now: Now) -> list[RopeSpec]:
    """Return the spec under each method that the main figure compares."""
    names = now[COMPARE]
    return compared.alternatives(looked(now, AXIS), names)


def has_variants(now: Now) -> bool:
    """True if the main figure shows pinned curves: not in the views of one spec."""
    return now[SHOW] in ("mean", "own") and now[AXIS] == "all"


def variants_in_view(now: Now) -> tuple[dict[int, Variant], list[str]]:
    """Return the pinned curves that the main figure draws, and the names of those that q and k of the user do not fit.

    The user's q and k belong to the current head size.
    """
    if not has_variants(now):
        return {}, []
    sizes = now.spec.head_dim, now.spec.rotary_dim
    fits = {
        number: now[SHOW] == "mean" or (each.spec.head_dim, each.spec.rotary_dim) == sizes
        for number, each in now.variants.items()
    }
    names = name_variants(now.current, now.variants)
    drawn = {number: each for number, each in now.variants.items() if fits[number]}
    return drawn, [names[number] for number in now.variants if not fits[number]]


@PAGE.picture(*MINE, AXIS, LENGTH, LOG, KIND, COMPARE, BACKEND, variants=True, zooms=True, sets=AT, config=True)
def curves(now: Now) -> Figure:
    """The score over the distance."""
    spec, shown, log, length = looked(now, AXIS), now[SHOW], now[LOG], now[LENGTH]
    backend = figures.loaded_backend(now[BACKEND])
    where = figures.Range.from_length(
        length, now.visible_range(figures.whole(length, log)), log=log, quick=now.coarse, backend=backend
    )
    own = user_qk(now)
    drawn, left_out = variants_in_view(now)
    others = compared.compared(spec, other_methods(now), drawn, current=now.current)
    sequence = None if now.coarse else own.sequence
    figure, title = figures.main(shown, figures.with_plain(others), where, own.parts, now[KIND], sequence)
    sentence = join(axis_sentence(now, AXIS), words.decay(spec, shown, length, now[KIND], own.parts, tokens=own.tokens))
    if left_out:
        sentence = join(sentence, APP("variants.other_dims", names=join_list(left_out)))
    if backend != now[BACKEND]:
        sentence = join(sentence, TEXTS("computed_with_numpy"))
    return Figure(figure, title, sentence, variant=f"{shown}-log" if log else shown, pins="x")


@PAGE.picture(*MINE, AXIS, AT, pin=True, height=340, config=True)
def pairs(now: Now) -> Figure:
    """What every pair adds to the score at one distance."""
    spec, at = looked(now, AXIS), now[AT]
    parts = user_qk(now).parts if now[SHOW] == "own" else even_parts(spec)
    return Figure(
        per_distance.contributions(spec, at, parts, pin=now.pin),
        TEXTS("pairs_title"),
        words.pair_by_pair(spec, at, parts),
        pins="x",
    )


@PAGE.picture(*MINE, AXIS, WEIGHTS, FIRST, config=True)
def attention(now: Now) -> Figure:
    """The scores or weights of a window of queries and keys."""
    figure = per_distance.attention_map(looked(now, AXIS), now[FIRST], user_qk(now).parts, now[WEIGHTS] == "weights")
    return Figure(figure, TEXTS("map_title"))


@PAGE.picture(height=170)
def bases(now: Now) -> Figure:
    """The bases whose mean cosine stays at or above 0 up to the target length."""
    held = min(now.spec.target, per_distance.BASES_LONGEST)
    sentence = words.bases(now.spec, held, quick=now.coarse)
    return Figure(per_distance.bases(now.spec, held, quick=now.coarse), TEXTS("bases_title"), sentence)


def temperature_of(now: Now) -> Temperature | None:
    """Return the attention temperature of the model, None where it has none or its numbers cannot be read."""
    try:
        return None if now.model_config is None else find_temperature(now.model_config)
    except ValueError:
        return None


def no_temperature(now: Now) -> str:
    """Return why there is no curve of the attention temperature, "" if there is one."""
    found = temperature_of(now)
    if found is None:
        return TEXTS("temperature.none", name=plain_name(now.name))
    return TEXTS("temperature.learned") if found.is_learned else ""


@PAGE.picture(config=True, height=figures.HEIGHT, refuses=no_temperature)
def temperature(now: Now) -> Figure:
    """The factor that multiplies each query by its position, for models that have one."""
    found = temperature_of(now)
    if found is None:
        raise ValueError(no_temperature(now))
    stop = max(now.spec.target, 8 * found.length)
    figure = figures.curve(found, now.spec, stop)
    return Figure(figure, TEXTS("temperature.title"), words.temperature(found, stop))
