"""The models of the list against the runtimes, as a grid, a table and bars."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from rope_viz.advice.plan.runtime_matrix import RuntimeAnswer, compare_catalog, find_largest_ratio
from rope_viz.figures import theme
from rope_viz.figures.words import footnote
from rope_viz.models.catalog import Model, catalog
from rope_viz.runtimes.asked_engines import describe_asked
from rope_viz.runtimes.compare import Comparison
from rope_viz.runtimes.releases import RELEASES, RUNTIMES, format_release, format_version
from rope_viz.runtimes.verdict_counts import count_asked, count_states, find_state
from rope_viz.texts import Texts, cache_by_language, cached_text_property, join
from rope_viz.texts.texts import join_items

TEXTS = Texts("differences")
SIGNS = {"agrees": "same", "differs": "differs", "refuses": "refused", "not known": "not known"}
"""{what a comparison found: its sign in a grid}."""


def make_release_id(runtime: str, release: str) -> str:
    """Return the word of a release in an address. The newest one of a runtime has no version, so links stay valid."""
    return runtime if release == RELEASES[runtime].today[0] else f"{runtime}-{format_version(release)}"


RELEASE_IDS = {make_release_id(*each): format_release(*each) for each in RUNTIMES if each[0] != "paper"}
"""{word in an address: name}, in the order of `rope-viz runtimes`."""


@dataclass(frozen=True)
class ModelAnswer:
    """What one runtime computes for one model of the list."""

    model: Model
    row: RuntimeAnswer

    @property
    def comparison(self) -> Comparison:
        return self.row.comparison

    @property
    def name(self) -> str:
        return self.row.name

    @functools.cached_property
    def release(self) -> str:
        emulation = self.comparison.emulation
        return make_release_id(emulation.runtime, emulation.version)

    @functools.cached_property
    def id(self) -> str:
        """Its word in an address."""
        return f"{self.model.id}_{self.release}"

    @property
    def key(self) -> str:
        """How it is known, as part of a key of the texts."""
        return self.comparison.how.replace(" ", "_")

    @functools.cached_property
    def differs(self) -> bool:
        return self.comparison.differs

    @property
    def distance(self) -> float:
        """By how much it differs, for sorting."""
        return find_largest_ratio([self.row]) if self.differs else 0.0

    def describe(self) -> str:
        """Return what it computes, how that is known with the source as a footnote, and why."""
        source = footnote(self.comparison.emulation.known.source.rstrip("."))
        if self.comparison.how == "not known":
            return f"{TEXTS('states.not_known')}{source}"
        verdict = self.comparison.words("×{:.4g}".format)
        found = TEXTS("cell.found", verdict=verdict, known=self.describe_known())
        return join(found, self.row.why) + source

    def describe_known(self) -> str:
        """Return how it is known, and in which releases the whole engine was asked: "executed, asked in 0.32.0"."""
        asked = describe_asked(self.comparison.emulation.known.asked)
        return join_items([each for each in (TEXTS(f"known.{self.key}"), asked) if each])

    def format_letters(self) -> str:
        """Return how it is known as a letter, followed by that for "asked"."""
        asked = TEXTS("letters.asked") if self.comparison.emulation.known.asked else ""
        return f"{TEXTS(f'letters.{self.key}')}{asked}"

    @cached_text_property
    def cell(self) -> str:
        """Return the verdict, by how much it differs, and how that is known: "differs ×47.8 (executed)"."""
        state = find_state(self.comparison)
        word = str(TEXTS(f"states.{SIGNS[state].replace(' ', '_')}"))
        if state == "not known":
            return word
        key = "cell.differs_brief" if state == "differs" else "cell.brief"
        return TEXTS(key, state=word, by=self.comparison.brief, known=self.describe_known())


@cache_by_language()
def list_answers() -> dict[str, tuple[ModelAnswer, ...]]:
    """Return {model: every runtime's answer}, the models that differ most first."""
    models = {model.name: model for model in catalog().values()}
    return {
        models[name].id: tuple(ModelAnswer(models[name], row) for row in found.rows if row.runtime)
        for name, found in compare_catalog()
    }


def matrix(rows: Sequence[Sequence[ModelAnswer]]) -> list[dict[str, str]]:
    """Return a table row per model, a column per runtime."""
    return [{TEXTS("columns.model"): row[0].model.name, **{one.name: one.cell for one in row}} for row in rows]


def answer_table(rows: Sequence[ModelAnswer]) -> dict[str, list[str]]:
    """Return columns with an entry per model and runtime: what it computes, how that is known, and why."""
    return {
        str(TEXTS("columns.model")): [one.model.name for one in rows],
        str(TEXTS("columns.runtime")): [one.name for one in rows],
        str(TEXTS("columns.verdict")): [one.describe() for one in rows],
    }


@functools.cache
def list_counts() -> list[dict[str, Any]]:
    """Return, for each runtime and kind of evidence, how many models it computes differently, equally or not at all.

    A kind of evidence by which nothing but refusals is known is left out.
    """
    found = []
    for release, name in RELEASE_IDS.items():
        rows = [one.comparison for answers in list_answers().values() for one in answers if one.release == release]
        for how, states in count_states(rows).items():
            if computed := states["differs"] + states["agrees"]:
                key = how.replace(" ", "_")
                asked = count_asked(one for one in rows if one.how == how)
                numbers = {
                    "refuses": states["refuses"],
                    "computed": computed,
                    "differs": states["differs"],
                    "agrees": states["agrees"],
                    "asked": asked,
                }
                found.append({"runtime": name, "key": key, **numbers})
    return found


BAR, ENDS = 36, 60


def find_counts_height() -> int:
    """Return the height of the bars in pixels."""
    return ENDS + BAR * len(list_counts())


def counts() -> go.Figure:
    """Draw a bar per runtime and kind of evidence: how many models it computes differently."""
    rows = list_counts()[::-1]
    places = list(range(len(rows)))
    differ = [row["differs"] for row in rows]
    labels = [
        str(
            TEXTS(
                "counts.bar",
                runtime=row["runtime"],
                known=TEXTS(f"known.{row['key']}"),
                differs=row["differs"],
                computed=row["computed"],
            )
        )
        for row in rows
    ]
    most = max(differ, default=1)
    # Code that was only read has paler bars.
    fills = [theme.DIVIDED if row["key"] != "by_rule" else theme.tint(theme.DIVIDED, 0.4) for row in rows]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": differ,
        "y": places,
        "width": 0.24,
        "name": str(TEXTS("counts.axis")),
        "marker": {"color": fills},
        "hovertext": labels,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "meta": {"csv": False},  # its places are no data
    }
    # A trace, because a file may move annotations away from each other.
    texts = {
        "type": "scatter",
        "mode": "text",
        "x": [0.0] * len(rows),
        "y": [place + 0.37 for place in places],
        "text": labels,
        "textposition": "middle right",
        "textfont": {"size": 13, "color": theme.TEXT},
        "hoverinfo": "skip",
        "meta": {"csv": False},
    }
    fig = theme.figure(
        [bars, texts],
        x={"title": str(TEXTS("counts.axis")), "range": [0, most + 1], "dtick": 1, "showspikes": False},
        y={"showticklabels": False, "ticks": "", "showgrid": False, "range": [-0.5, len(rows) - 0.2]},
        height=find_counts_height(),
        hovermode="closest",
        margin={"l": 20, "r": 20, "t": 8, "b": 48},
    )
    columns: dict[str, Any] = {
        TEXTS("columns.runtime"): [row["runtime"] for row in rows[::-1]],
        TEXTS("columns.known"): [str(TEXTS(f"known.{row['key']}")) for row in rows[::-1]],
    }
    columns |= {
        str(TEXTS(f"counts.{state}")): [row[state] for row in rows[::-1]]
        for state in ("differs", "agrees", "refuses", "asked")
    }
    fig.table = lambda: columns
    return fig
