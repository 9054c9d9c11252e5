"""The key of `evaluate` goes only to the server that it is meant for."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rope_viz.cli import evaluate
from rope_viz.cli.main import make_parser
from rope_viz.evaluation.completion_clients import Server, is_unencrypted
from rope_viz.storage.fetch import origin

MODELS = json.dumps({"data": [{"id": "m"}]}).encode()


@pytest.fixture
def new_site():
    """new_site(redirect) serves on a port of its own, and lists (path, key) of the requests that it got."""
    sites = []

    def start(redirect=None):
        got = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                got.append((self.path, self.headers.get("Authorization")))
                target = redirect and redirect.get(self.path)
                self.send_response(307 if target else 200)
                if target:
                    self.send_header("Location", target)
                self.send_header("Content-Length", str(0 if target else len(MODELS)))
                self.end_headers()
                self.wfile.write(b"" if target else MODELS)

            def log_message(self, *_):
                pass

        site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        sites.append(site)
        return f"http://127.0.0.1:{site.server_address[1]}", got

    yield start
    for site in sites:
        site.shutdown()
        site.server_close()


def test_a_redirect_to_another_host_carries_no_key(new_site):
    other, got = new_site()
    here, asked = new_site({"/v1/models": f"{other}/v1/models"})
    assert Server(f"{here}/v1", "", key="secret").models() == ["m"]
    assert asked == [("/v1/models", "Bearer secret")]
    assert got == [("/v1/models", None)]


def test_a_redirect_on_the_same_host_keeps_the_key(new_site):
    here, asked = new_site({"/v1/models": "/v2/models"})
    assert Server(f"{here}/v1", "", key="secret").models() == ["m"]
    assert asked == [("/v1/models", "Bearer secret"), ("/v2/models", "Bearer secret")]


@pytest.mark.parametrize("target", ["ftp://127.0.0.1:1/v1/models", "file:///etc/hosts", "data:,x"])
def test_only_redirects_to_http_and_https_are_followed(new_site, target):
    here, asked = new_site({"/v1/models": target})
    with pytest.raises(ValueError, match=r"a redirect to 'ftp' is not followed|is not allowed"):
        Server(f"{here}/v1", "", key="secret").models()
    assert [path for path, _ in asked] == ["/v1/models"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("https://a.example/v1", "https://a.example:443/v2", True),
        ("https://a.example/v1", "http://a.example/v1", False),
        ("https://a.example/v1", "https://b.example/v1", False),
        ("http://a.example:8000/v1", "http://a.example:8001/v1", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(first, second, same):
    assert (origin(first) == origin(second)) == same


@pytest.mark.parametrize(
    ("url", "flags", "sent"),
    [
        ("http://10.0.0.7:8000/v1", [], False),
        ("http://gpu-box:8000/v1", [], False),
        ("http://gpu-box:8000/v1", ["--key-over-http"], True),
        ("http://localhost:8000/v1", [], True),
        ("http://127.0.0.1:8000/v1", [], True),
        ("http://[::1]:8000/v1", [], True),
        ("https://api.example.com/v1", [], True),
    ],
)
def test_the_key_leaves_the_machine_encrypted(monkeypatch, capsys, url, flags, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    parsed = make_parser(["evaluate"]).parse_args(
        ["evaluate", "--server", f"none={url}", "--served-model", "m", "-o", "a.json", *flags]
    )
    assert evaluate.connect_server(parsed, url).key == ("secret" if sent else None)
    assert ("OPENAI_API_KEY is not sent" in capsys.readouterr().err) == (not sent)
    assert is_unencrypted(url) == (not sent or bool(flags))
