"""Drive Firefox and WebKit (Safari's engine): open a page, evaluate, press, move, release, download.

Both are Debian packages, `firefox-esr` and `webkit2gtk-driver`; nothing is downloaded for them. Firefox speaks
WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/); WebKitWebDriver speaks the older WebDriver
(https://www.w3.org/TR/webdriver2/), and its browser draws on a screen that Xvfb keeps in memory.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.browser.processes import end_processes, find_free_port
from tests.waiting import wait_until

START_SECONDS = 60.0
"""Seconds within which a browser has to start; a busy machine takes ten of them."""
ANSWER_SECONDS = 120.0
"""Seconds within which it has to answer."""
WINDOW_SIZE = (1440, 900)

# Turn off what a new profile would request from its vendor.
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.aboutConfig.showWarning": False,
    "browser.download.always_ask_before_handling_new_types": False,
    "browser.download.folderList": 2,
    "browser.download.useDownloadDir": True,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
    "ui.prefersReducedMotion": 1,
}


class Engine:
    """The common part of both browsers."""

    programs: tuple[str, ...] = ()
    """The programs that it needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.downloads = folder / "downloads"
        self.downloads.mkdir()

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        raise NotImplementedError

    def is_alive(self) -> bool:
        """Return True if the browser still answers; it can crash."""
        try:
            return self.run("1 + 1") == 2
        except (AssertionError, OSError, WebSocketException):
            return False

    def wait_until(self, expression: str) -> Any:
        """Wait until a JavaScript expression is true."""
        return wait_until(lambda: self.run(expression), ANSWER_SECONDS, expression)

    def _act(self, steps: list[dict[str, Any]]) -> None:
        raise NotImplementedError

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a point of the window, in pixels."""
        self._act([{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}])

    def press(self) -> None:
        self._act([{"type": "pointerDown", "button": 0}])

    def release(self) -> None:
        self._act([{"type": "pointerUp", "button": 0}])

    def finished_downloads(self) -> list[Path]:
        """Return the complete downloads; an incomplete one is empty, with its bytes in a partial file."""
        found = (path for path in self.downloads.iterdir() if path.suffix not in (".part", ".wkdownload"))
        return [path for path in found if path.stat().st_size]


class Firefox(Engine):
    """Debian's firefox-esr without a window."""

    programs = ("firefox-esr",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.errors: list[str] = []
        profile = folder / "profile"
        profile.mkdir()
        prefs = PREFERENCES | {"browser.download.dir": str(self.downloads)}
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in prefs.items())
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        width, height = WINDOW_SIZE
        command = ["firefox-esr", "--headless", "--no-remote", "--profile", str(profile)]
        command += [f"--width={width}", f"--height={height}", "--remote-debugging-port", "0", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = os.environ | {"HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"}
        self.exit_stack = contextlib.ExitStack()
        self.process = subprocess.Popen(command, env=environment, start_new_session=True, **quiet)
        try:
            self._connect(profile / "WebDriverBiDiServer.json")
        except BaseException:
            end_processes(self.process)
            raise

    def _connect(self, port_file: Path) -> None:
        wait_until(
            lambda: port_file.exists() and port_file.read_text(encoding="utf-8").endswith("}"), START_SECONDS, "Firefox"
        )
        port = json.loads(port_file.read_text(encoding="utf-8"))["ws_port"]
        address = f"ws://127.0.0.1:{port}/session"
        self.socket = self.exit_stack.enter_context(connect(address, max_size=None, compression=None, proxy=None))
        self.number = 0
        self.version = self.send_command("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.send_command("session.subscribe", events=["log.entryAdded"])
        self.tab = self.send_command("browsingContext.getTree")["contexts"][0]["context"]
        self.send_command(
            "browsingContext.setViewport",
            context=self.tab,
            viewport={"width": WINDOW_SIZE[0], "height": WINDOW_SIZE[1]},
        )

    def send_command(self, method: str, **params: Any) -> Any:
        """Send a command and return its result; collect console errors that arrive before it."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=ANSWER_SECONDS))
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(f"{answer['params']['text']} {answer['params'].get('stackTrace')}")
            if answer.get("id") == self.number:
                assert answer["type"] == "success", f"{method}: {answer}"
                return answer["result"]

    def open(self, url: str) -> None:
        self.send_command("input.releaseActions", context=self.tab)
        self.send_command("browsingContext.navigate", context=self.tab, url=url, wait="interactive")

    def run(self, expression: str) -> Any:
        script, target = f"JSON.stringify(({expression}) ?? null)", {"context": self.tab}
        found = self.send_command("script.evaluate", expression=script, target=target, awaitPromise=False)
        assert found["type"] == "success", f"{expression}: {found}"
        return json.loads(found["result"]["value"])

    def _act(self, steps: list[dict[str, Any]]) -> None:
        actions = [{"type": "pointer", "id": "hand", "actions": steps}]
        self.send_command("input.performActions", context=self.tab, actions=actions)

    def save_screenshot(self, path: Path) -> None:
        """Save a screenshot of the window as PNG."""
        path.write_bytes(
            base64.b64decode(self.send_command("browsingContext.captureScreenshot", context=self.tab)["data"])
        )

    def close(self) -> None:
        self.exit_stack.close()
        end_processes(self.process)


# The driver has no command for the console, so the page collects its own errors.
COLLECT_ERRORS = """(() => {
  window.__errors = [];
  const note = (...words) => window.__errors.push(words.map((word) => word?.stack || String(word)).join(" "));
  console.error = note;
  addEventListener("error", ({ error, message }) => note(message, error));
  addEventListener("unhandledrejection", ({ reason }) => note(reason));
})()"""


class WebKit(Engine):
    """Debian's WebKitGTK in its MiniBrowser, on a virtual screen."""

    programs = ("WebKitWebDriver", "Xvfb")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        home = folder / "home"
        self._errors: list[str] = []
        for name, words in {
            ".config/user-dirs.dirs": f'XDG_DOWNLOAD_DIR="{self.downloads}"\n',
            ".config/gtk-3.0/settings.ini": "[Settings]\ngtk-enable-animations=0\n",
        }.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(words, encoding="utf-8")
        self.running: list[subprocess.Popen[Any]] = []
        try:
            self._connect(home)
        except BaseException:
            end_processes(*reversed(self.running))
            raise

    def _connect(self, home: Path) -> None:
        reads, writes = os.pipe()
        screen = ["Xvfb", "-displayfd", str(writes), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
        quiet = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "start_new_session": True,
        }
        self.running.append(subprocess.Popen(screen, pass_fds=[writes], **quiet))
        os.close(writes)
        with os.fdopen(reads) as pipe:
            display = pipe.readline().strip()
        assert display, "Xvfb did not start"
        environment = {key: value for key, value in os.environ.items() if key != "WAYLAND_DISPLAY"} | {
            "DISPLAY": f":{display}",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_DATA_HOME": str(home / ".local"),
            "GDK_BACKEND": "x11",
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "WEBKIT_DISABLE_COMPOSITING_MODE": "1",  # its compositor has crashed in the software driver of OpenGL
            "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",  # containers may not create the namespace that it needs
        }
        port = find_free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.running.append(subprocess.Popen(["WebKitWebDriver", f"--port={port}"], env=environment, **quiet))
        wait_until(self._ready, START_SECONDS, "WebKitWebDriver")
        options = {"binary": str(find_minibrowser()), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        found = self.send_command("POST", "/session", capabilities=wanted)
        self.version, self.session = found["capabilities"]["browserVersion"], f"/session/{found['sessionId']}"
        self.send_command(
            "POST", f"{self.session}/timeouts", script=int(1000 * ANSWER_SECONDS), pageLoad=int(1000 * ANSWER_SECONDS)
        )
        self.send_command("POST", f"{self.session}/window/rect", width=WINDOW_SIZE[0], height=WINDOW_SIZE[1])

    def _ready(self) -> bool:
        try:
            return bool(self.send_command("GET", "/status")["ready"])
        except OSError:
            return False

    def send_command(self, method: str, path: str, **params: Any) -> Any:
        """Send a command and return its value."""
        body = json.dumps(params).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with OPENER.open(request, timeout=ANSWER_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {params}: {error.read().decode()}") from None

    def open(self, url: str) -> None:
        self._collect_errors()
        self.send_command("DELETE", f"{self.session}/actions")
        self.send_command("POST", f"{self.session}/url", url=url)
        self.run(COLLECT_ERRORS)

    def _collect_errors(self) -> None:
        self._errors = [*self._errors, *self.run("window.__errors?.splice(0) ?? []")]

    @property
    def errors(self) -> list[str]:
        self._collect_errors()
        return self._errors

    def run(self, expression: str) -> Any:
        script = f"return JSON.stringify(({expression}) ?? null)"
        return json.loads(self.send_command("POST", f"{self.session}/execute/sync", script=script, args=[]))

    def _act(self, steps: list[dict[str, Any]]) -> None:
        actions = [{"type": "pointer", "id": "hand", "parameters": {"pointerType": "mouse"}, "actions": steps}]
        self.send_command("POST", f"{self.session}/actions", actions=actions)

    def save_screenshot(self, path: Path) -> None:
        """Save a screenshot of the window as PNG."""
        path.write_bytes(base64.b64decode(self.send_command("GET", f"{self.session}/screenshot")))

    def close(self) -> None:
        with contextlib.suppress(AssertionError, OSError):  # it may have crashed
            self.send_command("DELETE", self.session)
        end_processes(*reversed(self.running))


ENGINES = {"firefox": Firefox, "webkit": WebKit}
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def find_minibrowser() -> Path | None:
    """Return the path of WebKitGTK's MiniBrowser; its folder's name contains the API version."""
    return next(iter(sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))), None)


def find_missing_programs(name: str) -> list[str]:
    """Return the missing programs of an engine."""
    out = [program for program in ENGINES[name].programs if shutil.which(program) is None]
    return out + (["MiniBrowser"] if name == "webkit" and find_minibrowser() is None else [])
