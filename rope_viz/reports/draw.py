"""A picture as a file: from Python, by the same address as in a browser, or drawn again from its saved JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import files
from rope_viz.figures.files.redraw_json import first_reason
from rope_viz.figures.files.style import PRESETS, Style, is_key
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.spec_url import Subject
from rope_viz.own_files import blob_store as contents
from rope_viz.own_files import configs
from rope_viz.pages import registry
from rope_viz.picture import export, read_address
from rope_viz.picture.export import to_file
from rope_viz.picture.outputs import Clocks, Table
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.wire_format import escape_markup
from rope_viz.texts import Texts
from rope_viz.texts.languages import ENGLISH, check_language


def figure(address: str, form: str = "svg") -> bytes:
    """Return a picture as a file.

        open("plot.svg", "wb").write(figure("scaling/comparison?model=qwen3-8b-yarn&width=85mm"))

    `address` is PAGE/PICTURE with the query that the app copies; `form` is svg, pdf, png, html, csv or json. Raises
    `ValueError` for an unknown picture, form or value.
    """
    if form not in export.FORMS or form == "packed":
        forms = ", ".join(name for name in export.FORMS if name != "packed")
        raise ValueError(f"the form must be one of {forms}, got {form!r}")
    picture, request, look = read_figure(address)
    return export.render(picture, request, form, look)


def read_figure(address: str) -> tuple[Picture, PictureRequest, Style]:
    """Return what an address names. Raise `ValueError` for an unknown picture and for an invalid value."""
    parts = urlsplit(address)
    page, _, name = "/".join(parts.path.strip("/").split("/")[-2:]).partition("/")
    try:
        picture = registry.picture(page, name.partition(".")[0])
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    look = Style.read({key: query.pop(key) for key in list(query) if is_key(key)})
    request = read_address.read_request(registry.page(picture.page), query)
    return picture, picture.finished(request), look


TEXTS = Texts("export")

WRITTEN_ANEW = ("kind", "title", "version", "table")
"""Metadata that every file writes anew, even when it is made from a saved one."""


def redraw_clocks(saved: Mapping[str, Any]) -> Clocks | None:
    """Redraw saved clocks from their spec, choices and config; return None if the picture has no clocks.

    Raise `ValueError` with a sentence if the file lacks data.
    """
    page, _, name = str(saved.get("picture") or "").partition("/")
    try:
        picture = registry.picture(page, name)
    except KeyError:
        return None
    if not issubclass(picture.kind, Clocks):
        return None
    drawn = picture(read_saved(picture, saved))
    assert isinstance(drawn, Clocks)
    return drawn


def read_saved(picture: Picture, saved: Mapping[str, Any]) -> PictureRequest:
    """Return the request of a saved picture. Raise `ValueError` with a sentence if the file lacks data."""
    page = registry.page(picture.page)
    spec, choices = saved.get("spec"), saved.get("choices")
    if choices is None and isinstance(saved.get("address"), str) and saved["address"]:
        # Files from older releases have no choices.
        query = dict(parse_qsl(urlsplit(saved["address"]).query, keep_blank_values=True))
        try:
            return read_address.read_request(page, query)
        except contents.UnknownError:
            raise ValueError(TEXTS("problems.too_little")) from None
    if not isinstance(spec, dict) or not isinstance(choices, dict):
        raise ValueError(TEXTS("problems.too_little"))
    model, layer = (str(spec.get(key) or "") for key in ("model", "layer"))
    if model != spec_url.CUSTOM and model not in catalog():
        raise ValueError(TEXTS("problems.unknown_model", model=short_repr(model)))
    rest = {key: value for key, value in spec.items() if key not in ("model", "layer")}
    try:
        made = configs.spec_of(json.dumps(rest).encode())
        own = configs.upload_of(json.dumps(saved["config"]).encode()) if "config" in saved else None
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(TEXTS("problems.unreadable_spec", error=error)) from None
    query = {str(key): str(text) for key, text in choices.items()}
    try:
        given = read_address.strict(page.choices, query)
    except contents.UnknownError:
        raise ValueError(TEXTS("problems.too_little")) from None
    request = PictureRequest(Subject(made, model, layer, own), read_address.pin_of(query, made.pairs), given)
    language = query.get(read_address.LANGUAGE_KEY, ENGLISH)
    variants = read_address.variants_of(query, request.current)
    return dataclasses.replace(request, variants=variants, language=check_language(language))


def redraw_saved(content: bytes, form: str, look: Mapping[str, str]) -> bytes:
    """Redraw a picture from its saved JSON in another format; `look` overrides parts of the saved style.

    Figures and tables are redrawn from the file's numbers, clocks from its spec and config. Raise `ValueError` with a
    sentence if the file is not such a JSON or lacks data.
    """
    fig, facts = files.from_json(content)
    then = {str(key): str(text) for key, text in facts.pop("style", {}).items()}
    style = Style.read(then | PRESETS.get(look.get("preset", ""), {}) | dict(look))
    title, saved = str(facts.get("title") or ""), {key: each for key, each in facts.items() if key not in WRITTEN_ANEW}
    if "figure" in saved:
        saved["figure"] = export.restyle_address(str(saved["figure"]), style)
    try:
        if form in ("csv", "json") or not (fig.data and fig.data[0].type == "table"):
            meta = saved if form == "json" else export.drop_json_only(saved)
            return files.render(fig, form, options=style, title=title, meta=meta)
        sentence = escape_markup(str(saved.get("sentence") or ""))
        drawn = redraw_clocks(saved) or Table(fig.table(), title, sentence)
        return to_file(drawn, form, style, export.drop_json_only(saved))
    except Exception as error:
        if isinstance(error, (ValueError, OSError)) and "could not convert" not in str(error):
            raise
        # A Plotly file may contain figure types that the Matplotlib renderer does not support.
        key = "problems.undrawable" if form in ("html", "json") else "problems.undrawable_offer"
        raise ValueError(TEXTS(key, form=form, kind=type(error).__name__, reason=first_reason(error))) from error
