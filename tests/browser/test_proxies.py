"""The app works behind a proxy, with and without a path prefix, and a link cannot inject markup."""

import contextlib
import json
import shutil
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.processes import HEALTH_PATH, find_free_port, running_process, wait_for_answer

CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  upstream app {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location {outside} {{
      proxy_pass http://app{inside};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"""


@pytest.fixture
def proxied_app(tmp_path, new_server):
    """proxied_app(base="rope") runs the app behind nginx under this path and returns its address."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx found")
    with contextlib.ExitStack() as running:

        def start(*, base="", stripped="", replicas=1):
            urls, path, port = [new_server(base=base) for _ in range(replicas)], base or stripped, find_free_port()
            outer_path = f"/{path}/" if path else "/"
            servers = " ".join(f"server {urlsplit(url).netloc};" for url in urls)
            inner_path = "/" if stripped else ""
            config, log = tmp_path / "nginx.conf", tmp_path / "error.log"
            config.write_text(
                CONFIG.format(folder=tmp_path, port=port, outside=outer_path, inside=inner_path, servers=servers),
                encoding="utf-8",
            )
            process = running.enter_context(running_process([nginx, "-c", str(config), "-e", str(log)]))
            address = f"http://127.0.0.1:{port}{outer_path.rstrip('/')}"
            try:
                wait_for_answer(process, address + HEALTH_PATH)
            except RuntimeError:
                raise RuntimeError(log.read_text()) from None
            return address

        yield start


def test_charts_follow_a_knob_behind_a_proxy_that_strips_a_path(visit, proxied_app):
    view = visit(proxied_app(stripped="rope"), watched=True).open("/scaling?model=qwen3-8b-yarn")
    expect(view.page.locator(".rv-chart .main-svg").first).to_be_visible()
    before = view.count_draws()
    view.slider("base").focus()
    view.page.keyboard.press("ArrowRight")
    view.settle()
    assert view.count_draws() > before
    assert "base=" in view.page.url
    assert view.errors == []
    assert view.foreign_requests == []


def test_replicas_behind_round_robin_serve_pages_and_pictures(visit, proxied_app):
    """Requests are spread over both processes; the page's session is in one of them."""
    view = visit(proxied_app(base="rope", replicas=2))
    for path in ("/", "/rotation?model=qwen3-8b-yarn"):
        view.open(path)
        assert view.page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
    for title in ("Scaling", "Decay", "Attention"):
        view.go(title)
        assert "model=qwen3-8b-yarn" in view.page.url
        assert view.page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
    view.open("/frequencies?model=llama-2-7b")
    before = view.count_draws()
    for _ in range(6):
        view.slider("base").focus()
        view.page.keyboard.press("ArrowRight")
        view.settle()
    assert view.count_draws() > before

    # A config that fits no address is stored in one process; the other gets it with the picture that needs it.
    requests = []
    view.page.on("request", lambda request: requests.append((request.method, request.url)))
    view.page.get_by_text("Paste a config").click()
    view.page.get_by_role("textbox", name="config.json, rope_scaling").fill(json.dumps(LONGROPE_CONFIG))
    view.page.get_by_role("button", name="Use this config").click()
    view.page.wait_for_url("**model=custom**")
    view.settle()
    for title in ("Scaling", "Decay", "Frequencies"):
        view.go(title)
        assert "model=custom" in view.page.url
        assert {"shown"} <= set(view.page.evaluate(PICTURE_STATES)) <= {"shown", "far"}
    assert any(method == "POST" and "/picture/" in url for method, url in requests)
    assert view.page.locator(".rv-failed").count() == 0
    assert [error for error in view.errors if "410" not in error] == []


PICTURE_STATES = "[...document.querySelectorAll('.rv-picture')].map(({ dataset }) => dataset.state)"
LONGROPE_CONFIG = {
    "model_type": "phi3",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_theta": 31337.0,
    "rope_scaling": {
        "type": "longrope",
        "short_factor": [1 + index / 64 for index in range(64)],
        "long_factor": [1 + index**1.5 / 8 for index in range(64)],
    },
}


def test_unknown_address_shows_a_banner(visit):
    view = visit()
    view.page.goto(f"{view.url}/nowhere")
    expect(view.page.locator(".rv-banner")).to_contain_text("There is no page nowhere")


HOSTILE = [
    "[Sign in](https://evil.example/x)",
    "https://evil.example",
    "www.evil.example",
    "# big",
    ":red[x] $x^2$ **y**",
]


@pytest.mark.parametrize("shift", range(len(HOSTILE)))
def test_link_cannot_inject_markup(visit, shift):
    """In five visits every text is once in every parameter."""
    query = dict(zip(("model", "layer", "method", "base", "pairing"), HOSTILE[shift:] + HOSTILE[:shift], strict=True))
    view = visit().open(f"{'/' if shift == 0 else '/frequencies'}?{urlencode(query)}", is_valid=False)
    alerts = view.page.locator('[data-testid="stAlert"]')
    assert alerts.locator("a, h1, strong, .katex, span[class*=stMarkdownColored]").count() == 0
    shown_text = " ".join(alerts.all_inner_texts()).replace("\u2060", "")
    assert [text for text in query.values() if text not in shown_text] == []
