"""A figure as a file without a browser: HTML and CSV from Plotly's own data, SVG, PDF and PNG drawn by Matplotlib.

Only what the figures of this package use is drawn: curves, bands between curves, points, bars, heatmaps, rules, labels.
"""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io

from rope_viz.figures import theme

WIDTH = 1000
# Plotly measures in pixels of 1/96 inch, Matplotlib in points of 1/72.
POINT = 0.75
STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-.", None: "-"}


def save(fig: go.Figure, path: str, *, title: str) -> None:
    """Write the figure in the format that the file's ending names. Raises `ValueError` for one that is not known."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in WRITERS:
        raise ValueError(f"{path}: the file must end in {', '.join('.' + name for name in WRITERS)}")
    Path(path).write_bytes(WRITERS[kind](fig, title))


def to_html(fig: go.Figure, title: str) -> bytes:
    """A page that works offline and has no button that uploads."""
    config = {"showSendToCloud": False, "displaylogo": False, "responsive": True}
    page = plotly.io.to_html(fig, config=config, include_plotlyjs=True, full_html=True)
    head = f"<head><title>{title.replace('<', '&lt;')}</title>"
    return str(page).replace("<head>", head, 1).encode()


def to_csv(fig: go.Figure, title: str = "") -> bytes:
    """The plotted numbers as the page's own download writes them: curves by columns, a heatmap as its grid."""
    layout = fig.layout.to_plotly_json()
    shown = [trace for trace in fig.data if (trace.meta or {}).get("csv") is not False]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    grid = next((trace for trace in shown if trace.type == "heatmap"), None)
    if grid is not None:
        writer.writerow([f"{axis_title(layout, 'yaxis')} \\ {axis_title(layout, 'xaxis')}", *array(grid.x)])
        cells = array(grid.z)
        rows = np.arange(len(cells)) if grid.y is None else array(grid.y)
        writer.writerows([name, *row] for name, row in zip(rows.tolist(), cells.tolist(), strict=True))
        return out.getvalue().encode()
    columns: list[list[Any]] = []
    last: Any = None
    for trace in shown:
        x = array(trace.x)
        if last is None or not np.array_equal(x, last):
            columns.append([axis_title(layout, "xaxis") or "x", *x.tolist()])
            last = x
        columns.append([trace.name or "y", *array(trace.y).tolist()])
    for index in range(max(map(len, columns))):
        writer.writerow([text(column[index]) if index < len(column) else "" for column in columns])
    return out.getvalue().encode()


def to_picture(kind: str) -> Callable[[go.Figure, str], bytes]:
    """The writer of SVG, PDF or PNG, the last at three times the size. It raises `ValueError` without Matplotlib."""

    def write(fig: go.Figure, title: str) -> bytes:
        try:
            import matplotlib
            from matplotlib.figure import Figure
        except ImportError:
            raise ValueError(
                f"{kind} files are drawn by Matplotlib: pip install matplotlib; .html and .csv need nothing"
            ) from None
        style: Any = {"text.parse_math": False, "svg.fonttype": "path", "pdf.fonttype": 42, "svg.hashsalt": "rope-viz"}
        with matplotlib.rc_context({**style, "font.family": ["DejaVu Sans"]}):
            height = float(fig.layout.height)
            picture = Figure(figsize=(WIDTH / 96, height / 96), facecolor=fig.layout.paper_bgcolor)
            Drawing(picture, fig, height).draw()
            out = io.BytesIO()
            dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
            metadata = {"Title": title, **dates[kind]}
            picture.savefig(out, format=kind, dpi=96 * (3 if kind == "png" else 2), metadata=metadata)
        return out.getvalue()

    return write


WRITERS: dict[str, Callable[[go.Figure, str], bytes]] = {
    "svg": to_picture("svg"),
    "png": to_picture("png"),
    "pdf": to_picture("pdf"),
    "html": to_html,
    "csv": to_csv,
}


class Drawing:
    """One figure on a Matplotlib canvas, in Plotly's places and sizes."""

    def __init__(self, picture: Any, fig: go.Figure, height: float) -> None:
        self.picture, self.fig = picture, fig
        self.layout: dict[str, Any] = fig.layout.to_plotly_json()
        self.colour = self.layout["font"]["color"]
        m = self.layout["margin"]
        self.box = (
            m["l"] / WIDTH,
            m["b"] / height,
            1 - (m["l"] + m["r"]) / WIDTH,
            1 - (m["t"] + m["b"]) / height,
        )
        self.axes = picture.add_axes(self.box, facecolor=self.layout["plot_bgcolor"])
        self.second = self.axes.twinx() if "yaxis2" in self.layout else None

    def draw(self) -> None:
        """Everything, from back to front."""
        self.axis("xaxis", self.axes.xaxis, self.axes.set_xscale, self.axes.set_xlim)
        self.axis("yaxis", self.axes.yaxis, self.axes.set_yscale, self.axes.set_ylim)
        for side in ("top", "right"):
            self.axes.spines[side].set_visible(False)
        if self.second is not None:
            self.axis("yaxis2", self.second.yaxis, self.second.set_yscale, self.second.set_ylim)
            self.second.spines["top"].set_visible(False)
        below: Any = None
        for trace in self.fig.data:
            axes = self.second if trace.type != "heatmap" and trace.yaxis == "y2" else self.axes
            below = getattr(self, trace.type)(axes, trace, below)
        for shape in self.layout.get("shapes", ()):
            self.shape(shape)
        for note in self.layout.get("annotations", ()):
            self.note(note)

    def axis(self, name: str, axis: Any, set_scale: Any, set_limits: Any) -> None:
        """Scale, range, ticks, grid and title."""
        given = self.layout[name]
        log = given.get("type") == "log"
        named = name == "yaxis" and any(trace.type == "heatmap" and not numeric(trace.y) for trace in self.fig.data)
        set_scale("log" if log else "linear")
        if given.get("range") is not None:
            low, high = (10**value if log else value for value in given["range"])
            set_limits(low, high)
        if given.get("tickvals") is not None:
            texts = given.get("ticktext") or [f"{value:g}" for value in given["tickvals"]]
            axis.set_ticks(list(given["tickvals"]), [plain(item) for item in texts])
        elif named:
            axis.set_ticks([])
        elif log:
            axis.set_major_formatter(lambda value, _: f"10{theme.exponent_text(round(math.log10(value)))}")
        axis.set_minor_locator(null_locator())
        axis.set_tick_params(color=self.colour, labelcolor=self.colour, labelsize=12 * POINT, length=3)
        axis.set_label_text(axis_title(self.layout, name), color=self.colour, fontsize=13 * POINT)
        if name == "yaxis":
            axis.set_label_coords(-(self.layout["margin"]["l"] - 20) / (self.box[2] * WIDTH), 0.5)
        axis.axes.set_axisbelow(True)
        if given.get("showgrid") is not False and name != "yaxis2":
            axis.grid(True, color=given.get("gridcolor", "#E4E7EB"), linewidth=0.6)
        for spine in axis.axes.spines.values():
            spine.set_color(given.get("linecolor", self.colour))

    def scatter(self, axes: Any, trace: Any, below: Any) -> Any:
        """A curve or points; the band down to the curve before where it is filled."""
        x, y = (array(values).astype(float) for values in (trace.x, trace.y))
        if trace.fill == "tonexty" and below is not None:
            axes.fill_between(x, below, y, color=trace.fillcolor, linewidth=0)
        mode = trace.mode or "lines"
        line = trace.line.to_plotly_json()
        if "lines" in mode and line.get("width", 2) > 0:
            style = STYLES[line.get("dash")]
            axes.plot(
                x, y, color=line.get("color", self.colour), linestyle=style, linewidth=line.get("width", 2) * POINT
            )
        if "markers" in mode:
            marker = trace.marker.to_plotly_json()
            edge = marker.get("line") or {}
            axes.scatter(
                x,
                y,
                s=(marker.get("size", 6) * POINT) ** 2,
                color=marker.get("color", self.colour),
                edgecolors=edge.get("color", "none"),
                linewidths=edge.get("width", 0) * POINT,
                zorder=3,
            )
        return y

    def bar(self, axes: Any, trace: Any, below: Any) -> Any:
        """Bars from 0."""
        axes.bar(array(trace.x), array(trace.y), width=1 - (self.layout.get("bargap") or 0.2), color=trace.marker.color)
        return None

    def heatmap(self, axes: Any, trace: Any, below: Any) -> Any:
        """A grid of colours, as one picture inside a vector file, with its scale."""
        from matplotlib.colors import LinearSegmentedColormap

        z = array(trace.z).astype(float)
        x, y = places(trace.x, z.shape[1]), places(trace.y, z.shape[0])
        # Several maps may share one scale.
        shared = self.fig.layout[trace.coloraxis] if trace.coloraxis else None
        if shared is None:
            steps, low, high = trace.colorscale, trace.zmin, trace.zmax
        else:
            steps, low, high = shared.colorscale, shared.cmin, shared.cmax
        colours = LinearSegmentedColormap.from_list("scale", [(at, colour(name)) for at, name in steps], N=1024)
        mesh = axes.pcolormesh(edges(x), edges(y), z, cmap=colours, vmin=low, vmax=high, rasterized=True, zorder=0.5)
        scale_of = trace if shared is None else shared
        if scale_of.showscale is not False and (shared is None or trace is self.fig.data[0]):
            left, bottom, width, height = self.box
            scale = self.picture.add_axes((left + width + 0.012, bottom, 0.012, height))
            given = scale_of.colorbar.to_plotly_json()
            self.picture.colorbar(mesh, cax=scale, ticks=given.get("tickvals"))
            if given.get("ticktext"):
                scale.set_yticklabels([plain(each) for each in given["ticktext"]])
            scale.tick_params(labelcolor=self.colour, color=self.colour, labelsize=12 * POINT)
            scale.set_title(
                plain((given.get("title") or {}).get("text", "")), color=self.colour, fontsize=11 * POINT, pad=8
            )
            scale.spines[:].set_visible(False)
        return None

    def shape(self, shape: Mapping[str, Any]) -> None:
        """A rule or a shaded range, with its label."""
        where = self.transform(shape)
        x, y = (shape["x0"], shape["x1"]), (shape["y0"], shape["y1"])
        line = shape.get("line") or {}
        label = shape.get("label") or {}
        if shape["type"] == "rect":
            order = 0.2 if shape.get("layer") == "below" else 3
            fill = shape.get("fillcolor")
            width = line.get("width", 0) * POINT
            self.axes.add_patch(
                rectangle(x, y, where, fill, line.get("color", "none") if width else "none", width, order)
            )
        else:
            style = STYLES[line.get("dash")]
            width = line.get("width", 1) * POINT
            self.axes.plot(
                x,
                y,
                transform=where,
                color=line.get("color"),
                linestyle=style,
                linewidth=width,
                scalex=False,
                scaley=False,
            )
        if not label.get("text"):
            return
        pad = (label.get("padding", 3)) * POINT
        if shape["type"] == "rect":
            at, offset, sides = ((x[0] + x[1]) / 2, y[1]), (0, -pad), ("center", "top")
        elif y[0] == y[1]:
            at, offset, sides = (x[0], y[0]), (pad, pad / 2), ("left", "bottom")
        else:
            end = label.get("textposition") != "start"
            at, offset, sides = (x[end], y[end]), (0, pad), ("center", "bottom")
        self.write(label["text"], at, where, offset, sides, label.get("font") or {})

    def note(self, note: Mapping[str, Any]) -> None:
        """A label at a point, its shift in pixels, with an arrow where it has one."""
        where = self.transform(note)
        at = []
        for letter in "xy":
            paper = note.get(f"{letter}ref") == "paper"
            log = not paper and self.layout[f"{letter}axis"].get("type") == "log"
            at.append(10 ** note[letter] if log else note[letter])
        anchors = {"auto": "center", None: "center", "middle": "center"}
        sides = (
            anchors.get(note.get("xanchor"), note.get("xanchor")),
            anchors.get(note.get("yanchor"), note.get("yanchor")),
        )
        offset = (note.get("xshift", 0) * POINT, note.get("yshift", 0) * POINT)
        arrow = None
        if note.get("showarrow") is not False:
            offset = (note.get("ax", 0) * POINT, -note.get("ay", -30) * POINT)
            arrow = {"arrowstyle": "->", "color": note.get("arrowcolor", self.colour), "linewidth": 0.8}
        self.write(note["text"], at, where, offset, sides, note.get("font") or {}, arrow)

    def write(
        self, words: str, at: Any, where: Any, offset: Any, sides: Any, font: Mapping[str, Any], arrow: Any = None
    ) -> None:
        """A text."""
        self.axes.annotate(
            plain(words),
            at,
            xycoords=where,
            xytext=offset,
            textcoords="offset points",
            ha=sides[0],
            va=sides[1],
            color=font.get("color", self.colour),
            fontsize=font.get("size", 12) * POINT,
            arrowprops=arrow,
            annotation_clip=False,
            zorder=4,
        )

    def transform(self, item: Mapping[str, Any]) -> Any:
        """Data coordinates, or the share of the plot where an axis is "paper"."""
        axes = self.second if self.second is not None and item.get("yref") == "y2" else self.axes
        if item.get("xref") == "paper":
            return axes.transAxes if item.get("yref") == "paper" else axes.get_yaxis_transform()
        return axes.get_xaxis_transform() if item.get("yref") == "paper" else axes.transData


def colour(name: str) -> Any:
    """A colour as Matplotlib takes it."""
    parts = re.fullmatch(r"rgb\((\d+), ?(\d+), ?(\d+)\)", name)
    return tuple(int(part) / 255 for part in parts.groups()) if parts else name


def array(values: Any) -> Any:
    """The numbers of a trace, which Plotly's JSON holds as bytes."""
    if isinstance(values, Mapping):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = str(values.get("shape", flat.size)).split(",")
        return flat.reshape([int(size) for size in shape])
    return np.asarray(values)


def null_locator() -> Any:
    """No small ticks between the named ones."""
    from matplotlib.ticker import NullLocator

    return NullLocator()


def rectangle(x: Any, y: Any, where: Any, fill: Any, edge: str, width: float, order: float) -> Any:
    """A filled or framed rectangle."""
    from matplotlib.patches import Rectangle

    return Rectangle(
        (x[0], y[0]),
        x[1] - x[0],
        y[1] - y[0],
        transform=where,
        facecolor=fill or "none",
        edgecolor=edge,
        linewidth=width,
        zorder=order,
    )


def places(values: Any, count: int) -> Any:
    """Where the cells of a heatmap are: numbers, or one after the other where they have names or nothing."""
    return array(values).astype(float) if values is not None and numeric(values) else np.arange(count, dtype=float)


def numeric(values: Any) -> bool:
    """Whether these are numbers; where there are none, they count as such."""
    return values is None or array(values).dtype.kind in "iuf"


def edges(middle: Any) -> Any:
    """The borders between cells with these middles."""
    if len(middle) == 1:
        return np.array([middle[0] - 0.5, middle[0] + 0.5])
    between = (middle[1:] + middle[:-1]) / 2
    return np.concatenate([[2 * middle[0] - between[0]], between, [2 * middle[-1] - between[-1]]])


def axis_title(layout: Mapping[str, Any], name: str) -> str:
    """The title of an axis without marks."""
    return plain(((layout.get(name) or {}).get("title") or {}).get("text", ""))


def plain(words: Any) -> str:
    """A text without HTML marks."""
    return re.sub(r"<[^>]+>", "", str(words).replace("<br>", "\n"))


def text(value: Any) -> Any:
    """A cell: gaps are empty, numbers in full."""
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else repr(float(value))
    return value
