"""A config.json from the Hugging Face Hub with --hub. The Hub is a local server that HF_ENDPOINT names.

Its answers are those of huggingface.co as huggingface_hub 2.4.0 reads them (`utils/_http.py`, `hf_raise_for_status`):
the header X-Error-Code, 401 for models that do not exist, and redirects to a model's newer name.
"""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rope_viz.cli import fetch_config
from rope_viz.cli.main import main
from tests.configs import QWEN3_8B, llama, yarn

OTHER = llama(rope_theta=7e5, max_position_embeddings=12345)
CONFIG = {"/acme/other/resolve/main/config.json": OTHER, "/acme/other/resolve/v2/config.json": llama(rope_theta=3e5)}
MOVED = {"/old/resolve/main/config.json": "/acme/other/resolve/main/config.json"}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Start a Hub; return what it was asked for, as (path, Authorization)."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            if self.path in MOVED:
                return self.answer(307, b"", Location=MOVED[self.path])
            if self.path in CONFIG:
                return self.answer(200, json.dumps(CONFIG[self.path]).encode(), **{"X-Repo-Commit": "a" * 40})
            if self.path == "/login":
                return self.answer(200, b"<!doctype html><title>Log in</title>", **{"Content-Type": "text/html"})
            name = self.path.split("/")[2]
            if name == "page":
                return self.answer(302, b"", Location="/login")
            if name == "huge":
                return self.answer(200, b'{"model_type": "' + b"x" * (60 << 20) + b'"}')
            code, error = {"gated": (401, "GatedRepo"), "empty": (404, "EntryNotFound"), "busy": (429, "")}.get(
                name, (404, "RepoNotFound")
            )
            return self.answer(code, b"refused", **{"X-Error-Code": error})

        def answer(self, code, content, **headers):
            self.send_response(code)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            # A client that has read enough hangs up.
            try:
                self.wfile.write(content)
            except OSError:
                self.close_connection = True

        def log_message(self, *_):
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{site.server_port}/")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    fetch_config.request_config.cache_clear()
    yield asked
    site.shutdown()
    site.server_close()


def refusal(capsys, *arguments):
    assert main(("table", *arguments, "--hub")) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    return err


def lengths(capsys, *arguments):
    assert main(("table", *arguments, "--json")) == 0
    read = capsys.readouterr()
    return json.loads(read.out), read.err


def test_an_id_is_asked_of_the_hub_for_its_config_alone(hub, capsys):
    found, err = lengths(capsys, "acme/other", "--hub")
    assert hub == [("/acme/other/resolve/main/config.json", None)]
    assert found["limit"] == 12345
    assert found["inv_freq"][1] == pytest.approx(7e5 ** (-2 / 128))
    assert "fetched http://127.0.0.1" in err
    assert "at commit aaaaaaaaaaaa" in err


def test_a_revision_and_a_page_of_the_hub_are_asked_for(hub, capsys):
    for name in ("acme/other@v2", "https://huggingface.co/acme/other/tree/v2"):
        found, _ = lengths(capsys, name, "--hub")
        assert found["inv_freq"][1] == pytest.approx(3e5 ** (-2 / 128))
    assert {path for path, _ in hub} == {"/acme/other/resolve/v2/config.json"}


def test_an_id_without_owner_is_followed_to_its_newer_name(hub, capsys):
    assert lengths(capsys, "old", "--hub")[0]["limit"] == 12345


def test_without_the_flag_nothing_is_asked(hub, capsys):
    assert main(("table", "acme/other")) == 2
    assert "--hub fetches its config.json" in capsys.readouterr().err
    assert main(("table", "Qwen/Qwen3-8B", "--csv")) == 0
    assert hub == []


def test_with_the_flag_the_hub_decides_also_for_a_listed_id(hub, capsys, monkeypatch):
    rope = {"rope_scaling": yarn(8192)}
    monkeypatch.setitem(CONFIG, "/Qwen/Qwen3-8B/resolve/main/config.json", QWEN3_8B | rope)
    assert lengths(capsys, "Qwen/Qwen3-8B", "--hub")[0]["original_length"] == 8192
    found, _ = lengths(capsys, "qwen3-8b", "--hub")
    assert found["original_length"] is None
    assert len(hub) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme/gated", "answered 401: there is no such model, or it is private or gated: set HF_TOKEN"),
        ("acme/nothing", "answered 404: there is no such model"),
        ("acme/empty", "answered 404: this model has no config.json"),
        ("acme/busy", "answered 429: too many requests, try again later"),
        ("acme/page", "sent a web page instead of config.json: download the file and name it"),
        ("acme/huge", " MiB, which no config.json is"),
    ],
)
def test_a_refusal_of_the_hub_is_a_sentence_with_the_reason(hub, capsys, name, message):
    err = refusal(capsys, name)
    assert err.startswith(f"rope-viz: {name}: 127.0.0.1 ")
    assert message in err


def test_the_token_is_sent_to_the_hub(hub, capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    lengths(capsys, "acme/other", "--hub")
    assert hub == [("/acme/other/resolve/main/config.json", "Bearer hf_secret")]
    assert "the token in HF_TOKEN has no access to it" in refusal(capsys, "acme/gated")


@pytest.mark.parametrize(
    ("endpoint", "sent"), [("http://hub.example", False), ("https://hub.example", True), ("http://127.0.0.1:1", True)]
)
def test_the_token_is_not_sent_unencrypted_to_another_machine(hub, capsys, monkeypatch, endpoint, sent):
    requests = []

    def refuse(address, *, headers, **limits):
        requests.append(headers.get("Authorization"))
        raise OSError("no network in tests")

    monkeypatch.setattr(fetch_config, "fetch", refuse)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert main(("table", "acme/other", "--hub")) == 2
    assert requests == ["Bearer hf_secret" if sent else None]
    assert ("HF_TOKEN is not sent" in capsys.readouterr().err) == (not sent)


def test_offline_the_answer_names_the_reason(hub, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE is set" in refusal(capsys, "acme/other")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        err = refusal(capsys, "acme/other")
    assert "127.0.0.1 cannot be reached (" in err
    assert "name a file, or a model of rope-viz models" in err
    monkeypatch.setenv("HF_ENDPOINT", "hub.example.org")
    assert "HF_ENDPOINT must be an address such as https://huggingface.co" in refusal(capsys, "acme/other")
    assert hub == []


@pytest.mark.parametrize(
    "command",
    [
        *(["check"], ["runtimes"], ["compare"], ["table"], ["memory", "--length", "8k"], ["export", "--to", "vllm"]),
        *(["extend", "--to", "32k"], ["match", "--trainer", "megatron-lm"]),
    ],
)
def test_every_command_that_takes_a_config_takes_the_flag(hub, capsys, command):
    assert main((command[0], "acme/other", *command[1:], "--hub")) in (0, 1)
    assert [path for path, _ in hub] == ["/acme/other/resolve/main/config.json"]
