"""`rope-viz figure --suite paper.toml`: several figures from one file, in one run.

[style]                      # of every figure, as in an address
preset = "one-column"

[[figure]]
file = "decay.svg"           # next to the suite; the ending is the format
picture = "decay/curves"
model = "llama-2-7b"         # of the list, or a config file next to the suite
length = "16k"               # a choice of the picture, or any key of its address
variants = ["base=5e5", "scaling=yarn,factor=4"]
labels = {plain = "no scaling"}
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rope_viz.cli.broken_pipe import shorten_name
from rope_viz.cli.find_pictures import describe_formats, find_choices, find_picture, open_variant, render
from rope_viz.cli.output import named, write_output
from rope_viz.cli.spec import read_config
from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files.style import LABEL, Style, is_key
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.read_upload import single_axis_upload
from rope_viz.models.spec_url import format_value
from rope_viz.models.variant import KEYS, MOST, read_variant, split_pairs
from rope_viz.pages import registry
from rope_viz.picture.choices import StoredChoice
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.storage.decode_toml import decode_toml
from rope_viz.storage.read_file import read_limited_text

OWN_KEYS = ("file", "picture", "model", "variants", "labels")


def run_suite(name: str, folder: str | None) -> list[Path]:
    """Render every figure of a suite, then write all into `folder`, by default that of the suite. Return their paths.

    Raise `ValueError` with one sentence that names the figure; then nothing was written.
    """
    path = Path(name)
    with named(name):
        entries, style = read_suite(path)
    target = path.parent if folder is None else Path(folder)
    rendered: dict[Path, bytes] = {}
    for entry in entries:
        file = target / str(entry["file"])
        with named(str(entry["file"])):
            if file in rendered:
                raise ValueError("two figures of the suite have this name")
            if not file.resolve().is_relative_to(target.resolve()):
                raise ValueError(f"a link leads out of {shorten_name(str(target))}: name another file")
            rendered[file] = render_entry(entry, style, path.parent)
    for file, content in rendered.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_output(file, content)
    return list(rendered)


def read_suite(path: Path) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """Return the figures of a suite and their common style. Raise `ValueError` with one sentence."""
    try:
        suite = decode_toml(read_limited_text(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not TOML: {error}") from None
    for key in suite:
        if key not in ("style", "figure"):
            raise ValueError(f"a suite has [style] and [[figure]], not {short_repr(key)}")
    entries, style = suite.get("figure"), suite.get("style", {})
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise ValueError("a suite needs at least one [[figure]]")
    if not isinstance(style, dict):
        raise ValueError("[style] must be a table")
    for entry in entries:
        for key in ("file", "picture"):
            if not isinstance(entry.get(key), str) or not entry[key]:
                raise ValueError(f"every [[figure]] needs {key} as text")
        file = Path(entry["file"])
        if file.is_absolute() or ".." in file.parts:
            raise ValueError(f"file must be a name next to the suite, not {short_repr(entry['file'])}")
    return entries, read_style(style)


def read_style(style: Mapping[str, Any]) -> dict[str, str]:
    """Return [style] as parameters of an address. Raise `ValueError` with one sentence for an unknown key."""
    labels = read_labels(style.get("labels", {}))
    found = {}
    for key, value in style.items():
        if key != "labels":
            with named(key):
                found[key] = to_text(value)
    for key in found:
        if not is_key(key):
            raise ValueError(f"[style] has no key {short_repr(key)}")
    return found | labels


def read_labels(labels: Any) -> dict[str, str]:
    """Return a table of labels as parameters of an address. Raise `ValueError` with one sentence."""
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise ValueError('labels must be a table such as {plain = "no scaling"}')
    return {LABEL + line: text for line, text in labels.items()}


def render_entry(entry: Mapping[str, Any], style: Mapping[str, str], folder: Path) -> bytes:
    """Return one figure as a file. Raise `ValueError` with one sentence."""
    from rope_viz.picture import export, read_address

    form = Path(entry["file"]).suffix.lower().removeprefix(".")
    if form not in export.FORMS or form == "packed":
        raise ValueError(describe_formats(entry["file"], None, [*export.FORMS]))
    picture = find_picture(entry["picture"])
    given = flatten({key: value for key, value in entry.items() if key not in OWN_KEYS})
    query = {}
    for key, value in given.items():
        with named(key):
            query[expand_key(key, entry["picture"])] = to_text(value)
    looks = dict(style) | {key: query.pop(key) for key in list(query) if is_key(key)}
    files = {}
    for choice in find_choices(entry["picture"]):
        if isinstance(choice, StoredChoice) and choice.key in query:
            files[choice.key] = choice.decode(choice.load(str(folder / query.pop(choice.key))))
    own = None
    if (model := entry.get("model")) is not None:
        query["model"] = str(model)
        if model not in (*catalog(), spec_url.CUSTOM):
            own = single_axis_upload(read_config(str(folder / str(model))))
            query["model"] = spec_url.CUSTOM
    request = read_address.read_request(registry.page(picture.page), query, own)
    request = with_variants(request, entry.get("variants", []), folder)
    if request.variants and not picture.variants:
        raise ValueError(f"{picture.address} shows one curve and takes no variants")
    if files:
        from rope_viz.picture.choices import StoredValue

        request = dataclasses.replace(
            request, given={**request.given, **{key: StoredValue("", value) for key, value in files.items()}}
        )
    look = Style.read(looks | read_labels(entry.get("labels", {})))
    return render(picture, picture.finished(request), form, look)


def with_variants(request: PictureRequest, variants: Any, folder: Path) -> PictureRequest:
    """Return the request with the variants of an entry. Raise `ValueError` with one sentence."""
    if not isinstance(variants, list) or not all(isinstance(each, str) for each in variants):
        raise ValueError('variants must be a list of texts such as ["base=5e5"]')
    if len(variants) > MOST:
        raise ValueError(f"one figure shows at most {MOST} variants, got {len(variants)}")
    found = {
        number: read_variant(text, request.current, lambda name: open_variant(str(folder / name)))
        for number, text in enumerate(variants, 1)
    }
    return dataclasses.replace(request, variants=found) if found else request


def expand_key(key: str, picture: str) -> str:
    """Return the key of an address that a key of a suite means: a flag's name, or a choice without its page."""
    name = key.replace("-", "_")
    page = picture.partition("/")[0]
    if f"{page}.{name}" in {choice.key for choice in find_choices(picture)}:
        return f"{page}.{name}"
    if name in KEYS or is_key(key) or "." in key:
        return key
    try:
        return next(iter(split_pairs(f"{name}=")))
    except ValueError:
        return key


def flatten(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested tables as one, with the keys joined by points: `decay.length = 4096` is a table in TOML."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        out |= flatten(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return out


def to_text(value: Any) -> str:
    """Return a value of TOML as the text of an address. Raise `ValueError` for anything that has none."""
    if isinstance(value, list):
        return ",".join(map(to_text, value))
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"{short_repr(value)} is neither text nor a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return format_value(value)
