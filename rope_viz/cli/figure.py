"""The command `figure`: write any picture of the app to a file."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rope_viz.cli.find_pictures import describe_formats, find_choices, find_picture, read_variants, render
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import write_output
from rope_viz.cli.spec import LISTS, add_spec_flags, flag, named, read_config, read_spec
from rope_viz.embedding.spec import RopeSpec, knobs, short_repr
from rope_viz.figures.files import FORMS
from rope_viz.figures.files.style import COLOUR, HIDE, LABEL, PARAMETERS, PRESETS, Style, is_key
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.read_upload import has_several_axes, multi_axis_upload, single_axis_upload
from rope_viz.models.spec_url import Subject, method_knobs
from rope_viz.models.variant import MOST
from rope_viz.pages import registry
from rope_viz.picture import ROUTE
from rope_viz.storage.read_file import read_limited

if TYPE_CHECKING:
    from rope_viz.picture.page import Picture
    from rope_viz.picture.picture_request import Choice, PictureRequest

NOT_IN_IT = {
    "own": "this address does not contain your config. Name the file after it, as in "
    "rope-viz figure 'ADDRESS' config.json -o plot.svg",
    "spec": "this address does not contain the numbers, which are too long. Save the picture as JSON and draw it",
}
"""{key of an address: advice if it names content that no address can hold}."""


def add(commands: Any, arguments: Sequence[str] = ()) -> None:
    """Add the command and its flags, with those of the picture that `arguments` name."""
    name = addressed(next((word for word in arguments[1:] if "/" in word and not word.startswith("-")), ""))
    is_named = arguments[:1] == ["figure"] and name
    parser = commands.add_parser(
        "figure",
        description=describe_picture(name)
        if is_named
        else "Write any picture of the app to a file; --list prints their names.",
        epilog="" if is_named else "rope-viz figure PAGE/PICTURE --help also shows the flags of that picture.",
    )
    parser.add_argument(
        "picture",
        nargs="?",
        metavar="PAGE/PICTURE",
        help="such as scaling/comparison, the address of a picture, or a saved .json file",
    )
    parser.add_argument("--list", action="store_true", help="print all pictures, one per line")
    parser.add_argument(
        "--suite", metavar="FILE", help="make all figures of a .toml file; examples/paper.toml shows how (-o: a folder)"
    )
    add_spec_flags(parser, length=False)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="plot.svg, .pdf, .png, .html, .csv or .json, or - for standard output"
    )
    parser.add_argument("--format", metavar="FORMAT", help="svg, pdf, png, html, csv or json; default: by the ending")
    styles = parser.add_argument_group("style, as in an address")
    for key, parameter in PARAMETERS.items():
        known = f"{', '.join(filter(None, parameter.options))}. " if parameter.options else ""
        styles.add_argument(flag(key), dest=f"look.{key}", metavar="VALUE", help=known + parameter.help)
    for of_line, metavar, about in (
        ("label", "LINE=TEXT", "your own label for a line"),
        ("colour", "LINE=#RRGGBB", "your own colour for a line"),
        ("hide", "LINE", "leave a line out"),
    ):
        styles.add_argument(
            f"--{of_line}", action="append", default=[], metavar=metavar, help=f"{about}; may be repeated"
        )
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="LIST",
        help="another curve that differs from this one, such as base=5e5 or scaling=yarn,factor=4 or model=qwen3-8b; "
        f"up to {MOST} of them, on the pages that can pin a curve",
    )
    styles.add_argument("--pin", metavar="PAIR", help="mark this pair")
    styles.add_argument("--view", metavar="LOW,HIGH", help="the range of the x axis, in its own units")
    if is_named:
        own = parser.add_argument_group("choices of this picture")
        for choice in find_choices(name):
            own.add_argument(
                *make_flags(choice, parser), dest=choice.key, metavar="VALUE", help=describe_choice(choice)
            )
    add_hub_flag(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code. Raise `ValueError` with one sentence if a picture cannot be drawn."""
    from rope_viz.picture import export

    if parsed.list:
        return print_names()
    if parsed.suite is not None:
        return draw_suite(parsed)
    if parsed.picture is None or parsed.output is None:
        raise ValueError(
            "name a picture and a file: rope-viz figure scaling/comparison -o plot.svg; --list prints all names"
        )
    form = (parsed.format or Path(parsed.output).suffix).lower().removeprefix(".")
    if form not in export.FORMS or form == "packed":
        raise ValueError(describe_formats(parsed.output, parsed.format, [*export.FORMS]))
    looks = read_style_flags(parsed)
    look = Style.read(looks)
    if is_file(parsed.picture):
        content = redraw_file(parsed, form, looks)
    else:
        name, query = addressed(parsed.picture), query_of(parsed.picture)
        if query is not None or not name.strip("/").partition("/")[2]:
            refuse_page(parsed.picture, name, query or {})
        picture = find_picture(name)
        if query is None:
            request = read_choices(parsed, picture)
        else:
            request, look = read_query(parsed, picture, query, looks)
        content = render(picture, picture.finished(request), form, look)
    write_output(parsed.output, content)
    return 0


def print_names() -> int:
    """Print the names of all pictures."""
    for picture in registry.pictures():
        print(f"{picture.address:24}{picture.about}")
    return 0


def draw_suite(parsed: argparse.Namespace) -> int:
    """Make all figures of a suite."""
    from rope_viz.cli.suite import run_suite

    if parsed.picture is not None:
        raise ValueError("--suite names its pictures itself: omit PAGE/PICTURE")
    for path in run_suite(parsed.suite, parsed.output):
        print(path)
    return 0


LARGEST_SAVED = 256 << 20
"""Bytes of a picture as JSON. A heatmap of 4,800 rows and columns takes most of it."""


def redraw_file(parsed: argparse.Namespace, form: str, looks: Mapping[str, str]) -> bytes:
    """Return the picture of a saved JSON file, which contains its picture's name and style."""
    from rope_viz.reports import draw

    for key in flags_besides_style(parsed, addressed(parsed.picture)):
        raise ValueError(f"a saved file already contains {key}: omit it, or name the picture instead")
    return draw.redraw_saved(read_limited(parsed.picture, LARGEST_SAVED), form, looks)


def read_query(
    parsed: argparse.Namespace, picture: Picture, query: Mapping[str, str], looks: Mapping[str, str]
) -> tuple[PictureRequest, Style]:
    """Return the request and style of a picture's address. It determines everything; flags may override its style."""
    from rope_viz.picture import read_address

    named, is_stored = query.get("own"), "spec" in query
    for key in flags_besides_style(parsed, picture.address):
        if not (key == "model" and (named is not None or is_stored)):
            raise ValueError(
                f"with an address only the style can be set: put {key} into the address, or name only the picture"
            )
    if is_stored or (named is not None and parsed.model is None):
        raise ValueError(NOT_IN_IT["spec" if is_stored else "own"])
    styled = {key: text for key, text in query.items() if is_key(key)}
    look = Style.read({**styled, **PRESETS.get(looks.get("preset", ""), {}), **looks})
    own = None if named is None else read_flags(parsed).own
    # With "file" the address has only what was changed in the config.
    changed = own if named == read_address.FILE else None
    rest = {key: text for key, text in query.items() if key != "own" and key not in styled}
    request = read_address.read_request(registry.page(picture.page), rest, changed)
    return request if named is None else dataclasses.replace(request, subject=request.subject._replace(own=own)), look


def read_choices(parsed: argparse.Namespace, picture: Picture) -> PictureRequest:
    """Return the request of a picture that the flags describe, with the picture's own choices."""
    from rope_viz.picture import read_address
    from rope_viz.picture.choices import StoredChoice, StoredValue

    given: dict[str, Any] = {}
    for choice in find_choices(picture.address):
        if (text := getattr(parsed, choice.key)) is not None:
            given[choice.key] = (
                StoredValue("", choice.decode(choice.load(text)))
                if isinstance(choice, StoredChoice)
                else choice.parse(text)
            )
    request = read_flags(parsed)
    marks = {key: text for key in ("pin", "view") if (text := getattr(parsed, key)) is not None}
    pin, view = read_address.pin_of(marks, request.spec.pairs), read_address.view_of(marks)
    variants = read_variants(parsed.variant, request.current)
    if variants and not picture.variants:
        shown = ", ".join(each.address for each in registry.pictures() if each.variants)
        raise ValueError(f"{picture.address} shows one curve: --variant works with {shown}")
    return dataclasses.replace(request, pin=pin, given=given, view=view, variants=variants)


def read_flags(parsed: argparse.Namespace) -> PictureRequest:
    """Return the request that the flags describe. Raise `ValueError` with one sentence."""
    from rope_viz.picture.picture_request import PictureRequest

    config = None if parsed.model is None else read_config(parsed.model)
    if config is not None and has_several_axes(config):
        with named(parsed.model):
            several = multi_axis_upload(dict(config))
        axis = parsed.layer or next(iter(several.specs))
        if axis not in several.specs:
            raise ValueError(f"--layer must be one of {', '.join(several.specs)}, got {short_repr(axis)}")
        return PictureRequest(Subject(several.specs[axis], spec_url.CUSTOM, axis, several))
    spec, config, layer = read_spec(parsed)
    listed = parsed.model in catalog() and not Path(parsed.model).exists()
    own = single_axis_upload(config) if config is not None and not listed else None
    return PictureRequest(Subject(spec, parsed.model if listed else spec_url.CUSTOM, layer or "", own))


def addressed(word: str) -> str:
    """Return `<page>/<name>` of a name or an address, even one copied from a browser; just the page for a page's."""
    try:
        parts = urlsplit(word)
    except ValueError:
        return ""
    _, ours, path = parts.path.rpartition(f"{ROUTE}/")
    if parts.scheme or ours or word.startswith("/"):
        path = path.strip("/")
    stem, dot, ending = path.rpartition(".")
    if dot and ending.lower() in (*FORMS, "packed"):
        path = stem
    # Behind a proxy the app may be below a path.
    last = path.split("/")[-2:] if parts.scheme and not ours else [path]
    return last[1] if len(last) == 2 and not is_picture("/".join(last)) and is_page(last[1]) else "/".join(last)


def query_of(word: str) -> dict[str, str] | None:
    """Return the query of an address, None for a bare name. Raise `ValueError` for a repeated key."""
    try:
        parts = urlsplit(word)
    except ValueError as error:
        raise ValueError(f"not an address: {error}") from None
    if "?" not in word and not parts.scheme and not word.startswith("/"):
        return None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if repeated := [key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place])]:
        raise ValueError(f"the address contains {short_repr(repeated[0])} twice: omit one")
    # The asking version and the ranges of a page's charts do not affect the picture.
    return {key: text for key, text in pairs if key != "v" and not key.startswith("axes-")}


def is_file(word: str) -> bool:
    """True for a saved JSON file, false for the address of a picture's JSON."""
    return word.lower().endswith(".json") and (os.path.isfile(word) or not is_picture(addressed(word)))


def is_picture(name: str) -> bool:
    """True if there is a picture of this name."""
    try:
        return bool(find_picture(name))
    except ValueError:
        return False


def is_page(name: str) -> bool:
    """True if there is a page of this name."""

    return name in registry.PAGES


def refuse_page(word: str, name: str, asked: Mapping[str, str]) -> None:
    """Raise `ValueError` for the address of a page, listing its pictures."""

    page = name.strip("/") or "home"
    if page not in registry.PAGES or (not name and not urlsplit(word).scheme and not word.startswith(("/", "?"))):
        return
    pictures = [*registry.page(page).pictures]
    written = f"{page}/{pictures[0]}" + (f"?{urlencode(asked)}" if asked else "")
    others = f"; it has {', '.join(pictures)}" if len(pictures) > 1 else ""
    raise ValueError(
        f"this is the page {registry.title_of(page)}: name one of its pictures, such as '{written}'{others}"
    )


def flags_besides_style(parsed: argparse.Namespace, name: str) -> Iterator[str]:
    """Yield the flags given for the model, the spec, the range and the picture's own choices."""
    keys = ("model", "layer", "scaling", "pin", "view", *knobs(RopeSpec), *method_knobs(), "truncate", *LISTS)
    if parsed.variant:
        yield "variant"
    for key in (*keys, *(choice.key for choice in find_choices(name))):
        if getattr(parsed, key, None) is not None:
            yield key


def read_style_flags(parsed: argparse.Namespace) -> dict[str, str]:
    """Return the style flags as parameters of an address. Raise `ValueError` with one sentence."""
    given = {key: text for key in PARAMETERS if (text := getattr(parsed, f"look.{key}")) is not None}
    for start, name, form in ((LABEL, "label", "LINE=TEXT"), (COLOUR, "colour", "LINE=#RRGGBB")):
        for written in getattr(parsed, name):
            line, equals, text = written.partition("=") if name == "label" else written.rpartition("=")
            if not equals:
                raise ValueError(f"--{name} takes {form}, not {short_repr(written)}")
            if start + line in given:
                raise ValueError(f"--{name} names the line {short_repr(line)} twice: omit one")
            given[start + line] = text
    return given | {HIDE + line: "yes" for line in parsed.hide}


def make_flags(choice: Choice[Any], command: argparse.ArgumentParser) -> list[str]:
    """Return the flags of a choice: its short name if that is free, and its key as in the address."""
    short = flag(choice.name)
    taken = {name for action in command._actions for name in action.option_strings}
    return [*([short] if short not in taken else []), f"--{choice.key}"]


def describe_choice(choice: Choice[Any]) -> str:
    """Return one line of help."""
    return ". ".join(text for text in (choice.label, choice.help.rstrip("."), choice.describe()) if text).replace(
        "%", "%%"
    )


def describe_picture(name: str) -> str:
    """Return a picture's description, "" for an unknown name."""
    try:
        return find_picture(name).about
    except ValueError:
        return ""
