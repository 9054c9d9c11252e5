"""Commands that ask a server which never comes to an end: each must give up in time, with a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAUSE = 3.0
"""Seconds between two bytes."""
TIMEOUT = 10
"""Seconds that the commands are told to wait for one answer (--timeout)."""
ADDRESS_SPACE = 4 << 30
"""Bytes of memory at which a command is ended, so that this machine stays usable."""
LARGEST = 500
"""MB that a command may take."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MODELS = b'{"data": [{"id": "m", "max_model_len": 4096}]}'


async def drip_head(write: asyncio.StreamWriter) -> None:
    """Send a head, one byte at a time."""
    write.write(HEAD + b"X: ")
    while True:
        await send_slowly(write, b"x")


async def drip_body(write: asyncio.StreamWriter) -> None:
    """Send a body, one byte at a time."""
    write.write(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        await send_slowly(write, b" ")


async def continue_endlessly(write: asyncio.StreamWriter) -> None:
    """Send "100 Continue" again and again."""
    while True:
        write.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await write.drain()
        await asyncio.sleep(0.1)


async def send_lists(write: asyncio.StreamWriter) -> None:
    """Send 210 MB of empty lists."""
    part = b"[]," * 350_000
    write.write(HEAD + b"Connection: close\r\n\r\n" + b'{"data": [')
    for _ in range(200):
        write.write(part)
        await write.drain()
    write.write(b"1]}")
    await write.drain()


async def send_slowly(write: asyncio.StreamWriter, part: bytes) -> None:
    """Send one part and wait."""
    write.write(part)
    await write.drain()
    await asyncio.sleep(PAUSE)


WAYS: dict[str, Callable[[asyncio.StreamWriter], Awaitable[None]]] = {
    "head": drip_head,
    "body": drip_body,
    "100 Continue": continue_endlessly,
    "lists": send_lists,
}


@dataclass(frozen=True)
class Command:
    """A command and the seconds in which it must end. `lists_models`: only its later requests are dripped."""

    name: str
    words: Sequence[str]
    seconds: float
    lists_models: bool = False


COMMANDS = (
    Command("evaluate", ("evaluate", "--server", "none={url}/v1"), 3 * TIMEOUT),
    Command("evaluate, answers", ("evaluate", "--server", "none={url}/v1"), 6 * TIMEOUT, lists_models=True),
    Command("probe ask", ("probe", "ask", "{url}"), 3 * TIMEOUT),
    Command("probe ask, answers", ("probe", "ask", "{url}"), 6 * TIMEOUT, lists_models=True),
    # The file of a config has a minute.
    Command("check --hub", ("check", "--hub", "owner/name"), 75.0),
)
OPTIONS = {
    "evaluate": "--lengths 400 --depths 1 --retries 0 --timeout {timeout} -o {folder}/recall.json",
    "probe": "--config llama-3.1-8b --timeout {timeout}",
    "check": "",
}


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit code, seconds, peak memory in MB, and the last line of its errors."""

    code: int
    seconds: float
    memory: float
    last: str

    def find_problem(self, command: Command) -> str:
        """Return what is wrong, "" for an end in time with a sentence."""
        if self.seconds > command.seconds:
            return f"no end within {command.seconds:.0f} s"
        if self.memory > LARGEST:
            return f"more than {LARGEST} MB"
        if "Error" in self.last or not 0 < self.code < 5:
            return f"exit code {self.code}"
        return ""


async def run_command(command: Command, way: str) -> Ending:
    """Run a command against a server of its own that answers in one of the ways."""

    async def answer(read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        # The loop cancels what still drips when all commands have ended.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await read.readuntil(b"\r\n\r\n")
            if command.lists_models and head.startswith(b"GET") and b"/models" in head:
                write.write(HEAD + b"Connection: close\r\n\r\n" + MODELS)
                await write.drain()
            else:
                await WAYS[way](write)
        write.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        written = [*command.words, *OPTIONS[command.words[0]].split()]
        words = [word.format(url=url, timeout=TIMEOUT, folder=folder) for word in written]
        ending = await asyncio.to_thread(measure_process, words, url, command.seconds + 5.0)
    server.close()
    return ending


def measure_process(words: Sequence[str], endpoint: str, seconds: float) -> Ending:
    """Run a command and kill it after so many seconds; return how it ended."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    environment = {**os.environ, "HF_ENDPOINT": endpoint, "PYTHONPATH": str(ROOT)}
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "rope_viz", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
            preexec_fn=limit,
        )
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - start > seconds:
                process.kill()
            time.sleep(0.1)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    took = time.monotonic() - start
    return Ending(process.returncode, took, usage.ru_maxrss / 1024, lines[-1][:100] if lines else "")


async def measure_commands(at_once: int = 4) -> bool:
    """Run every command against every server, print how each ended, and return whether all ended well."""
    places = asyncio.Semaphore(at_once)
    print("command               answer         code   seconds   MB", flush=True)

    async def measure(command: Command, way: str) -> bool:
        async with places:
            ending = await run_command(command, way)
        problem = ending.find_problem(command)
        numbers = f"{ending.code:4d} {ending.seconds:9.1f} {ending.memory:6.0f}"
        print(f"{command.name:21s} {way:13s} {numbers}   {problem or 'PASS'}   {ending.last}", flush=True)
        return not problem

    measured = await asyncio.gather(*(measure(command, way) for command in COMMANDS for way in WAYS))
    return all(measured)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure_commands()) else 1)
