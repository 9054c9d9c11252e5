"""The user's current choice, stored in the session and in the address; the only module that writes it."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.models.variant import MOST, write_variant
from rope_viz.own_files import blob_store, config_link, configs
from rope_viz.own_files.admit import admit_text
from rope_viz.own_files.outside import SentContent
from rope_viz.pages import learn, registry
from rope_viz.pages.registry import ORDER, groups_of, titles
from rope_viz.picture import read_address, write_address
from rope_viz.picture.choices import StoredChoice, StoredValue
from rope_viz.picture.picture_request import PictureRequest, share_variant
from rope_viz.storage.limits import SESSION_CONTENT_BYTES
from rope_viz.texts import Texts, cache_by_language
from rope_viz.ui import own_config, query_params
from rope_viz.ui.language import write_language
from rope_viz.ui.own_config import own
from rope_viz.ui.rejected_config import dismiss
from rope_viz.ui.session import Chosen, Stored, session, session_id
from rope_viz.ui.visitors import session_reader, session_visitor

_SESSIONS: dict[str, set[str]] = {}
"""The sessions that name a content, by its name."""

_LOCK = threading.Lock()


def invalidate() -> None:
    """Invalidate the cached `state.picture_request`: at the start of a run and after a change."""
    session().is_current = False


def make_stored(salted: bytes, of: object = None) -> Stored:
    """Store a salted content for this session. Raise `ValueError` if it is too large."""
    name = blob_store.STORE.keep(salted, session_visitor())
    with _LOCK:
        _SESSIONS.setdefault(name, set()).add(session_id())
    small = salted if len(salted) <= SESSION_CONTENT_BYTES else None
    return Stored(of or mark(salted[blob_store.SALT :]), name, len(salted), small)


def mark(content: bytes) -> bytes:
    """Return what a content is compared by: itself, or the digest of a large one."""
    return content if len(content) <= SESSION_CONTENT_BYTES else hashlib.sha256(content).digest()


def release(session: str) -> None:
    """Forget what only this session named: it has ended."""
    with _LOCK:
        for names in _SESSIONS.values():
            names.discard(session)
        unnamed = [name for name, names in _SESSIONS.items() if not names]
        for name in unnamed:
            del _SESSIONS[name]
    blob_store.STORE.forget(unnamed)


def store_blob(key: str, content: bytes | None, *, of: object = None) -> str:
    """Store content that no address can hold for this session; return the name that pictures use, "" for None."""
    mine = session().stored
    if content is None:
        mine.pop(key, None)
        invalidate()
        return ""
    known = mine.get(key)
    if known is None or known.of != (of or mark(content)):
        known = mine[key] = make_stored(session().salt + content, of)
        invalidate()
    elif blob_store.STORE.salted(known.name) is None:
        make_stored(session().salt + content)
    return known.name


def blob(key: str) -> bytes | None:
    """Return the content stored for this session under a key, or None."""
    known = session().stored.get(key)
    salted = None if known is None else known.salted
    return None if salted is None else salted[blob_store.SALT :]


def contents() -> list[bytes]:
    """Return all contents of this session, salted, for a server that lacks them."""
    found = (known.salted for known in session().stored.values())
    return [salted for salted in found if salted is not None]


def store_readable(choice: StoredChoice[Any], content: bytes) -> None:
    """Store the content of a choice for this session. Raise `ValueError` with a sentence if it cannot be read."""
    blob_store.require_size(content, choice.largest)
    name = store_blob(choice.key, content)
    try:
        blob_store.STORE.load(name, choice.decode, session_reader())
    except ValueError:
        store_blob(choice.key, None)
        raise


def load_held(choice: StoredChoice[Any]) -> StoredValue[Any] | None:
    """Return the decoded content of a choice, None if the session has none or it cannot be read now."""
    known = session().stored.get(choice.key)
    if known is None:
        return None
    if known.small is not None and blob_store.STORE.salted(known.name) is None:
        make_stored(known.small)
    try:
        return choice.read_value(known.name, session_reader())
    except blob_store.UnknownError:
        return None
    except ValueError as error:
        session().problems[choice.key] = str(error)  # shown next to the choice
        return None


LENGTHS = {key: name for key, name in spec_url.SIZES.items() if name in ("context", "target")}
"""{address key: field} of the lengths that pages share with the sidebar."""


def with_keys(params: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return only the parameters with these keys."""
    return {name: value for name, value in params.items() if name in keys}


def without_key(params: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the parameters without one key."""
    return {name: value for name, value in params.items() if name != key}


TEXTS = Texts("app")
PRESENTED = "present"
"""The query key of a picture that is shown alone and large (`present_page`)."""


def current_choice() -> Chosen:
    """Return the current choice. Call `follow_link` first."""
    value = session().choice
    assert value is not None
    return value


def current_page() -> str:
    """Return the name of the open page."""
    return session().page


def _set(value: Chosen) -> None:
    mine = own() if value.subject.model == spec_url.CUSTOM else None
    session().choice = dataclasses.replace(value, subject=value.subject._replace(own=mine))
    invalidate()


def picture_request(page: str) -> PictureRequest:
    """Return the input of a page's pictures: the choice and the page's own choices; computed once per run."""
    remembered = session()
    before = remembered.request
    if before is not None and before[0] == page and remembered.is_current:
        return before[1]
    at, choices = current_choice(), registry.page(page).choices
    query = st.query_params.to_dict()
    local = {choice.key: query[choice.key] for choice in choices if choice.key in query}
    remembered.choices.update(local)
    in_address = [choice for choice in choices if not isinstance(choice, StoredChoice)]
    given = read_address.lenient(in_address, local, session_reader())
    given |= {
        choice.key: held for choice in choices if isinstance(choice, StoredChoice) and (held := load_held(choice))
    }
    given |= {choice.key: getattr(at.spec, choice.shared) for choice in choices if choice.shared in at.typed}
    mine, names = at.subject.own, {}
    if mine is not None:
        names["own"] = store_blob("own", configs.upload_bytes(mine), of=mine)
    if not write_address.fits_in_url(at.subject):
        names["spec"] = store_blob("spec", configs.spec_bytes(at.spec), of=at.spec)
    fresh = PictureRequest(at.subject, at.pin, given, held=names, variants=at.variants)
    # The previous request caches the values of its choices, so reuse it if equal.
    if before is None or before != (page, fresh):
        before = remembered.request = page, fresh
    remembered.is_current = True
    return before[1]


def bring_back(text: str, *, here: bool) -> None:
    """Restore the config stored by the browser if this session has none: after a reload, or on a new server.

    It becomes the model if the address says so. `here`: this very tab stored it, so different numbers in the address
    are the user's changes to it and not another model.
    """
    try:
        mine, size = session_reader().read_outside(SentContent(admit_text, text))
    except ValueError:
        return  # from an older release, or edited by hand
    if not own_config.has_room(size):
        return
    request, link = current_choice(), config_link.write_config(mine)
    is_custom = request.subject.model == spec_url.CUSTOM
    if (held := own()) is not None:
        if is_custom and link and link == config_link.write_config(held):
            own_config.remember_upload(mine, size)  # the whole file of the config in the address
            _set(request)
        return
    numbers = with_keys(address(), read_address.MODEL_KEYS)
    subjects = [Subject(spec, spec_url.CUSTOM, layer) for layer, spec in mine.specs.items()]
    starts = {subject.layer: spec_url.write_query(subject) for subject in subjects}
    if is_custom and numbers not in starts.values() and (link or not here):
        return
    own_config.remember_upload(mine, size)
    _set(dataclasses.replace(request, typed=find_typed(request.subject._replace(own=mine if is_custom else None))))
    for subject in subjects:
        # A config's numbers may exceed the knobs' ranges, and then the address cannot reproduce them.
        if is_custom and starts[subject.layer] == numbers:
            _set(Chosen(subject, request.pin, revision=request.revision + 1, variants=request.variants))
            write_link()


def forget() -> None:
    """Remove the user's own config here, in the address and in the browser, but keep its numbers (a callback)."""
    query_params.catch_up()
    own_config.forget()
    _set(current_choice())
    write_link()


def adopt(upload: Upload, size: int = 0) -> None:
    """Make a user's own config, of so many bytes in memory, the model.

    Raise `ValueError` with a sentence if there is no room for it.
    """
    own_config.remember_upload(upload, size)
    choose_model(spec_url.CUSTOM, upload.layer, problems=upload.notes, revision=current_choice().revision + 1)


def choose_model(model: str, layer: str, **changes: Any) -> None:
    """Choose a model and a layer type. A target length that the user has set stays, because it is not the model's."""
    dismiss()
    request = current_choice()
    subject = Subject(RopeSpec(), model, layer, own() if model == spec_url.CUSTOM else None).unchanged
    typed = request.typed & {"target"}
    if typed:
        subject = subject._replace(spec=spec_url.with_sizes(subject.spec, target=request.spec.target))
    choose(subject=subject, typed=typed, **changes)
    frame_too()  # the header names the model, and its links carry it


def set_size(name: str, value: float) -> None:
    """Set a length of the spec, "context" or "target", from a page. Raise `ValueError` if the spec cannot have it."""
    request = current_choice()
    spec = spec_url.move_knob(request.spec, name, value)
    choose(spec, typed=request.typed | {name}, revision=request.revision + 1)
    frame_too()  # the sidebar has the same numbers


def find_typed(subject: Subject) -> frozenset[str]:
    """Return the lengths that an address sets: with a config of the user, those that differ from it."""
    if subject.config is None:
        return frozenset()  # such an address holds all numbers
    if subject.own is None or config_link.KEY in st.query_params:
        return frozenset(name for key, name in LENGTHS.items() if key in st.query_params)
    first = subject.start
    return frozenset(name for name in LENGTHS.values() if getattr(subject.spec, name) != getattr(first, name))


def follow_link(page: str) -> None:
    """Adopt the choice from the address if the user changed it: first visit, typed link, Back and Forward.

    Streamlit clears the query when a link opens another page; the choice and the page's own parameters are then written
    back. After Back and Forward the address wins.
    """
    dropped = _rename_old_keys()
    params = {key: value for key, value in st.query_params.items() if key in read_address.CHOICE_KEYS}
    known = session().address
    moved = session().page not in ("", page)
    linked = moved and params in ({}, known) and not _was_open(page)
    session().page = page
    query_params.record_address(st.query_params.to_dict())
    if linked:
        has = any(key.partition(".")[0] in groups_of(page) for key in st.query_params)
        write_link(restore=page if linked and not has else "", again=True)
        return
    if moved or known not in (None, params):
        # An aborted run may have written its own query into this address.
        query_params.write(st.query_params.to_dict())
    if params == known:
        return
    subject, problems = _open_model(params)
    try:
        pin = read_address.pin_of(params, subject.spec.pairs)
    except ValueError as error:
        pin, problems = None, (*problems, TEXTS("address.unpinned", problem=error))
    numbers = with_keys(params, read_address.MODEL_KEYS)
    if subject.own is not None and spec_url.write_query(subject.unchanged._replace(own=None)) == numbers:
        # A config's numbers may exceed the knobs' ranges; its own link restores them exactly.
        subject, problems = subject.unchanged, ()
    revision = current_choice().revision + 1 if known is not None else 0
    dismiss()
    variants, unread = read_address.lenient_variants(params, share_variant(subject))
    _set(Chosen(subject, pin, (*problems, *dropped, *unread), revision, find_typed(subject), variants))
    session().address = params
    text = "" if subject.own is None else config_link.write_config(subject.own)
    if text and params.get(config_link.KEY, text) != text:
        # A link of an older release held more: the address is copied, so it must not keep that.
        write_link()


def _open_model(params: Mapping[str, str]) -> tuple[Subject, tuple[str, ...]]:
    """Read the model of an address and take over its config; return it with a sentence for each problem."""
    text = params.get(config_link.KEY)
    try:
        known = None if text is None else own_config.find_upload(text)
        subject, problems = read_address.read_model(params, known, session_reader())
    except ValueError as error:
        subject, problems = read_address.read_model(without_key(params, config_link.KEY))
        problems = (TEXTS("link.numbers_only", error=error), *problems)
    if subject.own is not None:
        own_config.set_own(subject.own)
    elif subject.model == spec_url.CUSTOM and (held := own()) is not None and config_link.write_config(held):
        own_config.set_own(None)  # an address with numbers only is not that of the config
    elif subject.model == spec_url.CUSTOM:
        subject = subject._replace(own=held)  # no link can hold it
    return subject, problems


def _rename_old_keys() -> list[str]:
    """Rewrite an address of an older release; return a sentence for what is lost.

    Where it has both keys of a length, the page's own counts.
    """
    query, dropped = st.query_params.to_dict(), list[str]()
    if read_address.COMPARED_MODELS in query:
        models = [name for name in query[read_address.COMPARED_MODELS].split(",") if name]
        if len(models) > MOST:
            dropped.append(str(TEXTS("variants.dropped", models=", ".join(models[MOST:]))))
        query = dict(read_address.rename_models(query))
        query_params.write(query)
    if any(old in query for old in spec_url.OLD_KEYS):
        renamed = {new: query.pop(old) for old, new in spec_url.OLD_KEYS.items() if old in query}
        query_params.write(query | renamed)
    elif learn.OLD_KEY in query:
        # A step of the former tour had a model and choices of its own.
        query_params.write({learn.SCENE.key: learn.scene_of_step(query[learn.OLD_KEY])})
    return dropped


def _was_open(page: str) -> bool:
    """True if the browser was already at the page when it requested it, as after Back but not after a link."""
    context = get_script_run_ctx()
    if context is None or context.context_info is None or not context.context_info.url:
        return False
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    path = urlsplit(context.context_info.url).path.strip("/").removeprefix(base).strip("/")
    return page == (path if path in ORDER else ORDER[0])


def open_page(page: str) -> None:
    """Open another page with the current choice (in a callback)."""
    session().next_page = page, address()
    frame_too()


def frame_too() -> None:
    """Rerun the whole app and not only the page's fragment (in a callback)."""
    query_params.catch_up()
    session().needs_whole_run = True


@cache_by_language()
def menu(folder: Path) -> dict[str, st.Page]:
    """Return the pages by name in menu order, made once for each language: each makes several disk accesses."""
    if missing := [name for name in ORDER if not (folder / f"{name}.py").is_file()]:
        raise ValueError(f"page {missing[0]} has no layout: write pages/{missing[0]}.py")
    return {
        name: st.Page(folder / f"{name}.py", title=title, default=name == ORDER[0]) for name, title in titles().items()
    }


def page(name: str) -> st.Page:
    """Return a page to link to."""
    return menu(session().folder)[name]


def choose(spec: RopeSpec | None = None, **changes: Any) -> None:
    """Change the choice and the address, as one step for the Back button."""
    query_params.catch_up()
    request = current_choice()
    if spec is not None:
        changes["subject"] = request.subject._replace(spec=spec)
    request = dataclasses.replace(request, **{"problems": (), **changes})
    if request.pin is not None and request.pin >= request.spec.pairs:
        request = dataclasses.replace(request, pin=None)
    _set(request)
    write_link()


def refuse(problem: str) -> None:
    """Keep the choice, show the problem and reset the controls."""
    request = current_choice()
    _set(dataclasses.replace(request, problems=(problem,), revision=request.revision + 1))


def write_link(*, restore: str = "", again: bool = False) -> None:
    """Write the choice into the address, as one step for the Back button; other parameters stay.

    `restore`: a page whose own parameters are restored. `again`: write even if the address seems unchanged.
    """
    ours = address()
    others = {key: value for key, value in st.query_params.items() if key not in read_address.CHOICE_KEYS}
    if restore:
        stored = session().choices
        others |= {key: value for key, value in stored.items() if key.partition(".")[0] in groups_of(restore)}
    if again or st.query_params.to_dict() != others | ours:
        query_params.write(others | ours)
        invalidate()
    session().address = ours


def local(key: str) -> str | None:
    """Return a page's own parameter from the address, and remember it for a return to the page."""
    value = st.query_params.get(key)
    if value is not None:
        session().choices[key] = value
    return value


def present(name: str) -> None:
    """Present a picture of the open page by name, "1" for its main one, "" for none (a callback)."""
    set_param(PRESENTED, name, default="")
    frame_too()


def set_param(key: str, value: str, *, default: str) -> None:
    """Write a page's own parameter into the address, or remove it if it is the default."""
    query_params.catch_up()
    stored, query = session().choices, st.query_params.to_dict()
    for values in (stored, query):
        values.pop(key, None)
        if value != default:
            values[key] = value
    query_params.write(query)
    invalidate()


def address() -> dict[str, str]:
    """Return the choice as query parameters."""
    request = current_choice()
    ours = write_address.write_model(request.subject)
    ours |= {key: str(getattr(request.spec, name)) for key, name in LENGTHS.items() if name in request.typed}
    ours |= {f"variant{number}": write_variant(each) for number, each in request.variants.items()}
    return ours | write_language() | ({"pin": str(request.pin)} if request.pin is not None else {})


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one; for data from a browser."""
    return value if isinstance(value, Mapping) else {}
