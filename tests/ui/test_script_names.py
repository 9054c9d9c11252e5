"""The names of the functions in the browser's scripts are plain English (CONTRIBUTING.md, House rules)."""

import re

from rope_viz.ui import header
from rope_viz.ui.components.scripts import OWN

SCRIPTS = [*OWN, *header.HERE.glob("*.js")]
FUNCTION = re.compile(
    r"function (\w+)\(|\b(?:const|let) (\w+) = (?:async )?(?:\w+|\((?:[^()]|\([^()]*\))*\)) =>"
    r"|^  (?:async |get )?(\w+)\(.*\) \{$",
    re.MULTILINE,
)
BANNED = {"beside", "stands", "said", "told", "kept", "lent", "laid", "nobody", "whoever", "anew", "astray", "came"}
BANNED |= {"gone", "reader"}


def functions():
    for path in SCRIPTS:
        for found in FUNCTION.findall(path.read_text(encoding="utf-8")):
            yield path.name, "".join(found)


def test_scripts_have_no_function_with_a_banned_word():
    words = {(path, name): set(re.findall(r"[A-Z]?[a-z]+", name)) for path, name in functions()}
    assert {("picture.js", "makeAddress"), ("knob.js", "fromTrack"), ("chart.js", "isNarrow")} <= words.keys()
    assert [each for each, parts in words.items() if {part.lower() for part in parts} & BANNED] == []
