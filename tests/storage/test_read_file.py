"""A file that a user names is read up to a size: devices, pipes and files of /proc end in a sentence."""

import io
import os
import threading
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.evaluation_plan import read_evaluation
from rope_viz.models.model_config import ModelConfig
from rope_viz.real_models.measured_file import read_measured
from rope_viz.storage import read_file
from rope_viz.storage.limits import CONFIG_FILE_BYTES
from rope_viz.storage.read_file import LargeFileError, UnreadableFileError, open_regular, read_limited
from rope_viz.studies.capture_file import read_capture

NEEDS_DEVICES = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has these devices")
DEVICES = ("/dev/zero", "/dev/full", "/dev/urandom")


@pytest.fixture
def pipe(tmp_path, monkeypatch):
    """A named pipe, for which nothing waits longer than an instant."""
    monkeypatch.setattr(read_file, "PIPE_WRITER_SECONDS", 0.05)
    monkeypatch.setattr(read_file, "PIPE_SILENCE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_file_is_read_whole_up_to_its_largest_size(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 10_000)
    assert read_limited(path, 2_560_000) == path.read_bytes()
    with pytest.raises(LargeFileError) as found:
        read_limited(path, 2_559_999)
    assert (found.value.filename, found.value.strerror) == (
        str(path),
        "it has more than 2 MiB, so it is not a file of this kind",
    )
    (tmp_path / "empty").touch()
    assert read_limited(tmp_path / "empty", 0) == b""


def test_a_sparse_file_of_any_size_is_refused_at_once(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LargeFileError):
        read_limited(tmp_path / "large", 1 << 20)


def test_a_folder_a_missing_file_and_a_circle_of_links_are_named(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name, kind in ((".", IsADirectoryError), ("missing", FileNotFoundError), ("circle", OSError)):
        with pytest.raises(kind) as found:
            read_limited(tmp_path / name, 10)
        assert found.value.filename in (str(tmp_path / name), tmp_path / name)


@NEEDS_DEVICES
@pytest.mark.parametrize("device", DEVICES)
def test_a_device_is_refused(device):
    with pytest.raises(UnreadableFileError, match="it is a device, not a file"):
        read_limited(device, 10)
    assert read_limited(os.devnull, 10) == b""


@NEEDS_DEVICES
def test_a_file_without_a_size_has_a_limit_too():
    assert b"Name:" in read_limited("/proc/self/status", 1 << 20)
    with pytest.raises(LargeFileError):
        read_limited("/proc/self/status", 10)
    # What cannot be read says so, with its name.
    with pytest.raises(OSError, match="/proc/self/mem") as found:
        read_limited("/proc/self/mem", 10)
    assert found.value.filename == "/proc/self/mem"


def test_a_pipe_is_read_to_its_end_or_given_up(pipe):
    with pytest.raises(UnreadableFileError, match="into which nobody writes"):
        read_limited(pipe, 10)
    held = os.open(pipe, os.O_RDWR)
    with pytest.raises(UnreadableFileError, match="it brought nothing"):
        read_limited(pipe, 10)
    os.close(held)
    with pytest.raises(UnreadableFileError, match="no regular file"):
        open_regular(pipe)


@pytest.mark.parametrize("content", [b"", b"short", bytes(300_000)])
def test_a_pipe_that_somebody_writes_is_read(tmp_path, content):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    writer.start()
    assert read_limited(tmp_path / "pipe", 300_000) == content
    writer.join()


def test_a_pipe_that_never_ends_has_a_limit(tmp_path):
    begin, end = os.pipe()
    os.write(end, bytes(1000))
    with pytest.raises(LargeFileError):
        read_limited(f"/dev/fd/{begin}", 999)
    os.close(begin)
    os.close(end)


@NEEDS_DEVICES
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "read", [read_evaluation, read_measured, read_capture, lambda path: ModelConfig.read(Path(path))]
)
def test_every_function_refuses_a_device(read, device):
    with pytest.raises(ValueError, match=r"device|regular"):
        read(device)


COMMANDS = {
    "check": ("check", "{}"),
    "table": ("table", "{}"),
    "compare with": ("compare", "llama-3.1-8b", "{}"),
    "figure with a file": ("figure", "decay/curves", "--file", "{}", "-o", "o.svg"),
    "figure with a capture": ("figure", "heads/pairs", "--file", "{}", "-o", "o.svg"),
    "figure with a report": ("figure", "kernels/speeds", "--report", "{}", "-o", "o.svg"),
    "figure with a recall": ("figure", "recall/yours", "--file", "{}", "-o", "o.svg"),
    "suite": ("figure", "--suite", "{}"),
    "evaluation": ("evaluate", "--show", "{}"),
    "servers": ("evaluate", "--servers", "{}", "-o", "o.json"),
    "shards": ("evaluate", "merge", "{}", "-o", "o.json"),
    "positions": ("positions", "{}"),
    "verify": ("verify", "llama-3.1-8b", "--from", "{}"),
    "verify gguf": ("verify", "llama-3.1-8b", "--from", "gguf:{}"),
    "trainer": ("match", "llama-3.1-8b", "--trainer", "megatron", "--trainer-args", "{}"),
    "site of a list": ("site", "--list", "{}", "-o", "site"),
    "site of all": ("site", "{}", "-o", "site"),
    "text": ("capture", "model", "--text", "{}", "-o", "o"),
    "probe": ("probe", "make", "{}", "-o", "probe"),
}


@NEEDS_DEVICES
@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_refuses_a_device_with_a_sentence(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for device in ("/dev/zero", "/dev/full"):
        try:
            code = main([word.format(device) for word in COMMANDS[name]])
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        assert code in (2, 3), (out, err)
        assert "device" in out + err or "regular" in out + err, (out, err)


class EndlessInput(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_standard_input_that_never_ends_has_a_limit(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(EndlessInput())))
    assert main(["table", "-"]) == 2
    assert f"it has more than {CONFIG_FILE_BYTES >> 20} MiB" in capsys.readouterr().err
