"""The table of trainers on My model against the table of runtimes: computed, and drawn by a browser.

    python benchmarks/training_matrix.py [--rounds 15] [--no-browser]

Both pictures take turns. *Computed*: from the request to the message for the browser, with nothing cached from an
earlier model or round. *Drawn*: from the browser's request until its layout is done, with the message cached by the
server. Prints medians in milliseconds and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.spec_url import Subject
from rope_viz.pages.model import runtimes
from rope_viz.picture import wire_format
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.browser.processes import running_browser, running_server  # noqa: E402

MODELS = ("llama-3.1-8b", "qwen3-8b", "qwen3-8b-yarn", "deepseek-v3", "gpt-oss-20b")


DRAW = """async ([pictures, model, rounds]) => {
  const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
  const base = loaded.find((name) => name.endsWith("/table.js")).replace("table.js", "");
  const { loadScript, unpack } = await import(`${base}message.js`), taken = [];
  for (let round = 0; round < rounds; round++) {
    const each = [];
    for (const [kind, name] of pictures) {
      const { default: draw } = await loadScript(kind), began = performance.now();
      const answer = await fetch(`${base}../picture/runtimes/${name}.packed?model=${model}&v=1`, { cache: "no-store" });
      const message = unpack(await answer.arrayBuffer()), root = document.createElement("div");
      root.className = `rv-picture rv-${kind}`;
      document.body.append(root);
      await draw({ root, data: { height: 430 }, memory: {} }, message);
      root.getBoundingClientRect();
      each.push(performance.now() - began);
      root.remove();
    }
    taken.push(each);
  }
  return taken;
}"""


def measure(picture: Picture, model: str) -> float:
    """Return the milliseconds that one picture of a model takes when nothing of it is cached."""
    for cached in (runtimes._answers, runtimes._trainings, runtimes._config_for):
        cached.cache_clear()
    specs = model_specs(model)
    layer = main_layer(catalog()[model], specs)
    request = PictureRequest(Subject(specs[layer], model, layer))
    began = time.perf_counter()
    wire_format.packed(picture, request, picture(request))
    return 1e3 * (time.perf_counter() - began)


def measure_drawn(page: Page, model: str, rounds: int) -> list[list[float]]:
    """Return the milliseconds of both tables in each round, drawn in a page that already shows a table."""
    names = [["table", "matrix"], ["grid", "training"]]
    found: list[list[float]] = page.evaluate(DRAW, [names, model, rounds])
    return found


def print_row(label: str, taken: Sequence[Sequence[float]]) -> None:
    """Print the medians of rounds in milliseconds, and their ratio."""
    one, other = (statistics.median(column) for column in zip(*taken, strict=True))
    print(f"{label:26} {one:6.1f} ms {other:6.1f} ms  {other / one:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    print(f"{'':26} {'runtimes':>9} {'training':>9}  ratio")
    for model in MODELS:
        measure(runtimes.matrix, model)
        measure(runtimes.training, model)
        rounds = range(options.rounds)
        print_row(
            f"computed {model}", [(measure(runtimes.matrix, model), measure(runtimes.training, model)) for _ in rounds]
        )
    if options.no_browser:
        return
    with running_server(str(ROOT / "app.py")) as server, running_browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 2600})
        page.goto(f"{server.url}/model?extend.tab=runtimes")
        page.locator(".rv-table td").first.wait_for()
        for model in MODELS:
            measure_drawn(page, model, 3)
            print_row(f"drawn    {model}", measure_drawn(page, model, options.rounds))


if __name__ == "__main__":
    main()
