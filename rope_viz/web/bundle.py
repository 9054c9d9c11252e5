"""Join scripts into one module that needs no other file: for saved HTML files, and for `rope-viz.js`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rope_viz import web

IMPORT = re.compile(r'^import (?:(\w+)|\{(.*)\}) from "\./(\w+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (default )?(?:const|let|class|(?:async )?function) (\w+)", re.MULTILINE)
LISTED = re.compile(r"^export \{(.*)\};$\n?", re.MULTILINE)
WORD = re.compile(r"^export (?:default )?(?=\w)", re.MULTILINE)


def bundle(file: str, made: Mapping[str, Callable[[], bytes]] | None = None) -> str:
    """Return a script and all that it imports as one module with the script's own exports.

    Each imported script is a function that runs once, before those that need it. Its text is unchanged but for its
    imports and the word `export`. `made` holds functions that write scripts which are no files.
    """
    found: dict[str, str] = {}

    def add(name: str) -> str:
        own = made[name]().decode() if made and name in made else (web.FOLDER / name).read_text(encoding="utf-8")
        for _, _, needed in IMPORT.findall(own):
            if needed not in found:
                found[needed] = wrap(needed, add(needed))
        return IMPORT.sub(lambda match: bind(*match.groups()), own)

    whole = add(file)
    return "".join(found.values()) + whole


def wrap(file: str, text: str) -> str:
    """Return a script as a function that is called at once and whose result holds what the script exports."""
    exports = [f"default: {name}" if default else name for default, name in EXPORT.findall(text)]
    exports += [name.strip().replace(" as ", ": ") for names in LISTED.findall(text) for name in names.split(",")]
    body = WORD.sub("", LISTED.sub("", text))
    return f"const {variable(file)} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n"


def bind(default: str | None, names: str | None, file: str) -> str:
    """Return the statement that replaces an import."""
    shown = f"{{{names.replace(' as ', ': ')}}}" if names else f"{{ default: {default} }}"
    return f"const {shown} = {variable(file)};"


def variable(file: str) -> str:
    """Return the name that a script has within the module."""
    return f"${file.removesuffix('.js')}"
