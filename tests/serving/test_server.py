"""The app serves cached scripts and security headers in addition to Streamlit."""

import asyncio
import gzip
import os
import platform
import runpy
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path

from rope_viz.serving import server
from rope_viz.storage.limits import ANSWER_IDLE_SECONDS, MESSAGE_BYTES
from rope_viz.ui.components import scripts

IDLE = getattr(socket, "TCP_USER_TIMEOUT", 18)
APP = Starlette(routes=server.routes(), middleware=server.middleware(), exception_handlers={Exception: server.failed})


def get(path, *, app=APP, **headers):
    """Return the app's answer to a request, without a network."""
    sent = []
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "headers": raw,
        "query_string": b"",
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    # In another thread, since Playwright runs an event loop in the main thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(app(scope, receive, send))).result()
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return SimpleNamespace(status=sent[0]["status"], headers=Headers(raw=sent[0]["headers"]), body=body)


@pytest.mark.parametrize("name", scripts.NAMES)
def test_script_is_compressed_and_cached_forever(name):
    address = f"{scripts.PREFIX}/{scripts.version()}/{name}"
    answer = get(address, accept_encoding="gzip")
    assert answer.status == 200
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(answer.body) == scripts.source(name)
    again = get(address, if_none_match=answer.headers["etag"])
    assert again.status == 304


def test_browser_without_gzip_gets_the_plain_script():
    answer = get(f"{scripts.PREFIX}/x/knob.js", accept_encoding="identity")
    assert "content-encoding" not in answer.headers
    assert answer.body == scripts.SCRIPTS["knob.js"].read_bytes()


def test_responses_wait_for_no_acknowledgement_or_idle_client():
    """Through uvicorn, with a socket made as Streamlit makes it; connections inherit its option."""

    async def serve_once():
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            config = uvicorn.Config(Starlette(lifespan=server.lifespan), log_config=None)
            config.load()
            served = uvicorn.Server(config)
            served.lifespan = config.lifespan_class(config)
            await served.startup(sockets=[listener])
            options = [listener.getsockopt(socket.IPPROTO_TCP, name) for name in (socket.TCP_NODELAY, IDLE)]
            await served.shutdown(sockets=[listener])
            return options

    with ThreadPoolExecutor(1) as pool:
        no_delay, idle = pool.submit(lambda: asyncio.run(serve_once())).result()
    assert no_delay
    assert idle == 1000 * ANSWER_IDLE_SECONDS


def test_uvicorn_reads_the_limit_of_messages_from_its_protocol():
    """Fails if uvicorn reads `ws_max_size` elsewhere than from `config` of the protocol that accepted a connection."""
    config = uvicorn.Config(Starlette(), ws="websockets-sansio", log_config=None)
    config.load()

    def make(**options):
        return config.http_protocol_class(config=config, server_state=uvicorn.server.ServerState(), app_state={})

    async def connect():
        protocol = server.limit_messages(make)()
        return config.ws_protocol_class(config=protocol.config, server_state=uvicorn.server.ServerState(), app_state={})

    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(lambda: asyncio.run(connect())).result()
    assert opened.conn.max_message_size == MESSAGE_BYTES


@pytest.mark.parametrize("name", ["nothing.js", "..%2f..%2fspec.py", "server.py"])
def test_other_files_are_not_served(name):
    assert get(f"{scripts.PREFIX}/x/{name}").status == 404


def test_every_response_has_the_security_headers():
    for answer in (get(f"{scripts.PREFIX}/x/knob.js"), get(f"{scripts.PREFIX}/picture/x/y"), get("/nowhere")):
        for name, value in server.HEADERS.items():
            assert answer.headers[name] == value
        assert answer.headers["content-security-policy"] == server.policy("")


@pytest.mark.parametrize(
    "host", ["", "localhost:8501", "[::1]:80", "rope.example", "a b", "x;script-src *", "*", "https:"]
)
def test_the_policy_allows_no_other_host_and_no_eval(host):
    policy = get("/nowhere", host=host).headers["content-security-policy"]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert "unsafe-eval" not in policy
    assert "*" not in policy
    assert parts["script-src"] == "'self' 'unsafe-inline' blob:"
    allowed = set(parts.pop("connect-src").split()) - {"'self'", "data:", "blob:"}
    assert allowed in (set(), {f"ws://{host}", f"wss://{host}"})
    assert not {"http:", "https:", "ws:", "wss:"} & {word for words in parts.values() for word in words.split()}


def test_operator_names_the_sites_that_may_frame_the_app(monkeypatch):
    assert "frame-ancestors 'self'" in server.policy("127.0.0.1:8501").split("; ")
    monkeypatch.setenv("ROPE_VIZ_FRAMED_BY", "https://huggingface.co https://*.hf.space ;script-src 'none'")
    allowed = "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
    assert allowed in server.policy("127.0.0.1:8501").split("; ")


@pytest.mark.parametrize("base", ["rope", "/deep/rope/"])
def test_routes_are_under_the_base_path(base):
    app = Starlette(routes=server.routes(base), middleware=server.middleware())
    under = f"/{base.strip('/')}{scripts.PREFIX}/x/knob.js"
    assert get(under, app=app).status == 200
    assert get(f"{scripts.PREFIX}/x/knob.js", app=app).status == 404


@pytest.mark.parametrize("name", [name for name in scripts.SCRIPTS if name != "plotly.min.js"])
def test_each_own_script_is_small(name):
    """Scripts travel compressed, so names may be as long as they need to be."""
    assert len(gzip.compress(scripts.source(name))) <= 6_000


def test_script_run_does_not_change_sys_path(monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    app = runpy.run_path(str(Path(__file__).parents[2] / "app.py"))["app"]
    before = sys.path.copy()
    with modified_sys_path(str(app.script_path)):
        assert sys.path == before


# Count the heaps of glibc, each at a multiple of 64 MiB, after twelve threads allocated memory at once.
HEAPS = """
import sys, threading
from rope_viz.serving import server
if sys.argv[1] == "few":
    server.few_arenas()
barrier = threading.Barrier(12)
def thread():
    blocks = [bytearray(60_000) for _ in range(20)]
    barrier.wait()
threads = [threading.Thread(target=thread) for _ in range(12)]
for one in threads: one.start()
for one in threads: one.join()
starts = [line.split("-")[0] for line in open("/proc/self/maps") if " rw-p " in line and not line.split()[5:]]
print(sum(int(start, 16) % (64 << 20) == 0 for start in starts))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no such heaps")
def test_threads_share_memory_arenas():
    usual, few = (count_heaps(how) for how in ("usual", "few"))
    assert few <= 2 < usual


def count_heaps(how):
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    answer = subprocess.run(
        [sys.executable, "-c", HEAPS, how],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )
    return int(answer.stdout)


def test_plotly_function_is_parenthesised_for_eager_parsing():
    given = scripts.SCRIPTS["plotly.min.js"].read_bytes().rstrip()
    served = scripts.source("plotly.min.js").rstrip()
    assert len(served) == len(given) + 2
    assert served.replace(b"(() => {\n", b"() => {\n", 1).removesuffix(b"})));") == given.removesuffix(b"}));")
    assert scripts.called_at_once(b"var Plotly = 1;\n") == b"var Plotly = 1;\n"


@pytest.mark.parametrize("number", ["0", "9", "99", "-1", "1.0", "x", "\u0661", "\u00b2", "1" * 4301, "0" * 5000 + "1"])
def test_other_scenes_are_not_found(number):
    answer = get(f"/scene/{number}")
    assert answer.status == 404
    assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_scene_is_found_by_its_number():
    assert get("/scene/1").status == 200


def test_unexpected_error_has_the_security_headers(monkeypatch):
    def fail(*_):
        raise RuntimeError("an error of the test")

    monkeypatch.setattr(server, "story_page", fail)
    sent = []

    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/scene/1", "headers": [(b"host", b"viz.example.org")]}

        async def receive():
            return {"type": "http.request"}

        async def send(message):
            sent.append(message)

        with pytest.raises(RuntimeError, match="an error of the test"):  # uvicorn logs it
            await APP(scope | {"query_string": b"", "raw_path": b"/scene/1"}, receive, send)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(ask())).result()
    headers = Headers(raw=sent[0]["headers"])
    assert sent[0]["status"] == 500
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "traceback" not in sent[1]["body"].decode().lower()


def test_app_answers_errors_with_the_security_headers():
    assert "exception_handlers={Exception: server.failed}" in (Path(server.__file__).parents[2] / "app.py").read_text()


def test_badge_of_a_model_is_an_image_for_other_sites():
    answer = get("/rope-viz/badge/phi-4-mini.svg")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.body.startswith(b"<svg")
    assert get("/rope-viz/badge/no-such-model.svg").status == 404
