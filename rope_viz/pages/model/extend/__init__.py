"""Pictures and choices of the page Extend: from a config to a longer context."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from rope_viz.advice.lint import Finding
from rope_viz.advice.memory.kv_cache import DTYPES, read_memory_fields
from rope_viz.advice.memory.layer_kinds import Layers, list_layers
from rope_viz.advice.memory.turning_vectors import TurningVectors, find_turning_vectors
from rope_viz.advice.memory.weight_storage import find_cache_type
from rope_viz.advice.plan.export import numbers_config
from rope_viz.advice.plan.extension_plan import (
    MOST_SEQUENCES,
    ExtensionPlan,
    estimate_memory,
    find_mistakes,
    find_usual_runtime,
    make_plan,
)
from rope_viz.advice.plan.rank_methods import Advice, is_same_embedding, recommend, start
from rope_viz.advice.plan.runtime_instructions import NAMES
from rope_viz.advice.plan.runtime_matrix import RuntimeCase, RuntimeMatrix, compare_runtimes
from rope_viz.advice.plan.ways import Way
from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import Knob, RopeSpec, is_equal_except
from rope_viz.figures import compared, method_curves
from rope_viz.models.catalog import catalog
from rope_viz.models.config_reader import is_pipeline_part
from rope_viz.models.identity.identify_model import Identity
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.read_upload import is_encoder_only
from rope_viz.models.spec_url import Subject
from rope_viz.own_files.config_cache import cache_by_config
from rope_viz.pages.model.extend import figures, vector_strips, words
from rope_viz.pages.model.extend.figures import EXTEND
from rope_viz.pages.model.runtimes.figures import matrix
from rope_viz.pages.model.runtimes.figures import options as methods
from rope_viz.pages.model.runtimes.words import agreement, extension
from rope_viz.picture.choices import FirstOf, Number, Pick, length
from rope_viz.picture.outputs import Figure, Table
from rope_viz.picture.page import Page
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts import translate

KEPT = 256
"""Cache size: enough for all unchanged catalog models, which are computed at start."""
SIZES = (16, 24, 40, 48, 80, 96, 141, 192, 288)
"""GB of memory of a GPU."""
WAYS: dict[str, str] = {name: EXTEND(f"ways.{name}") for name in ("documented", "kept", "set")}
WAYS |= {name: kind.label for name, kind in METHODS.items() if kind.extends}
REFUSED = "refused"
"""The choice of no way, offered where no way is recommended."""


LONGEST = 16_777_216
TARGET = length(
    "extend.target", EXTEND("choices.target"), lambda request: wanted(request), least=128, most=LONGEST, shared="target"
)
TRAINED = length(
    "extend.trained", EXTEND("choices.trained"), lambda request: trained(request), most=LONGEST, shared="context"
)
RUNTIMES = FirstOf(
    key="extend.for",
    label=EXTEND("choices.runtime"),
    options=NAMES,
    usual=lambda request: find_usual_runtime(origin(request).config or {}, "vllm"),
)
GPU = Pick(
    key="extend.gpu",
    label=EXTEND("choices.gpu"),
    options={str(size): f"{size} GB" for size in SIZES},
    usual=lambda request: "80",
    menu=130,
)
DTYPE = Pick(
    key="extend.dtype",
    label=EXTEND("choices.dtype"),
    options={name: name for name in DTYPES},
    usual=lambda request: cache_type(request),
    menu=150,
)
SEQUENCES = Number(
    key="extend.sequences",
    label=EXTEND("choices.sequences"),
    knob=Knob(EXTEND("choices.sequences"), 1, MOST_SEQUENCES, "", log=True, integer=True, unit="sequences"),
    usual=1,
)
WAY = Pick(
    key="extend.way",
    label=EXTEND("choices.way"),
    options=WAYS | {REFUSED: words.TEXTS("no_way")},
    offered=lambda request: offered(request),
    needs=(TARGET, TRAINED, RUNTIMES),
    menu=260,
)
TABS = words.TEXTS.group("tabs", only=("changes", "why", "runtimes", "training", "verify"))
TAB = Pick(key="extend.tab", label=EXTEND("choices.tab"), options=TABS)
PAGE = Page(
    "extend",
    (TAB, TARGET, TRAINED, RUNTIMES, GPU, DTYPE, SEQUENCES, WAY),
    # The page answers for the model as it is. An embedding set on other pages is one more method.
    sees=lambda request: (request.layer, request.spec.context, request.spec.target),
    shown_on="model",
)


def wanted(request: PictureRequest) -> int:
    """Return the target length that was set, else the default: what the model reaches by its scaling, or twice as much.

    If the config only raised its limit without scaling, that limit is taken as the wanted length.
    """
    spec, start = request.spec, origin(request).spec
    found = _recognised(origin(request))
    if spec.target != start.target:
        return spec.target
    if found is not None and found.mistakes and not start.is_scaled:
        return max(start.target, found.says)
    extended = start.target > start.context and start.is_scaled
    return start.target if extended else max(131_072, spec.context)


def origin(request: PictureRequest) -> Subject:
    """Return the subject to extend: the model as it starts, or all numbers if there is no config."""
    return request.subject if request.subject.config is None else request.subject.unchanged


def config(request: PictureRequest) -> Mapping[str, Any]:
    """Return the model's config, or a Llama config with the sidebar's sizes if there is none."""
    return _config(origin(request)).mapping


def cache_type(request: PictureRequest) -> str:
    """Return the type of the KV cache that the model's files name, else the first of the list."""
    model = _config(origin(request))
    try:
        found = find_cache_type(model.mapping, read_memory_fields(model).config)
    except ValueError:
        found = None
    return found or next(iter(DTYPES))


def trained(request: PictureRequest) -> int:
    """Return the trained length that was set, else what the config tells of it."""
    return _recognised_length(request) if request.spec.context == origin(request).spec.context else request.spec.context


def _recognised_length(request: PictureRequest) -> int:
    found = _recognised(origin(request))
    return origin(request).spec.context if found is None else found.trained.length


def problem(request: PictureRequest) -> str:
    """Return why there is no answer, "" if there is one."""
    if request.subject.config is not None and is_pipeline_part(request.subject.config):
        return EXTEND("problems.diffusion")
    if request.own is not None and is_encoder_only(request.own.config, request.own.model_config):
        return EXTEND("problems.encoder")
    try:
        _rank_ways(*_arguments(request))
    except (ValueError, ArithmeticError) as error:
        return EXTEND("problems.other", problem=error)
    return ""


def offered(request: PictureRequest) -> Mapping[str, str]:
    """Return the possible ways, id -> short name, the best one for the chosen runtimes first."""
    if problem(request):
        return {}
    best = _best_plan(_arguments(request), (request[RUNTIMES],))
    none = {REFUSED: words.TEXTS("no_way")} if best.refused else {}
    return none | {way.id: translate(WAYS[way.id]) for way in best.advice.ways}


def unknown(request: PictureRequest) -> str:
    """Return why the memory cannot be shown, "" if it can."""
    return problem(request) or words.unknown(answer(request))


def answer(request: PictureRequest) -> ExtensionPlan:
    """Return the full plan. Raise `ValueError` if there is none; `problem` says why."""
    return _answer(_arguments(request), (request[RUNTIMES],), request[WAY], request[DTYPE], request[SEQUENCES])


def find_unused_setting(request: PictureRequest) -> Way | None:
    """Return the embedding that the user set on other pages, if there is one and the answer is another."""
    plan = answer(request)
    found = next((way for way in plan.advice.ways if way.id == "set"), None)
    is_used = found is None or (not plan.refused and is_same_embedding(found.spec, plan.way.spec))
    return None if is_used else found


def is_written(request: PictureRequest) -> bool:
    """Return True if the answer is a config.json that differs from the user's."""
    plan = answer(request)
    return bool(plan.file.fragment) and not plan.refused and not plan.is_gguf


def compare_readers(request: PictureRequest) -> RuntimeMatrix:
    """Return what each runtime makes of the config.json of the answer."""
    return _compare(_arguments(request), (request[RUNTIMES],), request[WAY])


Arguments: TypeAlias = tuple[Subject, RopeSpec | None, int, int | None]


def _arguments(request: PictureRequest) -> Arguments:
    start, given = origin(request), request[TRAINED]
    # A length alone is a question and no embedding that the user has made.
    changed = None if is_equal_except(request.spec, start.spec, "context", "target") else request.spec
    given = None if given == _recognised_length(request) else given
    return start, changed, request[TARGET], given


@PAGE.picture(TARGET, TRAINED, WAY, config=True, height=430, refuses=problem, query="extend.tab=why")
def ways(request: PictureRequest) -> Table:
    """The ways to reach the length, in order, each with its reasons and what was measured."""
    made = answer(request)
    return Table(figures.ways(made), EXTEND("ways_title"), words.best(made), words=True)


@PAGE.picture(TARGET, TRAINED, WAY, config=True, pin=True, refuses=problem, query="extend.tab=why")
def speeds(request: PictureRequest) -> Figure:
    """The factor by which the chosen way changes the frequency of every pair, compared with plain RoPE."""
    made = answer(request)
    curves = compared.compared(made.way.spec, [start(made.recognised)])
    figure = method_curves.ratios(curves, pin=request.pin)
    return Figure(figure, method_curves.title_ratios(curves), words.speeds(made), pins="x")


@PAGE.picture(TARGET, TRAINED, DTYPE, SEQUENCES, config=True, refuses=unknown, query="extend.tab=why")
def memory(request: PictureRequest) -> Figure:
    """The KV cache by length on top of the weights, and one 80 GB GPU."""
    made = answer(request)
    figure, title = figures.memory(made.memory, made.target, made.recognised.trained)
    return Figure(figure, title, words.memory(made))


@PAGE.picture(TARGET, TRAINED, WAY, config=True, height=430, refuses=problem, query="extend.tab=runtimes")
def readers(request: PictureRequest) -> Table:
    """What each runtime makes of the config.json to write."""
    found = compare_readers(request)
    rows = matrix(found, ModelConfig.read(answer(request).file.config))
    return Table(rows, words.TEXTS("readers"), agreement(found), words=True)


def no_layers(request: PictureRequest) -> str:
    """Return why the layers cannot be shown, "" if they can."""
    try:
        _layers(origin(request))
    except ValueError as error:
        return words.no_layers(str(error))
    return ""


def layer_height(request: PictureRequest) -> int:
    """Return the height of the strip of layers, which depends on how many kinds there are."""
    rows = 0 if no_layers(request) else len(figures.find_rows(_layers(origin(request))))
    return figures.height(rows)


def describe_layers(request: PictureRequest) -> str:
    """Say what the layers see, or why that is not known."""
    return no_layers(request) or words.layers(_layers(origin(request)))


def has_mixed_layers(request: PictureRequest) -> bool:
    """Return True if the layers are known and differ: a strip of equal cells would say nothing."""
    return not no_layers(request) and figures.is_mixed(_layers(origin(request)))


@PAGE.picture(config=True, height=layer_height, refuses=no_layers)
def layers(request: PictureRequest) -> Figure:
    """What each layer sees, which layers rotate, and which of them scaling reaches."""
    found = _layers(origin(request))
    return Figure(figures.strip(found), words.layers_title(found), words.layers(found))


def no_vectors(request: PictureRequest) -> str:
    """Return why it is not known which vectors rotate, "" if it is."""
    try:
        found = _vectors(origin(request))
    except ValueError as error:
        return words.no_layers(str(error))
    return "" if found.strips else words.TEXTS("vectors.no_attention")


def vectors_height(request: PictureRequest) -> int:
    """Return the height of the strips of vectors, which depends on how many there are."""
    return vector_strips.height(0 if no_vectors(request) else vector_strips.count_rows(_vectors(origin(request))))


@PAGE.picture(config=True, height=vectors_height, refuses=no_vectors, query="extend.tab=why")
def vectors(request: PictureRequest) -> Figure:
    """Which vectors of each kind of layer rotate, in which channels, at which position and by which embedding."""
    found = _vectors(origin(request))
    title = vector_strips.TEXTS("vectors.title", model=request.subject.name)
    return Figure(vector_strips.draw(found), title, vector_strips.describe(found))


@cache_by_config(KEPT)
def _layers(subject: Subject) -> Layers:
    return list_layers(_whole_config(subject), subject.layer)


@cache_by_config(KEPT)
def _vectors(subject: Subject) -> TurningVectors:
    return find_turning_vectors(_whole_config(subject))


def _whole_config(subject: Subject) -> ModelConfig:
    """Return the config with all sizes that the catalog knows of the model."""
    known = catalog().get(subject.model)
    return _config(subject) if known is None else ModelConfig.read(known.whole, known=known)


@PAGE.picture(TARGET, TRAINED, config=True, height=420, still=True, refuses=problem, query="extend.tab=why")
def options(request: PictureRequest) -> Table:
    """Every method in numbers at the wanted length, from the trained length."""
    known = answer(request).recognised
    base = start(known)
    sentence = extension(base, request[TARGET], known.trained.name)
    return Table(methods(base, request[TARGET]), EXTEND("options_title"), sentence)


@cache_by_config(KEPT)
def _config(subject: Subject) -> ModelConfig:
    if subject.config is None:
        return numbers_config(subject.spec)
    if subject.own is not None:
        return subject.own.model_config
    return ModelConfig.read(subject.config, known=catalog().get(subject.model))


@cache_by_config(KEPT)
def _recognised(subject: Subject) -> Identity | None:
    try:
        return _config(subject).identify(known=catalog().get(subject.model), layer=subject.layer or None)
    except ValueError:
        return None


@cache_by_config(KEPT)
def _rank_ways(subject: Subject, changed: RopeSpec | None, target: int, given: int | None) -> Advice:
    """Return the ranked ways, which tells whether there is an answer."""
    config, known = _config(subject), catalog().get(subject.model)
    recognised = config.identify(known=known, trained=given, layer=subject.layer or None)
    return recommend(config, recognised, target, own=changed)


@cache_by_config(KEPT)
def _best_plan(asked: Arguments, runtimes: tuple[str, ...]) -> ExtensionPlan:
    """Return the plan that the command line gives, too: with the first way that is safe and that the runtimes read."""
    subject, _, target, _ = asked
    return make_plan(_config(subject), target, runtimes, advice=_rank_ways(*asked), found=_mistakes(subject))


@cache_by_config(KEPT)
def _answer(asked: Arguments, runtimes: tuple[str, ...], way: str, dtype: str, sequences: int) -> ExtensionPlan:
    subject, _, target, _ = asked
    config, best = _config(subject), _best_plan(asked, runtimes)
    if way == (REFUSED if best.refused else best.way.id):
        memory = estimate_memory(config, best.recognised, target, dtype=dtype, sequences=sequences)
        return dataclasses.replace(best, memory=memory)
    given: dict[str, Any] = {"advice": best.advice, "found": best.found}
    return make_plan(config, target, runtimes, way=way, dtype=dtype, sequences=sequences, **given)


@cache_by_config(KEPT)
def _compare(asked: Arguments, runtimes: tuple[str, ...], way: str) -> RuntimeMatrix:
    plan = _answer(asked, runtimes, way, "bfloat16", 1)
    length = plan.target if plan.way.spec.scaling.depends_on_length else None
    config = ModelConfig.read(plan.file.config)
    return compare_runtimes(RuntimeCase(config, plan.recognised.layer, plan.way.spec, ""), length)


@cache_by_config(KEPT)
def _mistakes(subject: Subject) -> tuple[Finding, ...]:
    return find_mistakes(_config(subject))
