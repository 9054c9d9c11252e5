"""The example notebook in JupyterLab and in marimo: a drag moves picture and `spec`, an assigned `spec` moves both."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.processes import find_free_port, running_process, wait_for_answer
from tests.browser.test_widgets import drag

pytestmark = pytest.mark.notebook

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "widgets.ipynb"
CLOCKS = ".rv-widget:has(.rv-clocks)"


@pytest.fixture
def page(chromium):
    """A page of a wide window."""
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    yield context.new_page()
    context.close()


def read_frequency(page):
    """Return the frequency that the clocks show of one pair."""
    return page.locator(".rv-clocks").first.evaluate("node => node.__clocks.data.first[10]")


def read_base(page):
    """Return the base that the first slider shows, as the browser writes it."""
    return page.locator(f"{CLOCKS} label", has=page.locator("input[data-do=base]")).locator("output")


def drag_the_base(page):
    """Drag the clocks' base once the notebook has run; return the frequency before, and the base."""
    page.wait_for_selector(".rv-clocks[data-drawn]")
    page.wait_for_selector(".rv-chart[data-drawn]")
    expect(read_base(page)).to_have_text("10000")  # a cell has assigned it
    before = read_frequency(page)
    base = float(drag(page, CLOCKS, "base", 0.8))
    assert read_frequency(page) != before
    return before, base


def test_jupyterlab_moves_the_picture_and_the_spec(page, tmp_path):
    shutil.copy(NOTEBOOK, tmp_path / "widgets.ipynb")
    # Otherwise a cell that is out of view is not on the page.
    settings = tmp_path / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}', encoding="utf-8")
    port = find_free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}"]
    command += [f"--LabApp.user_settings_dir={tmp_path / 'settings'}", f"--LabApp.workspaces_dir={tmp_path / 'spaces'}"]
    with running_process(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}) as process:
        wait_for_answer(process, f"http://127.0.0.1:{port}/api")
        page.goto(f"http://127.0.0.1:{port}/lab/tree/widgets.ipynb")
        cells = page.locator(".jp-CodeCell")
        expect(cells).to_have_count(5)
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        before, base = drag_the_base(page)
        run_cell(page, cells.nth(1))
        expect(cells.nth(1).locator(".jp-OutputArea")).to_contain_text(f"{base:,.10g}")
        run_cell(page, cells.nth(2))
        expect(read_base(page)).to_have_text("10000")
        assert read_frequency(page) == before
        drawn = page.locator(".rv-chart").get_attribute("data-drawn")
        drag(page, ".rv-widget:has(.rv-chart)", "scaling.factor", 0.9)
        expect(page.locator(".rv-chart")).not_to_have_attribute("data-drawn", drawn)


def run_cell(page, cell):
    """Run one cell of JupyterLab."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def test_marimo_moves_the_picture_and_the_spec(page, tmp_path):
    notebook = tmp_path / "note.py"
    convert = [sys.executable, "-m", "marimo", "convert", str(NOTEBOOK), "-o", str(notebook)]
    subprocess.run(convert, check=True, capture_output=True)
    cells, end = notebook.read_text(encoding="utf-8").split('if __name__ == "__main__":')
    # Two more cells read and assign `spec` when a button is pressed.
    notebook.write_text(f'{cells}{CELLS}if __name__ == "__main__":{end}', encoding="utf-8")
    port = find_free_port()
    command = [sys.executable, "-m", "marimo", "run", "--headless", "--no-token", f"--port={port}"]
    with running_process([*command, str(notebook)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}) as process:
        wait_for_answer(process, f"http://127.0.0.1:{port}/health")
        page.goto(f"http://127.0.0.1:{port}")
        _, base = drag_the_base(page)
        page.get_by_role("button", name="read").click()
        expect(page.get_by_text(f"base is {base}")).to_be_visible()
        page.get_by_role("button", name="assign").click()
        expect(read_base(page)).to_have_text("10000")


CELLS = """
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
    return


"""
