"""Random walk through the app in a real browser; the page is checked after every step.

    python tests/browser/walk.py --seed 7 --steps 10000

A failed walk prints its seed and steps; the same seed repeats them. test_walk.py takes fifty steps.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Error  # noqa: E402

from rope_viz.embedding.spec import knobs  # noqa: E402
from rope_viz.models import spec_url  # noqa: E402
from rope_viz.pages.registry import titles  # noqa: E402

CONFIG = {
    "_name_or_path": "me/mine",
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "max_position_embeddings": 16384,
    "rope_theta": 54321.0,
}
MODELS = ["Llama 2 7B", "gpt-oss 20B", "Qwen3 8B", "DeepSeek-V3", "Phi-4 mini"]
SIZES = [(1440, 900), (1024, 768), (390, 844)]
COMMON_STEPS = {"click": 6, "knob": 5, "go": 4, "link": 2, "field": 2, "back": 2, "forward": 1, "reload": 1}
RARE_STEPS = {"theme": 1, "width": 1, "model": 1, "drop": 1, "swipe": 1, "throttle": 1}

# Visible and enabled buttons, without those that measure, write a file or open a system dialog.
BUTTONS = """() => [...document.querySelectorAll('main button')].map((button, index) => [button, index])
  .filter(([button]) => button.offsetWidth && !button.disabled && !button.closest('[data-testid=stFileUploader], pre')
    && !button.closest('.rv-menu') && button.dataset.do !== 'full'
    && !/measure|download|export|copy/i.test(button.innerText + (button.getAttribute('aria-label') ?? '')))
  .map(([button, index]) => [index, (button.innerText || button.getAttribute('aria-label') || '').slice(0, 30)])"""
LINKS = """() => [...document.querySelectorAll('main a[href]')].map((anchor, index) => [anchor, index])
  .filter(([anchor]) => anchor.offsetWidth && !anchor.closest('h1, h2, h3, h4, h5, h6'))
  .filter(([anchor]) => new URL(anchor.href).origin === location.origin)
  .map(([anchor, index]) => [index, anchor.innerText.slice(0, 30)])"""
KNOBS = """() => [...document.querySelectorAll('[data-knob], [data-under]')]
  .filter((knob) => knob.offsetWidth && knob.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !knob.closest('details:not([open])') && knob.getBoundingClientRect().left >= 0)
  .map(({ dataset }) => dataset.knob ? `[data-knob="${dataset.knob}"]` : `[data-under="${dataset.under}"]`)"""
PICTURES_IN_VIEW = """() => [...document.querySelectorAll('.rv-picture')].filter((root) => {
    const { top, bottom, width } = root.getBoundingClientRect();
    return width && bottom > 0 && top < innerHeight;
  }).map((root) => ({ name: root.dataset.picture, state: root.dataset.state, drawn: Number(root.dataset.drawn ?? 0),
    query: root.__place.data.query, same: root.__place.shown === root.__place.wanted,
    empty: !root.querySelector('canvas, .main-svg, table') }))"""
# Only knobs of the model: a page may have its own base. Without refused values, which stay in their field.
VALUES = """() => Object.fromEntries([...document.querySelectorAll('[data-testid=stSidebar] [data-knob], [data-under]')]
  .filter((knob) => !knob.querySelector('[aria-invalid=true]'))
  .map((knob) => [knob.dataset.knob ?? knob.dataset.under, knob.querySelector('input[type=text]').value]))"""


class WalkError(AssertionError):
    """A check failed; the message has the steps that led to it."""


class Walk:
    """A random walk; `steps` lists the steps taken."""

    def __init__(self, view, seed, *, server=None, rare=RARE_STEPS):
        self.view, self.page, self.seed, self.server = view, view.page, seed, server
        self.random, self.steps, self.slow = random.Random(seed), [], False
        self.weights = COMMON_STEPS | rare | ({"kill": 1} if server and rare else {})
        folder = Path(tempfile.mkdtemp())
        self.config = folder / "config.json"
        self.config.write_text(json.dumps(CONFIG), encoding="utf-8")
        self.session = self.page.context.new_cdp_session(self.page)

    def step(self):
        """Take one step and check the page."""
        kind = self.random.choices(list(self.weights), list(self.weights.values()))[0]
        # A dialog covers everything else.
        kind = "close" if self.page.locator("dialog:modal").count() else kind
        try:
            done = getattr(self, kind)()
            self.steps.append(done or f"{kind}: nothing there")
            if done:
                self.check_page()
        except (AssertionError, Error) as error:
            steps = "\n".join(f"{index:4d}  {text}" for index, text in enumerate(self.steps, start=1))
            raise WalkError(f"seed {self.seed}, after these steps (then {kind}):\n{steps}\n{error}") from error

    # --- Steps

    def choose(self, script):
        found = self.page.evaluate(script)
        return self.random.choice(found) if found else None

    def click_random(self, script, place, word):
        found = self.choose(script)
        if found is None:
            return ""
        index, name = found
        self.page.locator(place).nth(index).click()
        return f"{word} {name!r}"

    def click(self):
        return self.click_random(BUTTONS, "main button", "click")

    def close(self):
        self.page.keyboard.press("Escape")
        assert not self.page.locator("dialog:modal").count(), "Escape leaves the dialog open"
        return "close the dialog"

    def link(self):
        return self.click_random(LINKS, "main a[href]", "follow")

    def knob(self):
        place = self.choose(KNOBS)
        if place is None:
            return ""
        slider = self.page.locator(f"{place} input[type=range]").first
        slider.scroll_into_view_if_needed()
        if self.random.random() < 0.5:
            key = self.random.choice(["ArrowRight", "ArrowLeft", "PageUp", "Home"])
            slider.focus()
            self.page.keyboard.press(key)
            self.view.settle()
            has_focus = self.page.evaluate("document.activeElement !== document.body")
            assert has_focus, f"the focus was lost after {key} on {place}"
            return f"{key} on {place}"
        box, shares = slider.bounding_box(), [round(self.random.random(), 2) for _ in range(3)]
        for index, share in enumerate(shares):
            self.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
            if index == 0:
                self.page.mouse.down()
        self.page.mouse.up()
        return f"drag {place} over {shares}"

    def field(self):
        place = self.choose(KNOBS)
        if place is None:
            return ""
        text = self.random.choice(["1", "64", "4k", "128k", "1M", "1e6", "-3", "none"])
        field = self.page.locator(f"{place} input[type=text]").first
        field.fill(text)
        field.press("Enter")
        return f"type {text} into {place}"

    def go(self):
        title = self.random.choice(list(titles().values()))
        self.view.go(title)
        return f"go to {title}"

    def back(self):
        if len(self.steps) < 3 or self.page.evaluate("history.length") < 3:
            return ""
        self.page.go_back(wait_until="commit")
        return "Back" if self.page.url.startswith(self.view.url) else self.home()

    def forward(self):
        self.page.go_forward(wait_until="commit")
        return "Forward"

    def home(self):
        self.page.goto(self.view.url)
        return "Home, since Back left the app"

    def reload(self):
        self.page.reload()
        return "reload"

    def theme(self):
        scheme = self.random.choice(["dark", "light"])
        self.page.emulate_media(color_scheme=scheme)
        return f"theme {scheme}"

    def width(self):
        width, height = self.random.choice(SIZES)
        self.view.resize(width, height)
        return f"{width} pixels wide"

    def model(self):
        box = self.page.locator("[data-testid=stSidebar] input[role=combobox]").first
        if not box.count() or not box.is_visible() or box.bounding_box()["x"] < 0:
            return ""
        name = self.random.choice(MODELS)
        box.click()
        box.fill(name)
        self.page.keyboard.press("Enter")
        return f"choose {name}"

    def drop(self):
        box = self.page.locator("[data-testid=stFileUploader] input[type=file]").first
        if not box.count():
            return ""
        box.set_input_files(self.config)
        return "drop a config"

    def swipe(self):
        place = self.choose(KNOBS)
        if place is None:
            return ""
        slider = self.page.locator(f"{place} input[type=range]").first
        slider.scroll_into_view_if_needed()
        box, before = slider.bounding_box(), slider.input_value()
        x, y = box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2
        send = self.session.send
        send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for part in range(1, 7):
            at = [{"x": x, "y": y - 20 * part}]
            send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": at})
        send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        send("Emulation.setTouchEmulationEnabled", {"enabled": False})
        assert slider.input_value() == before, f"a swipe moved {place}"
        return f"swipe up from {place}"

    def throttle(self):
        self.slow = not self.slow
        speed = 200_000 if self.slow else -1
        conditions = {"offline": False, "latency": 100 if self.slow else 0}
        self.session.send("Network.enable")
        self.session.send(
            "Network.emulateNetworkConditions",
            conditions | {"downloadThroughput": speed, "uploadThroughput": speed},
        )
        return f"network {'slow' if self.slow else 'normal'}"

    def kill(self):
        self.server.kill()
        self.view.until("document.querySelector('.rv-banner[data-about=server]') !== null")
        self.server.restart()
        self.view.until("document.querySelector('.rv-banner[data-about=server]') === null")
        # The browser logs the requests that failed meanwhile.
        self.view.errors.clear()
        return "kill the server and start it again"

    # --- Checks

    def check_page(self):
        """Check that pictures in view are drawn and agree with the address and the knobs."""
        view, page = self.view, self.page
        if self.slow:
            page.wait_for_timeout(1500)  # on a slow network the page learns late that a run began, and nothing shows it
        view.settle()
        assert view.errors == [], f"on the console: {view.errors}"
        assert view.foreign_requests == [], f"requests to other hosts: {view.foreign_requests}"
        assert page.locator('[data-testid="stException"]').count() == 0, "an exception on the page"
        hidden = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert hidden <= 0, f"{hidden} pixels wider than the screen"
        address = dict(parse_qsl(urlsplit(page.url).query))
        subject, problems = spec_url.read_query({key: text for key, text in address.items() if key in spec_url.KEYS})
        # The button to remove a config may be in a closed sidebar; the page of two models has none.
        removed = page.locator("button", has_text="Remove config").count() == 0
        plain = not problems and removed and "config" not in address
        for place in page.evaluate(PICTURES_IN_VIEW):
            assert place["state"] == "shown", f"{place['name']} is {place['state']}"
            assert place["drawn"], f"{place['name']} was not drawn"
            assert not place["empty"], f"{place['name']} is blank"
            assert place["same"], f"{place['name']} shows something else than the page asks for"
            query = dict(parse_qsl(place["query"], keep_blank_values=True))
            if plain and "spec" not in query:
                drawn, _ = spec_url.read_query({key: text for key, text in query.items() if key in spec_url.KEYS})
                assert drawn.spec == subject.spec, f"{place['name']} is of {drawn.spec}, the address of {subject.spec}"
        if plain:
            self.check_values(page.evaluate(VALUES), subject.spec)

    def check_values(self, values, spec):
        """Compare the fields of the knobs with the address."""
        found = knobs(spec) | knobs(spec.scaling)
        for name, text in values.items():
            if name not in found or name in ("m", "n"):
                continue
            value = getattr(spec, name, None) if name in knobs(spec) else getattr(spec.scaling, name)
            shown = parse_number(text)
            assert value is None or math.isclose(shown, value, rel_tol=1e-3), f"{name} reads {text}, not {value}"


def parse_number(text):
    """Parse the text of a knob's field, such as 128k or 1.5e6."""
    scale = {"k": 1024, "M": 1 << 20}.get(text[-1:], 1)
    return float(text.rstrip("kM")) * scale


def main():
    """Take a long walk with its own server and browser."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--calm", action="store_true", help="common steps only: no restart, no theme, no file")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.browser.conftest import KillableServer, Visit
    from tests.browser.processes import running_browser

    server = KillableServer()
    try:
        with running_browser() as browser:
            context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
            view = Visit(context.new_page(), server.url).open("/")
            walk = Walk(view, options.seed, server=server, rare={} if options.calm else RARE_STEPS)
            for number in range(options.steps):
                walk.step()
                if number % 100 == 99:
                    print(f"{number + 1} steps", flush=True)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
