"""The example notebook in JupyterLab and in marimo: a drag moves picture and `spec`, an assigned `spec` moves both."""

import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.processes import find_free_port, running_process, wait_for_answer
from tests.browser.test_widgets import drag

pytestmark = pytest.mark.notebook

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "widgets.ipynb"


@pytest.fixture
def page(chromium):
    """A page that fails the test if a script of ours raised an error."""
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    yield context.new_page()
    context.close()


def read_frequencies(page, root):
    """Return the frequencies that the clocks of a cell show."""
    return page.locator(f"{root} .rv-clocks").first.evaluate("node => node.__clocks.data.first[10]")


def test_jupyterlab_moves_the_picture_and_the_spec(page, tmp_path):
    shutil.copy(NOTEBOOK, tmp_path / "widgets.ipynb")
    port = find_free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--port-retries=0"]
    command += [
        "--ServerApp.token=",
        f"--ServerApp.root_dir={tmp_path}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with running_process(command, cwd=ROOT) as process:
        wait_for_answer(process, f"http://127.0.0.1:{port}/api")
        page.goto(f"http://127.0.0.1:{port}/lab/tree/widgets.ipynb?reset")
        cell = page.locator(".jp-CodeCell")
        expect(cell).to_have_count(5)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        root = ".jp-CodeCell:nth-of-type(n) .rv-widget:has(.rv-clocks)"
        page.wait_for_selector(f"{root} .rv-clocks[data-drawn]")
        page.wait_for_selector(".rv-chart[data-drawn]")
        # The third code cell has assigned a spec.
        expect(page.locator(f"{root} input[data-do=base]").locator("xpath=..").locator("output")).to_have_text("10000")
        before = read_frequencies(page, root)
        base = drag(page, root, "base", 0.8)
        assert read_frequencies(page, root) != before
        page.locator(".jp-CodeCell").nth(1).locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        expect(cell.nth(1).locator(".jp-OutputArea")).to_contain_text(f"base={float(base)}")


def test_marimo_moves_the_picture_and_the_spec(page, tmp_path):
    (tmp_path / "note.py").write_text(MARIMO, encoding="utf-8")
    port = find_free_port()
    command = [
        sys.executable,
        "-m",
        "marimo",
        "edit",
        "--headless",
        "--no-token",
        "--skip-update-check",
        f"--port={port}",
    ]
    with running_process([*command, str(tmp_path / "note.py")], cwd=ROOT) as process:
        wait_for_answer(process, f"http://127.0.0.1:{port}/health")
        page.goto(f"http://127.0.0.1:{port}")
        page.wait_for_selector(".rv-clocks[data-drawn]")
        before = read_frequencies(page, "")
        base = drag(page, "", "base", 0.8)
        assert read_frequencies(page, "") != before
        page.get_by_role("button", name="read").click()
        expect(page.get_by_text(f"base is {float(base)}")).to_be_visible()
        page.get_by_role("button", name="assign").click()
        expect(page.locator("input[data-do=base]").locator("xpath=..").locator("output")).to_have_text("10000")


MARIMO = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import rope_viz
    from rope_viz.widgets import Clocks

    clocks = Clocks(rope_viz.RopeSpec(base=500_000.0, context=8192))
    clocks
    return clocks, mo, rope_viz


@app.cell
def _(mo):
    read, assign = mo.ui.run_button(label="read"), mo.ui.run_button(label="assign")
    mo.hstack([read, assign])
    return assign, read


@app.cell
def _(assign, clocks, read, rope_viz):
    if assign.value:
        clocks.spec = rope_viz.RopeSpec(base=10_000.0, context=8192)
    f"base is {clocks.spec.base}" if read.value else ""


if __name__ == "__main__":
    app.run()
"""
