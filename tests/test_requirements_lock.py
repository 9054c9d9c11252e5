"""requirements.lock holds what requirements.txt asks for, with hashes, and the Dockerfile installs it."""

import importlib.util
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
ENTRY = re.compile(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
TEXT = (ROOT / "requirements.lock").read_text(encoding="utf-8")
HASH = re.compile(r"[0-9a-f]{64}")
LOCKED = {
    canonicalize_name(name): (version, set(HASH.findall(hashes))) for name, version, hashes in ENTRY.findall(TEXT)
}
PINNED = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if line.partition("#")[0].strip()
]


def test_the_lock_has_the_versions_of_the_requirements():
    assert len(LOCKED) == len(re.findall(r"^\S+==", TEXT, re.MULTILINE))
    for pinned in PINNED:
        if pinned.name != "torch":
            assert LOCKED[canonicalize_name(pinned.name)][0] in pinned.specifier
    assert "torch" not in LOCKED
    assert "://" not in TEXT


@pytest.mark.skipif(sys.platform != "linux", reason="the lock is for Linux")
def test_the_lock_has_all_that_its_packages_need():
    for name in [*LOCKED, "torch"]:
        for text in metadata.requires(name) or ():
            need = Requirement(text)
            if need.marker is None or (name != "torch" and need.marker.evaluate({"extra": ""})):
                assert LOCKED[canonicalize_name(need.name)][0] in need.specifier, f"{name} needs {text}"


def test_the_dockerfile_installs_the_lock_and_the_pinned_torch():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r requirements.lock" in text
    version = re.search(r"^ARG TORCH_VERSION=(\S+)$", text, re.MULTILINE)[1]
    assert version in next(pinned.specifier for pinned in PINNED if pinned.name == "torch")


def load_make_lock():
    spec = importlib.util.spec_from_file_location("make_lock", ROOT / ".ci" / "make_lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_index_has_the_locked_files():
    make_lock = load_make_lock()
    if subprocess.run([sys.executable, "-m", "pip", "index", "versions", "cycler"], capture_output=True).returncode:
        pytest.skip("no package index can be reached")
    for machine in make_lock.MACHINES:
        found = make_lock.resolve(machine, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements.lock"))
        assert {canonicalize_name(name) for name in found} == set(LOCKED)
        for name, (version, digest) in found.items():
            assert version == LOCKED[canonicalize_name(name)][0]
            assert digest in LOCKED[canonicalize_name(name)][1]
