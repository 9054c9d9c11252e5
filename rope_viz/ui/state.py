"""What the reader has chosen, kept in the session and in the address: one value, one place that writes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import streamlit as st

from rope_viz.configs import link
from rope_viz.configs.catalog import catalog
from rope_viz.configs.upload import Upload
from rope_viz.embedding.spec import RopeSpec
from rope_viz.pictures import registry
from rope_viz.pictures.now import Now
from rope_viz.pictures.now import start as start_of
from rope_viz.pictures.page import Page


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
    def file(self) -> str:
        """A stem for downloads that carries the parameters."""
        spec = self.spec
        parts = [self.model, f"d{spec.head_dim}", f"base{link.text(spec.base)}", f"L{spec.context}", f"to{spec.target}"]
        if spec.scaling.name != "none":
            parts.append(spec.scaling.name + link.text(spec.scaling.factor_for(spec)))
        return "_".join(parts)

    @property
    def spec_json(self) -> dict[str, Any]:
        """The full spec as plain data."""
        return {"model": self.model, "layer": self.layer, **dataclasses.asdict(self.spec)}


def chosen() -> Chosen:
    """The current choice. `follow_link` must have run first, as the frame does."""
    value = st.session_state["chosen"]
    assert isinstance(value, Chosen)
    return value


def now(page: Page) -> Now:
    """What the pictures of a page are drawn from: the choice, and the page's own choices from the address."""
    at = chosen()
    written = {choice.key: text for choice in page.choices if (text := local(choice.key)) is not None}
    start = Now(at.spec, at.model, at.layer, own(), at.pin)
    return registry.settle(start, page.choices, registry.lenient(page.choices, written))


def own() -> Upload | None:
    """The reader's own config, the last one that was taken; it stays in the session and never stands in a link."""
    return st.session_state.get("own")


def adopt(upload: Upload) -> None:
    """Make a reader's own config the model."""
    st.session_state["own"] = upload
    layer = upload.layer
    now = chosen()
    choose(model=link.CUSTOM, layer=layer, spec=upload.specs[layer], problems=upload.notes, revision=now.revision + 1)


def start(model: str, layer: str = "") -> RopeSpec:
    """The spec that a model starts from, the reader's own included."""
    return start_of(model, layer, own())


def config() -> Mapping[str, Any] | None:
    """The config.json of the chosen model; None where a link brought numbers only."""
    mine, model = own(), chosen().model
    if model == link.CUSTOM:
        return None if mine is None else mine.config
    return catalog()[model].config


def name() -> str:
    """The chosen model's name."""
    mine, model = own(), chosen().model
    if model == link.CUSTOM:
        return "Custom" if mine is None else mine.name
    return catalog()[model].name


def follow_link(page: str) -> None:
    """Take the choice from the address where the reader changed it: first visit, typed link, Back and Forward.

    Streamlit empties the query on a change of page; the choice, and what the page itself had, are then written back.
    """
    params = {key: value for key, value in st.query_params.items() if key in (*link.KEYS, "pin")}
    known = st.session_state.get("address")
    moved = st.session_state.get("page") not in (None, page)
    st.session_state["page"] = page
    if known is not None and moved and not params:
        write_link(restore=page)
        return
    if params == known:
        return
    opened = link.read(params)
    pin = _pin(params.get("pin", ""), opened.spec.pairs)
    spec, problems = opened.spec, opened.problems
    first = start(opened.model, opened.layer)
    if own() is not None and link.query(first, model=link.CUSTOM, layer=opened.layer) == _without(params, "pin"):
        # Numbers of a config may lie beyond the knobs; its own link brings them back as they are.
        spec, problems = first, ()
    revision = chosen().revision + 1 if known is not None else 0
    st.session_state["chosen"] = Chosen(opened.model, opened.layer, spec, pin, problems, revision)
    st.session_state["address"] = params


def choose(**changes: Any) -> None:
    """Change the choice, and the address with it: one step for the Back button."""
    now = dataclasses.replace(chosen(), **{"problems": (), **changes})
    if now.pin is not None and now.pin >= now.spec.pairs:
        now = dataclasses.replace(now, pin=None)
    st.session_state["chosen"] = now
    write_link()


def refuse(problem: str) -> None:
    """Keep the choice as it is and say why; controls return to it."""
    now = chosen()
    st.session_state["chosen"] = dataclasses.replace(now, problems=(problem,), revision=now.revision + 1)


def write_link(*, restore: str = "") -> None:
    """Write the choice into the address, leaving the pages' own parameters alone: one step for the Back button.

    `restore` names a page that gets back what it had of its own.
    """
    ours = address()
    others = {key: value for key, value in st.query_params.items() if key not in (*link.KEYS, "pin")}
    if restore:
        kept = st.session_state.get("locals", {})
        others |= {key: value for key, value in kept.items() if key.startswith(f"{restore}.")}
    if dict(st.query_params.items()) != others | ours:
        st.query_params.from_dict(others | ours)
    st.session_state["address"] = ours


def local(key: str) -> str | None:
    """A page's own parameter as it stands in the address; it is remembered for when the reader returns to the page."""
    value = st.query_params.get(key)
    if value is not None:
        st.session_state.setdefault("locals", {})[key] = value
    return value


def keep(key: str, value: str, *, default: str) -> None:
    """Write a page's own parameter into the address, or take it out where it is the default."""
    kept = st.session_state.setdefault("locals", {})
    if value == default:
        kept.pop(key, None)
        st.query_params.pop(key, None)
    else:
        kept[key] = value
        st.query_params[key] = value


def address() -> dict[str, str]:
    """The choice as query parameters."""
    now = chosen()
    ours = link.query(now.spec, model=now.model, layer=now.layer)
    return ours | ({"pin": str(now.pin)} if now.pin is not None else {})


def _without(params: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in params.items() if name != key}


def _pin(written: str, pairs: int) -> int | None:
    return int(written) if written.isdecimal() and len(written) < 6 and int(written) < pairs else None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: for what a browser sends."""
    return value if isinstance(value, Mapping) else {}
