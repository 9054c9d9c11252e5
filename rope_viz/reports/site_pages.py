"""Pages of the static site that are not about one model: Home, Learn, the runtimes' differences, the list of models.

All links are relative, so that the site works below any path and from a folder. Only link previews know the address.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rope_viz import __version__
from rope_viz.figures import hands
from rope_viz.figures.badge import make_badge
from rope_viz.pages import differences, home, learn, registry
from rope_viz.pages.differences.figures import SIGNS, ModelAnswer, list_answers
from rope_viz.pages.differences.figures import TEXTS as DIFFERENCES
from rope_viz.pages.differences.words import describe, summarise
from rope_viz.picture import read_address
from rope_viz.picture.outputs import Clocks
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.picture.wire_format import markdown_to_html
from rope_viz.reports import report, report_site
from rope_viz.reports.preview import NAME, format_tags, render_preview
from rope_viz.reports.report_site import IndexEntry
from rope_viz.reports.story_page import story_page, wrap_picture
from rope_viz.runtimes.verdict_counts import find_state
from rope_viz.texts import Texts
from rope_viz.web import read_inline

TEXTS = Texts("site")
FILES = {"home": "index.html", "learn": "learn.html", "differences": "differences.html", "models": "models.html"}
"""{page: its file}, in the order of the navigation."""
PREVIEWS, BADGES = "previews", "badges"
"""Folders of the link previews and of the badges."""
PICTURES = {
    "home": home.turning,
    "learn": learn.scene1,
    "differences": differences.counts,
    "models": registry.picture("frequencies", "wavelengths"),
}
"""{page: the picture of its link preview}; that of the models is also the picture of each model."""
MARKS = {"same": "=", "differs": "≠", "refused": "–", "not known": "?"}
STYLE = f"<style>{read_inline('site.css')}</style>"


@dataclass(frozen=True)
class Badge:
    """The badge of a model, and the model's name."""

    name: str
    content: bytes


def badge_file(stem: str) -> str:
    """Return the place of a model's badge in the site."""
    return f"{BADGES}/{stem}.svg"


def preview_file(stem: str) -> str:
    """Return the place of a link preview in the site; `stem` is a page of `FILES` or that of a model's page."""
    return f"{PREVIEWS}/{stem}.png"


def make_model_badge(source: bytes | str, stem: str) -> Badge | None:
    """Return the badge of a model, None where it has none; `source` is that of `report_site.render_page`."""
    with contextlib.suppress(ValueError, ArithmeticError):
        request, _ = report_site.read_report_request(source)
        name = request.subject.name if isinstance(source, str) else stem
        return Badge(name, make_badge(request.subject.config or {}, name))
    return None


def render_model_preview(source: bytes | str, public: str) -> bytes | None:
    """Return the PNG of a model's link preview, None where it cannot be drawn."""
    with contextlib.suppress(ValueError, ArithmeticError):
        request, _ = report_site.read_report_request(source)
        return render_preview(PICTURES["models"], request, public)
    return None


def render_page_previews(public: str) -> dict[str, bytes]:
    """Return {file: PNG} of the link previews of the pages that are not about one model."""
    found = {}
    for page, picture in PICTURES.items():
        found[preview_file(page)] = render_preview(picture, default_request(picture), public)
    return found


@dataclass(frozen=True)
class StaticSite:
    """What all pages share: the address at which the site is published, "" if it is not known."""

    public: str = ""
    models_file: ClassVar[str] = FILES["models"]
    missing_file: ClassVar[str] = "404.html"
    files: ClassVar[tuple[str, ...]] = (*FILES.values(), missing_file)
    """All pages but those of the models."""

    def pages(self, badges: Mapping[str, str]) -> dict[str, bytes]:
        """Return {file: content} of the pages but those of models and their list.

        `badges` is {stem of a page: the model's name}.
        """
        return {
            FILES["home"]: self.home_page(),
            FILES["learn"]: self.learn_page(),
            FILES["differences"]: self.differences_page(badges),
            self.missing_file: self.missing_page(),
        }

    def head(self, title: str, file: str, preview: str) -> str:
        """Return the style and the tags of a page, for its head; without an address the preview's is relative."""
        url = f"{self.public}/{file.removesuffix('index.html')}" if self.public else ""
        up = "../" * file.count("/")
        image = f"{self.public}/{preview_file(preview)}" if self.public else f"{up}{preview_file(preview)}"
        tags = format_tags(title, str(hands.TEXTS("headline")), url=url, image=image, public=self.public)
        return f"{STYLE}{tags}"

    def head_of(self, page: str) -> str:
        """Return the same for a page of the navigation."""
        return self.head(NAME if page == "home" else f"{TEXTS(page)} · {NAME}", FILES[page], page)

    def home_page(self) -> bytes:
        """Return the first page: the two hands, and links to the others."""
        drawn = home.turning(default_request(home.turning))
        assert isinstance(drawn, Clocks)
        doors = "".join(
            f'<div><a href="{FILES[page]}">{TEXTS(f"doors.{page}")}</a><p>{TEXTS(f"doors.{page}_about")}</p></div>'
            for page in FILES
            if page != "home"
        )
        below = f'<div class="rv-doors">{doors}</div><footer>RoPE Viz {__version__}</footer>'
        title, message = str(hands.TEXTS("headline")), {**drawn.message, "form": True}
        above = navigation("home")
        return wrap_picture("hands", message, NAME, title, below=below, head=self.head_of("home"), above=above)

    def learn_page(self) -> bytes:
        """Return the eight scenes, as `rope-viz learn` writes them."""
        return story_page(head=self.head_of("learn"), above=navigation("learn"))

    def models_page(self, entries: Sequence[IndexEntry]) -> bytes:
        """Return the list of the models' pages."""
        return report_site.index_page(entries, before=navigation("models"), head=self.head_of("models"))

    def differences_page(self, badges: Mapping[str, str]) -> bytes:
        """Return the table of all models of the list in all runtimes, and the badges."""
        rows = list_answers().values()
        title = DIFFERENCES("heading")
        names = "".join(f'<th scope="col">{html.escape(one.name)}</th>' for one in next(iter(rows)))
        body = "".join(f'<tr id="{answers[0].model.id}">{_format_row(answers)}</tr>' for answers in rows)
        head = f'<tr><th scope="col">{DIFFERENCES("columns.model")}</th>{names}</tr>'
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        label = DIFFERENCES("matrix_title")
        parts = [
            f"<h1>{title}</h1><p>{markdown_to_html(summarise())}</p>",
            f'<div class="verdicts" role="region" tabindex="0" aria-label="{label}">{table}</div>',
            f"<p>{DIFFERENCES('legend')}</p><h2>{TEXTS('table.reasons')}</h2>",
            *map(_format_reasons, rows),
            self._format_badges(badges) if badges else "",
            f"<footer>RoPE Viz {__version__}</footer>",
        ]
        page = f"{navigation('differences')}<main>{''.join(parts)}</main>"
        return report.document(html.escape(f"{title} · {NAME}"), page, self.head_of("differences"))

    def _format_badges(self, badges: Mapping[str, str]) -> str:
        out = [f"<h2>{TEXTS('table.badges')}</h2><p>{DIFFERENCES('badge.about')}</p>"]
        for stem, name in badges.items():
            alt, file = html.escape(TEXTS("table.badge_alt", model=name)), badge_file(stem)
            out.append(f'<p><img src="{file}" alt="{alt}" height="20"></p>')
            if self.public:
                anchor = f"#{stem}" if stem in list_answers() else ""
                code = f"[![{alt}]({self.public}/{file})]({self.public}/{FILES['differences']}{anchor})"
                out.append(f'<pre tabindex="0">{code}</pre>')
        return "".join(out)

    def missing_page(self) -> bytes:
        """Return the page that hosts show for a missing address, at any depth: it has no relative link."""
        link = f'<p><a href="{html.escape(self.public)}/">{TEXTS("home")}</a></p>' if self.public else ""
        title = TEXTS("missing")
        return report.document(
            f"{title} · {NAME}", f"<main><h1>{title}</h1><p>{TEXTS('missing_about')}</p>{link}</main>"
        )


def default_request(picture: Picture) -> PictureRequest:
    """Return the request for a picture of the default model without any choice."""
    return read_address.read_request(registry.page(picture.page), {})


def navigation(current: str = "", up: str = "") -> str:
    """Return the links to the site's pages; `up` leads to its folder."""
    return f'<nav aria-label="{TEXTS("pages")}">{list_links(current, up)}</nav>'


def list_links(current: str = "", up: str = "") -> str:
    """Return the links of the navigation."""
    marks = {page: ' aria-current="page"' if page == current else "" for page in FILES}
    return " ".join(f'<a href="{up}{file}"{marks[page]}>{TEXTS(page)}</a>' for page, file in FILES.items())


def _format_row(answers: Sequence[ModelAnswer]) -> str:
    """Return a model's cells; one with a reason is a link to it."""
    cells = [f'<th scope="row">{html.escape(answers[0].model.name)}</th>']
    for one in answers:
        sign = SIGNS[find_state(one.comparison)]
        shown = f"{MARKS[sign]} {one.format_letters()}".rstrip()
        content = f'<span aria-hidden="true">{shown}</span><span class="words">{html.escape(one.cell)}</span>'
        link = f'<a href="#{one.id}">{content}</a>' if _has_reason(one) else content
        cells.append(f'<td class="{sign.replace(" ", "-")}">{link}</td>')
    return "".join(cells)


def _has_reason(one: ModelAnswer) -> bool:
    return SIGNS[find_state(one.comparison)] in ("differs", "refused")


def _format_reasons(answers: Sequence[ModelAnswer]) -> str:
    """Return why runtimes compute a model differently or refuse it, "" if none does."""
    items = "".join(f'<p id="{one.id}">{markdown_to_html(describe(one))}</p>' for one in answers if _has_reason(one))
    return f'<section class="reasons"><h3>{html.escape(answers[0].model.name)}</h3>{items}</section>' if items else ""
