"""The user's current choice, stored in the session and in the address; the only module that writes it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.read_upload import read_upload
from rope_viz.pictures import blob_store, configs, registry
from rope_viz.pictures.choices import Held, Kept
from rope_viz.pictures.picture_request import Now, name_of
from rope_viz.pictures.picture_request import start as start_of
from rope_viz.pictures.registry import PAGES
from rope_viz.ui import query_params
from rope_viz.ui.visitors import session_visitor

LEARN = "learn"
"""The page of the tour. Its steps have their own addresses; the user's choice is set aside meanwhile."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The current model, layer type, spec and pinned pair, and the problems of the last link or control."""

    model: str
    layer: str
    spec: RopeSpec
    pin: int | None = None
    problems: tuple[str, ...] = ()
    revision: int = 0

    @property
    def spec_json(self) -> dict[str, Any]:
        """Return the full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def current_choice() -> Chosen:
    """Return the current choice. Call `follow_link` first."""
    value = st.session_state["chosen"]
    assert isinstance(value, Chosen)
    return value


def _set(value: Chosen) -> None:
    st.session_state["chosen"] = value
    invalidate()


def now(page: str) -> Now:
    """Return the input of a page's pictures: the choice and the page's own choices; computed once per run."""
    before: tuple[str, Now] | None = st.session_state.get("now")
    if before is not None and before[0] == page and st.session_state.get("now is current"):
        return before[1]
    at, choices = current_choice(), registry.page(page).choices
    query = st.query_params.to_dict()
    local = {choice.key: query[choice.key] for choice in choices if choice.key in query}
    if local:
        st.session_state.setdefault("locals", {}).update(local)
    given = registry.lenient([choice for choice in choices if not isinstance(choice, Kept)], local)
    given |= {choice.key: held for choice in choices if isinstance(choice, Kept) and (held := _load_held(choice))}
    mine = own() if at.model == spec_url.CUSTOM else None
    names = {}
    if mine is not None:
        names["own"] = store_blob("own", configs.upload_bytes(mine), of=mine)
    if not registry.fits_in_url(at.spec, at.model, at.layer):
        names["spec"] = store_blob("spec", configs.spec_bytes(at.spec), of=at.spec)
    fresh = Now(at.spec, at.model, at.layer, mine, at.pin, given, held=names)
    # The previous request caches the values of its choices, so reuse it if equal.
    if before is None or before != (page, fresh):
        before = st.session_state["now"] = page, fresh
    st.session_state["now is current"] = True
    return before[1]


def invalidate() -> None:
    """Invalidate the cached `now`: at the start of a run and after a change."""
    st.session_state["now is current"] = False


def store_blob(key: str, content: bytes | None, *, of: object = None) -> str:
    """Store content that no address can hold for this session; return the name that pictures use, "" for None."""
    mine = st.session_state.setdefault("held", {})
    if content is None:
        mine.pop(key, None)
        invalidate()
        return ""
    known = mine.get(key)
    if known is None or known[0] != (of or content):
        salted = st.session_state.setdefault("salt", blob_store.salt()) + content
        known = mine[key] = (of or content, blob_store.name_of(salted), salted)
        invalidate()
    if blob_store.STORE.salted(known[1]) is None:
        blob_store.STORE.keep(known[2], session_visitor())
    return str(known[1])


def blob(key: str) -> bytes | None:
    """Return the content stored for this session under a key, or None."""
    known = st.session_state.get("held", {}).get(key)
    return None if known is None else known[2][blob_store.SALT :]


def contents() -> list[bytes]:
    """Return all contents of this session, salted, for a server that lacks them."""
    return [salted for _, _, salted in st.session_state.get("held", {}).values()]


def _load_held(choice: Kept[Any]) -> Held[Any] | None:
    content = blob(choice.key)
    if content is None:
        return None
    name = store_blob(choice.key, content)
    return Held(name, blob_store.STORE.load(name, choice.decode))


def own() -> Upload | None:
    """Return the user's own config, or None; it belongs to the session and is never part of a link."""
    return st.session_state.get("own")


def own_text() -> str:
    """Return the user's own config in the form stored by the browser, "" if there is none."""
    mine = own()
    return "" if mine is None else configs.upload_bytes(mine).decode()


def bring_back(text: str, *, here: bool) -> None:
    """Restore the config stored by the browser if this session has none: after a reload, or on a new server.

    It becomes the model if the address says so. `here`: this very tab stored it, so different numbers in the address
    are the user's changes to it and not another model.
    """
    if own() is not None:
        return
    try:
        mine = read_upload(text)
    except ValueError:
        return  # from an older release, or edited by hand
    now = current_choice()
    starts = [spec_url.write_query(spec, model=spec_url.CUSTOM, layer=layer) for layer, spec in mine.specs.items()]
    if now.model == spec_url.CUSTOM and not here and _without(address(), "pin") not in starts:
        return
    st.session_state["own"] = mine
    for layer, spec in mine.specs.items():
        # A config's numbers may exceed the knobs' ranges, and then the address cannot reproduce them.
        if now.model == spec_url.CUSTOM and spec_url.write_query(spec, model=spec_url.CUSTOM, layer=layer) == _without(
            address(), "pin"
        ):
            changed = dataclasses.replace(now, layer=layer, spec=spec, problems=(), revision=now.revision + 1)
            _set(changed)


def forget() -> None:
    """Remove the user's own config here and in the browser, but keep its numbers (a callback)."""
    query_params.catch_up()
    st.session_state.pop("own", None)
    st.session_state.get("held", {}).pop("own", None)
    st.session_state["forgotten"] = True


def adopt(upload: Upload) -> None:
    """Make a user's own config the model."""
    st.session_state["own"] = upload
    st.session_state.pop("forgotten", None)
    layer = upload.layer
    now = current_choice()
    choose(
        model=spec_url.CUSTOM, layer=layer, spec=upload.specs[layer], problems=upload.notes, revision=now.revision + 1
    )


def start(model: str, layer: str = "") -> RopeSpec:
    """Return the spec that a model starts from, the user's own included."""
    return start_of(model, layer, own())


def name() -> str:
    """Return the chosen model's name."""
    return name_of(current_choice().model, own())


def follow_link(page: str) -> None:
    """Adopt the choice from the address if the user changed it: first visit, typed link, Back and Forward.

    Streamlit clears the query when a link opens another page; the choice and the page's own parameters are then written
    back. After Back and Forward the address wins.
    """
    params = {key: value for key, value in st.query_params.items() if key in (*spec_url.KEYS, "pin")}
    known = st.session_state.get("address")
    moved = st.session_state.get("page") not in (None, page)
    linked = moved and params in ({}, known) and not _was_open(page)
    st.session_state["page"] = page
    query_params.record_address(st.query_params.to_dict())
    if page == LEARN:
        _before_tour()
        if linked:
            return  # a step has its own address
    elif _after_tour(params, linked=linked) or linked:
        has = any(key.startswith(f"{page}.") for key in st.query_params)
        write_link(restore=page if linked and not has else "", again=True)
        return
    if moved or known not in (None, params):
        # An aborted run may have written its own query into this address.
        query_params.write(st.query_params.to_dict())
    if params == known:
        return
    opened = spec_url.read_query(params)
    pin = _pin(params.get("pin", ""), opened.spec.pairs)
    spec, problems = opened.spec, opened.problems
    first = start(opened.model, opened.layer)
    if own() is not None and spec_url.write_query(first, model=spec_url.CUSTOM, layer=opened.layer) == _without(
        params, "pin"
    ):
        # A config's numbers may exceed the knobs' ranges; its own link restores them exactly.
        spec, problems = first, ()
    revision = current_choice().revision + 1 if known is not None else 0
    _set(Chosen(opened.model, opened.layer, spec, pin, problems, revision))
    st.session_state["address"] = params


def _was_open(page: str) -> bool:
    """True if the browser was already at the page when it requested it, as after Back but not after a link."""
    context = get_script_run_ctx()
    if context is None or context.context_info is None or not context.context_info.url:
        return False
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    path = urlsplit(context.context_info.url).path.strip("/").removeprefix(base).strip("/")
    return page == (path if path in registry.PAGES else next(iter(registry.PAGES)))


def open_tour(number: int, params: Mapping[str, str]) -> None:
    """Open a step of the tour at its own address; the user's choice is set aside until the tour ends."""
    st.session_state["tour"] = number
    ours = {key: value for key, value in params.items() if key in spec_url.KEYS}
    opened = spec_url.read_query(ours)
    revision = current_choice().revision + 1
    _set(Chosen(opened.model, opened.layer, opened.spec, revision=revision))
    st.session_state["locals"] = {}
    query_params.write(params)
    invalidate()
    st.session_state["address"] = address()


def _before_tour() -> None:
    """Set the user's choice aside when the tour begins, so that a step never replaces it by itself."""
    if "before tour" not in st.session_state:
        first = spec_url.read_query({})
        had = st.session_state.get("chosen", Chosen(first.model, first.layer, first.spec))
        st.session_state["before tour"] = had, st.session_state.get("locals", {})


def _after_tour(params: Mapping[str, str], *, linked: bool) -> bool:
    """Restore the choice from before the tour and return True, unless the user takes a step's model to another page."""
    st.session_state.pop("tour", None)
    before = st.session_state.pop("before tour", None)
    if before is None or (linked and params):
        return False
    had, st.session_state["locals"] = before
    if not linked and params != address(had):
        return False
    _set(dataclasses.replace(had, revision=current_choice().revision + 1))
    return True


def leave(page: str) -> None:
    """Leave the tour for a page with the current choice (a callback)."""
    st.session_state["go"] = page, address()
    frame_too()


def frame_too() -> None:
    """Rerun the whole app and not only the page's fragment (in a callback)."""
    query_params.catch_up()
    st.session_state["whole run"] = True


@functools.cache
def menu(folder: Path) -> dict[str, st.Page]:
    """Return the pages by name in menu order, made once per process because each makes several disk accesses."""
    first = next(iter(PAGES))
    return {name: st.Page(folder / f"{name}.py", title=title, default=name == first) for name, title in PAGES.items()}


def page(name: str) -> st.Page:
    """Return a page to link to."""
    return menu(st.session_state["pages folder"])[name]


def link_query() -> dict[str, str]:
    """Return the choice as the query of a link to another page."""
    return address()


def choose(**changes: Any) -> None:
    """Change the choice and the address, as one step for the Back button."""
    query_params.catch_up()
    now = dataclasses.replace(current_choice(), **{"problems": (), **changes})
    if now.pin is not None and now.pin >= now.spec.pairs:
        now = dataclasses.replace(now, pin=None)
    _set(now)
    write_link()


def refuse(problem: str) -> None:
    """Keep the choice, show the problem and reset the controls."""
    now = current_choice()
    _set(dataclasses.replace(now, problems=(problem,), revision=now.revision + 1))


def write_link(*, restore: str = "", again: bool = False) -> None:
    """Write the choice into the address, as one step for the Back button; other parameters stay.

    `restore`: a page whose own parameters are restored. `again`: write even if the address seems unchanged.
    """
    ours = address()
    others = {key: value for key, value in st.query_params.items() if key not in (*spec_url.KEYS, "pin")}
    if restore:
        stored = st.session_state.get("locals", {})
        others |= {key: value for key, value in stored.items() if key.startswith(f"{restore}.")}
    if again or st.query_params.to_dict() != others | ours:
        query_params.write(others | ours)
        invalidate()
    st.session_state["address"] = ours


def local(key: str) -> str | None:
    """Return a page's own parameter from the address, and remember it for a return to the page."""
    value = st.query_params.get(key)
    if value is not None:
        st.session_state.setdefault("locals", {})[key] = value
    return value


def set_param(key: str, value: str, *, default: str) -> None:
    """Write a page's own parameter into the address, or remove it if it is the default."""
    query_params.catch_up()
    stored, query = st.session_state.setdefault("locals", {}), st.query_params.to_dict()
    for values in (stored, query):
        values.pop(key, None)
        if value != default:
            values[key] = value
    query_params.write(query)
    invalidate()


def address(of: Chosen | None = None) -> dict[str, str]:
    """Return the choice as query parameters."""
    now = of or current_choice()
    ours = spec_url.write_query(now.spec, model=now.model, layer=now.layer)
    return ours | ({"pin": str(now.pin)} if now.pin is not None else {})


def _without(params: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in params.items() if name != key}


def _pin(text: str, pairs: int) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 and int(text) < pairs else None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one; for data from a browser."""
    return value if isinstance(value, Mapping) else {}
