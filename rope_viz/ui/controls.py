"""The shared sidebar: the model, its sizes and its scaling method."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from rope_viz.embedding.scaling import LABELS, parse_factors
from rope_viz.embedding.spec import PAIRINGS, Knob, Pairing, RopeSpec, Scaling, knobs, lists, short_repr, switches
from rope_viz.figures.words import name_layer, name_length, plain
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.own_files import config_link
from rope_viz.own_files.shared_config import share_subject
from rope_viz.pages import registry
from rope_viz.pages.registry import PAGES, groups_of, page
from rope_viz.picture.choices import Number, StoredChoice, TextLine
from rope_viz.picture.picture_request import Choice
from rope_viz.picture.used_controls import LAYER, METHOD, PAIRING, find_used_controls
from rope_viz.storage.limits import ADDRESS_CHARACTERS
from rope_viz.texts import Texts, cache_by_language, translate
from rope_viz.texts.texts import split_clauses
from rope_viz.ui import query_params, state, upload
from rope_viz.ui.components.knob import knobs as knob_column
from rope_viz.ui.notes import warn
from rope_viz.ui.own_config import is_from_link, own
from rope_viz.ui.popovers import record_shown
from rope_viz.ui.rejected_config import rejected_config
from rope_viz.ui.session import session

TEXTS, APP = Texts("sidebar"), Texts("app")


def sidebar(page: str) -> None:
    """Show the shared controls that change something on the page."""
    # While a config is rejected, the page shows no content that a control could change.
    used = used_controls(page) if rejected_config() is None else frozenset[str]()
    with st.sidebar:
        _model(used)
        for part in (_method, _sizes) if registry.method_first(page) else (_sizes, _method):
            part(used)
        _more(used)
        _origin(used)


def used_controls(page: str) -> frozenset[str]:
    """Return the controls that the page's content depends on; a page's own control of a value replaces the shared."""
    used: set[str] = set()
    for found in map(registry.page, groups_of(page)):
        # A run asks more than once.
        request, before = state.picture_request(found.name), session().used_controls
        if before is None or before[0] is not request:
            before = session().used_controls = request, find_used_controls(found, request, tuple(_layers()))
        used |= before[1]
        used -= {choice.shared for choice in found.choices}
    return frozenset(used)


def shows_model(page: str) -> bool:
    """True if the page depends on the model that was chosen or on its method, or a config waits for its repair."""
    return rejected_config() is not None or bool(used_controls(page))


def describe_choice(page: str) -> list[str]:
    """Return what the page depends on in two parts, for its header: the model and its scaling, or only the scaling."""
    used = used_controls(page)
    if METHOD in used and "base" not in used:
        return [describe_scaling(), ""]
    return [state.current_choice().subject.name, describe_scaling()]


def describe_scaling() -> str:
    """Return the method, its factor and the lengths, such as "YaRN × 4, 32k → 128k"."""
    spec = state.current_choice().spec
    factor = getattr(spec.scaling, "factor", None)
    key = "plain" if not spec.is_scaled else "scaling" if factor is None else "factor"
    method = LABELS[spec.scaling.name]
    return APP(f"header.{key}", method=method, factor=factor or 1, context=spec.context, target=spec.target)


def messages() -> None:
    """Show one warning for each part of the input that could not be used."""
    for problem in state.current_choice().problems:
        warn(translate(problem))


def address_messages() -> None:
    """Show one warning for each choice in the page's address that could not be used."""
    for problem in find_address_problems(st.query_params.to_dict()):
        warn(problem)


def _layers() -> list[str]:
    """Return the layer types of the model, [] if the choice has one that it does not know."""
    subject = state.current_choice().subject
    if subject.model != spec_url.CUSTOM:
        return list(model_specs(subject.model))
    return list(subject.own.specs) if subject.own is not None and subject.layer in subject.own.specs else []


def model_menu() -> None:
    """Show the menu of all models, the user's own first."""
    subject = state.current_choice().subject
    names = _catalog_names()
    mine = own()
    if mine is not None or subject.model == spec_url.CUSTOM:
        names = {
            spec_url.CUSTOM: subject.name
            if mine is None
            else TEXTS("model.linked" if is_from_link() else "model.yours", name=mine.name)
        } | names
    _select("Model", TEXTS("model.label"), names, subject.model, _take_model, TEXTS("model.help"))


@cache_by_language()
def _catalog_names() -> dict[str, str]:
    return {
        key: model.name if model.verified else TEXTS("model.unverified", name=model.name)
        for key, model in catalog().items()
    }


def layer_menu(used: Collection[str] = (LAYER,)) -> None:
    """Show the menu of the model's layer types, or the one type there is."""
    subject, layers = state.current_choice().subject, _layers()
    if len(layers) > 1:
        if LAYER in used:
            labels = {name: name_layer(name) for name in layers}
            _select("Layers", TEXTS("model.layers"), labels, subject.layer, _take_layer)
    elif subject.model == spec_url.CUSTOM and subject.layer:
        st.caption(TEXTS("model.layer", layer=plain(name_layer(subject.layer))))


def _model(used: Collection[str]) -> None:
    model_menu()
    layer_menu(used)
    model = catalog().get(state.current_choice().subject.model)
    if model is not None and not model.verified:
        st.caption(TEXTS("model.unconfirmed"))
    upload.box()


def _sizes(used: Collection[str]) -> None:
    spec = state.current_choice().spec
    shown = {name: knob for name, knob in _size_knobs().items() if name != "rotary_dim" and name in used}
    _column("sizes", shown, spec)


def _size_knobs() -> dict[str, Knob]:
    """Return the knobs of a spec; the length that the config's scaling divides from is called original, not trained."""
    found = knobs(RopeSpec)
    label = TEXTS(f"sizes.{state.current_choice().subject.start.length_name}")
    return found | {"context": dataclasses.replace(found["context"], label=label)}


def _method(used: Collection[str]) -> None:
    if METHOD not in used:
        return
    subject = state.current_choice().subject
    spec, scaling = subject.spec, subject.spec.scaling
    _select("Scaling method", TEXTS("method.label"), LABELS, scaling.name, _take_method)
    _column("method", {name: knob for name, knob in knobs(scaling).items() if name in used}, scaling)
    wanted = spec.target / spec.context
    factor = getattr(scaling, "factor", None)
    if factor is not None and scaling.shares_factor and wanted > 1 and abs(factor / wanted - 1) > 1e-9:
        key = "method.released" if spec == subject.start else "method.factor"
        st.caption(TEXTS(key, wanted=wanted, length_name=name_length(spec), factor=factor))


def mobile_knobs(names: Sequence[str]) -> None:
    """Show those of these knobs that the current method has, at the bottom edge of a narrow screen."""
    rows = _used_rows(names)
    if rows:
        knob_column("under", rows, _take_knob_and_frame, revision=state.current_choice().revision, under=True)


def presented_knobs(lengths: Sequence[str]) -> str:
    """Show the base and the first of these lengths that the page uses below a presented picture; return the length."""
    length = next(iter(_used_rows(lengths)), "")
    rows = _used_rows(("base", length))
    if rows:
        revision = state.current_choice().revision
        knob_column("presented", rows, _take_knob_and_frame, revision=revision, across=True)
    return length


def _used_rows(names: Sequence[str]) -> dict[str, tuple[Knob, float]]:
    """Return those of these knobs that the open page uses and the current method has, each with its value."""
    request, used = state.current_choice(), used_controls(state.current_page())
    found = _size_knobs() | knobs(request.spec.scaling)
    values = {
        name: getattr(request.spec, name, getattr(request.spec.scaling, name, None))
        for name in names
        if name in found and name in used
    }
    return {name: (found[name], value) for name, value in values.items() if value is not None}


def _take_knob_and_frame(name: str, value: float) -> None:
    _take_knob(name, value)
    state.frame_too()  # the sidebar shows the same numbers


def _column(key: str, shown: Mapping[str, Knob], of: RopeSpec | Scaling) -> None:
    rows = {name: (knob, value) for name, knob in shown.items() if (value := getattr(of, name)) is not None}
    if rows:
        knob_column(key, rows, _take_knob, revision=state.current_choice().revision)


def _more(used: Collection[str]) -> None:
    """Show rarely used controls. They are built only when open: with YaRN they take a seventh of a run."""
    request = state.current_choice()
    scaling = request.spec.scaling
    optional = [name for name in (*knobs(scaling), *switches(scaling), *lists(scaling)) if name in used]
    optional = [name for name in optional if name not in knobs(scaling) or _is_optional(request.spec, name)]
    if not ({"rotary_dim", PAIRING} & set(used) or optional):
        return
    # Streamlit would close the expander with every change of page.
    st.session_state["more"] = session().is_more_open
    more = st.expander(TEXTS("more.label"), key="more", on_change=_more_opened)
    if not more.open:
        return
    with more:
        rotated = knobs(RopeSpec)["rotary_dim"]
        rotated = dataclasses.replace(rotated, high=request.spec.head_dim)
        if "rotary_dim" in used:
            _column("rotated", {"rotary_dim": rotated}, request.spec)
        if PAIRING in used:
            labels = {str(name): TEXTS(f"pairings.{name}") for name in PAIRINGS}
            label, help_text = TEXTS("more.pairing"), TEXTS("more.pairing_help")
            _select("Pairing", label, labels, request.spec.pairing, _take_pairing, help_text)
        _optional(request.spec, optional)


def _more_opened() -> None:
    query_params.catch_up()
    session().is_more_open = st.session_state["more"]


def _is_optional(spec: RopeSpec, name: str) -> bool:
    """True for a knob of the method that is computed unless it is set."""
    return knobs(spec.scaling)[name].low is not None and _default(spec.scaling, name) is None


def _optional(spec: RopeSpec, shown: Collection[str]) -> None:
    """Show knobs that the method computes unless they are set, and settings that are not numbers."""
    scaling = spec.scaling
    for name, knob in knobs(scaling).items():
        if name in shown and _is_optional(spec, name):
            key = f"optional.{name}"
            st.session_state[key] = getattr(scaling, name)
            st.number_input(
                knob.label,
                value=None,
                step=1 if knob.integer else 0.01,
                placeholder=TEXTS("more.computed"),
                help=knob.help,
                key=key,
                on_change=_take_field,
                args=(name, key),
            )
    for name in (name for name in switches(scaling) if name in shown):
        st.session_state[name] = getattr(scaling, name)
        st.toggle(
            TEXTS(f"more.{name}"),
            key=name,
            help=TEXTS(f"more.{name}_help"),
            on_change=_take_field,
            args=(name, name),
        )
    for name in (name for name in lists(scaling) if name in shown):
        key = f"list.{name}"
        st.session_state[key] = ", ".join(spec_url.format_value(value) for value in getattr(scaling, name))
        st.text_area(
            TEXTS(f"more.{name}"),
            key=key,
            placeholder=TEXTS("more.divisors", pairs=spec.pairs),
            max_chars=ADDRESS_CHARACTERS,
            on_change=_take_field,
            args=(name, key),
        )


def copied_texts() -> dict[str, str | None]:
    """Return what the header's menu copies: the page's address (None), and the parameters.

    The label of the address says what of the user's config it carries.
    """
    subject, label = state.current_choice().subject, "copy.link"
    if subject.model == spec_url.CUSTOM:
        is_linked = subject.own is not None and config_link.write_config(subject.own)
        label = "copy.config" if is_linked else "copy.numbers"
    return {TEXTS(label): None, TEXTS("copy.parameters"): json.dumps(share_subject(subject).spec_json, indent=1)}


def _origin(used: Collection[str]) -> None:
    request = state.current_choice()
    changed = request.typed or request.spec != request.subject.start
    if used or request.typed:
        st.button(TEXTS("model.reset"), on_click=_reset, disabled=not changed, width="stretch", key="reset")
    model = catalog().get(request.subject.model)
    if model is not None:
        with st.expander(TEXTS("model.source"), key="source"):
            st.caption("\n".join(f"- {plain(source)}" for source in split_clauses(model.source)))
            st.caption(plain(model.note))


def _select(
    name: str, label: str, options: Mapping[str, str], value: str, taken: Any, help_text: str | None = None
) -> None:
    """Show a menu of options (value -> label); `name` is the widget's name in the session in every language."""
    key = f"select.{name}"

    def changed() -> None:
        # After a restart the server may receive a label that its predecessor offered.
        if st.session_state[key] in options and not is_old():
            taken(st.session_state[key])

    st.session_state[key] = value
    is_old = record_shown(key)
    st.selectbox(label, list(options), format_func=options.__getitem__, key=key, on_change=changed, help=help_text)


def _default(scaling: Any, name: str) -> Any:
    return next(item.default for item in dataclasses.fields(scaling) if item.name == name)


def _take_model(model: str) -> None:
    mine = own()
    layer = spec_url.main_layer_of(model) if model != spec_url.CUSTOM else mine.layer if mine is not None else ""
    state.choose_model(model, layer)


def _take_layer(layer: str) -> None:
    state.choose_model(state.current_choice().subject.model, layer)


def _reset() -> None:
    request = state.current_choice()
    state.choose(request.subject.start, revision=request.revision + 1, typed=frozenset())


def _take_method(method: str) -> None:
    subject = state.current_choice().subject
    _try(lambda: spec_url.with_first_method(subject.spec, method, subject.start))


def _take_knob(name: str, value: float) -> None:
    typed = {name} & set(state.LENGTHS.values())
    _try(lambda: spec_url.move_knob(state.current_choice().spec, name, value), typed=typed)


def _take_field(name: str, key: str) -> None:
    value = st.session_state[key]
    spec = state.current_choice().spec

    def changed() -> RopeSpec:
        change: dict[str, Any] = {name: parse_factors(value) if name in lists(spec.scaling) else value}
        return dataclasses.replace(spec, scaling=dataclasses.replace(spec.scaling, **change))

    _try(changed)


def _take_pairing(pairing: Pairing) -> None:
    _try(lambda: dataclasses.replace(state.current_choice().spec, pairing=pairing))


def _try(make: Callable[[], RopeSpec], *, typed: Collection[str] = ()) -> None:
    try:
        spec = make()
    except ValueError as error:
        state.refuse(TEXTS("method.impossible", error=error))
    else:
        state.choose(spec, typed=state.current_choice().typed.union(typed))


def find_address_problems(query: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of a page's choices in its address that cannot be read, and for each unknown one.

    Keys without the prefix of a page belong to others. Lines of text are reported next to their field.
    """
    out: list[str] = []
    for key, text in query.items():
        name, dot, _ = key.partition(".")
        if not dot or name not in PAGES:
            continue
        choices = {choice.key: choice for choice in page(name).choices}
        if key not in choices:
            close = difflib.get_close_matches(key, choices, 1)
            shown = short_repr(key)
            out.append(
                APP("address.meant", name=shown, meant=close[0]) if close else APP("address.unknown", name=shown)
            )
        elif not isinstance(choices[key], TextLine | StoredChoice):
            out += _value_problem(choices[key], text)
    return out


def _value_problem(choice: Choice[Any], text: str) -> list[str]:
    """Return a sentence if a value cannot be read, with what is shown instead."""
    try:
        choice.parse(text)
    except ValueError as error:
        if isinstance(choice, Number):
            with contextlib.suppress(ValueError):
                return [APP("address.clamped", problem=error, value=choice.text(choice.near(text)))]
        return [APP("address.ignored", problem=error)]
    return []
