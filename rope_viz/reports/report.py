"""A report on one model: every picture of every page with its sentence, and the check's findings.

Either an offline HTML page with plotly.js included once, or Markdown with a folder of SVG files for a model card.
"""

from __future__ import annotations

import html
import json
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz import __version__, web
from rope_viz.advice.lint import Finding, check
from rope_viz.advice.plan.verdict import make_verdict
from rope_viz.figures import theme
from rope_viz.figures.files.html_json import plotly_js, to_json_values
from rope_viz.figures.words import name_length
from rope_viz.pages import registry
from rope_viz.pages.model import extend
from rope_viz.picture import export
from rope_viz.picture.outputs import Clocks, Figure, Kind, Table
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.wire_format import cells, markdown_to_html, strip_markup
from rope_viz.texts import Texts
from rope_viz.texts.outside_text import dump_printable, printable
from rope_viz.texts.texts import language_code

TEXTS = Texts("report")
MOST_ROWS = 200
# Draw each chart when it scrolls near the view, fitted to its width.
DRAW = web.read_inline("report.js")
WIDE = 'class="wide" role="region" tabindex="0"'


@dataclass(frozen=True)
class ReportPart:
    """One picture with its sentence; `drawn` is None if there is none for this model, and `sentence` says why."""

    picture: Picture
    drawn: Kind | None
    sentence: str

    @property
    def title(self) -> str:
        return self.picture.about if self.drawn is None else self.drawn.title


def parts(request: PictureRequest, addresses: Sequence[str] = ()) -> Iterator[ReportPart]:
    """Yield every picture for this model in menu order, or only those named, with the default choices."""
    for picture in registry.pictures():
        if picture.page == "compare":
            continue  # a report is about one model
        if addresses and picture.address not in addresses:
            continue
        if reason := picture.refuses(request):
            yield ReportPart(picture, None, reason)
            continue
        with theme.skip_validation():
            drawn = picture(picture.finished(request))
        if isinstance(drawn, Table) and not any(len(values) for values in cells(drawn).values()):
            continue  # empty until the user measures or uploads something
        yield ReportPart(picture, drawn, drawn.sentence)


def findings(request: PictureRequest) -> list[Finding]:
    """Return the check's findings in the model's config, [] if there is no config."""
    return [] if request.subject.config is None else check(request.subject.config)


@dataclass(frozen=True)
class ReportVerdict:
    """What My model and `rope-viz extend` say: how to reach a length, how sure that is, and the runtime's command."""

    title: str
    headline: str
    mark: str
    look: str
    sentences: tuple[str, ...]
    command: str


def find_verdict(request: PictureRequest) -> ReportVerdict | None:
    """Return the answer of the page My model for the model as it is; None where it has none."""
    if extend.problem(request):
        return None
    plan = extend.answer(request)
    verdict, given = make_verdict(plan), next(iter(plan.instructions), None)
    proof, command = ("", "") if given is None else (given.proof, given.command)
    sentences = tuple(filter(None, (verdict.reason, verdict.measured, proof)))
    title = TEXTS("verdict", length=plan.target)
    return ReportVerdict(title, verdict.headline, verdict.mark, verdict.look, sentences, command)


def sections(request: PictureRequest, addresses: Sequence[str] = ()) -> Iterator[tuple[str, str, list[ReportPart]]]:
    """Yield (name, title, pictures) of every page that has something to show."""
    drawn = list(parts(request, addresses))
    for name in registry.PAGES:
        if mine := [part for part in drawn if part.picture.page == name]:
            yield name, registry.title_of(name), mine


def about(request: PictureRequest) -> list[tuple[str, str]]:
    """Return the model's main numbers as (name, value)."""
    spec = request.spec
    rotating = TEXTS("model.head_dim_value", head_dim=spec.head_dim, rotary_dim=spec.rotary_dim)
    rows: list[tuple[str, str]] = [
        (TEXTS("model.head_dim"), rotating),
        (TEXTS("model.base"), f"{spec.base:,.10g}"),
        *lengths(request),
        (TEXTS("model.target"), TEXTS("model.length_value", length=spec.target)),
        (TEXTS("model.scaling"), spec.scaling.name),
        (TEXTS("model.layer"), request.layer),
    ]
    return [(name, value) for name, value in rows if value]


def lengths(request: PictureRequest) -> list[tuple[str, str]]:
    """Return the model's lengths, the trained one with its source."""
    config = request.subject.model_config
    trained = None if config is None or config.problems else config.trained_length
    rows: list[tuple[str, str]] = []
    if trained is not None:
        key = "trained_value" if trained.is_known else "assumed_value"
        value = TEXTS(f"model.{key}", length=trained.length, source=trained.source)
        rows.append((TEXTS("model.trained"), value))
    named = TEXTS("model.length", length_name=name_length(request.spec))
    has_it = bool(rows) and rows[0][0] == named
    return rows if has_it else [*rows, (named, TEXTS("model.length_value", length=request.spec.context))]


# --- As a page


def to_html(
    request: PictureRequest,
    addresses: Sequence[str] = (),
    *,
    plotly: str = "",
    before: str = "",
    above: str = "",
    head: str = "",
) -> bytes:
    """Return one offline HTML page with zoomable charts, moving clocks and tables.

    `addresses` names the pictures, all if empty. `plotly` is the address of plotly.js, which is else in the page.
    `before` is HTML for the menu's beginning, `above` for sections above the pictures, `head` for the page's head.
    """
    request = request.shared
    body, menu, figures, clocks = [], [before] if before else [], [], []
    for name, title, mine in sections(request, addresses):
        menu.append(f'<a href="#{name}">{html.escape(title)}</a>')
        body.append(f'<section id="{name}"><h2>{html.escape(title)}</h2>')
        for part in mine:
            body.append(f"<h3>{html.escape(part.title)}</h3><p>{markdown_to_html(part.sentence)}</p>")
            place = part.picture.address.replace("/", "-")
            label = html.escape(part.title)
            if isinstance(part.drawn, Figure):
                figures.append((place, part.drawn))
                height = part.drawn.fig.layout.height or theme.MAIN_HEIGHT
                body.append(f'<div id="{place}" role="figure" aria-label="{label}" style="height:{height}px"></div>')
            elif isinstance(part.drawn, Clocks):
                clocks.append((place, part.drawn))
                body.append(f'<div id="{place}" class="rv-{part.drawn.renderer}"></div>')
            elif part.drawn is not None:
                body.append(f'<div {WIDE} aria-label="{label}">{table(part.drawn)}</div>')
        body.append("</section>")
    title = html.escape(TEXTS("title", name=request.subject.name))
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in about(request)
    )
    heading = f"<h1>{title}</h1><table>{rows}</table><nav>{' '.join(menu)}</nav>"
    verdict = verdict_html(request)
    found = f'<section id="findings"><h2>{TEXTS("findings")}</h2>{found_html(findings(request))}</section>'
    footer = TEXTS("footer", version=__version__)
    page = f"<main>{heading}{verdict}{found}{above}{''.join(body)}<footer>{footer}</footer></main>"
    meta = f'<meta name="rope-viz:spec" content="{html.escape(json.dumps(request.subject.spec_json, default=str))}">'
    script = f'<script src="{html.escape(plotly)}"></script>' if plotly else f"<script>{plotly_js()}</script>"
    return document(title, f"{page}\n{script}\n<script>{drawing(figures)}</script>\n{turning(clocks)}", head + meta)


def document(title: str, body: str, meta: str = "") -> bytes:
    """Return a page in the report's style; the title and the body are HTML."""
    page = (
        f'<!DOCTYPE html>\n<html lang="{language_code()}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>{meta}'
        f"<style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )
    return printable(page).encode()


def drawing(figures: Sequence[tuple[str, Figure]]) -> str:
    """Return the script that draws each chart when it scrolls near the view."""
    made = {}
    for place, drawn in figures:
        plain = drawn.fig.to_plotly_json()
        layout = {key: value for key, value in plain["layout"].items() if key not in ("template", "width")}
        made[place] = to_json_values({"data": plain["data"], "layout": layout})
    data = dump_printable(made, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")
    return f"const figures = {data};\nconst twins = {json.dumps(theme.DARK)};\n{DRAW}"


def turning(clocks: Sequence[tuple[str, Clocks]]) -> str:
    """Return the modules that animate the clocks and the patch, one for each kind."""
    calls: dict[str, list[str]] = {}
    for place, drawn in clocks:
        data = dump_printable({**drawn.message, "file": "", "alone": True}).replace("<", "\\u003c")
        root = f'root: document.getElementById("{place}"), memory: {{}}, component: {{ setStateValue() {{}} }}'
        calls.setdefault(drawn.renderer, []).append(f"show({{ {root} }}, {data});")
    return "\n".join(
        f'<script type="module">{export.script(name)}\n{chr(10).join(mine)}</script>' for name, mine in calls.items()
    )


def table(drawn: Table) -> str:
    """Return a table's first rows as HTML."""
    given = cells(drawn)
    rows = list(zip(*given.values(), strict=True))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in given)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(as_text(cell))}</td>" for cell in row) + "</tr>" for row in rows[:MOST_ROWS]
    )
    more = f"<p>{TEXTS('more_rows', count=len(rows) - MOST_ROWS)}</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}"


def verdict_html(request: PictureRequest) -> str:
    """Return the verdict as a section of HTML; empty where there is none."""
    found = find_verdict(request)
    if found is None:
        return ""
    mark = f'<p class="sure {found.look}">{html.escape(found.mark)}</p>' if found.mark else ""
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in found.sentences)
    command = f"<pre>{html.escape(found.command)}</pre>" if found.command else ""
    title = f"<h2>{html.escape(found.title)}</h2><h3>{html.escape(found.headline)}</h3>"
    return f'<section id="verdict">{title}{mark}{sentences}{command}</section>'


def found_html(found: Sequence[Finding]) -> str:
    """Return the findings as an HTML list."""
    if not found:
        return f"<p>{TEXTS('no_findings')}</p>"
    items = [
        f"<li><strong>{TEXTS(f'severity.{each.severity}')}</strong> {html.escape(f'{each.key} {each.message}')} "
        f"<small>{html.escape(each.rule)}</small></li>"
        for each in found
    ]
    return f"<ul>{''.join(items)}</ul>"


# --- As Markdown


def to_markdown(request: PictureRequest, folder: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the Markdown text, and by name the SVG files to put into `folder` next to it."""
    request = request.shared
    files: dict[str, bytes] = {}
    out = ["# " + TEXTS("title", name=escaped(request.subject.name)), ""]
    out += ["| | |", "|---|---|", *(f"| {name} | {escaped(value)} |" for name, value in about(request)), ""]
    out += verdict_lines(request)
    out += ["## " + TEXTS("findings"), "", *found_lines(findings(request)), ""]
    for _, title, mine in sections(request):
        out += [f"## {title}", ""]
        for part in mine:
            out += [f"### {escaped(part.title)}", ""]
            if part.sentence:
                out += [" ".join(part.sentence.split()), ""]
            if isinstance(part.drawn, Table):
                out += [*table_lines(part.drawn), ""]
            elif part.drawn is not None:
                name = part.picture.address.replace("/", "-") + ".svg"
                files[name] = export.render(part.picture, request, "svg")
                out += [f"![{escaped(part.title)}]({folder}/{name})", ""]
    out += [TEXTS("made_by", version=__version__), ""]
    return printable("\n".join(out)).encode(), files


def table_lines(drawn: Table) -> list[str]:
    """Return a table's first rows as Markdown."""
    given = cells(drawn)
    rows = list(zip(*given.values(), strict=True))
    lines = [_row(list(given)), "|" + "---|" * len(given)]
    lines += [_row([as_text(cell) for cell in row]) for row in rows[:MOST_ROWS]]
    return [*lines, *(["\n" + TEXTS("more_rows", count=len(rows) - MOST_ROWS)] if len(rows) > MOST_ROWS else [])]


def verdict_lines(request: PictureRequest) -> list[str]:
    """Return the verdict as Markdown; empty where there is none."""
    found = find_verdict(request)
    if found is None:
        return []
    mark = f" {escaped(found.mark)}." if found.mark else ""
    lines = [f"**{escaped(found.headline)}.**{mark}", *map(escaped, found.sentences)]
    out = ["## " + found.title, "", *(part for line in lines for part in (line, ""))]
    return out + (["```sh", found.command, "```", ""] if found.command else [])


def found_lines(found: Sequence[Finding]) -> list[str]:
    """Return the findings as a Markdown list."""
    items = [
        f"- **{TEXTS(f'severity.{each.severity}')}** {escaped(f'{each.key} {each.message}'.strip())} ({each.rule})"
        for each in found
    ]
    return items or [TEXTS("no_findings")]


def _row(values: Sequence[str]) -> str:
    return "| " + " | ".join(escaped(value) for value in values) + " |"


def as_text(cell: Any) -> str:
    """Format a table cell."""
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else strip_markup(str(cell))


def escaped(text: str) -> str:
    """Escape Markdown and join lines."""
    out = "".join(f"\\{sign}" if sign in "\\`*_[]|<>#" else sign for sign in " ".join(text.split()))
    return out


def list_colours() -> str:
    """Return the colours of both themes as CSS."""
    named = {"background-color": theme.BACKGROUND, "text-color": theme.TEXT, "border-color": theme.RULE}
    named |= {"primary-color": theme.CURRENT, "secondary-background-color": theme.PANEL}
    light = {f"--st-{name}": colour for name, colour in named.items()}
    light |= {"--grid": theme.GRID, "--plain": theme.PLAIN}
    light |= {"--kept": theme.KEPT, "--blended": theme.BLENDED, "--divided": theme.DIVIDED}
    rules = [
        "; ".join(f"{name}: {colour}" for name, colour in colours.items())
        for colours in (light, {name: theme.DARK[colour] for name, colour in light.items()})
    ]
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {rules[1]} }} }}"
    return f":root {{ {rules[0]}; color-scheme: light dark }}\n{dark}"


STYLE = f"\n{string.Template(web.read_inline('report.css')).substitute(colours=list_colours())}\n"
