"""Lines of a figure: names, custom labels, a legend or end labels, and dashes for grey."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.figures import theme
from rope_viz.figures.files.axes import Axis, array_of, read_axes
from rope_viz.figures.files.colours import grey_scale, recolour
from rope_viz.figures.files.rich_text import strip_markup
from rope_viz.figures.files.style import ERRORS
from rope_viz.texts.texts import join_list

# Dashes that remain distinguishable without colour, one per slot.
GREY_DASHES = tuple(
    """
    9px,4px 9px,3px,2px,3px 22px,7px 1px,3px 20px,3px 4px,8px 12px,3px,12px,3px,2px,3px 5px,2px,2px,2px 16px,12px
    1px,6px 9px,9px 9px,3px,2px,3px,2px,3px 6px,2px,6px,8px 22px,3px,8px,3px 1px,2px,1px,7px 14px,5px
    """.split()
)
GREYS = dict(zip(theme.FURTHER, GREY_DASHES, strict=True))
"""{colour of a slot: its dash in grey}: in grey the dash replaces the colour."""
GREY = "#1E1E1E"
SPARE = tuple(
    "8px,2px,3px,2px,3px,8px 24px,2px 3px,5px,9px,5px 2px,1px,2px,5px 13px,2px,3px,2px,3px,2px,3px,2px".split()
)
HATCHES = ("", "/", "x", "\\", ".", "-")


def line_name(trace: Mapping[str, Any]) -> str:
    """Return the name of the line that a trace belongs to, "" for maps, helpers and filled ranges."""
    if trace.get("type") == "bar":
        return "" if trace.get("orientation") == "h" else str(trace.get("name") or "")
    hidden = (trace.get("meta") or {}).get("csv") is False
    if trace.get("type", "scatter") != "scatter" or hidden:
        return ""
    if trace.get("legendgroup"):
        return str(trace["legendgroup"])
    if trace.get("hoverinfo") == "skip":
        return ""
    drawn = "markers" in (trace.get("mode") or "lines") or (trace.get("line") or {}).get("width", 2) > 0
    return str(trace.get("name") or "") if drawn else ""


def line_names(data: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all lines in drawing order."""
    return list(dict.fromkeys(name for name in map(line_name, data) if name))


def read_look(trace: Mapping[str, Any]) -> tuple[str, str, float]:
    """Return the colour, dash and width of a line or of points."""
    line, marker = trace.get("line") or {}, trace.get("marker") or {}
    colour = line.get("color") or marker.get("color") or theme.TEXT
    if not isinstance(colour, str):
        colour = next((each for each in colour if isinstance(each, str)), theme.TEXT)
    return colour, str(line.get("dash") or "solid"), float(line.get("width", 2))


def find_lines(data: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> dict[str, str]:
    """Return {wanted name: the line's own}; raise `ValueError` for a line that the figure does not have."""
    shown = {strip_markup(name): name for name in line_names(data)}
    for name in wanted:
        if name not in shown:
            lines = join_list(list(shown), "or")
            raise ValueError(ERRORS("no_line" if shown else "no_lines", name=short_repr(name), lines=lines))
    return {name: shown[name] for name in wanted}


def _owner(trace: Mapping[str, Any]) -> str:
    """Return the name of the line that a trace draws, or whose range it fills."""
    return str((trace.get("meta") or {}).get("band") or line_name(trace))


def hide(data: list[dict[str, Any]], layout: dict[str, Any], names: Sequence[str]) -> None:
    """Remove lines with their ranges and labels; raise `ValueError` for an unknown line, or if none would be left."""
    if not names:
        return
    gone = {*find_lines(data, names).values()}
    if gone.issuperset(line_names(data)):
        raise ValueError(ERRORS("all_hidden"))
    looks = {line_name(trace): read_look(trace)[0] for trace in reversed(data) if line_name(trace)}
    layout["annotations"] = [note for note in layout.get("annotations", ()) if find_named_line(note, looks) not in gone]
    rows = {shape["y1"] for shape in _band_keys(layout, {looks[name] for name in gone})}
    layout["shapes"] = [
        shape for shape in layout.get("shapes", ()) if shape.get("name") != "band" or shape["y1"] not in rows
    ]
    data[:] = [trace for trace in data if _owner(trace) not in gone]


def _band_keys(layout: Mapping[str, Any], colours: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the pieces of lines of these colours that stand next to band bars."""
    keys = [shape for shape in layout.get("shapes", ()) if shape.get("name") == "band" and shape["type"] == "line"]
    return [shape for shape in keys if shape["line"]["color"] in colours]


def colour(data: list[dict[str, Any]], layout: dict[str, Any], colours: Sequence[tuple[str, str]]) -> None:
    """Give lines, their ranges and their labels the user's colours; raise `ValueError` for an unknown line."""
    if not colours:
        return
    own = find_lines(data, [name for name, _ in colours])
    looks = {line_name(trace): read_look(trace)[0] for trace in reversed(data) if line_name(trace)}
    new = {own[name]: value for name, value in colours}
    notes = []
    for note in layout.get("annotations", ()):
        name = find_named_line(note, looks)
        notes.append(_replace_colour(note, looks[name], new[name]) if name in new else note)
    layout["annotations"] = notes
    for name, value in new.items():
        keys = _band_keys(layout, {looks[name]})
        layout["shapes"] = [
            _replace_colour(shape, looks[name], value) if shape in keys else shape for shape in layout.get("shapes", ())
        ]
    for index, trace in enumerate(data):
        if (name := _owner(trace)) in new:
            data[index] = _replace_colour(trace, looks[name], new[name])


def _replace_colour(part: Mapping[str, Any], old: str, new: str) -> Any:
    """Return plain data with one colour replaced, also where it has an alpha."""
    return recolour(part, lambda each: new + each[len(old) :] if each.startswith(old) else each)


def relabel(data: list[dict[str, Any]], layout: dict[str, Any], labels: Sequence[tuple[str, str]]) -> None:
    """Give lines the user's labels; raise `ValueError` for a line that the figure does not have."""
    if not labels:
        return
    looks = {line_name(trace): read_look(trace)[0] for trace in reversed(data) if line_name(trace)}
    found = find_lines(data, [name for name, _ in labels])
    own = {found[name]: theme.plain_text(label) for name, label in labels}
    for note in layout.get("annotations", ()):
        named = find_named_line(note, looks)
        if named in own:
            note["text"] = own[named] + _rest_after(str(note["text"]), named)
    for trace in data:
        name = line_name(trace)
        if name in own:
            trace["name"] = own[name] + _rest_after(str(trace.get("name") or name), name)
            if trace.get("legendgroup"):
                trace["legendgroup"] = own[name]
            if isinstance(trace.get("hovertemplate"), str):
                trace["hovertemplate"] = re.sub(rf"^{re.escape(name)}\b", lambda _: own[name], trace["hovertemplate"])  # noqa: B023


def relabel_title(title: str, data: Sequence[Mapping[str, Any]], labels: Sequence[tuple[str, str]]) -> str:
    """Replace line names in a figure's title by the user's labels, as whole words only."""
    custom = dict(labels)
    names = sorted({*map(strip_markup, line_names(data)), *custom}, key=len, reverse=True)
    if not custom:
        return title
    pattern = "|".join(map(re.escape, filter(None, names)))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", lambda found: custom.get(found[0], found[0]), title)


def find_named_line(note: Mapping[str, Any], looks: Mapping[str, str]) -> str | None:
    """Return the line that a note names: of equal colour, the text starting with its name or its first words."""
    text = str(note.get("text") or "")
    colour = (note.get("font") or {}).get("color")
    for name in sorted(looks, key=len, reverse=True):
        begins = text == name or re.match(rf"{re.escape(name)}(?=[\s:,×÷：，])", text)
        short = len(text) > 2 and name.startswith(text) and name[len(text) :][:1] in ("", " ", ",", "，", "（")
        if looks[name] == colour and (begins or short):
            return name
    return None


def _rest_after(text: str, name: str) -> str:
    return text[len(name) :] if text.startswith(name) else ""


def place_labels(data: list[dict[str, Any]], layout: dict[str, Any], where: str) -> None:
    """Name the lines at their ends, in a legend or nowhere; "auto" keeps the figure's own way."""
    if where == "auto":
        return
    looks = {line_name(trace): read_look(trace)[0] for trace in reversed(data) if line_name(trace)}
    if not looks:
        return
    notes = list(layout.get("annotations", ()))
    naming = {id(note): name for note in notes if (name := find_named_line(note, looks)) is not None}
    bare = [note for note in notes if id(note) in naming and not _rest_after(str(note["text"]), naming[id(note)])]
    if where == "ends":
        named = {naming[id(note)] for note in bare}
        layout["annotations"] = notes + _end_labels(data, layout, [name for name in looks if name not in named])
        return
    layout["annotations"] = [
        note for note in notes if all(note is not each for each in bare) and not _is_key(note, looks)
    ]
    layout["showlegend"] = where == "legend"
    if where == "legend":
        layout["legend"] = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
        seen: set[str] = set()
        for trace in data:
            name = line_name(trace)
            trace["showlegend"] = bool(name) and name not in seen
            if trace["showlegend"]:
                trace["name"] = name
            seen.add(name)


def _is_key(note: Mapping[str, Any], looks: Mapping[str, str]) -> bool:
    text = strip_markup(note.get("text"))
    return "<span" in str(note.get("text")) and all(strip_markup(name) in text for name in looks)


def _end_labels(
    data: Sequence[Mapping[str, Any]], layout: Mapping[str, Any], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return labels at the right ends of these lines, if the ends are in view."""
    axes = read_axes(layout, data)
    notes = []
    for name in names:
        parts = [trace for trace in data if line_name(trace) == name and trace.get("type", "scatter") == "scatter"]
        end = _last_visible_point(axes, parts[-1]) if parts else None
        if end is not None:
            refs = {"xref": parts[-1].get("xaxis") or "x", "yref": parts[-1].get("yaxis") or "y"}
            notes.append(theme.end_label(*end, name, read_look(parts[-1])[0]) | refs)
    return notes


def follow_ends(data: Sequence[Mapping[str, Any]], layout: dict[str, Any]) -> None:
    """Move the labels of line ends after a change of axis ranges."""
    axes = read_axes(layout, data)
    notes = []
    for note in layout.get("annotations", ()):
        own_traces = [
            trace
            for trace in data
            if note.get("name") == "end" and str(note.get("text")) in (trace.get("name"), trace.get("legendgroup"))
        ]
        found = _last_visible_point(axes, own_traces[-1]) if own_traces else None
        if found is not None:
            notes.append({**note, "x": found[0], "y": found[1], "yshift": 0})
        elif not own_traces:
            notes.append(note)
    layout["annotations"] = notes


def _last_visible_point(axes: Mapping[str, Axis], trace: Mapping[str, Any]) -> tuple[float, float] | None:
    x_axis, y_axis = axes[trace.get("xaxis") or "x"], axes[trace.get("yaxis") or "y"]
    x, y = x_axis.coordinates(array_of(trace["x"])), y_axis.coordinates(array_of(trace["y"]))
    visible = [
        i
        for i, (a, b) in enumerate(zip(x, y, strict=True))
        if math.isfinite(a) and math.isfinite(b) and x_axis.contains(a) and y_axis.contains(b)
    ]
    if not visible:
        return None
    last = max(visible, key=lambda i: (x[i] - x_axis.low) / (x_axis.high - x_axis.low))
    return float(x[last]), float(y[last])


def convert_to_grey(data: list[dict[str, Any]], layout: dict[str, Any]) -> None:
    """Give every line a unique dash, every kind of bar a hatch, and maps a grey scale."""
    grey_looks = _grey_looks(data)
    colours = {line_name(trace): read_look(trace)[0] for trace in reversed(data) if line_name(trace)}
    for note in layout.get("annotations", ()):
        # A label keeps its line's colour, by which `find_named_line` matches them.
        name = find_named_line(note, colours)
        if name in grey_looks:
            note["font"] = {**(note.get("font") or {}), "color": grey_looks[name][1]}
    for trace in data:
        name = line_name(trace)
        if trace.get("type") == "bar":
            trace["marker"] = _hatch_marker(trace.get("marker") or {})
        elif trace.get("type") == "heatmap" and trace.get("colorscale") is not None:
            trace["colorscale"] = grey_scale(trace["colorscale"])
        elif name in grey_looks:
            dash, level = grey_looks[name]
            line, marker = dict(trace.get("line") or {}), dict(trace.get("marker") or {})
            if "lines" in (trace.get("mode") or "lines") and line.get("width", 2) > 0:
                line["dash"] = dash
            for each in (line, marker):
                if each.get("color") == colours[name]:
                    each["color"] = level
            trace |= {key: each for key, each in (("line", line), ("marker", marker)) if each}
    for key in [key for key in layout if key.startswith("coloraxis")]:
        shared = layout[key]
        if isinstance(shared, Mapping) and shared.get("colorscale") is not None:
            layout[key] = {**shared, "colorscale": grey_scale(shared["colorscale"])}


def _grey_looks(data: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return {line: (dash, colour)} in grey, by `GREYS`; a line whose dash is taken gets a spare one."""
    found: dict[str, tuple[str, str]] = {}
    for name in line_names([trace for trace in data if trace.get("type", "scatter") == "scatter"]):
        colour, dash, _ = next(read_look(trace) for trace in data if line_name(trace) == name)
        found[name] = dash, colour
    out: dict[str, tuple[str, str]] = {}
    for name in sorted(found, key=lambda name: found[name][1] not in GREYS):
        dash, colour = found[name]
        new = (GREYS[colour], GREY) if colour in GREYS else (dash, colour)
        taken = {dash for dash, _ in out.values()}
        if new[0] in taken:
            new = next((each for each in SPARE if each not in taken), new[0]), new[1]
        out[name] = new
    return out


def _hatch_marker(marker: Mapping[str, Any]) -> dict[str, Any]:
    colour = marker.get("color")
    if not isinstance(colour, (list, tuple)):
        return dict(marker)
    kinds = list(dict.fromkeys(colour))
    return {**marker, "pattern": {"shape": [HATCHES[kinds.index(each) % len(HATCHES)] for each in colour]}}
