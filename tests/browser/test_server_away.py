"""The user's data and changes survive a server restart and a reload of the page."""

import io
import json
import os
import re
import signal

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import IS_SETTLED, LIMIT
from tests.browser.processes import HEALTH_PATH

CONFIG = {
    "_name_or_path": "me/mine",
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 32768,
    "rope_theta": 31337.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "beta_fats": 3},
}


def drop(view, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    view.page.locator("input[type=file]").first.set_input_files(file)
    expect(view.knob("base")).to_have_value("31337")
    view.settle()


def count_findings(view):
    return view.page.locator("[data-testid=stSidebar]").get_by_text("see My model").count()


def test_dropped_config_survives_reload_and_can_be_removed(visit, tmp_path):
    view = visit().open("/scaling")
    drop(view, tmp_path)
    assert count_findings(view) > 0
    view.page.reload()
    expect(view.page.get_by_role("button", name="Remove config")).to_have_count(1)
    view.settle()
    assert count_findings(view) > 0
    assert view.knob("base").input_value() == "31337"
    other = view.page.context.new_page()
    other.goto(view.page.url)
    expect(other.get_by_label("Base, typed")).to_have_value("31337")
    other.close()
    view.page.get_by_role("button", name="Remove config").click()
    expect(view.page.get_by_role("button", name="Remove config")).to_have_count(0)
    view.settle()
    view.page.reload()
    view.settle()
    assert count_findings(view) == 0
    assert view.errors == []


def test_linked_catalog_model_wins_over_a_stored_config(visit, tmp_path):
    view = visit().open("/frequencies")
    drop(view, tmp_path)
    view.open("/frequencies?model=llama-2-7b")
    expect(view.page.get_by_role("button", name="Remove config")).to_have_count(1)
    view.settle()
    assert "model=llama-2-7b" in view.page.url
    assert view.knob("context").input_value() == "4k"


BANNER = ".rv-banner[data-about=server]"
FIRST_VALUE = "document.querySelector('.rv-plot').data.at(-1).y[0]"


def test_vectors_survive_a_server_restart_and_a_reload(visit, killable_server, tmp_path):
    view = visit(killable_server.url).open("/decay?decay.show=own&decay.source=typed&decay.length=512&decay.log=no")
    drop(view, tmp_path)
    main = view.page.locator("main")
    for place, value in zip(main.locator("textarea").all(), ("2", "3"), strict=True):
        place.fill(", ".join([value] * 128))
        place.press("Control+Enter")
        view.settle()
    view.until(f"Math.abs({FIRST_VALUE} - 6 * 128) < 1e-9")
    main.get_by_text("From a file", exact=True).click()
    raw = io.BytesIO()
    np.savez(raw, q=np.ones(128), k=np.ones(128))
    upload = main.get_by_role("region", name="q and k").locator("input[type=file]")
    upload.set_input_files({"name": "mine.npz", "mimeType": "application/zip", "buffer": raw.getvalue()})
    view.until(f"Math.abs({FIRST_VALUE} - 128) < 1e-9")
    view.settle()
    killable_server.kill()
    killable_server.restart()
    view.page.reload()
    expect(main.get_by_text("mine.npz is loaded.")).to_be_visible()
    view.settle()
    view.until(f"Math.abs({FIRST_VALUE} - 128) < 1e-9")
    assert view.knob("base").input_value() == "31337"
    main.get_by_text("Typed", exact=True).click()
    view.until(f"Math.abs({FIRST_VALUE} - 6 * 128) < 1e-9")
    main.get_by_text("From a file", exact=True).click()
    main.get_by_role("button", name="Remove file").click()
    expect(main.get_by_text("No file loaded")).to_have_count(2)  # that of positions never had one
    view.settle()
    view.page.reload()
    expect(main.get_by_text("No file loaded")).to_have_count(2)  # that of positions never had one


def test_stored_vectors_are_sent_again_after_a_lost_message(visit):
    view = visit().open("/decay?decay.show=own&decay.source=typed")
    field = view.page.locator("main textarea").first
    field.fill("2")
    field.press("Control+Enter")
    view.until("(sessionStorage.getItem('rope-viz.held') ?? '').includes('decay.typed')")
    view.settle()
    lost, restored = [], []

    def intercept(socket):
        server = socket.connect_to_server()

        def forward(message):
            if b"decay.typed" in message and b'"held"' in message and not restored:
                lost.append(message)
            else:
                server.send(message)

        socket.on_message(forward)

    view.page.route_web_socket(re.compile("_stcore/stream"), intercept)
    view.page.reload()
    for _ in range(300):  # a settled page may not have sent it yet
        if lost:
            break
        view.page.wait_for_timeout(100)
    assert lost
    expect(field).to_have_value("")
    restored.append(True)
    expect(field).to_have_value("2")
    view.settle()
    assert view.page.evaluate("sessionStorage.getItem('rope-viz.held')").count("decay.typed") == 1


def test_killed_server_is_reported_and_changes_apply_later(visit, killable_server, tmp_path):
    view = visit(killable_server.url).open("/frequencies")
    drop(view, tmp_path)
    killable_server.kill()
    banner = view.page.locator(BANNER)
    expect(banner).to_be_visible()
    for _ in range(2):  # by then Streamlit would show its own dialog
        view.page.wait_for_event("requestfailed", lambda request: HEALTH_PATH in request.url)
    assert view.page.get_by_role("dialog").count() == 0
    view.slider("base").focus()
    view.page.keyboard.press("ArrowRight")
    view.slider("head_dim").focus()
    view.page.keyboard.press("ArrowRight")
    base, dim = view.knob("base").input_value(), view.knob("head_dim").input_value()
    assert (base, dim) != ("31337", "128")
    killable_server.restart()
    expect(banner).to_have_count(0)
    view.page.wait_for_url(lambda url: f"base={base}" in url and f"dim={dim}" in url)
    expect(view.page.get_by_role("button", name="Remove config")).to_have_count(1)
    view.settle()
    assert (view.knob("base").input_value(), view.knob("head_dim").input_value()) == (base, dim)
    assert f"{int(dim) // 2} pairs" in view.page.locator("main").inner_text()


def test_first_change_after_a_restart_is_applied(visit, killable_server):
    view = visit(killable_server.url).open("/frequencies")
    view.slider("head_dim").focus()
    view.page.keyboard.press("ArrowRight")
    view.settle()
    killable_server.kill()
    expect(view.page.locator(BANNER)).to_be_visible()
    killable_server.restart()
    expect(view.page.locator(BANNER)).to_have_count(0)
    view.settle()
    view.slider("head_dim").focus()
    view.page.keyboard.press("ArrowRight")
    view.page.wait_for_url("**dim=132**")
    view.settle()
    assert view.knob("head_dim").input_value() == "132"
    assert "66 pairs" in view.page.locator("main").inner_text()


def test_links_and_pins_reach_the_restarted_server(visit, killable_server):
    view = visit(killable_server.url).open("/")
    main, banner = view.page.locator("main"), view.page.locator(BANNER)

    def while_server_is_down(act, address):
        killable_server.kill()
        expect(banner).to_be_visible()
        act()
        killable_server.restart()
        view.page.wait_for_url(address)
        expect(banner).to_have_count(0)
        view.settle()

    def pin():
        main.locator(".rv-clocks canvas").focus()
        view.page.keyboard.press("ArrowDown")
        view.page.keyboard.press("Enter")

    while_server_is_down(main.get_by_role("link", name="Rotation", exact=True).first.click, "**/rotation")
    while_server_is_down(pin, "**pin=**")
    # The restarted server has run this page only once, when the browser reconnected.
    main.get_by_role("button", name="Query and key").or_(main.get_by_role("radio", name="Query and key")).first.click()
    view.page.wait_for_url("**rotation.show=score**")
    view.settle()


@pytest.mark.parametrize(
    ("path", "name", "value", "shown", "query"),
    [
        ("/frequencies", "base", "777000", "777000", "base=777000"),
        ("/axes", "columns", "40", "40", "axes.columns=40"),
    ],
    ids=str,
)
def test_input_typed_during_a_stall_is_applied_afterwards(visit, killable_server, path, name, value, shown, query):
    """A stalled server looks like an idle one, so the page repeats its message with its address."""
    view = visit(killable_server.url).open(path)
    knob = view.page.locator(f"[data-knob$={name}] input[type=text]").last
    knob.fill(value)
    os.kill(killable_server.process.pid, signal.SIGSTOP)
    try:
        knob.press("Enter")
        view.page.wait_for_timeout(2500)  # the subject: the length of the stall
    finally:
        os.kill(killable_server.process.pid, signal.SIGCONT)
    view.page.wait_for_url(f"**{query}**")
    assert view.becomes_true(IS_SETTLED, 20, LIMIT)
    expect(knob).to_have_value(shown)
    assert query in view.page.url
