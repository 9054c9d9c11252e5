"""Components with JavaScript of our own: a tiny loader inline, the script itself by a cached route."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from rope_viz.ui import query_params
from rope_viz.ui.components.scripts import PREFIX, version

# Streamlit sends inline JavaScript again with every change of data, so only this much is inline. The root of the app is
# found from Streamlit's own script, because a page may stand at any depth and under a base path. A script that was lost
# on its way is asked for again, where the browser does that (not every one does).
LOADER = """
const root = document.querySelector('script[type=module][src*="static/js/"]').src.split("/static/js/")[0];
const wait = (time) => new Promise((go) => setTimeout(go, time));
const load = (time) => import(`${root}%(path)s`).catch(() => wait(time).then(() => load(2 * time)));
const ready = load(500);
export default function (component) {
  const { parentElement: node } = component, data = JSON.parse(new TextDecoder().decode(component.data));
  if (data.room) node.querySelector(".%(root)s").style.minHeight = `${data.room[innerWidth <= 640 ? 1 : 0]}px`;
  const turn = (node.__turn = (node.__turn ?? 0) + 1);
  ready.then((script) => turn === node.__turn && script.default({ ...component, data }));
}
"""


@functools.cache
def component(name: str, *, root_class: str, height: int = 0) -> Any:
    """The mounting function of the component whose script is `<name>.js`; `height` is kept free until it has loaded.

    A component with another height is another one, whose node Streamlit replaces. What changes its height says so in
    its data instead: `room`, on a wide and on a narrow screen.
    """
    mount = st.components.v2.component(
        f"rope_viz_{name}_{height}",
        html=f'<div class="{root_class}" style="min-height:{height}px"></div>',
        js=LOADER % {"path": f"{PREFIX}/{version()}/{name}.js", "root": root_class},
        isolate_styles=False,
    )

    def mounted(*, data: Mapping[str, Any], **options: Any) -> Any:
        # As bytes: in anything else Streamlit looks for tables first, which takes a tenth of a run.
        return mount(data=json.dumps(data).encode(), **options)

    return mounted


def hears(key: str, take: Callable[[str, Any], None]) -> Callable[[], None]:
    """The callback for what a script posts as `at`, a name and a value (`post.js`).

    The script says it again until it finds its turn in `data`, see `heard`; what was taken is not taken twice.
    """

    def at_changed() -> None:
        query_params.catch_up()
        at = st.session_state[key]["at"]
        if not isinstance(at, Mapping):
            return
        if at.get("turn") == heard(key):
            return
        st.session_state[f"taken.{key}"] = at.get("turn")
        take(str(at.get("name")), at.get("value"))

    return at_changed


def heard(key: str) -> Any:
    """The turn that was taken last, for "taken" in the data."""
    return st.session_state.get(f"taken.{key}")
