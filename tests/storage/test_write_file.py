"""Files are written whole or not at all: after a kill, on a full disk, through links and into pipes."""

import ast
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rope_viz.storage.write_file import MACHINE, remove_abandoned, write_file

ROOT = Path(__file__).parents[2]
OLD = b"old content"
linux = pytest.mark.skipif(sys.platform != "linux", reason="uses what only Linux has")


@pytest.mark.parametrize("content", [b"new", [b"n", b"e", b"w"], []], ids=repr)
def test_old_content_is_replaced_and_nothing_is_left(tmp_path, content):
    path = tmp_path / "a.svg"
    path.write_bytes(OLD)
    write_file(path, content)
    assert path.read_bytes() == b"".join(content if isinstance(content, list) else [content])
    assert os.listdir(tmp_path) == ["a.svg"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    def content():
        yield b"a part"
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.svg"
    path.write_bytes(OLD)
    with pytest.raises(OSError, match="No space left") as caught:
        write_file(path, content())
    assert caught.value.filename == str(path)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["a.svg"]


WRITES = "import sys; from rope_viz.storage.write_file import write_file; "


@linux
def test_a_write_beyond_the_size_limit_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.svg"
    path.write_bytes(OLD)
    script = WRITES + "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    script += "write_file(sys.argv[1], bytes(100_000))"
    done = subprocess.run([sys.executable, "-c", script, path], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "File too large" in done.stderr
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["a.svg"]


@linux
def test_a_kill_during_the_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.svg"
    path.write_bytes(OLD)
    # The content waits for standard input in its middle, and this test kills it there.
    script = WRITES + "content = (part() for part in (lambda: b'x' * 100_000, lambda: print('half', flush=True) or "
    script += "sys.stdin.buffer.read())); write_file(sys.argv[1], content)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, path], cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == b"half\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    assert len(os.listdir(tmp_path)) == 2
    remove_abandoned.cache_clear()
    write_file(tmp_path / "b.svg", b"of a later run")
    assert sorted(os.listdir(tmp_path)) == ["a.svg", "b.svg"]


@pytest.mark.parametrize(
    ("name", "days", "stays"),
    [
        # Without the process in its id: all workers must collect the same tests.
        pytest.param(f".rope-viz-{MACHINE}-{os.getpid()}-0123456789abcdef.tmp", 0, True, id="running-new"),
        pytest.param(f".rope-viz-{MACHINE}-{os.getpid()}-0123456789abcdef.tmp", 2, False, id="running-old"),
        (".rope-viz-00000000-4194305-0123456789abcdef.tmp", 0, True),
        (".rope-viz-00000000-4194305-0123456789abcdef.tmp", 2, False),
        (".rope-viz-0123456789abcdef.tmp", 0, True),
        (".rope-viz-0123456789abcdef.tmp", 2, False),
        (".rope-viz-report", 2, True),
        (".rope-viz-mine.tmp", 2, True),
        ("0123456789abcdef.tmp", 2, True),
    ],
)
def test_only_abandoned_temporary_files_are_removed(tmp_path, name, days, stays):
    (tmp_path / name).write_bytes(OLD)
    then = time.time() - 86_400 * days
    os.utime(tmp_path / name, (then, then))
    remove_abandoned.cache_clear()
    write_file(tmp_path / "a.svg", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted(["a.svg", *[name] * stays])


def test_a_symbolic_link_keeps_its_target(tmp_path):
    (tmp_path / "deep").mkdir()
    for target in (tmp_path / "deep" / "there.svg", tmp_path / "deep" / "new.svg"):
        link = tmp_path / f"link to {target.name}"
        link.symlink_to(target)
        write_file(link, b"new")
        assert link.is_symlink()
        assert target.read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_permissions_stay_and_new_files_follow_the_umask(tmp_path):
    old, new, usual = (tmp_path / name for name in ("old", "new", "usual"))
    old.write_bytes(OLD)
    old.chmod(0o640)
    write_file(old, b"new")
    write_file(new, b"new")
    usual.write_bytes(b"new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_write_protected_file_stays(tmp_path, monkeypatch):
    # The tests may run as root, who may write everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    path = tmp_path / "a.svg"
    path.write_bytes(OLD)
    with pytest.raises(PermissionError):
        write_file(path, b"new")
    assert path.read_bytes() == OLD


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_directly(tmp_path):
    path, got = tmp_path / "pipe.svg", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_file(path, b"new")
    reader.join(60)
    assert got == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe.svg"]


@linux
def test_a_device_is_written_directly():
    write_file("/dev/null", b"new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space left"):
        write_file("/dev/full", b"new")


def test_an_impossible_place_is_named(tmp_path):
    for path, problem in ((tmp_path / "none" / "a.svg", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(problem) as caught:
            write_file(path, b"new")
        assert str(caught.value.filename) == str(path)


def test_the_longest_possible_name_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_every_file_is_written_by_the_one_helper():
    for path in (ROOT / "rope_viz").rglob("*.py"):
        if path.parent.name == "storage":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert not name.endswith((".write_text", ".write_bytes")), f"{path}:{node.lineno}"
                modes = [ast.unparse(each) for each in node.args[1:2]] if name == "open" else []
                assert not modes or modes[0][1] in "ra", f"{path}:{node.lineno}"
