"""A language made of brackets: what the screen shows outside them is not from the text files.

python -m tests.texts.pseudo decay/scores heads        # what these pictures and pages show outside brackets
python -m tests.texts.pseudo --model qwen3-8b-yarn     # all pictures, for another model
"""

import argparse
import contextlib
import functools
import json
import re
import string
import sys
from collections.abc import Mapping, Sequence
from unittest import mock

from rope_viz.figures.hands import HIDDEN
from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.pages import registry
from rope_viz.picture import read_address
from rope_viz.picture.outputs import Clocks, Figure, Table
from rope_viz.picture.wire_format import cells
from rope_viz.runtimes.releases import RELEASES
from rope_viz.studies.real_model import load_sentence
from rope_viz.texts import languages
from tests.texts.allowed_words import ALLOWED

LANGUAGE, OPEN, CLOSE = "xx", "⟦", "⟧"
INNERMOST = re.compile(rf"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
# Where Plotly, our scripts and the page take what they show from.
SHOWN = {"text", "name", "hovertemplate", "ticktext", "customdata", "title", "hovertext", "labels", "texts", "sentence"}
SHOWN |= {"label", "help", "body", "options", "caption", "placeholder", "subtitle", "note"}
GROUPS = {"texts", "labels", "options"}
"""Keys of mappings all of whose values are shown."""
UNSEEN = {"annotations", "shapes"}
"""Lists whose parts have names that are not shown."""
# Code, formulas, links, tags, numbers with units, and names by their form: snake_case, dotted.names, flags, capitals
# or digits inside a word.
NO_WORDS = (
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$",
    r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>|<code.*?</code>|<extra>|</?[a-z][^>]*>|&[a-z]+;|%?\{[^}]*\}",
    r":[a-z]+-badge\[|'[^']*'|“[^”]*”",
    r"https?://[^\s<>\")]+|\]\([^)]*\)|:material/\w+:",
    r"\\[a-zA-Z]+",
    r"(?:--?|\.{0,2}/)[\w./=-]+|[\w-]+(?:[._/=@:][\w-]+)+|\w*_\w*",
    r"\w*\d\w*|\w*[α-ωΔᵢₙₘ]\w*",
    r"\b\w+[A-Z]\w*\b",
    r"\b[^\W\d_]\b",
)
IGNORED = re.compile("|".join(NO_WORDS), re.DOTALL)
WORD = re.compile(r"[^\W\d_]{2,}")
SUBSCRIPTS = str.maketrans(dict.fromkeys("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))


def bracket(key, text):
    """Return an entry with brackets around what it says itself, and none around its values."""
    if key.startswith("explain."):  # formulas, and no values
        parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)  # the page shows code blocks by themselves
        return "".join(part if part.startswith("```") else f"{OPEN}{part}{CLOSE}" for part in parts)
    out = []
    for literal, name, spec, conversion in string.Formatter().parse(text):
        start, body, end = re.fullmatch(r"(\s*)(.*?)([.:]?\s*)", literal, re.DOTALL).groups()
        # A sentence may be cut at its first colon.
        body = body.replace("{", "{{").replace("}", "}}").replace(": ", f"{CLOSE}: {OPEN}")
        out += [start, f"{OPEN}{body}{CLOSE}" if re.search(r"[^\W\d_]", body) else body, end]
        if name is not None:
            out.append(f"{{{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}")
    return "".join(out)


@contextlib.contextmanager
def add_pseudo_language():
    """Add the language "xx", in which every entry of the text files is in brackets."""
    read, listed = languages.read_file, languages.list_languages()

    def read_bracketed(page, language):
        if language != LANGUAGE:
            return read(page, language)
        return {key: bracket(key, text) for key, text in read(page, languages.ENGLISH).items()}

    with (
        mock.patch.object(languages, "read_file", read_bracketed),
        mock.patch.object(languages, "list_languages", return_value=(*listed, LANGUAGE)),
    ):
        yield


@functools.cache
def list_names():
    """Return a pattern of the names of models and runtimes."""
    names = {model.name for model in catalog().values()} | {model.name for model in axes_catalog().values()}
    names |= {one.name for one in RELEASES.values()} | {*catalog(), *axes_catalog()}
    return re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))


@functools.cache
def list_tokens():
    """Return a pattern of the numbered tokens of the sentence that the real model reads, such as of₂."""
    return re.compile(rf"\b({'|'.join(map(re.escape, {*load_sentence()[1]}))})[₀-₉]+")


def find_outside(text):
    """Return the words of a shown text that are outside brackets and not allowed."""
    text = re.sub(r"\u2060|\\(?=[_:*<>|\[\]])", "", str(text))
    while (inner := INNERMOST.sub(" ", text)) != text:
        text = inner
    text = list_tokens().sub(" ", text)
    text = IGNORED.sub(" ", list_names().sub(" ", text.translate(SUBSCRIPTS)))
    return [word for word in WORD.findall(text) if word not in ALLOWED and word not in all_architectures()]


def list_strings(value, where="", *, is_shown=False, has_names=True):
    """Yield (where, text) of every shown string in nested data."""
    if isinstance(value, str):
        if is_shown:
            yield where, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            shown = (key in SHOWN and (has_names or key != "name")) or (is_shown and where.rpartition(".")[2] in GROUPS)
            yield from list_strings(inner, f"{where}.{key}", is_shown=shown, has_names=has_names and key not in UNSEEN)
    elif hasattr(value, "tolist"):
        yield from list_strings(value.tolist(), where, is_shown=is_shown)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for inner in value:
            yield from list_strings(inner, f"{where}[]", is_shown=is_shown, has_names=has_names)


def list_shown(kind):
    """Yield (where, text) of what a picture shows."""
    yield "title", kind.title
    yield "sentence", kind.sentence
    if isinstance(kind, Figure):
        drawn = kind.fig.to_plotly_json()
        # Lines without a hover and a column in the data file have names that nothing shows.
        seen = [each for each in drawn["data"] if not (each.get("hoverinfo") == "skip" and each.get("meta") == HIDDEN)]
        yield from list_strings(drawn | {"data": seen}, "fig")
    elif isinstance(kind, Clocks):
        yield from list_strings(kind.message, "message")
    elif isinstance(kind, Table):
        for name, column in cells(kind).items():
            yield "column", name
            yield from (("cell", cell) for cell in column if isinstance(cell, str))


# Fields of Streamlit's messages that hold what a page shows.
FIELDS = {"body", "label", "help", "placeholder", "options", "content", "caption", "markdown_help", "element_toolbar"}


def list_page(app):
    """Yield (where, text) of what a page shows that ran without a browser."""
    waiting = [app._tree]
    while waiting:
        node = waiting.pop()
        waiting += list(getattr(node, "children", {}).values())
        if (proto := getattr(node, "proto", None)) is None:
            continue
        if (message := getattr(proto, "bytes", b"")) and getattr(proto, "component_name", ""):
            name = proto.component_name
            if not name.startswith("rope_viz_copy"):  # commands and code
                yield from list_strings(json.loads(message), name, has_names=False)
            continue
        for field, value in proto.ListFields():
            if field.type == field.TYPE_STRING and field.name in FIELDS:
                for text in [value] if isinstance(value, str) else value:
                    yield f"{node.type}.{field.name}", text
            elif field.name in ("expandable", "popover", "tab"):
                yield f"{node.type}.label", value.label


def find_page_words(app):
    """Return {(where, words): the text} of what a page shows outside brackets."""
    shown = {(where, " ".join(find_outside(text))): text for where, text in list_page(app)}
    return {key: text for key, text in shown.items() if key[1]}


def read_model_request(page, model, **given):
    """Return the request of a page's picture in the pseudo-language, for a model of the list."""
    return read_address.read_request(registry.page(page), {"model": model, "lang": LANGUAGE, **given})


def check_picture(picture, request):
    """Return {(where, words): the text} of what a picture shows outside brackets, {} if it draws nothing."""
    with languages.use_language(LANGUAGE):
        if problem := picture.refuses(request):
            shown = [("refusal", problem)]
        else:
            kind = picture(picture.finished(request))
            shown = [*list_shown(kind)]
            if isinstance(kind, Clocks):  # a file that does not move shows no names
                shown += list_strings(kind.draw_static().to_plotly_json()["layout"], "still")
    found = {}
    for where, text in shown:
        if words := find_outside(text):
            found[where, " ".join(words)] = text
    return found


def main():
    """Print what pictures show outside brackets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pictures as page/name, or pages")
    parser.add_argument("--model", default="llama-3.1-8b")
    parsed = parser.parse_args()
    count = 0
    with add_pseudo_language():
        for picture in registry.pictures():
            if parsed.names and not {picture.address, picture.page, picture.shown_on} & {*parsed.names}:
                continue
            for (where, words), text in check_picture(picture, read_model_request(picture.page, parsed.model)).items():
                count += 1
                print(f"{picture.address} {where}: {words}\n    {json.dumps(text, ensure_ascii=False)[:200]}")
    print(f"{count} texts outside brackets", file=sys.stderr)


if __name__ == "__main__":
    main()
