"""The command `app`: serve the dashboard by Streamlit's server, or by several uvicorn workers on one port."""

from __future__ import annotations

import argparse
import contextlib
import errno
import http.client
import importlib.util
import ipaddress
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rope_viz.cli.output import read_address
from rope_viz.embedding.spec import short_repr
from rope_viz.evaluation.completion_clients import is_loopback
from rope_viz.storage.fetch import fetch

PATIENCE = 20.0
"""Seconds that a server may take to end after SIGTERM."""

# Run before the server, in its process. On Linux, PR_SET_PDEATHSIG ends it with its parent, and survives exec. This is
# not done between fork and exec, because a thread of the parent may hold a lock then.
TIED = """
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class Served:
    """A running server in its own session, so that signals of the terminal reach this process, which forwards them.

    The first signal asks it to end; a second Ctrl-C kills it. A signal ignored here, as with nohup, stays ignored.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.told = False
        self.process: subprocess.Popen[bytes] | None = None
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.stop)
        self.process = subprocess.Popen(
            tied(command), cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )
        if self.told:
            self.process.terminate()

    def stop(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        if not self.told:
            self.told = True
            if self.process is not None:
                self.process.terminate()
            end = threading.Timer(PATIENCE, self.kill)
            end.daemon = True
            end.start()
        elif number == signal.SIGINT:
            self.kill()

    def kill(self) -> None:
        """Kill the server and its workers at once."""
        if self.process is not None:
            with contextlib.suppress(OSError):  # they have already ended
                os.killpg(self.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()

    def wait(self) -> int:
        """Wait for the end and return the exit code: at least 0 after `stop`, 128 + signal after another kill."""
        assert self.process is not None
        code = self.process.wait()
        if self.told:
            return max(code, 0)
        if code >= 0:
            return code
        # Workers whose supervisor was killed would keep the port in use.
        self.kill()
        print(f"rope-viz: the server was stopped by signal {-code}", file=sys.stderr)
        return 128 - code


def tied(command: Sequence[str]) -> list[str]:
    """Return the command; on Linux wrapped so that it ends with this process, however that ends."""
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-I", "-S", "-c", TIED, str(os.getpid()), *command]


PACKAGE = Path(__file__).parents[1]
NEEDED = ("streamlit", "plotly", "matplotlib")
HEALTH = "/_stcore/health"
EVERYWHERE = ("0.0.0.0", "::")
PART = re.compile(r"[A-Za-z0-9._~-]+")


def add(commands: Any) -> None:
    """Add the command."""
    served = commands.add_parser("app")
    add_flags(served)


def add_flags(served: argparse.ArgumentParser) -> None:
    """Add the flags of the dashboard."""
    served.add_argument("--port", type=int, default=8501, help="default: 8501")
    served.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, only this machine")
    served.add_argument("--workers", type=int, default=1, help="number of server processes that share the port")
    served.add_argument("--base-path", default="", metavar="PATH", help="path behind a proxy, such as rope")
    served.add_argument(
        "--public-url", default="", metavar="URL", help="address at which users reach the dashboard, for link previews"
    )
    served.add_argument(
        "--hub-cache", action="store_true", help="look up model ids in this machine's Hugging Face cache, for all users"
    )
    served.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="address or network of a proxy whose X-Forwarded-For names the user; may be given more than once",
    )
    served.add_argument("--no-browser", action="store_true", help="do not open a browser")
    served.add_argument("--health", action="store_true", help="check whether a dashboard is running: exit code 0 or 1")
    served.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Serve until interrupted and return the exit code. Raise `ValueError` for settings that cannot be served."""
    if not 0 < parsed.port < 65536:
        raise ValueError(f"--port must be from 1 to 65535, got {parsed.port}")
    if not 1 <= parsed.workers <= 64:
        raise ValueError(f"--workers must be from 1 to 64, got {parsed.workers}")
    host, base = host_of(parsed.host), base_of(parsed.base_path)
    address = address_of(host, parsed.port, base)
    if parsed.health:
        if healthy(address):
            return 0
        print(f"rope-viz: {address}{HEALTH} does not answer as a running dashboard", file=sys.stderr)
        return 1
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"the dashboard needs {', '.join(missing)}: pip install 'rope-viz[app]'")
    # Held until this command ends: of two starts at the same moment, the second one fails before it prints.
    with reserve_port(host, parsed.port):
        try_port(host, parsed.port)
        return serve(host, base, parsed)


def serve(host: str, base: str, parsed: argparse.Namespace) -> int:
    """Start the server, print its address, open a browser, and return the exit code once it has ended."""
    folder, address = root(), address_of(host, parsed.port, base)
    proxies = [proxy_of(each) for each in parsed.trusted_proxy]
    public = read_address("--public-url", parsed.public_url)
    settings = environment(base, proxies, hub_cache=parsed.hub_cache, public=public)
    server = Served(command(folder, host, parsed.port, parsed.workers, base), folder, settings)
    everywhere = ", and every other address of this machine" if host in EVERYWHERE else ""
    open_to_all = "" if is_loopback(host) else " There is no login: everybody who reaches this address can use it."
    print(f"RoPE Viz: {address}{everywhere}. Ctrl-C stops it.{open_to_all}", flush=True)
    if not parsed.no_browser:
        threading.Thread(target=browse, args=(address,), daemon=True).start()
    return server.wait()


def host_of(written: str) -> str:
    """Return the address to listen on, an IPv6 one without brackets. Raise `ValueError` for an empty one."""
    if not written.strip():
        # A server would listen on every address, which an unset shell variable must not cause.
        raise ValueError("--host is empty: use 127.0.0.1 for only this machine, 0.0.0.0 for all")
    return written[1:-1] if written.startswith("[") and written.endswith("]") else written


def base_of(written: str) -> str:
    """Return the path behind a proxy without outer slashes. Raise `ValueError` if it would need escaping."""
    parts = [part for part in written.split("/") if part]
    for part in parts:
        if part in (".", "..") or not PART.fullmatch(part):
            raise ValueError(
                f"--base-path must be letters, digits, . _ ~ and - between slashes, such as tools/rope; "
                f"{short_repr(part)} is not"
            )
    return "/".join(parts)


def address_of(host: str, port: int, base: str) -> str:
    """Return the dashboard's address for a browser on this machine, without a trailing slash."""
    name = "localhost" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/{base}".rstrip("/")


def reserve_port(host: str, port: int) -> contextlib.AbstractContextManager[object]:
    """Reserve a port among starts of this command; raise `ValueError` if another one has it. Linux only.

    A port cannot be passed to the server, so that it is free between `try_port` and the server's own call. This lock is
    a Unix socket in Linux's abstract namespace: it needs no file, and it ends with this process.
    """
    if sys.platform != "linux":
        return contextlib.nullcontext()
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0rope-viz {host} {port}")
    except OSError:
        lock.close()
        raise ValueError(f"port {port} of {host} is in use: {another_port(port)}") from None
    return lock


def another_port(port: int) -> str:
    """Return the advice to take another port."""
    return f"try --port {port + 1 if port < 65535 else 8501}"


def try_port(host: str, port: int) -> None:
    """Raise `ValueError` with advice if a server cannot listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET  # the rule of Streamlit and uvicorn
    try:
        place = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name != "nt":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            # Two sockets may be bound there, but only one can listen.
            probe.listen(1)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            raise ValueError(f"port {port} of {host} is in use: {another_port(port)}") from None
        if number in (errno.EACCES, errno.EPERM):
            raise ValueError(f"port {port} of {host} is not allowed for this user: try --port 8501") from None
        raise ValueError(
            f"--host {short_repr(host)} is not an address of this machine: try 127.0.0.1, or 0.0.0.0 for all addresses"
        ) from None


def root() -> Path:
    """Return the folder of app.py and pages/: inside the installed package, or the root of a checkout."""
    inside = PACKAGE / "app"
    return inside if (inside / "app.py").is_file() else PACKAGE.parent


def command(folder: Path, host: str, port: int, workers: int, base: str) -> list[str]:
    """Return the server's command: Streamlit for one process, uvicorn for several, both without access logs."""
    if workers == 1:
        # Streamlit's welcome message shows IPv6 addresses wrongly and asks another host for this one's address.
        options = {"server.port": str(port), "server.address": host, "server.headless": "true"}
        options["logger.hideWelcomeMessage"] = "true"
        if base:
            options["server.baseUrlPath"] = base
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [sys.executable, "-m", "streamlit", "run", str(folder / "app.py"), *flags]
    flags = ["--host", host, "--port", str(port), "--workers", str(workers)]
    return [sys.executable, "-m", "uvicorn", "app:app", *flags, "--log-level", "warning", "--no-access-log"]


def environment(base: str, proxies: Sequence[str] = (), *, hub_cache: bool = False, public: str = "") -> dict[str, str]:
    """Return the server's environment: its path, the proxies that uvicorn trusts, the Hub cache, the public address.

    `ui/` reads these settings from it, as uvicorn takes no Streamlit flags.
    """
    settings = {"ROPE_VIZ_BASE_PATH": base, "FORWARDED_ALLOW_IPS": ",".join(proxies)}
    settings |= {"ROPE_VIZ_HUB_CACHE": "1"} if hub_cache else {}
    return os.environ | settings | ({"ROPE_VIZ_PUBLIC_URL": public} if public else {})


def proxy_of(written: str) -> str:
    """Return the address or network of a proxy. Raise `ValueError` for any other text."""
    try:
        return str(ipaddress.ip_network(written, strict=False) if "/" in written else ipaddress.ip_address(written))
    except ValueError:
        raise ValueError(
            f"--trusted-proxy must be an address or a network, such as 127.0.0.1 or 10.0.0.0/8, "
            f"got {short_repr(written)}"
        ) from None


def healthy(address: str) -> bool:
    """True if a dashboard answers there."""
    try:
        fetch(address + HEALTH, seconds=4.0)
        return True
    except (OSError, http.client.HTTPException, ValueError):
        return False


def browse(address: str, patience: float = 60.0) -> None:
    """Open a browser once the server answers, within `patience` seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if healthy(address):
            webbrowser.open(address)
            return
        time.sleep(0.2)
