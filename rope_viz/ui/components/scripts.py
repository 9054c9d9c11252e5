"""The scripts that the app serves beside Streamlit's: our own and plotly.js, compressed once per process."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import plotly

from rope_viz import web
from rope_viz.figures.files.style import LABEL, PARAMETERS, PRESETS
from rope_viz.figures.words import glossary

PREFIX = "/rope-viz"
HERE = Path(__file__).parent
OWN = [*HERE.glob("*.js"), *web.FOLDER.glob("*.js")]
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
SCRIPTS = {path.name: path for path in [*sorted(OWN, key=lambda path: path.name), PLOTLY]}
# plotly.js is one function, an argument of the call that makes it. Browsers take such a function for one that may never
# be called and read its four megabytes twice; one in parentheses they read once, and while it comes.
ARGUMENT = (b"self : this, () => {\n", b"\n}));")
IN_PARENTHESES = (b"self : this, (() => {\n", b"\n})));")


def source(name: str) -> bytes:
    """A script by name."""
    if name in MADE:
        return MADE[name]()
    content = SCRIPTS[name].read_bytes()
    return called_at_once(content) if name == "plotly.min.js" else content


def called_at_once(library: bytes) -> bytes:
    """plotly.js with parentheses around its one function; as it is where it is built in another way."""
    start, end = ARGUMENT
    if library.count(start) != 1 or not library.rstrip().endswith(end):
        return library
    return library.rstrip()[: -len(end)].replace(start, IN_PARENTHESES[0]) + IN_PARENTHESES[1] + b"\n"


def looks() -> bytes:
    """The parameters of a file and the presets, for the dialog: made of what the address and the flags are read by."""
    parameters = {key: dataclasses.asdict(parameter) for key, parameter in PARAMETERS.items()}
    return module(PARAMETERS=parameters, PRESETS=PRESETS, LABEL=LABEL)


def words() -> bytes:
    """The sentence of every word of the glossary, by the anchor of its links."""
    return module(WORDS=glossary.listed())


def module(**values: Any) -> bytes:
    """A script that exports these."""
    return "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in values.items()).encode()


MADE = {"looks.js": looks, "words.js": words}
NAMES = (*SCRIPTS, *MADE)


@functools.cache
def packed(name: str) -> tuple[bytes, bytes, str]:
    """A script, its gzip form and its tag; read and compressed once per process."""
    content = source(name)
    return content, gzip.compress(content, compresslevel=9), hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def version() -> str:
    """One tag for all scripts together: it stands in their address, so that a browser may keep them for good."""
    return hashlib.sha256("".join(packed(name)[2] for name in NAMES).encode()).hexdigest()[:12]
