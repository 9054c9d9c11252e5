"""A static site with a page for each of many models, and an index.

Every page has the check's findings, the memory and a few pictures. All pages share one file of plotly.js.
"""

from __future__ import annotations

import contextlib
import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from rope_viz import __version__
from rope_viz.advice.lint import SEVERITIES, Finding
from rope_viz.advice.lint.check_text import check_text
from rope_viz.advice.memory.estimate_memory import describe_memory, memory
from rope_viz.advice.memory.kv_cache import human
from rope_viz.embedding import TEXTS as EMBEDDING
from rope_viz.embedding.scaling import LABELS
from rope_viz.figures.files.html_json import plotly_js
from rope_viz.models.catalog import catalog
from rope_viz.models.formats.json_source import NotJsonError
from rope_viz.models.model_config import ModelConfig, read_catalog_model
from rope_viz.models.no_rope_types import NoRope
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import CUSTOM, Subject
from rope_viz.models.user_config import parse_config
from rope_viz.own_files.config_keys import cut_config
from rope_viz.own_files.shared_config import share_config
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.reports import report
from rope_viz.storage.decode_json import ContentError, decode_json
from rope_viz.texts import Texts, join
from rope_viz.texts.sentences import describe_error, end_sentence

TEXTS = Texts("report")
PICTURES = ("frequencies/wavelengths", "scaling/comparison", "decay/curves")
FOLDER = "models"
"""The folder of the models' pages."""
SCRIPT = "plotly.js"


@dataclass(frozen=True)
class IndexEntry:
    """A line of the index. `problem` is why there are no pictures, `status` "" or the key of its short text."""

    label: str
    file: str
    model_type: str = ""
    scaling: str = ""
    trained: int | None = None
    limit: int | None = None
    cache: int | None = None
    findings: tuple[int, ...] = (0,) * len(SEVERITIES)
    status: str = ""
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_entry(values: dict[str, Any]) -> IndexEntry:
    """Return the entry of `as_dict`. Raises `TypeError` or `KeyError` for other values."""
    return IndexEntry(**{**values, "findings": tuple(values["findings"])})


def render_page(
    label: str, file: str, source: bytes | str, *, is_full: bool = False, before: str = "", head: str = ""
) -> tuple[IndexEntry, bytes]:
    """Return a model's line in the index and its page.

    `source` is the text of a config.json, or the id of a model of the list. A config that cannot be read, or that has
    no RoPE, gets a page that says why. `before` is HTML for the menu's beginning, by default a link to the index;
    `head` is HTML for the page's head.
    """
    before = before or link_to_index()
    try:
        source = share_source(source)
        request, notes = read_report_request(source)
        request.spec.inv_freq()
    except ArithmeticError:
        return problem_page(
            IndexEntry(label, file, status="unread", problem=end_sentence(EMBEDDING("errors.uncomputable"))),
            source,
            before=before,
        )
    except ValueError as error:
        status = "no_rope" if isinstance(error, NoRope) else "unread"
        entry = IndexEntry(label, file, status=status, problem=end_sentence(describe_error(error)))
        return problem_page(entry, source, before=before)
    model = request.subject.model_config
    entry = IndexEntry(
        label,
        file,
        scaling=request.spec.scaling.name,
        limit=request.spec.context,
        findings=count(report.findings(request)),
    )
    lines = list(notes)
    if model is not None:
        entry = replace(entry, model_type=model.model_type)
        if not model.problems:
            entry = replace(entry, trained=model.trained_length.length, limit=model.limit)
        try:
            held = memory(read_sizes(source, model), length=entry.limit or request.spec.context)
            entry = replace(entry, cache=held["kv_cache_bytes"])
            lines += describe_memory(held).splitlines()
        except ValueError as error:
            lines.append(describe_error(error))
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    above = f'<section id="memory"><h2>{TEXTS("site.memory")}</h2>{paragraphs}</section>'
    addresses = () if is_full else PICTURES
    return entry, report.to_html(request, addresses, plotly=f"../{SCRIPT}", before=before, above=above, head=head)


def read_sizes(source: bytes | str, model: ModelConfig) -> ModelConfig:
    """Return the config with what the list knows of its sizes."""
    return ModelConfig.read(catalog()[source].whole, known=catalog()[source]) if isinstance(source, str) else model


def read_report_request(source: bytes | str) -> tuple[PictureRequest, tuple[str, ...]]:
    """Return the request of a model and notes on its config. Raises `ValueError` if it has no RoPE to compute."""
    if isinstance(source, str):
        model = read_catalog_model(source)
        layer = model.find_layer(None)
        return PictureRequest(Subject(model.start_specs[layer], source, layer)), ()
    upload = share_config(read_upload(source))
    return PictureRequest(Subject(upload.specs[upload.layer], CUSTOM, upload.layer, upload)), upload.notes


def share_source(source: bytes | str) -> bytes | str:
    """Return a config as others may see it, or as it is where it is no config that can be read.

    The size of its weights is counted before, with the lists of names that are left out. Raises `ValueError`.
    """
    if isinstance(source, str):
        return source
    try:
        config = parse_config(source)
    except NotJsonError:
        raise
    except ValueError:
        if is_json(source):
            # The sentence may quote a value.
            raise ValueError(TEXTS("site.no_config")) from None
        raise
    with contextlib.suppress(ValueError, ArithmeticError):
        config = dict(share_config(read_upload(source)).config)
    return json.dumps(cut_config(config)).encode()


def is_json(source: bytes) -> bool:
    """Return whether a file is JSON."""
    try:
        decode_json(source, "")
    except ContentError:
        return False
    return True


def link_to_index() -> str:
    """Return the link from a model's page to the list of all."""
    return f'<a href="../index.html">{TEXTS("site.back")}</a>'


def problem_page(entry: IndexEntry, source: bytes | str = b"", *, before: str = "") -> tuple[IndexEntry, bytes]:
    """Return the entry and the page of a model without pictures: the reason, and what the check finds."""
    before = before or link_to_index()
    found: Sequence[Finding] = ()
    if isinstance(source, bytes):
        with contextlib.suppress(ValueError, OSError, ArithmeticError):
            found = check_text(source)[1]
    entry = replace(entry, findings=count(found))
    title = html.escape(entry.label)
    listed = f"<h2>{TEXTS('findings')}</h2>{report.found_html(found)}" if found else ""
    body = f"<main><h1>{title}</h1><nav>{before}</nav><p>{html.escape(entry.problem)}</p>{listed}</main>"
    return entry, report.document(title, body)


def count(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the number of findings of each severity, in the order of `SEVERITIES`."""
    return tuple(sum(one.severity == severity for one in findings) for severity in SEVERITIES)


def index_page(entries: Sequence[IndexEntry], *, before: str = "", head: str = "") -> bytes:
    """Return the site's first page: a table with a line for each model, those with errors first.

    `before` is HTML above the title, `head` for the page's head.
    """
    columns = ("model", "type", "scaling", "trained", "limit", "cache", "findings")
    names = "".join(f"<th>{TEXTS(f'site.column_{name}')}</th>" for name in columns)
    in_order = sorted(entries, key=lambda entry: ([-found for found in entry.findings[:2]], entry.label.lower()))
    rows = "".join(f"<tr>{index_row(entry)}</tr>" for entry in in_order)
    problems = sum(any(entry.findings[:2]) for entry in entries)
    unread = sum(entry.status in ("unread", "failed", "ended") for entry in entries)
    lead = [TEXTS("site.lead", count=len(entries), problems=problems)]
    lead += [TEXTS("site.lead_unread", unread=unread)] if unread else []
    title = TEXTS("site.title", count=len(entries))
    table = f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"
    table = f'<div class="index" role="region" tabindex="0" aria-label="{title}">{table}</div>'
    footer = f"<footer>{TEXTS('footer', version=__version__)}</footer>"
    return report.document(title, f"<main>{before}<h1>{title}</h1><p>{join(*lead)}</p>{table}{footer}</main>", head)


def index_row(entry: IndexEntry) -> str:
    """Return the cells of a model's line."""
    link = f'<a href="{FOLDER}/{quote(entry.file)}">{html.escape(entry.label)}</a>'
    lengths = ["" if length is None else f"{length:,}" for length in (entry.trained, entry.limit)]
    scaling = TEXTS(f"site.{entry.status}") if entry.status else LABELS.get(entry.scaling, entry.scaling)
    cache = "" if entry.cache is None else human(entry.cache)
    found = ", ".join(
        TEXTS(f"site.{severity}", count=number)
        for number, severity in zip(entry.findings, SEVERITIES, strict=True)
        if number
    )
    texts = (entry.model_type, scaling, *lengths, cache, found or TEXTS("site.no_findings"))
    return f"<td>{link}</td>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts)


def script() -> bytes:
    """Return plotly.js, which all pages share."""
    return plotly_js().encode()
