"""What the reader has chosen, kept in the session and in the address: one value, one place that writes it."""

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
from rope_viz.models.catalog import catalog
from rope_viz.models.user_config import Upload
from rope_viz.multi_axis.read_upload import read_upload
from rope_viz.pictures import blob_store, configs, registry
from rope_viz.pictures.choices import Held, Kept
from rope_viz.pictures.picture_request import Now
from rope_viz.pictures.picture_request import start as start_of
from rope_viz.pictures.registry import PAGES
from rope_viz.ui import query_params as written

LEARN = "learn"
"""The page of the tour: its steps have addresses of their own, and what the reader chose waits outside."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The current model, layer type and spec, the pinned pair, and what the last link or control could not give."""

    model: str
    layer: str
    spec: RopeSpec
    pin: int | None = None
    problems: tuple[str, ...] = ()
    revision: int = 0

    @property
    def spec_json(self) -> dict[str, Any]:
        """The full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def chosen() -> Chosen:
    """The current choice. `follow_link` must have run first, as the frame does."""
    value = st.session_state["chosen"]
    assert isinstance(value, Chosen)
    return value


def _set(value: Chosen) -> None:
    st.session_state["chosen"] = value
    look_again()


def now(page: str) -> Now:
    """What the pictures of a page are drawn from: the choice, and the page's own choices; found once in a run."""
    before: tuple[str, Now] | None = st.session_state.get("now")
    if before is not None and before[0] == page and st.session_state.get("now is current"):
        return before[1]
    at, choices = chosen(), registry.page(page).choices
    asked = st.query_params.to_dict()
    local = {choice.key: asked[choice.key] for choice in choices if choice.key in asked}
    if local:
        st.session_state.setdefault("locals", {}).update(local)
    given = registry.lenient([choice for choice in choices if not isinstance(choice, Kept)], local)
    given |= {choice.key: held for choice in choices if isinstance(choice, Kept) and (held := _held(choice))}
    mine = own() if at.model == spec_url.CUSTOM else None
    names = {}
    if mine is not None:
        names["own"] = hold("own", configs.upload_bytes(mine), of=mine)
    if not registry.fits(at.spec, at.model, at.layer):
        names["spec"] = hold("spec", configs.spec_bytes(at.spec), of=at.spec)
    fresh = Now(at.spec, at.model, at.layer, mine, at.pin, given, held=names)
    # The request of the run before remembers what its choices were worked out to be.
    if before is None or before != (page, fresh):
        before = st.session_state["now"] = page, fresh
    st.session_state["now is current"] = True
    return before[1]


def look_again() -> None:
    """At the beginning of a run, and where something was chosen: `now` is another."""
    st.session_state["now is current"] = False


def hold(key: str, content: bytes | None, *, of: object = None) -> str:
    """Keep for this session what no address can hold, and give the name under which pictures find it."""
    mine = st.session_state.setdefault("held", {})
    if content is None:
        mine.pop(key, None)
        look_again()
        return ""
    known = mine.get(key)
    if known is None or known[0] != (of or content):
        salted = st.session_state.setdefault("salt", blob_store.salt()) + content
        known = mine[key] = (of or content, blob_store.name_of(salted), salted)
        look_again()
    if blob_store.STORE.salted(known[1]) is None:
        blob_store.STORE.keep(known[2])
    return str(known[1])


def held(key: str) -> bytes | None:
    """What is kept for this session under a key."""
    known = st.session_state.get("held", {}).get(key)
    return None if known is None else known[2][blob_store.SALT :]


def contents() -> list[bytes]:
    """All that is kept for this session, for a server that does not know it."""
    return [salted for _, _, salted in st.session_state.get("held", {}).values()]


def _held(choice: Kept[Any]) -> Held[Any] | None:
    content = held(choice.key)
    if content is None:
        return None
    name = hold(choice.key, content)
    return Held(name, blob_store.STORE.read(name, choice.decode))


def own() -> Upload | None:
    """The reader's own config, the last one that was taken; it stays in the session and never stands in a link."""
    return st.session_state.get("own")


def own_text() -> str:
    """The reader's own config as his browser keeps it; empty where there is none."""
    mine = own()
    return "" if mine is None else configs.upload_bytes(mine).decode()


def bring_back(text: str, *, here: bool) -> None:
    """Take the config that the browser kept, where this session has none: after a reload, or with a new server.

    It becomes the model where the address says so; `here`: it was kept by this very tab, so that other numbers in the
    address are the reader's changes of it, and not another model.
    """
    if own() is not None:
        return
    try:
        mine = read_upload(text)
    except ValueError:
        return  # it was taken once: an older release wrote it, or somebody's hand
    now = chosen()
    starts = [spec_url.query(spec, model=spec_url.CUSTOM, layer=layer) for layer, spec in mine.specs.items()]
    if now.model == spec_url.CUSTOM and not here and _without(address(), "pin") not in starts:
        return
    st.session_state["own"] = mine
    for layer, spec in mine.specs.items():
        # Numbers of a config may lie beyond the knobs, and then the address could not give them as they are.
        if now.model == spec_url.CUSTOM and spec_url.query(spec, model=spec_url.CUSTOM, layer=layer) == _without(
            address(), "pin"
        ):
            changed = dataclasses.replace(now, layer=layer, spec=spec, problems=(), revision=now.revision + 1)
            _set(changed)


def forget() -> None:
    """In a callback: let the reader's own config go, here and in his browser; its numbers stay."""
    written.catch_up()
    st.session_state.pop("own", None)
    st.session_state.get("held", {}).pop("own", None)
    st.session_state["forgotten"] = True


def adopt(upload: Upload) -> None:
    """Make a reader's own config the model."""
    st.session_state["own"] = upload
    st.session_state.pop("forgotten", None)
    layer = upload.layer
    now = chosen()
    choose(
        model=spec_url.CUSTOM, layer=layer, spec=upload.specs[layer], problems=upload.notes, revision=now.revision + 1
    )


def start(model: str, layer: str = "") -> RopeSpec:
    """The spec that a model starts from, the reader's own included."""
    return start_of(model, layer, own())


def name() -> str:
    """The chosen model's name."""
    mine, model = own(), chosen().model
    if model == spec_url.CUSTOM:
        return "Custom" if mine is None else mine.name
    return catalog()[model].name


def follow_link(page: str) -> None:
    """Take the choice from the address where the reader changed it: first visit, typed link, Back and Forward.

    Streamlit empties the query where a link leads to another page; the choice, and what the page itself had, are then
    written back. Back and Forward find what their address says.
    """
    params = {key: value for key, value in st.query_params.items() if key in (*spec_url.KEYS, "pin")}
    known = st.session_state.get("address")
    moved = st.session_state.get("page") not in (None, page)
    linked = moved and params in ({}, known) and not _stands(page)
    st.session_state["page"] = page
    written.seen(st.query_params.to_dict())
    if page == LEARN:
        _before_tour()
        if linked:
            return  # a step has an address of its own
    elif _after_tour(params, linked=linked) or linked:
        has = any(key.startswith(f"{page}.") for key in st.query_params)
        write_link(restore=page if linked and not has else "", again=True)
        return
    if moved or known not in (None, params):
        # A run that was given up may have written what it had into this address.
        written.write(st.query_params.to_dict())
    if params == known:
        return
    opened = spec_url.read(params)
    pin = _pin(params.get("pin", ""), opened.spec.pairs)
    spec, problems = opened.spec, opened.problems
    first = start(opened.model, opened.layer)
    if own() is not None and spec_url.query(first, model=spec_url.CUSTOM, layer=opened.layer) == _without(
        params, "pin"
    ):
        # Numbers of a config may lie beyond the knobs; its own link brings them back as they are.
        spec, problems = first, ()
    revision = chosen().revision + 1 if known is not None else 0
    _set(Chosen(opened.model, opened.layer, spec, pin, problems, revision))
    st.session_state["address"] = params


def _stands(page: str) -> bool:
    """Whether the browser stood at the page when it asked for it, as after Back; a link is followed from another."""
    context = get_script_run_ctx()
    if context is None or context.context_info is None or not context.context_info.url:
        return False
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    path = urlsplit(context.context_info.url).path.strip("/").removeprefix(base).strip("/")
    return page == (path if path in registry.PAGES else next(iter(registry.PAGES)))


def open_tour(number: int, params: Mapping[str, str]) -> None:
    """Begin a step of the tour at its own address; what the reader had before waits until he leaves."""
    st.session_state["tour"] = number
    ours = {key: value for key, value in params.items() if key in spec_url.KEYS}
    opened = spec_url.read(ours)
    revision = chosen().revision + 1
    _set(Chosen(opened.model, opened.layer, opened.spec, revision=revision))
    st.session_state["locals"] = {}
    written.write(params)
    look_again()
    st.session_state["address"] = address()


def _before_tour() -> None:
    """What the reader has as he enters waits until he leaves: a step never becomes his choice by itself."""
    if "before tour" not in st.session_state:
        first = spec_url.read({})
        had = st.session_state.get("chosen", Chosen(first.model, first.layer, first.spec))
        st.session_state["before tour"] = had, st.session_state.get("locals", {})


def _after_tour(params: Mapping[str, str], *, linked: bool) -> bool:
    """Bring back what the reader had, unless he takes a step's model along or goes back to another; says whether."""
    st.session_state.pop("tour", None)
    before = st.session_state.pop("before tour", None)
    if before is None or (linked and params):
        return False
    had, st.session_state["locals"] = before
    if not linked and params != address(had):
        return False
    _set(dataclasses.replace(had, revision=chosen().revision + 1))
    return True


def leave(page: str) -> None:
    """In a callback: the frame goes to a page with the choice as it is."""
    st.session_state["go"] = page, address()
    frame_too()


def frame_too() -> None:
    """In a callback of a page, whose controls run that page alone: what stands around it runs as well."""
    written.catch_up()
    st.session_state["whole run"] = True


@functools.cache
def menu(folder: Path) -> dict[str, st.Page]:
    """Name -> page, in the order of the menu, made once per process: each looks at the disk several times."""
    first = next(iter(PAGES))
    return {name: st.Page(folder / f"{name}.py", title=title, default=name == first) for name, title in PAGES.items()}


def page(name: str) -> st.Page:
    """A page to lead to."""
    return menu(st.session_state["pages folder"])[name]


def link_query() -> dict[str, str]:
    """The choice as the query of a link to another page, which has what it had of its own."""
    return address()


def choose(**changes: Any) -> None:
    """Change the choice, and the address with it: one step for the Back button."""
    written.catch_up()
    now = dataclasses.replace(chosen(), **{"problems": (), **changes})
    if now.pin is not None and now.pin >= now.spec.pairs:
        now = dataclasses.replace(now, pin=None)
    _set(now)
    write_link()


def refuse(problem: str) -> None:
    """Keep the choice as it is and say why; controls return to it."""
    now = chosen()
    _set(dataclasses.replace(now, problems=(problem,), revision=now.revision + 1))


def write_link(*, restore: str = "", again: bool = False) -> None:
    """Write the choice into the address, leaving the pages' own parameters alone: one step for the Back button.

    `restore` names a page that gets back what it had of its own. `again`: also where it should stand there already.
    """
    ours = address()
    others = {key: value for key, value in st.query_params.items() if key not in (*spec_url.KEYS, "pin")}
    if restore:
        kept = st.session_state.get("locals", {})
        others |= {key: value for key, value in kept.items() if key.startswith(f"{restore}.")}
    if again or st.query_params.to_dict() != others | ours:
        written.write(others | ours)
        look_again()
    st.session_state["address"] = ours


def local(key: str) -> str | None:
    """A page's own parameter as it stands in the address; it is remembered for when the reader returns to the page."""
    value = st.query_params.get(key)
    if value is not None:
        st.session_state.setdefault("locals", {})[key] = value
    return value


def keep(key: str, value: str, *, default: str) -> None:
    """Write a page's own parameter into the address, or take it out where it is the default."""
    written.catch_up()
    kept, query = st.session_state.setdefault("locals", {}), st.query_params.to_dict()
    for values in (kept, query):
        values.pop(key, None)
        if value != default:
            values[key] = value
    written.write(query)
    look_again()


def address(of: Chosen | None = None) -> dict[str, str]:
    """The choice as query parameters."""
    now = of or chosen()
    ours = spec_url.query(now.spec, model=now.model, layer=now.layer)
    return ours | ({"pin": str(now.pin)} if now.pin is not None else {})


def _without(params: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in params.items() if name != key}


def _pin(written: str, pairs: int) -> int | None:
    return int(written) if written.isdecimal() and len(written) < 6 and int(written) < pairs else None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: for what a browser sends."""
    return value if isinstance(value, Mapping) else {}
