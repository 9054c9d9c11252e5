"""`rope-viz app` explains what it cannot serve, and its server ends with the command."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from rope_viz.cli import app
from rope_viz.cli.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc, or Linux to end a child")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def refused(capsys, *flags):
    """The one line that says why nothing is served."""
    assert main(["app", "--no-browser", *flags]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


@pytest.mark.parametrize("host", ["", " ", "\t"])
def test_an_empty_host_publishes_nothing(capsys, host):
    assert "--host is empty: use 127.0.0.1 for only this machine" in refused(capsys, "--host", host)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("host", ["999.1.1.1", "8.8.8.8", "http://localhost", "nonsense.invalid", "a" * 70, "[", ".x"])
def test_foreign_host_gives_a_one_line_error(capsys, host, workers):
    err = refused(capsys, "--host", host, "--workers", workers)
    assert f"--host '{host[:30]}" in err
    assert "is not an address of this machine: try 127.0.0.1" in err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_named_with_the_next_one(capsys, workers):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        err = refused(capsys, "--port", str(port), "--workers", workers)
    assert f"port {port} of 127.0.0.1 is in use: try --port {port + 1 if port < 65535 else 8501}" in err


def test_ipv6_hosts_are_bracketed_only_in_addresses():
    assert app.host_of("[::1]") == app.host_of("::1") == "::1"
    assert app.address_of("::1", 8752, "") == "http://[::1]:8752"
    assert app.address_of("::", 8752, "a/b") == app.address_of("0.0.0.0", 8752, "a/b") == "http://localhost:8752/a/b"
    assert "::1" in app.command(ROOT, "::1", 8752, 2, "")


@pytest.mark.parametrize(
    ("written", "base"), [("", ""), ("/", ""), ("rope", "rope"), ("//a//b//", "a/b"), ("/A.b_c~d-0/", "A.b_c~d-0")]
)
def test_repeated_slashes_in_a_base_path_are_merged(written, base):
    assert app.base_of(written) == base


@pytest.mark.parametrize("path", ["a b", "é", "a?b", "a#b", "%41", "../x", "x/..", "a/./b", "a\\b", "a\n"])
def test_invalid_base_path_is_refused(capsys, path):
    for flags in ([], ["--health"]):
        assert "--base-path must be letters, digits" in refused(capsys, "--base-path", path, *flags)


def test_health_names_the_failing_address_without_the_dashboard(capsys, monkeypatch):
    monkeypatch.setattr(app, "NEEDED", ("no_such_module",))
    port = free_port()
    assert main(["app", "--health", "--port", str(port), "--base-path", "rope"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"rope-viz: http://127.0.0.1:{port}/rope/_stcore/health does not answer as a running dashboard\n"


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/a b", "http://x.invalid", "http://.é", "http://[x]:1"])
def test_unreachable_address_is_unhealthy(address):
    assert not app.healthy(address)


# The command with another server in the dashboard's place, which says that it is there and with whom.
STAND_IN = """
import sys
from rope_viz.cli import app, main
app.command = lambda *given: [sys.executable, "-c", sys.argv.pop()]
app.NEEDED = ()
sys.exit(main.main(["app", "--no-browser", "--port", sys.argv[1]]))
"""
QUIET = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
# As uvicorn with its workers: a child that would outlive it.
WORKING = "import os, subprocess, sys, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
# Ends when told, and not at once.
SLOW = "import signal; signal.signal(signal.SIGTERM, lambda *_: None); " + QUIET


def reset_signals():
    """Undo what a child inherits: a shell starts "&" jobs with SIGINT ignored, and nohup ignores SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def standing(script, **options):
    """(the command, the number that its server said)."""
    command = [sys.executable, "-c", STAND_IN, str(free_port()), script]
    pipe = subprocess.PIPE
    options = {"preexec_fn": reset_signals} | options
    process = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, **options)
    numbers = (line for line in process.stdout if line.strip().isdigit())
    return process, int(next(numbers))


def process_ends(pid, patience=60.0):
    """Whether the process ends."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


@LINUX
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"])
def test_server_ends_with_the_command_on_any_signal(number):
    process, server = standing(QUIET)
    process.send_signal(signal.Signals[number])
    err = process.communicate(timeout=60)[1]
    assert process.returncode == (-signal.SIGKILL if number == "SIGKILL" else 0)
    assert err == ""
    assert process_ends(server)


@LINUX
def test_command_that_ignores_hangups_continues():
    process, server = standing(QUIET, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=60) == 0
    assert process_ends(server)


@LINUX
@pytest.mark.parametrize("pause", [0.02, 0.1])
def test_second_interrupt_ends_the_server_without_a_traceback(pause):
    """A terminal's Ctrl-C goes to a whole group of processes; the server is in another."""
    process, server = standing(SLOW, start_new_session=True)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(pause)
    os.killpg(process.pid, signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert (process.returncode, err) == (0, "")
    assert process_ends(server)


@LINUX
def test_unresponsive_server_is_killed(monkeypatch):
    short = STAND_IN.replace("app.NEEDED", "app.PATIENCE = 0.1; app.NEEDED")
    monkeypatch.setitem(globals(), "STAND_IN", short)
    process, server = standing(SLOW)
    process.terminate()
    assert process.wait(timeout=60) == 0
    assert process_ends(server)


@LINUX
def test_killed_server_fails_and_leaves_no_workers():
    process, worker = standing(WORKING)
    server = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(server, signal.SIGKILL)
    err = process.communicate(timeout=60)[1]
    assert (process.returncode, err) == (137, "rope-viz: the server was stopped by signal 9\n")
    assert process_ends(worker)


def test_exit_code_of_a_failing_server_is_passed_on():
    process, _ = standing("import sys; print(1, flush=True); sys.exit(3)")
    assert process.wait(timeout=60) == 3


@pytest.mark.parametrize("workers", ["1", "2"])
def test_startup_prints_one_line_and_logs_no_requests(workers, tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "rope_viz", "app", "--no-browser", "--port", str(port), "--workers", workers]
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err)
    try:
        end = time.monotonic() + 120
        while not app.healthy(f"http://127.0.0.1:{port}") and time.monotonic() < end:
            time.sleep(0.1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/scaling?asked-for", timeout=20) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
    assert (tmp_path / "out").read_text() == f"RoPE Viz: http://127.0.0.1:{port}. Ctrl-C stops it.\n"
    assert (tmp_path / "err").read_text() == ""


@LINUX
def test_second_of_two_starts_prints_no_address(capsys):
    port = free_port()
    with app.reserve_port("127.0.0.1", port):
        assert main(["app", "--no-browser", "--port", str(port)]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"rope-viz: port {port} of 127.0.0.1 is in use: try --port {port + 1}\n")
    with app.reserve_port("127.0.0.1", port):
        pass


@pytest.mark.parametrize(
    ("host", "open_to_all"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("::", True), ("10.0.0.7", True)],
)
def test_start_for_other_machines_says_that_there_is_no_login(monkeypatch, capsys, host, open_to_all):
    server = SimpleNamespace(wait=lambda: 0)
    monkeypatch.setattr(app, "Served", lambda *_: server)
    monkeypatch.setattr(app, "try_port", lambda *_: None)
    assert main(["app", "--no-browser", "--host", host, "--port", str(free_port())]) == 0
    assert ("There is no login" in capsys.readouterr().out) == open_to_all
