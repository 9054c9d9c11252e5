"""The app's own scripts and plotly.js, compressed once per process."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import re
from pathlib import Path

import plotly

from rope_viz import web
from rope_viz.figures import glossary
from rope_viz.figures.files.style import COLOUR, HIDE, LABEL, PARAMETERS, PRESETS
from rope_viz.texts import cache_by_language, current_language, use_language
from rope_viz.texts.languages import ENGLISH
from rope_viz.web.made import module, texts

PREFIX = "/rope-viz"
OWN = [*web.FOLDER.glob("*.js")]
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
SCRIPTS = {path.name: path for path in [*sorted(OWN, key=lambda path: path.name), PLOTLY]}
# plotly.js is one function passed as an argument. Browsers parse such a function lazily, so its four megabytes would be
# parsed twice; one in parentheses is parsed once, while it loads.
ARGUMENT = (b"self : this, () => {\n", b"\n}));")
IMPORT = re.compile(r"""^import [^;]*?"\./([\w.]+)";""", re.MULTILINE)
IN_PARENTHESES = (b"self : this, (() => {\n", b"\n})));")


def source(name: str) -> bytes:
    """Return a script by name."""
    if name in MADE:
        return MADE[name]()
    content = SCRIPTS[name].read_bytes()
    return called_at_once(content) if name == "plotly.min.js" else content


def called_at_once(library: bytes) -> bytes:
    """Put parentheses around plotly.js's one function; return a differently built one unchanged."""
    start, end = ARGUMENT
    if library.count(start) != 1 or not library.rstrip().endswith(end):
        return library
    return library.rstrip()[: -len(end)].replace(start, IN_PARENTHESES[0]) + IN_PARENTHESES[1] + b"\n"


def looks() -> bytes:
    """Make the export dialog's script from the parameters and presets that the address and the flags use."""
    parameters = {key: dataclasses.asdict(parameter) for key, parameter in PARAMETERS.items()}
    return module(PARAMETERS=parameters, PRESETS=PRESETS, LABEL=LABEL, COLOUR=COLOUR, HIDE=HIDE)


def words() -> bytes:
    """Make a script of the glossary: the sentence of each term by the anchor of its links."""
    return module(WORDS=glossary.listed())


MADE = {"looks.js": looks, "words.js": words, "texts.js": texts}
NAMES = (*SCRIPTS, *MADE)


SHARED = ("element", "navigation", "knob", "picture", "tools", "outbox", "message", "texts", "touch", "copy")
"""The scripts that every page loads."""


@functools.cache
def list_needed(kind: str = "") -> list[str]:
    """Return what a page loads for a first picture of this kind: also what those scripts import, each before its own.

    A browser that is told of one script does not look for its imports before it runs.
    """
    found, left = list[str](), [f"{name}.js" for name in (*SHARED, kind) if name]
    while left:
        name = left.pop(0)
        if name not in found:
            found.append(name)
            left += IMPORT.findall(source(name).decode())
    return found


def packed(name: str) -> tuple[bytes, bytes, str]:
    """Return a script, its gzip form and its tag, read and compressed once per process: for texts, per language."""
    with use_language(current_language() if name in MADE else ENGLISH):
        return _packed(name)


@cache_by_language()
def _packed(name: str) -> tuple[bytes, bytes, str]:
    content = source(name)
    return content, gzip.compress(content, compresslevel=9), hashlib.sha256(content).hexdigest()[:16]


@cache_by_language()
def version() -> str:
    """Return one tag for all scripts, used in their address so that browsers may cache them for ever.

    It ends with the language of their texts, if that is not English.
    """
    tag = hashlib.sha256("".join(packed(name)[2] for name in NAMES).encode()).hexdigest()[:12]
    return tag if current_language() == ENGLISH else f"{tag}-{current_language()}"


def language_of(version: str) -> str:
    """Return the language of the scripts at an address with this tag."""
    return version.partition("-")[2] or ENGLISH
