"""The wheel: with NumPy alone the core works at once, with its extra `app` it serves the dashboard, without torch."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

from rope_viz.tiny_lm.checkpoints import SEEDS
from tests.browser.processes import wait_for_answer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The project built into a wheel, from a copy without what git ignores; by one worker for all of them."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    with FileLock(f"{folder}.lock"):
        if not list(folder.glob("*.whl")):
            build_wheel(folder)
    return next(folder.glob("*.whl"))


def build_wheel(folder):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.split("\n"):
        if name and not name.startswith("tests/") and (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(folder / "source")]
    subprocess.run(build, check=True, cwd=folder, capture_output=True)


def install(folder, requirement):
    """Make a new environment that holds the wheel and what it asks for, and return its `rope-viz`."""
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([scripts / "python", "-m", "pip", "install", "--quiet", requirement], check=True)
    return scripts / "rope-viz"


def test_wheel_holds_the_whole_app_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("app.py", "pages/_frame.py", "pages/scaling.py", "assets/logo.svg", ".streamlit/config.toml"):
        assert f"rope_viz/app/{name}" in names
    assert "rope_viz/models/catalog/llama-3.1-8b.json" in names
    assert "rope_viz/pages/scaling/texts.en.toml" in names
    assert "rope_viz/web/dials.js" in names
    folders = {
        name.split("/")[3] for name in names if name.startswith("rope_viz/tiny_lm/checkpoints/") and name.count("/") > 3
    }
    assert folders == set(SEEDS)
    assert all(name.startswith(("rope_viz/", "rope_viz-")) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".png")]
    assert wheel.stat().st_size <= 6_000_000


def test_an_index_would_accept_the_files(wheel):
    files = [str(wheel), *map(str, wheel.parent.glob("*.tar.gz"))]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert (len(files), done.returncode) == (2, 0), done.stdout


COMMANDS = [
    (["check", "qwen3-8b-yarn"], 0),
    (["table", "llama-3.1-8b"], 0),
    (["runtimes", "llama-3.1-8b"], 0),
    (["export", "--to", "vllm", "qwen3-8b-yarn"], 0),
    (["models"], 0),
    (["--version"], 0),
    (["app"], 2),
    ([], 2),
]


def test_the_core_needs_numpy_alone(wheel, tmp_path):
    """One test: each worker that has one of several would make the environment again."""
    bare = install(tmp_path / "bare", str(wheel))
    for command, code in COMMANDS:
        done = subprocess.run([bare, *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == code, f"{command}: {done.stderr}"
        assert "Traceback" not in done.stderr, command
        if code:
            assert "pip install 'rope-viz[app]'" in done.stderr, command


@pytest.mark.parametrize("options", [[], ["--workers", "2", "--base-path", "rope"]], ids=["one", "workers"])
def test_the_installed_app_serves_pages_from_anywhere(wheel, tmp_path, options):
    """One server in an environment of its own; several with the packages of the tests, which takes less time."""
    if options:
        zipfile.ZipFile(wheel).extractall(tmp_path / "site")
        command, env = [sys.executable, "-m", "rope_viz"], os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    else:
        command, env = [str(install(tmp_path / "new", f"{wheel}[app]"))], {**os.environ}
        assert not [*(tmp_path / "new").rglob("site-packages/torch")]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command += ["app", "--no-browser", "--port", str(port), *options]
    address = f"http://127.0.0.1:{port}" + ("/rope" if options else "")
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=log, stderr=log)
    try:
        try:
            wait_for_answer(process, f"{address}/_stcore/health")
        except RuntimeError:
            pytest.fail((tmp_path / "log").read_text())
        for path in ("/scaling?model=qwen3-8b-yarn", "/rope-viz/x/knob.js"):
            with urllib.request.urlopen(address + path, timeout=60) as answer:
                assert answer.status == 200
                kind = "html" if path.startswith("/scaling") else "javascript"
                assert kind in answer.headers["content-type"]
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{address}/_stcore/health", timeout=2)
