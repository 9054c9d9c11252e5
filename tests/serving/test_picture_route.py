"""The picture route needs no session, renders an address once, and has a bounded cache and queue."""

import asyncio
import functools
import gzip
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers

from rope_viz.models.read_upload import read_upload
from rope_viz.own_files import blob_store, config_link, configs
from rope_viz.pages import registry, rotation
from rope_viz.picture import export, read_address
from rope_viz.picture.choices import StoredChoice
from rope_viz.serving import long_jobs, picture_route, render_queue, server
from rope_viz.storage.limits import ANSWER_PART_BYTES, PICTURES_AT_ONCE, REQUEST_CONTENTS
from rope_viz.ui.components.scripts import PREFIX
from tests.configs import QWEN3_8B
from tests.example_models import example_model

APP = Starlette(routes=server.routes(""), middleware=server.middleware())
FIRST_KEY = rotation.AT.default(read_address.read_request(rotation.PAGE, {}))[1]
QUERY = "model=qwen3-8b-yarn&base=77000"


@pytest.fixture(scope="module")
def processes():
    """Processes for long jobs, which outlive the servers of single tests."""
    found = long_jobs.LongJobs()
    yield found
    found.shut_down()


@pytest.fixture(autouse=True)
def gallery(monkeypatch, processes):
    """The gallery of a new server."""
    new = picture_route.Gallery(long_jobs=processes)
    monkeypatch.setattr(picture_route, "GALLERY", new)
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    return new


def send_requests(*requests):
    """Send requests at once and return their answers."""

    async def send_all():
        return await asyncio.gather(*(send_request(**each) for each in requests))

    # In another thread, since Playwright runs an event loop in the main thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(send_all())).result()


async def send_request(path, query="", method="GET", body=b"", leaves=None, visitor="192.0.2.1", **headers):
    sent, parts = [], [body]
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    path = f"{PREFIX}/picture/{path}"
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": raw}
    scope["client"] = (visitor, 50_000)

    async def receive():
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        if leaves is None:
            await asyncio.get_running_loop().create_future()
        if leaves:  # with 0 the client has left already, which takes no turn of the loop
            await asyncio.sleep(leaves)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await APP(scope | {"query_string": query.encode()}, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return SimpleNamespace(status=sent[0]["status"], headers=Headers(raw=sent[0]["headers"]), body=content)


def get(path, query="", **more):
    return send_requests({"path": path, "query": query, **more})[0]


@pytest.mark.parametrize("picture", registry.pictures(), ids=lambda picture: picture.address)
def test_fresh_server_renders_every_picture(picture):
    query = {"model": example_model(picture, "qwen3-8b-yarn"), "base": "77000"}
    answer = get(f"{picture.address}.packed", urlencode(query))
    assert answer.status == 200
    assert answer.body == export.render(
        picture, read_address.read_request(registry.page(picture.page), query), "packed"
    )


@pytest.mark.parametrize("form", export.FORMS)
def test_every_format_has_its_type_and_allows_any_origin(form):
    answer = get(f"scaling/comparison.{form}", QUERY)
    assert answer.status == 200
    assert answer.headers["content-type"] == export.FORMS[form]
    assert answer.headers["cache-control"] == "public, max-age=86400"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-disposition"].endswith(f'.{form}"')


def test_repeated_request_is_answered_with_304_by_any_server(monkeypatch):
    first = get("scaling/comparison.svg", QUERY)
    monkeypatch.setattr(picture_route, "GALLERY", None)
    monkeypatch.setattr(export, "render", lambda *_: pytest.fail("nothing may be rendered for this"))
    for tags in (first.headers["etag"], 'W/"other", W/' + first.headers["etag"], "*"):
        again = get("scaling/comparison.svg", "base=7.7e4&model=qwen3-8b-yarn", if_none_match=tags)
        assert again.status == 304
        assert again.body == b""
        assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    ("accepts", "takes"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("", False),
    ],
    ids=repr,
)
def test_gzip_is_used_only_if_accepted(accepts, takes):
    answer = get("scaling/comparison.csv", QUERY, accept_encoding=accepts)
    assert answer.headers.get("content-encoding") == ("gzip" if takes else None)
    assert (answer.body[:2] == b"\x1f\x8b") == takes


def test_file_holds_the_whole_of_a_partial_picture():
    page, picture = registry.page("recall"), registry.picture("recall", "lengths")
    parts = picture.parts(read_address.read_request(page, {}))
    assert parts > 1
    drawn = {part: get("recall/lengths.csv", f"part={part}" if part else "").body for part in ("", "0", str(parts - 1))}
    assert drawn[""] == drawn[str(parts - 1)] != drawn["0"]


@pytest.mark.parametrize("query", ["view=0.5,2.5&decay.show=mean", "width=90mm&theme=dark&label.YaRN=%23%261"])
def test_address_in_a_file_returns_that_file(query):
    first = get("decay/curves.json", f"{QUERY}&{query}")
    path, _, query_in_file = json.loads(first.body)["figure"].partition("?")
    assert path == f"{PREFIX}/picture/decay/curves"
    assert get("decay/curves.json", query_in_file).body == first.body


def test_query_order_does_not_change_the_cache_entry(gallery):
    one = get("scaling/comparison.json", "model=qwen3-8b-yarn&scaling.show=paper&pin=3")
    two = get("scaling/comparison.json", "pin=3&scaling.show=paper&model=qwen3-8b-yarn&v=another")
    assert one.body == two.body
    assert len(gallery._cache) == 1
    assert 0 < gallery.size < len(one.body), "stored compressed"


def test_compressed_and_plain_answers_are_equal(gallery):
    whole, packed = (get("decay/curves.packed", "", accept_encoding=takes) for takes in ("identity", "br, gzip"))
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in whole.headers
    assert {answer.headers["vary"] for answer in (whole, packed)} == {"accept-encoding"}
    assert gzip.decompress(packed.body) == whole.body
    assert len(packed.body) < 0.7 * len(whole.body)
    assert get("decay/curves.png", "width=300px", accept_encoding="gzip").body.startswith(b"\x89PNG")


def test_address_is_rendered_once_at_a_time(monkeypatch, gallery):
    drawn = []
    real = export.render

    def render_slowly(*arguments):
        drawn.append(threading.current_thread().name)
        time.sleep(0.2)  # longer than all requests take to arrive
        return real(*arguments)

    monkeypatch.setattr(export, "render", render_slowly)
    answers = send_requests(*[{"path": "scaling/comparison.packed", "query": QUERY}] * 20)
    assert [answer.status for answer in answers] == [200] * 20
    assert len({answer.body for answer in answers}) == 1
    assert len(drawn) == 1


def test_many_requests_respect_the_queue_and_memory_limits(monkeypatch):
    at_once, most_at_once = 0, 0
    lock = threading.Lock()

    def render(picture, request, form, look):
        nonlocal at_once, most_at_once
        with lock:
            at_once += 1
            most_at_once = max(most_at_once, at_once)
        time.sleep(0.005)  # long enough that several run at once
        with lock:
            at_once -= 1
        return np.random.default_rng(int(request.spec.base)).bytes(1000)

    monkeypatch.setattr(export, "render", render)
    small = picture_route.Gallery(waiting=50, most=10_000)
    monkeypatch.setattr(picture_route, "GALLERY", small)
    answers = send_requests(*({"path": "scaling/comparison.packed", "query": f"base={10_000 + i}"} for i in range(200)))
    assert most_at_once <= PICTURES_AT_ONCE
    assert small.size <= small.most
    served = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status == 503]
    assert len(served) == 50 + PICTURES_AT_ONCE
    assert len(served) + len(refused) == 200
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert all(answer.body.endswith(b".") for answer in refused), "a sentence"
    assert len({answer.body for answer in served}) == len(served)


def test_abandoned_request_is_not_rendered(monkeypatch):
    drawn = []

    def render(picture, request, form, look):
        drawn.append(request.spec.base)
        time.sleep(0.05)  # longer than the abandoned clients wait
        return b"picture"

    monkeypatch.setattr(export, "render", render)
    abandoned = [
        {"path": "scaling/comparison.packed", "query": f"base={20_000 + i}", "leaves": 0.02} for i in range(40)
    ]
    waiting = [{"path": "scaling/comparison.packed", "query": f"base={10_000 + i}"} for i in range(4)]
    answers = send_requests(*waiting, *abandoned)
    assert [answer.status for answer in answers[:4]] == [200] * 4
    assert len(drawn) <= 4 + 2 * PICTURES_AT_ONCE


def test_pages_do_not_wait_for_files(monkeypatch):
    forms = []

    class Busy(long_jobs.LongJobs):
        async def render(self, job):
            forms.append(job.form)
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(picture_route, "GALLERY", picture_route.Gallery(long_jobs=Busy()))

    async def send_both():
        files = [asyncio.ensure_future(send_request("scaling/comparison.png", f"base={20_000 + i}")) for i in range(6)]
        await asyncio.sleep(0)
        pages = [await send_request("scaling/comparison.packed", query) for query in ("", "coarse=1")]
        assert [page.status for page in pages] == [200, 200]
        for each in files:
            each.cancel()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(send_both())).result()
    assert forms == ["png"], "one long job for one visitor"


def test_moving_knobs_have_priority_over_resting_pictures(monkeypatch):
    monkeypatch.setitem(render_queue.PATIENCE, picture_route.SHOWN, 0.05)
    order, may_render = [], threading.Event()

    def render(name):
        order.append(name)
        may_render.wait()
        return b"picture"

    async def send_request():
        one = picture_route.Gallery(at_once=1)

        def put(name, rank):
            return asyncio.ensure_future(one.drawn(name, functools.partial(render, name), rank=rank))

        all_of_them = [
            put("first", picture_route.MOVING),
            put("rests", picture_route.SHOWN),
            put("moves", picture_route.MOVING),
        ]
        await asyncio.sleep(0.2)  # longer than the patience of a resting picture
        all_of_them.append(put("later", picture_route.MOVING))
        await asyncio.sleep(0)
        may_render.set()
        await asyncio.gather(*all_of_them)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(send_request())).result()
    assert order == ["first", "moves", "rests", "later"]


@pytest.mark.parametrize(
    ("path", "query", "status", "sentence"),
    [
        ("scaling/comparison.packed", "dim=201", 400, "dim = 201"),
        ("scaling/comparison.svg", "model=<script>", 400, "Unknown model"),
        ("scaling/comparison.svg", "base=1e5&base=1e6", 400, "has a key twice"),
        ("scaling/comparison.svg", "x=1", 400, "no choice 'x'"),
        ("scaling/comparison.svg", "short=" + "1," * 9000, 400, "longer than"),
        ("scaling/comparison.svg", "theme=neon", 400, "theme must be"),
        ("scaling/comparison.svg", "width=1e9", 400, "width must be"),
        ("scaling/comparison.svg", "height=-3", 400, "height must be"),
        ("scaling/comparison.svg", "title=" + "x" * 301, 400, "title must have at most 300"),
        ("rotation/matrices.packed", "model=custom&dim=512&knob=head_dim&value=4096", 400, "Head dimension"),
        ("scaling/nothing.svg", "", 404, "There is no picture 'nothing'"),
        ("nowhere/comparison.svg", "", 404, "There is no page 'nowhere'"),
        ("scaling/comparison.gif", "", 404, "has the forms"),
        ("scaling/comparison", "", 404, "There is no picture"),
        ("scaling/__class__.svg", "", 404, "There is no picture"),
        ("registry/read.svg", "", 404, "There is no page"),
        ("runtimes/curves.packed", "model=custom&own=guessed", 410, "no longer stores"),
        ("decay/curves.packed", "decay.show=own&decay.source=file&decay.file=guessed", 410, "no longer stores"),
    ],
)
def test_invalid_request_is_answered_with_a_reason(path, query, status, sentence):
    answer = get(path, query)
    assert answer.status == status
    assert sentence in answer.body.decode()
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "Traceback" not in answer.body.decode()


def test_picture_of_a_moving_knob_is_not_cached(gallery):
    answer = get("scaling/comparison.packed", "coarse=1&knob=base&value=77000")
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert gallery.size == 0


def test_failed_rendering_answers_500_and_breaks_nothing(monkeypatch, gallery):
    monkeypatch.setattr(export, "render", lambda *_: 1 / 0)
    answer = get("scaling/comparison.packed")
    assert (answer.status, answer.body) == (
        500,
        b"This picture could not be rendered. See the server's log for the reason.",
    )
    monkeypatch.undo()
    assert get("scaling/comparison.packed").status == 200


CONFIG = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 16, "rope_theta": 1e5}


def test_config_is_found_by_name_or_must_be_sent():
    own = read_upload(json.dumps(CONFIG | {"max_position_embeddings": 4096}))
    salted = blob_store.salt() + configs.upload_bytes(own)
    query = f"model=custom&dim=64&base=1e5&own={blob_store.name_of(salted)}"
    missing = get("runtimes/matrix.json", query)
    assert missing.status == 410
    assert missing.headers["rope-viz-missing"] == blob_store.name_of(salted)
    body = len(salted).to_bytes(4, "little") + salted
    assert get("runtimes/matrix.json", query, method="POST", body=body).status == 400, "from our own pages only"
    sent = get("runtimes/matrix.json", query, method="POST", body=body, rope_viz="kept")
    assert sent.status == 200
    assert sent.headers["cache-control"] == "private, max-age=86400"
    found = get("runtimes/matrix.json", query)
    assert found.body == sent.body
    assert "The config of llama" in json.loads(found.body)["sentence"]


@pytest.mark.parametrize("name", ["%00", "%0d%0aX-A:%201", "%E6%BC%A2", "%E9"])
def test_name_that_is_no_valid_header_is_unknown(name):
    answer = get("runtimes/curves.packed", f"model=custom&own={name}")
    assert answer.status == 410
    assert "rope-viz-missing" not in answer.headers


@pytest.mark.parametrize(
    "content",
    [b"[" * 200_000, b"{", b"\xff", b"1" * 9000, b" " * (12 << 20) + b"{}"],
    ids=["deep", "cut", "bytes", "long", "large"],
)
@pytest.mark.parametrize("key", ["own", "spec"])
def test_unreadable_body_is_answered_with_422(key, content):
    salted = blob_store.salt() + content
    body = len(salted).to_bytes(4, "little") + salted
    query = f"model=custom&{key}={blob_store.name_of(salted)}"
    answer = get("frequencies/wavelengths.packed", query, method="POST", body=body, rope_viz="kept")
    assert answer.status == 422
    assert answer.body.startswith((b"the content stored under this name is", b"at most 12 MiB can be stored"))


def test_stored_config_has_the_limits_of_a_dropped_one():
    with pytest.raises(ValueError, match="1,500 keys in one object"):
        configs.upload_of(json.dumps({f"k{n}": n for n in range(1500)}).encode())


@pytest.mark.parametrize(
    ("picture", "key", "content"),
    [
        ("kernels/speeds", "kernels.report", b'{"workload":{},"ways":{"a":1}}'),
        ("kernels/ways", "kernels.report", b"[" * 300_000),
        ("kernels/agreement", "kernels.report", b'{"workload": {}, "agreement": [{"pairing": 3}]}'),
        ("decay/curves", "decay.typed", b"[" * 300_000),
        ("decay/curves", "decay.typed", b"[]"),
        ("decay/curves", "decay.file", b"a.npz\0PK"),
        ("recall/needle", "recall.file", b'{"version": 1, "answers": [{"method": []}]}'),
        ("heads/across", "heads.file", b"\x02" + bytes(7) + b"[]"),
    ],
)
def test_broken_content_is_answered_with_422(picture, key, content):
    salted = blob_store.salt() + content
    body = len(salted).to_bytes(4, "little") + salted
    query = f"{key}={blob_store.name_of(salted)}"
    answer = get(f"{picture}.packed", query, method="POST", body=body, rope_viz="kept")
    assert answer.status == 422
    assert 0 < len(answer.body.splitlines()[0]) < 300


def pack(contents):
    return b"".join(len(each).to_bytes(4, "little") + each for each in contents)


def test_body_of_many_contents_is_refused_before_one_is_stored():
    body = pack([blob_store.salt() for _ in range(REQUEST_CONTENTS + 1)])
    answer = get("scaling/comparison.packed", method="POST", body=body, rope_viz="kept")
    assert (answer.status, answer.body) == (400, b"at most 32 contents can be sent at once")
    assert blob_store.STORE.size == 0


def test_a_session_has_fewer_contents_than_a_body_may():
    choices = [choice for page in registry.PAGES for choice in registry.page(page).choices]
    assert 2 + sum(isinstance(choice, StoredChoice) for choice in choices) <= REQUEST_CONTENTS


def test_contents_are_stored_whole():
    contents = [blob_store.salt() + bytes([n]) * 1000 * n for n in range(REQUEST_CONTENTS)]
    assert get("scaling/comparison.packed", method="POST", body=pack(contents), rope_viz="kept").status == 200
    assert [blob_store.STORE.salted(blob_store.name_of(each)) for each in contents] == contents


def test_storing_stops_when_the_client_has_left(monkeypatch):
    stored = []
    monkeypatch.setattr(blob_store.STORE, "keep", lambda content, visitor: stored.append(content))
    body = pack([blob_store.salt() for _ in range(20)])
    answer = get("scaling/comparison.packed", method="POST", body=body, leaves=0, rope_viz="kept")
    assert answer.status == 499
    assert len(stored) == 1


def test_tiny_content_is_answered_with_its_own_sentence():
    answer = get("scaling/comparison.packed", method="POST", body=pack([b"12"]), rope_viz="kept")
    assert (answer.status, answer.body[:41]) == (400, b"a content starts with 16 random bytes, go")


@pytest.mark.parametrize("content", [b"1", b"-1.5", b"true", b"null", b'"x"', b"[]"])
@pytest.mark.parametrize(
    ("picture", "key"),
    [
        ("frequencies/wavelengths", "own"),
        ("frequencies/wavelengths", "spec"),
        ("decay/curves", "decay.typed"),
        ("rotation/rotated", "rotation.x"),
        ("recall/yours", "recall.file"),
        ("recall/live_loss", "recall.report"),
        ("recall/live_keys", "recall.keys"),
        ("recall/live_loss", "recall.measured"),
        ("recall/searched", "recall.search"),
        ("heads/uses", "heads.measured"),
        ("kernels/speeds", "kernels.report"),
    ],
)
def test_plain_json_value_is_answered_with_422(picture, key, content):
    page = registry.page(picture.partition("/")[0])
    choice = next((each for each in page.choices if each.key == key), None)
    salted = blob_store.salt() + (b"a.json\0" if choice is not None and choice.suffixes else b"") + content
    query = (
        f"model=custom&{key}={blob_store.name_of(salted)}" if choice is None else f"{key}={blob_store.name_of(salted)}"
    )
    answer = get(f"{picture}.packed", query, method="POST", body=pack([salted]), rope_viz="kept")
    assert answer.status == 422
    assert b"\n" not in answer.body


def test_large_page_is_inflated_in_small_parts():
    whole = bytes(range(256)) * 40_000 + bytes(3_000_000)
    packed = gzip.compress(whole)
    most = held = 0

    async def read():
        nonlocal most, held
        async for part in picture_route.inflate(packed):
            most, held = max(most, len(part)), held + len(part)
            yield part

    async def join():
        return b"".join([part async for part in read()])

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: asyncio.run(join())).result() == whole
    assert most <= ANSWER_PART_BYTES
    assert held == len(whole)


def test_client_that_does_not_read_holds_one_part(monkeypatch):
    """The server waits for the client between the parts; nothing else of the page is decompressed meanwhile."""
    taken, read = [], picture_route.inflate

    async def counted(content):
        async for part in read(content):
            taken.append(len(part))
            yield part

    monkeypatch.setattr(picture_route, "inflate", counted)

    async def unread():
        scope = {"type": "http", "method": "GET", "headers": [], "query_string": b"", "client": ("192.0.2.1", 1)}
        scope["path"] = f"{PREFIX}/picture/decay/curves.html"
        never = asyncio.get_running_loop().create_future()

        messages = [{"type": "http.request"}]

        async def receive():
            return messages.pop() if messages else await never

        async def send(message):
            if message["type"] == "http.response.body":
                await never

        task = asyncio.create_task(APP(scope | {"raw_path": scope["path"].encode()}, receive, send))
        while not taken:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        task.cancel()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(unread())).result()
    assert sum(taken) <= ANSWER_PART_BYTES


def test_identity_answer_names_its_length():
    answer = get("scaling/comparison.html", QUERY, accept_encoding="identity")
    assert int(answer.headers["content-length"]) == len(answer.body) > 100_000


def test_too_large_body_is_refused_before_it_arrives():
    answer = get("frequencies/wavelengths.packed", "", method="POST", rope_viz="kept", content_length=str(10**12))
    assert answer.status == 400
    assert b"at most 48 MiB" in answer.body


def test_html_of_a_picture_has_a_strict_policy():
    for form in ("html", "svg"):
        policy = get(f"frequencies/wavelengths.{form}").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "sandbox" in policy
        assert "allow-same-origin" not in policy


def test_link_of_4000_characters_is_answered():
    layers = {str(index): {"head_dim": 64 + (index * index * 7919) % 4093} for index in range(250)}
    own = read_upload(json.dumps({**QWEN3_8B, "per_layer_config": layers}))
    text = config_link.write_config(own)
    assert 2000 < len(text) <= 4000
    answer = get("scaling/comparison.json", f"model=custom&config={text}")
    assert answer.status == 200
    assert answer.headers["cache-control"].startswith("public")


@pytest.mark.parametrize("value", ["", "eNp", "A" * 4001])
def test_broken_config_in_a_link_is_answered_with_400(value):
    answer = get("scaling/comparison.svg", f"model=custom&config={value}")
    assert answer.status == 400
    assert answer.body.startswith(b"the config in this link is ")


def test_route_takes_one_position_for_the_query():
    one, send_both = (get("rotation/turning.csv", f"rotation.at={at}") for at in ("12000", f"12000,{FIRST_KEY}"))
    assert (one.status, send_both.status) == (200, 200)
    assert one.body == send_both.body
    assert get("rotation/turning.csv", "rotation.at=x").status == 400
