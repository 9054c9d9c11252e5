"""The nginx block in docs/serving.md works in Debian's nginx, with the app and with its limits."""

import contextlib
import http.client
import re
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.processes import HEALTH_PATH, find_free_port, running_process, wait_for_answer

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCK = re.search(r"^```nginx\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[1]
# What tests need in addition: writable folders and no background process.
NGINX_CONFIG = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {block}
}}
"""
NAME = "viz.example.org"


def replace_once(text, *pairs):
    """Replace texts; fail if the documented block does not contain one of them."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def documented_nginx(tmp_path):
    """documented_nginx(addresses, *changes) runs the block in front of these servers and returns its port.

    It also answers at 127.0.0.1, because browsers cannot resolve the documented name.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx found")
    with contextlib.ExitStack() as running:

        def start(addresses, *changes):
            port = find_free_port()
            servers = " ".join(f"server {urlsplit(address).netloc};" for address in addresses)
            replicas = "server 127.0.0.1:8501; server 127.0.0.1:8502;"
            block = replace_once(
                BLOCK, ("listen 80", f"listen 127.0.0.1:{port}"), (replicas, servers), (NAME, f"{NAME} 127.0.0.1")
            )
            config, log = tmp_path / "nginx.conf", tmp_path / "error.log"
            text = NGINX_CONFIG.format(folder=tmp_path, block=replace_once(block, *changes))
            config.write_text(text, encoding="utf-8")
            process = running.enter_context(running_process([nginx, "-c", str(config), "-e", str(log)]))
            try:
                wait_for_answer(process, f"http://127.0.0.1:{port}/rope{HEALTH_PATH}")
            except RuntimeError:
                raise RuntimeError(log.read_text()) from None
            return port

        yield start


@pytest.fixture
def echo_server():
    """A server behind nginx that records the headers of every request."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not self.path.endswith(HEALTH_PATH):
                requests.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.answer()

        def log_message(self, *_):
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{site.server_address[1]}", requests
    site.shutdown()
    site.server_close()


def send_request(port, path="/rope/x", method="GET", body=None, host=NAME, **headers):
    """Return the status and the headers of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, {"Host": host, **named})
        answer = connection.getresponse()
        answer.read()
        return answer.status, dict(answer.getheaders())
    finally:
        connection.close()


def test_app_works_behind_the_documented_nginx(visit, new_server, documented_nginx):
    servers = [new_server(base="rope") for _ in range(2)]
    port = documented_nginx(servers)
    view = visit(f"http://127.0.0.1:{port}/rope", watched=True).open("/scaling?model=qwen3-8b-yarn")
    expect(view.page.locator(".rv-chart .main-svg").first).to_be_visible()
    before = view.count_draws()
    view.slider("base").focus()
    view.page.keyboard.press("ArrowRight")
    view.settle()
    assert view.count_draws() > before
    assert "base=" in view.page.url
    assert view.errors == []
    assert send_request(port, "/rope/_stcore/metrics", host="127.0.0.1")[0] == 404
    status, headers = send_request(port, f"/rope{HEALTH_PATH}", host="127.0.0.1")
    assert (status, headers["Server"]) == (200, "nginx")


def test_request_with_another_host_is_closed(documented_nginx, echo_server):
    port = documented_nginx([echo_server[0]])
    for host in ("localhost", "10.0.0.7", "evil.example"):
        with pytest.raises(http.client.RemoteDisconnected):
            send_request(port, host=host)
    assert send_request(port)[0] == 200
    assert len(echo_server[1]) == 1


def test_a_forged_address_does_not_reach_the_app(documented_nginx, echo_server):
    port = documented_nginx([echo_server[0]])
    assert send_request(port, X_Forwarded_For="1.2.3.4")[0] == 200
    assert echo_server[1][-1]["X-Forwarded-For"] == "127.0.0.1"
    assert echo_server[1][-1]["Host"] == NAME


def test_bodies_and_addresses_have_limits(documented_nginx, echo_server):
    port = documented_nginx([echo_server[0]])
    assert send_request(port, "/rope/x?" + "a" * 16_000)[0] == 200
    assert send_request(port, "/rope/x?" + "a" * 21_000)[0] == 414
    assert send_request(port, method="POST", body=bytes(5 << 20))[0] == 200
    assert send_request(port, method="POST", Content_Length=str(49 << 20))[0] == 413
    assert len(echo_server[1]) == 2


def test_too_many_requests_of_one_user_are_answered_with_503(documented_nginx, echo_server):
    port = documented_nginx([echo_server[0]], ("rate=50r/s", "rate=1r/m"), ("burst=300", "burst=2"))
    # The first request was that of wait_for_answer.
    assert [send_request(port)[0] for _ in range(4)] == [200, 200, 503, 503]


SLOW = {
    "header": "GET /rope/x HTTP/1.1\r\nHost: ",
    "body": "POST /rope/x HTTP/1.1\r\nContent-Length: 9\r\nHost: ",
}


@pytest.mark.parametrize("part", SLOW)
def test_slow_clients_are_closed_and_do_not_reach_the_app(documented_nginx, echo_server, part):
    port = documented_nginx(
        [echo_server[0]], *((f"client_{name}_timeout 10s", f"client_{name}_timeout 1s") for name in SLOW)
    )
    with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
        slow.sendall((SLOW[part] + NAME + ("" if part == "header" else "\r\n\r\nhalf")).encode())
        assert slow.recv(1000)[:12] in (b"", b"HTTP/1.1 408")
    assert echo_server[1] == []
