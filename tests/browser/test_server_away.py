"""The server dies and returns, and the page is reloaded: the user's data and changes survive."""

import io
import json
import os
import re
import signal

import numpy as np
import pytest
from playwright.sync_api import expect

CONFIG = {
    "_name_or_path": "me/mine",
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 32768,
    "rope_theta": 31337.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "beta_fats": 3},
}


def drop(seen, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    seen.page.locator("input[type=file]").set_input_files(file)
    expect(seen.knob("base")).to_have_value("31337")
    seen.settle()


def findings(seen):
    return seen.page.locator("[data-testid=stSidebar]").get_by_text("see My model").count()


def test_dropped_config_survives_reload_and_can_be_forgotten(visit, tmp_path):
    seen = visit().open("/scaling")
    drop(seen, tmp_path)
    assert findings(seen) > 0
    seen.page.reload()
    expect(seen.page.get_by_role("button", name="Remove config")).to_have_count(1)
    seen.settle()
    assert findings(seen) > 0
    assert seen.knob("base").input_value() == "31337"
    other = seen.page.context.new_page()
    other.goto(seen.page.url)
    expect(other.get_by_label("Base, typed")).to_have_value("31337")
    other.close()
    seen.page.get_by_role("button", name="Remove config").click()
    expect(seen.page.get_by_role("button", name="Remove config")).to_have_count(0)
    seen.settle()
    seen.page.reload()
    seen.settle()
    assert findings(seen) == 0
    assert seen.errors == []


def test_linked_catalog_model_wins_over_a_stored_config(visit, tmp_path):
    seen = visit().open("/frequencies")
    drop(seen, tmp_path)
    seen.open("/frequencies?model=llama-2-7b")
    expect(seen.page.get_by_role("button", name="Remove config")).to_have_count(1)
    seen.settle()
    assert "model=llama-2-7b" in seen.page.url
    assert seen.knob("context").input_value() == "4k"


BANNER = ".rv-banner[data-about=server]"
FIRST = "document.querySelector('.rv-plot').data.at(-1).y[0]"


def test_vectors_survive_a_server_restart_and_a_reload(visit, mortal, tmp_path):
    seen = visit(mortal.url).open("/decay?decay.show=own&decay.source=typed&decay.length=512&decay.log=no")
    drop(seen, tmp_path)
    main = seen.page.locator("main")
    for place, value in zip(main.locator("textarea").all(), ("2", "3"), strict=True):
        place.fill(", ".join([value] * 128))
        place.press("Control+Enter")
        seen.settle()
    seen.until(f"Math.abs({FIRST} - 6 * 128) < 1e-9")
    main.get_by_text("From a file", exact=True).click()
    raw = io.BytesIO()
    np.savez(raw, q=np.ones(128), k=np.ones(128))
    upload = main.locator("input[type=file]")
    upload.set_input_files({"name": "mine.npz", "mimeType": "application/zip", "buffer": raw.getvalue()})
    seen.until(f"Math.abs({FIRST} - 128) < 1e-9")
    seen.settle()
    mortal.kill()
    mortal.revive()
    seen.page.reload()
    expect(main.get_by_text("mine.npz is loaded.")).to_be_visible()
    seen.settle()
    seen.until(f"Math.abs({FIRST} - 128) < 1e-9")
    assert seen.knob("base").input_value() == "31337"
    main.get_by_text("Typed", exact=True).click()
    seen.until(f"Math.abs({FIRST} - 6 * 128) < 1e-9")
    main.get_by_text("From a file", exact=True).click()
    main.get_by_role("button", name="Remove file").click()
    expect(main.get_by_text("No file loaded")).to_be_visible()
    seen.settle()
    seen.page.reload()
    expect(main.get_by_text("No file loaded")).to_be_visible()


def test_stored_vectors_are_sent_again_after_a_lost_message(visit):
    seen = visit().open("/decay?decay.show=own&decay.source=typed")
    field = seen.page.locator("main textarea").first
    field.fill("2")
    field.press("Control+Enter")
    seen.until("(sessionStorage.getItem('rope-viz.held') ?? '').includes('decay.typed')")
    seen.settle()
    lost, back = [], []

    def between(socket):
        server = socket.connect_to_server()

        def said(message):
            if b"decay.typed" in message and b'"held"' in message and not back:
                lost.append(message)
            else:
                server.send(message)

        socket.on_message(said)

    seen.page.route_web_socket(re.compile("_stcore/stream"), between)
    seen.page.reload()
    seen.settle()
    assert lost
    expect(field).to_have_value("")
    back.append(True)
    expect(field).to_have_value("2")
    seen.settle()
    assert seen.page.evaluate("sessionStorage.getItem('rope-viz.held')").count("decay.typed") == 1


def test_killed_server_is_reported_and_changes_apply_later(visit, mortal, tmp_path):
    seen = visit(mortal.url).open("/frequencies")
    drop(seen, tmp_path)
    mortal.kill()
    banner = seen.page.locator(BANNER)
    expect(banner).to_be_visible()
    seen.page.wait_for_timeout(3000)  # Streamlit's own window would come by now
    assert seen.page.get_by_role("dialog").count() == 0
    seen.slider("base").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.slider("head_dim").focus()
    seen.page.keyboard.press("ArrowRight")
    base, dim = seen.knob("base").input_value(), seen.knob("head_dim").input_value()
    assert (base, dim) != ("31337", "128")
    mortal.revive()
    expect(banner).to_have_count(0)
    seen.page.wait_for_url(lambda url: f"base={base}" in url and f"dim={dim}" in url)
    expect(seen.page.get_by_role("button", name="Remove config")).to_have_count(1)
    seen.settle()
    assert (seen.knob("base").input_value(), seen.knob("head_dim").input_value()) == (base, dim)
    assert f"{int(dim) // 2} pairs" in seen.page.locator("main").inner_text()


def test_the_first_move_after_a_restart_is_not_lost(visit, mortal):
    seen = visit(mortal.url).open("/frequencies")
    seen.slider("head_dim").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.settle()
    mortal.kill()
    expect(seen.page.locator(BANNER)).to_be_visible()
    mortal.revive()
    expect(seen.page.locator(BANNER)).to_have_count(0)
    seen.settle()
    seen.slider("head_dim").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.page.wait_for_url("**dim=132**")
    seen.settle()
    assert seen.knob("head_dim").input_value() == "132"
    assert "66 pairs" in seen.page.locator("main").inner_text()


def test_links_and_pins_reach_the_restarted_server(visit, mortal):
    seen = visit(mortal.url).open("/")
    main, banner = seen.page.locator("main"), seen.page.locator(BANNER)

    def meanwhile(act, told):
        mortal.kill()
        expect(banner).to_be_visible()
        act()
        mortal.revive()
        seen.page.wait_for_url(told)
        expect(banner).to_have_count(0)
        seen.settle()

    def pin():
        main.locator(".rv-clocks canvas").focus()
        seen.page.keyboard.press("ArrowDown")
        seen.page.keyboard.press("Enter")

    meanwhile(main.get_by_role("link", name="Rotation", exact=True).first.click, "**/rotation")
    meanwhile(pin, "**pin=**")
    # No run of this server drew this page but the one that the browser asked for when it came back.
    main.get_by_role("button", name="Query and key").or_(main.get_by_role("radio", name="Query and key")).first.click()
    seen.page.wait_for_url("**rotation.show=score**")
    seen.settle()


@pytest.mark.parametrize(
    ("path", "name", "value", "shown", "query"),
    [
        ("/frequencies", "base", "777000", "777000", "base=777000"),
        ("/axes", "columns", "40", "40", "axes.columns=40"),
    ],
    ids=str,
)
def test_input_typed_during_a_stall_is_applied_afterwards(visit, mortal, path, name, value, shown, query):
    """The page cannot tell a server that stalls from one that rests, and says it again, with the address it knows."""
    seen = visit(mortal.url).open(path)
    knob = seen.page.locator(f"[data-knob$={name}] input[type=text]").last
    knob.fill(value)
    os.kill(mortal.process.pid, signal.SIGSTOP)
    try:
        knob.press("Enter")
        seen.page.wait_for_timeout(2500)
    finally:
        os.kill(mortal.process.pid, signal.SIGCONT)
    seen.page.wait_for_url(f"**{query}**")
    seen.page.wait_for_timeout(1500)
    seen.settle()
    expect(knob).to_have_value(shown)
    assert query in seen.page.url
