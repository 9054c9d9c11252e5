"""Hostile requests of `abuse.py`, one function for each way into the server."""

from __future__ import annotations

import asyncio
import base64
import functools
import io
import json
import random
import re
import secrets
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import websockets
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from benchmarks.sessions import FAILURES, connect, run_page
from rope_viz.figures.files import FORMS
from rope_viz.own_files import blob_store
from rope_viz.pages import registry

PICTURE = "/rope-viz/picture"
MODEL = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192}
MIB = 1 << 20
SLOWEST = (
    "frequencies/heatmap.png?width=4800px&height=4800px&dpi=140",
    "recall/needle.png?method=yarn&recall.length=16384&recall.at=1024",
    "recall/loss.png?recall.chain=2048",
    "recall/needle.svg?recall.at=903",
    "precision/scores.pdf?height=4800px",
    "scaling/comparison.png?width=50in",
    "recall/lengths.png",
    "heads/across.png?width=4800px&height=4800px",
    "decay/bases.packed",
    "heads/across.svg?width=50in",
    "decay/curves.packed?decay.backend=torch-cpu",
)
"""The addresses that took longest before they had limits, the slowest first."""
HOSTILE = ("", "nan", "1e999", "-1", "0", "\0", "<script>", "' or 1=1", "../../etc/passwd", "٣", "9" * 400, "[" * 900)


async def request(
    url: str,
    path: str,
    *,
    source: str,
    method: str = "GET",
    body: bytes = b"",
    headers: Sequence[str] = (),
    leave: float | None = None,
) -> int:
    """Send one request from an address of this machine; return the status, 0 for a connection that was closed.

    `leave` hangs up after so many seconds.
    """
    parts = urlsplit(url)
    read, write = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(source, 0), limit=1 << 26)
    try:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", "Accept-Encoding: gzip"]
        lines += [
            *headers,
            *(["rope-viz: kept"] * (method == "POST")),
            *([f"Content-Length: {len(body)}"] * bool(body)),
        ]
        write.write("\r\n".join([*lines, "", ""]).encode("utf-8", "replace"))
        for start in range(0, len(body), 1 << 20):
            write.write(body[start : start + (1 << 20)])
            await write.drain()
        answer = await asyncio.wait_for(read.read(), leave or 120)
        found = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(found[1]) if found else 0
    except (TimeoutError, OSError):
        return 0
    finally:
        write.close()


def random_address(chance: random.Random) -> str:
    """Return an address with random and hostile values."""
    picture = chance.choice(registry.pictures())
    query = {"model": chance.choice(["llama-3.1-8b", "qwen3-8b-yarn", "deepseek-v3", "kimi-k2-instruct"])}
    for choice in chance.sample(picture.uses, min(len(picture.uses), chance.randint(0, 4))):
        options = list(getattr(choice, "options", ()))
        number = str(chance.choice([1, 16, 903, 2048, 16384, 10_000_000, -5, 1e30]))
        query[choice.key] = chance.choice([*options, number, chance.choice(HOSTILE)])
    form = chance.choice(["packed", *FORMS])
    if chance.random() < 0.3:
        query |= {"width": chance.choice(["50in", "94px", "4800px", "1e9"]), "height": "4800px"}
    if chance.random() < 0.2:
        query |= {"part": str(chance.randint(0, 12)), "view": "0.5,2.5"}
    return f"{picture.address}.{form}?{urlencode(query)}"


@functools.cache
def hostile_contents() -> list[tuple[str, str, bytes]]:
    """Return (picture, end of the query, content) of contents that are large, deep or dense."""
    found = []
    for size in (1_000, 30_000, 300_000):
        answers = [
            {"method": f"m{i}", "length": i + 1, "depth": i / size, "repeat": 0, "right": True} for i in range(size)
        ]
        packed = io.BytesIO()
        np.savez_compressed(packed, q=np.zeros(size * 100, dtype=bool))
        evaluation = json.dumps({"version": 1, "answers": answers}).encode()
        scaling = {"scaling": {"name": "yarn"}, "x": [1] * size}
        own = "decay.show=own&decay.source"
        found += [
            ("decay/curves", f"{own}=file&decay.file", b"a.npz\0" + packed.getvalue()),
            ("decay/curves", f"{own}=file&decay.file", b"a.csv\0" + b"1," * size),
            ("decay/curves", f"{own}=typed&decay.typed", json.dumps({"q": "1 " * size}).encode()),
            ("recall/yours", "recall.file", b"a.json\0" + evaluation),
            ("recall/yours", "recall.file", b"a.json\0" + b"[" * size),
            ("runtimes/curves", "model=custom&own", json.dumps({f"k{i}": i for i in range(size)}).encode()),
            ("runtimes/curves", "model=custom&own", b'{"a":[' + b"[]," * size + b"1]}"),
            ("frequencies/wavelengths", "spec", json.dumps(scaling).encode()),
        ]
    return found


def pack_contents(*contents: bytes) -> tuple[list[str], bytes]:
    """Return the names of contents, and the body of a POST that sends them."""
    salted = [secrets.token_bytes(blob_store.SALT) + each for each in contents]
    body = b"".join(len(each).to_bytes(4, "little") + each for each in salted)
    return [blob_store.name_of(each) for each in salted], body


async def ask_picture(url: str, source: str, chance: random.Random) -> int:
    """Ask for a random or a slow picture, and perhaps hang up."""
    leave = chance.choice([None, 1.0, 4.0])
    slow = f"recall/needle.packed?part=9&recall.length=16384&method=yarn&base={chance.randint(10_000, 99_999)}"
    address = chance.choice([random_address(chance), chance.choice(SLOWEST), slow])
    return await request(url, f"{PICTURE}/{address}", source=source, leave=leave)


async def ask_page(url: str, source: str, chance: random.Random) -> int:
    """Ask for a page with a long model, or a scene with many digits."""
    page = f"/{quote(chance.choice(['scaling', 'recall', 'nowhere', 'a/b/c']))}?{urlencode({'model': 'x' * 9000})}"
    scene = f"/scene/{'1' * chance.choice([1, 4_300, 4_301, 9_000])}"
    return await request(url, chance.choice([page, scene]), source=source)


async def send_content(url: str, source: str, chance: random.Random) -> int:
    """Send a large, deep or dense content, or half of it."""
    address, query, content = chance.choice(hostile_contents())
    (name,), body = pack_contents(content)
    path = f"{PICTURE}/{address}.{chance.choice(['packed', 'svg', 'json'])}?{query}={name}"
    if chance.random() < 0.2:
        return await half_body(url, source, path, body)
    return await request(url, path, source=source, method="POST", body=body, leave=chance.choice([None, 1.0, 4.0]))


async def send_scalar(url: str, source: str, chance: random.Random) -> int:
    """Send a bare number, true or null, or q and k of zeros."""
    address, query = chance.choice(
        [
            ("runtimes/curves", "model=custom&own"),
            ("frequencies/wavelengths", "spec"),
            ("decay/curves", "decay.show=own&decay.source=typed&decay.typed"),
            ("recall/yours", "recall.file"),
            ("heads/across", "heads.measured"),
            ("kernels/speeds", "kernels.report"),
        ]
    )
    content = chance.choice([b"1", b"true", b"null", b"-0.0", b'"x"', b"1" * 5_000])
    if address == "decay/curves":
        query, content = query.replace("typed", "file"), b"a.csv\0" + b"0,0,0,0\n" * 8
    (name,), body = pack_contents(content)
    return await request(url, f"{PICTURE}/{address}.svg?{query}={name}", source=source, method="POST", body=body)


async def send_tiny_contents(url: str, source: str, chance: random.Random) -> int:
    """Send thousands of contents of a few bytes in one body."""
    names, body = pack_contents(*(b"%d" % number for number in range(chance.choice([2_000, 20_000]))))
    path = f"{PICTURE}/runtimes/curves.packed?model=custom&own={names[-1]}"
    return await request(url, path, source=source, method="POST", body=body, leave=chance.choice([None, 3.0]))


def hostile_config(chance: random.Random) -> dict[str, Any]:
    """Return a config that was slow to read, or took much memory."""
    long, salt = "a" * chance.choice([1_000, 100_000, 200_000]), chance.randint(0, 1 << 30)
    return {
        **MODEL,
        "rope_theta": 10_000.0 + salt,
        **chance.choice(
            [
                {"model_type": long},
                {"architectures": [long]},
                {"layer_types": [long, long]},
                {"layer_types": [f"{number}{long[:1000]}" for number in range(32)]},
                {"y": [[]] * 80_000},
                {"rope_scaling": {"rope_type": long, "factor": 4.0}},
                {"_name_or_path": long},
                {"mrope_section": [16, 10**400, 24]},
            ]
        ),
    }


def pack_link(chance: random.Random) -> str:
    """Return the end of a query with a hostile config in it."""
    return pack_config(hostile_config(chance))


def pack_config(config: Mapping[str, Any]) -> str:
    """Return the end of a query with a config in it, as links carry one."""
    packed = zlib.compress(json.dumps(config, separators=(",", ":")).encode(), 9)
    return "model=custom&config=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


async def follow_link(url: str, source: str, chance: random.Random) -> int:
    """Ask for a picture of a config in a link."""
    picture = chance.choice(["scaling/comparison", "frequencies/wavelengths", "extend/ways", "runtimes/curves"])
    leave = chance.choice([None, 2.0])
    return await request(url, f"{PICTURE}/{picture}.packed?{pack_link(chance)}", source=source, leave=leave)


async def store_config(url: str, source: str, chance: random.Random) -> int:
    """Send such a config as a content."""
    (name,), body = pack_contents(json.dumps(hostile_config(chance)).encode())
    path = f"{PICTURE}/scaling/comparison.packed?model=custom&own={name}"
    return await request(url, path, source=source, method="POST", body=body, leave=chance.choice([None, 2.0]))


async def preview_link(url: str, source: str, chance: random.Random) -> int:
    """Ask for a page, whose preview is of a link's config or of a stored content of many MiB."""
    if chance.random() < 0.5:
        return await request(url, f"/{chance.choice(['scaling', 'model', 'heads'])}?{pack_link(chance)}", source=source)
    (name,), body = pack_contents(b"a.json\0[" + b"[]," * chance.choice([100_000, 10_000_000]) + b"1]")
    path = f"{PICTURE}/heads/across.packed?heads.measured={name}"
    await request(url, path, source=source, method="POST", body=body)
    return await request(url, f"/heads?heads.measured={name}", source=source)


async def open_home_scene(url: str, source: str, chance: random.Random) -> int:
    """Ask for Home's scene of a stored config of 9 MiB, or of a link's config."""
    if chance.random() < 0.5:
        return await request(url, f"/scene/home?{pack_link(chance)}", source=source)
    count = chance.choice([100_000, 3_000_000])
    (name,), body = pack_contents(json.dumps(MODEL).encode()[:-1] + b',"id2label":[' + b"[]," * count + b"1]}")
    await request(
        url, f"{PICTURE}/home/turning.packed?model=custom&own={name}", source=source, method="POST", body=body
    )
    return await request(url, f"/scene/home?model=custom&own={name}", source=source)


async def read_slowly(url: str, source: str, chance: random.Random) -> int:
    """Ask for a large page without compression, and do not read it."""
    parts = urlsplit(url)
    read, write = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(source, 0), limit=1 << 10)
    try:
        path = f"{PICTURE}/{chance.choice(['scaling/comparison', 'decay/curves'])}.html"
        write.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        start = await asyncio.wait_for(read.read(64), 60)
        await asyncio.sleep(chance.uniform(5, 40))
        found = re.match(rb"HTTP/1\.1 (\d+)", start)
        return int(found[1]) if found else 0
    except (TimeoutError, OSError):
        return 0
    finally:
        write.close()


async def use_session(url: str, source: str, chance: random.Random) -> int:
    """Open a session, drop large files or send a large state, and leave it open for a while.

    Return the last status of an upload, else 101, or the status with which the session was refused.
    """
    pages = {"heads": b"[" + b"[]," * 10_000_000 + b"1]", "recall": b"[" + b"1," * 14_000_000 + b"1]"}
    pages |= {"model": json.dumps({f"key{number}": number for number in range(300_000)}).encode(), "scaling": b""}
    page, status = chance.choice(list(pages)), 101
    try:
        async with asyncio.timeout(90), connect(url, source=source) as socket:
            first = await run_page(socket, page, {})
            if not pages[page]:
                text = "x" * chance.choice([MIB // 2, 14 * MIB])
                await run_page(socket, page, {}, WidgetState(id="text", string_value=text))

            fields = first.list_controls("file_uploader") if pages[page] else []
            states: list[WidgetState] = []
            for field in fields[:2]:
                for _ in range(chance.choice([1, 4])):
                    content = chance.choice([pages[page], bytes(31 * MIB)])
                    status = await upload(url, source, first.session, content, secrets.token_hex(8))
                file = secrets.token_hex(8)
                status = await upload(url, source, first.session, pages[page], file)
                states.append(drop_file(field, file, len(pages[page])))
                await run_page(socket, page, {}, *states)
            await asyncio.sleep(chance.uniform(0, 20))
        return status
    except websockets.InvalidStatus as refusal:
        return refusal.response.status_code
    except FAILURES:
        return 0


def drop_file(field: str, file: str, size: int, name: str = "a.json") -> WidgetState:
    """Return the value of a field for files after one file was dropped into it."""
    state = WidgetState(id=field)
    info = state.file_uploader_state_value.uploaded_file_info.add()
    info.file_id, info.name, info.size = file, name, size
    info.file_urls.file_id = file
    return state


async def upload(url: str, source: str, session: str, content: bytes, file: str) -> int:
    """Send one file by Streamlit's upload route; return the status."""
    token = generate_xsrf_token_string()
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n'
    headers = [
        "Content-Type: multipart/form-data; boundary=edge",
        f"X-Xsrftoken: {token}",
        f"Cookie: _streamlit_xsrf={token}",
    ]
    path, body = f"/_stcore/upload_file/{session}/{file}", head + content + b"\r\n--edge--\r\n"
    return await request(url, path, source=source, method="PUT", body=body, headers=headers)


async def half_body(url: str, source: str, path: str, body: bytes) -> int:
    """Send the first half of a large body, and wait for what the server does."""
    parts = urlsplit(url)
    read, write = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(source, 0))
    head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nrope-viz: kept\r\nContent-Length: {40 << 20}\r\n\r\n"
    try:
        write.write(head.encode() + body[: len(body) // 2] + bytes(8 << 20))
        answer = await asyncio.wait_for(read.read(), 90)
        found = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(found[1]) if found else 0
    except (TimeoutError, OSError):
        return 0
    finally:
        write.close()


Kind = Callable[[str, str, random.Random], Awaitable[int]]
KINDS: dict[str, Kind] = {
    "pictures": ask_picture,
    "pages": ask_page,
    "contents": send_content,
    "scalars": send_scalar,
    "tiny contents": send_tiny_contents,
    "links": follow_link,
    "stored configs": store_config,
    "previews": preview_link,
    "home's scene": open_home_scene,
    "slow readers": read_slowly,
    "sessions": use_session,
}
"""{kind: what sends one request of it from an address, and returns the status}."""
