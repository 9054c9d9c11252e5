"""The part of the page Recall that searches for frequencies, and shows a search of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rope_viz.evaluation.search_process import LENGTH, STARTS, TRIALS, SearchReport, SearchRun, has_optuna
from rope_viz.figures.compared import short_label
from rope_viz.pages import recall
from rope_viz.pages.recall import find_search
from rope_viz.pages.recall.choices import PAGE, SEARCH_FILE, SEARCHED
from rope_viz.pages.recall.figures import TEXTS
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.texts.texts import join_list
from rope_viz.ui import page
from rope_viz.ui.measurement_button import run_button


def search_frequencies(request: PictureRequest) -> None:
    """Show the button with its progress, the best frequencies so far or at the end, and the field for a file."""
    if request[SEARCH_FILE] is not None:
        page.paragraph(TEXTS("search.file"))
    elif not has_optuna():
        page.paragraph(TEXTS("search.install"))
    else:
        starts = join_list([short_label(name) for name in STARTS])
        page.paragraph(TEXTS("search.about", length=LENGTH, starts=starts, trials=TRIALS))
        run_button(
            "recall.search",
            TEXTS("search.button"),
            SearchRun,
            pack=SearchReport.pack,
            choice=SEARCHED.key,
            watch=count_trials,
        )
    page.picture_sentence(recall.searched)
    page.show(recall.searched)
    page.picture_sentence(recall.searched_scores)
    page.show(recall.searched_scores)
    result, _ = find_search(page.picture_request(PAGE))
    page.paragraph(TEXTS("search.config"))
    page.code(format_config(result.config), "json")
    page.controls(SEARCH_FILE)


def format_config(config: Mapping[str, Any]) -> str:
    """Return a fragment of config.json, each list in one line."""
    text = json.dumps(config, indent=2)
    return re.sub(r"\[\s+([^][]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text)


def count_trials(report: SearchReport) -> int:
    """Return the number of the best trial, counted from 1, 0 before the first one."""
    return int(report.found["best"]["trial"]) + 1 if report.found else 0
