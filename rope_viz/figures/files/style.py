"""The style of a file: one value read from strings, the same in an address, a dialog and flags.

Style.read({"preset": "one-column", "theme": "transparent", "label.plain": "before"})
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.figures.files.load_matplotlib import load_matplotlib
from rope_viz.models.spec_url import format_value, parse_number
from rope_viz.texts import Texts, Translated
from rope_viz.texts.outside_text import printable
from rope_viz.texts.texts import join_list

TEXTS, ERRORS = Texts("export"), Texts("files")
# Pixels are 1/96 inch, as in CSS.
UNITS = {"px": 1.0, "mm": 96.0 / 25.4, "cm": 960.0 / 25.4, "in": 96.0, "pt": 96.0 / 72.0}
USUAL_SIZE = 13.0
WIDTHS, HEIGHTS, FONT_SIZES, DPIS = (94.0, 4800.0), (56.0, 4800.0), (5.0, 72.0), (36, 1200)
MOST_PIXELS = 50_000_000
MOST_LABELS, LONGEST_LABEL, LONGEST_TITLE = 40, 80, 300
# Characters that change the writing direction could make a label display something else than it holds.
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Axis ends closer than this share of their size would have equal tick labels.
NEAREST = 1e-9

THEMES = ("light", "dark", "transparent")
LEGENDS = ("auto", "ends", "legend", "none")
SCALES = ("", "linear", "log")
FONTS = {"sans": ("DejaVu Sans",), "serif": ("STIXGeneral",), "mono": ("DejaVu Sans Mono",)}
"""{generic family: fonts that Matplotlib includes}; any other name is an installed font."""
YES, NO = ("yes", "on", "true", "1"), ("no", "off", "false", "0")

VENUES = Path(__file__).with_name("venues.toml")
PRESETS: dict[str, dict[str, str]] = {
    "one-column": {"width": "85mm", "font_size": "8pt", "dpi": "300"},
    "two-columns": {"width": "178mm", "font_size": "8pt", "dpi": "300"},
    "slide": {"width": "1280px", "height": "720px", "font_size": "22px", "dpi": "144"},
} | {name: {**sizes, "dpi": "300"} for name, sizes in tomllib.loads(VENUES.read_text(encoding="utf-8")).items()}
"""{name: parameters it sets}; parameters given as well take precedence."""


@dataclass(frozen=True)
class Parameter:
    """How a dialog or flag presents one parameter, with its options if there are few."""

    label: Translated = Translated()
    help: Translated = Translated()
    options: tuple[str, ...] = ()


_OPTIONS = {"preset": tuple(PRESETS), "theme": THEMES, "grey": ("yes", "no"), "legend": LEGENDS}
_OPTIONS |= {"xscale": SCALES, "yscale": SCALES}
PARAMETERS: dict[str, Parameter] = {
    key: Parameter(TEXTS(f"fields.{key}"), TEXTS(f"fields.{key}_help"), _OPTIONS.get(key, ()))
    for key in (
        "preset width height font font_size theme grey title xtitle ytitle legend xmin xmax ymin ymax xscale yscale dpi"
    ).split()
}
"""{key in an address: description}; also, keys that begin with one of `OF_LINES` change one line."""
LABEL, COLOUR, HIDE = "label.", "colour.", "hide."
OF_LINES = {LABEL: "labels", COLOUR: "colours", HIDE: "hidden"}
"""{beginning of a key, before the name of a line: the field of `Style`}."""


@dataclass(frozen=True)
class Style:
    """The style of one file. Raises `ValueError` for invalid fields.

    Lengths are text with a unit ("85mm", "8pt"; a bare number is pixels), "" is the figure's own.
    `labels` are (name of a line, custom label), `colours` (name, #RRGGBB), `hidden` (name, "yes"). `xmin` to `ymax`
    are axis values, also on a log axis. `title` is "no", "yes" for the figure's own, or a custom one; so are
    `xtitle` and `ytitle`, the titles of the axes. `mark` is a small line below the figure; no address can set it.
    """

    width: str = ""
    height: str = ""
    font: str = "sans"
    font_size: str = f"{USUAL_SIZE:g}px"
    theme: str = "light"
    grey: bool = False
    title: str = "no"
    xtitle: str = "yes"
    ytitle: str = "yes"
    legend: str = "auto"
    labels: tuple[tuple[str, str], ...] = ()
    colours: tuple[tuple[str, str], ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    xmin: float | None = None
    xmax: float | None = None
    ymin: float | None = None
    ymax: float | None = None
    xscale: str = ""
    yscale: str = ""
    dpi: int = 288
    mark: str = ""

    def __post_init__(self) -> None:
        for name, bounds in (("width", WIDTHS), ("height", HEIGHTS), ("font_size", FONT_SIZES)):
            object.__setattr__(self, name, _read_length(getattr(self, name), name, bounds))
        if not self.font_size:
            object.__setattr__(self, "font_size", f"{USUAL_SIZE:g}px")
        object.__setattr__(self, "font", _read_font(self.font))
        for name, options in (("theme", THEMES), ("legend", LEGENDS), ("xscale", SCALES), ("yscale", SCALES)):
            _read_option(getattr(self, name), name, options)
        object.__setattr__(self, "grey", _read_switch(self.grey, "grey"))
        for name, usual in (("title", "no"), ("xtitle", "yes"), ("ytitle", "yes")):
            object.__setattr__(self, name, _read_title(getattr(self, name), name, usual))
        object.__setattr__(self, "dpi", _read_dpi(self.dpi))
        for letter in "xy":
            self._check_range(letter)
        object.__setattr__(self, "labels", _read_labels(self.labels))
        object.__setattr__(self, "colours", _read_of_lines(self.colours, "colour", _read_colour))
        hidden = _read_of_lines(self.hidden, "hide", lambda value, name: "yes" if _read_switch(value, name) else "")
        object.__setattr__(self, "hidden", tuple(pair for pair in hidden if pair[1]))

    @property
    def font_px(self) -> float:
        return _to_pixels(self.font_size)

    @property
    def scale(self) -> float:
        """Return the font size relative to the page's 13 pixels."""
        return self.font_px / USUAL_SIZE

    def width_px(self, natural: float) -> float:
        """Return the width in pixels, `natural` if none is set."""
        return _to_pixels(self.width) if self.width else natural

    def height_px(self, natural: float) -> float:
        """Return the height in pixels, `natural` if none is set."""
        return _to_pixels(self.height) if self.height else natural

    def title_of(self, own: str) -> str:
        """Return the title to draw above a figure with this title of its own, "" for none."""
        return {"no": "", "yes": own}.get(self.title, self.title)

    @property
    def families(self) -> tuple[str, ...]:
        """Return the fonts to draw with: the chosen one, then one with all characters of our figures."""
        own = FONTS.get(self.font, (self.font,))
        return (*own, *(name for name in FONTS["sans"] if name not in own))

    @staticmethod
    def read(params: Mapping[str, str]) -> Style:
        """Read a style from parameters; other keys are ignored.

        Raise `ValueError` that names the parameter.
        """
        preset = params.get("preset", "")
        if preset and preset not in PRESETS:
            close = difflib.get_close_matches(preset, PRESETS, 6, 0.5) or [*islice(PRESETS, 3), "icml2024-half"]
            raise ValueError(ERRORS("preset", preset=short_repr(preset), known=join_list(close, "or")))
        given: dict[str, Any] = dict(PRESETS.get(preset, {}))
        given |= {key: params[key] for key in PARAMETERS if key in params and key != "preset"}
        for key in ("xmin", "xmax", "ymin", "ymax"):
            if key in given:
                given[key] = _read_number(given[key], key)
        for start, field in OF_LINES.items():
            given[field] = tuple((key[len(start) :], text) for key, text in params.items() if key.startswith(start))
        return Style(**given)

    def query(self) -> dict[str, str]:
        """Return the shortest parameters that `read` turns back into this style, in a fixed order."""
        out: dict[str, str] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default or field.name == "mark":
                continue
            if start := next((start for start, name in OF_LINES.items() if name == field.name), ""):
                out |= {start + name: text for name, text in value}
            elif isinstance(value, bool):
                out[field.name] = "yes" if value else "no"
            else:
                out[field.name] = format_value(value)
        return out

    def _check_range(self, letter: str) -> None:
        low, high = getattr(self, f"{letter}min"), getattr(self, f"{letter}max")
        for name, value in ((f"{letter}min", low), (f"{letter}max", high)):
            if value is not None:
                object.__setattr__(self, name, _read_number(value, name))
        if low is not None and high is not None:
            if not low < high:
                raise ValueError(ERRORS("ends", axis=letter, low=low, high=high))
            check_distance(low, high, letter)
        if getattr(self, f"{letter}scale") == "log" and any(value is not None and value <= 0 for value in (low, high)):
            raise ValueError(ERRORS("log_ends", axis=letter))


def check_distance(low: float, high: float, letter: str) -> None:
    """Raise `ValueError` if two axis ends are too close for distinct tick labels."""
    if high - low <= NEAREST * max(abs(low), abs(high)):
        raise ValueError(ERRORS("near_ends", axis=letter, low=low, high=high))


def is_key(key: str) -> bool:
    """Return True for a key that belongs to a style."""
    return key in PARAMETERS or key.startswith(tuple(OF_LINES))


def format_one_line(value: Any) -> str:
    """Format a metadata value as one line of text; mappings as JSON."""
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(" ".join(words.split()))


def _read_length(given: Any, name: str, bounds: tuple[float, float]) -> str:
    if given in ("", None):
        return ""
    found = re.fullmatch(r"\s*([0-9]{1,5}(?:\.[0-9]{1,4})?|\.[0-9]{1,4})\s*([a-z]{0,3})\s*", str(given).lower())
    if isinstance(given, bool) or not found or (found[2] and found[2] not in UNITS):
        raise ValueError(ERRORS("length", name=name, given=short_repr(given)))
    unit = found[2] or "px"
    pixels = float(found[1]) * UNITS[unit]
    low, high = (bound / UNITS[unit] for bound in bounds)
    if not bounds[0] <= pixels <= bounds[1]:
        raise ValueError(ERRORS("length_range", name=name, low=low, high=high, unit=unit, given=short_repr(given)))
    return f"{float(found[1]):.9g}{unit}"


def _to_pixels(length: str) -> float:
    return float(length[:-2]) * UNITS[length[-2:]]


def _read_font(name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9 .+_-]{0,59}", name.strip()):
        raise ValueError(ERRORS("font", fonts=join_list([*FONTS], "or"), given=short_repr(name)))
    family = name.strip()
    if family.lower() in FONTS:
        return family.lower()
    known = installed_fonts()
    if known and family.lower() not in known:
        raise ValueError(ERRORS("no_font", fonts=join_list([*FONTS], "or"), given=short_repr(family)))
    return known.get(family.lower(), family)


def installed_fonts() -> dict[str, str]:
    """Return {lower-case name: name} of the fonts Matplotlib can use; empty without Matplotlib."""
    try:
        load_matplotlib()
        from matplotlib.font_manager import fontManager
    except ImportError:
        return {}
    return {str(entry.name).lower(): str(entry.name) for entry in fontManager.ttflist}


def _read_option(value: Any, name: str, options: tuple[str, ...]) -> None:
    if value not in options:
        known = join_list([option for option in options if option], "or")
        raise ValueError(ERRORS("option", name=name, options=known, given=short_repr(value)))


def _read_switch(value: Any, name: str) -> bool:
    word = str(value).lower()
    if word not in YES + NO:
        raise ValueError(ERRORS("switch", name=name, given=short_repr(value)))
    return word in YES


def _read_title(value: Any, name: str, usual: str) -> str:
    words = str(value).strip()
    if not words:
        return usual
    if words.lower() in NO:
        return "no"
    if words.lower() in YES:
        return "yes"
    if len(words) > LONGEST_TITLE:
        raise ValueError(ERRORS("long_title", name=name, most=LONGEST_TITLE, count=len(words)))
    _require_one_line(words, name)
    return words


def _read_colour(value: Any, name: str) -> str:
    word = str(value).strip().upper()
    if not re.fullmatch(r"#[0-9A-F]{6}", word):
        raise ValueError(ERRORS("colour", name=name, given=short_repr(value)))
    return word


def _read_of_lines(given: Any, what: str, read: Callable[[Any, str], str]) -> tuple[tuple[str, str], ...]:
    pairs = sorted(dict(given).items())
    if len(pairs) > MOST_LABELS:
        raise ValueError(ERRORS("many_lines", most=MOST_LABELS, count=len(pairs)))
    return tuple((name, read(value, ERRORS(f"of_line.{what}", name=short_repr(name)))) for name, value in pairs)


def _require_one_line(words: str, what: str) -> None:
    """Raise `ValueError` for a text with line breaks, control characters or direction marks."""
    for sign in words:
        if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in DIRECTIONS:
            raise ValueError(ERRORS("one_line", name=what, sign=f"U+{ord(sign):04X}"))


def _read_dpi(value: Any) -> int:
    digits = str(value).strip()
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not DPIS[0] <= int(digits) <= DPIS[1]:
        raise ValueError(ERRORS("dpi", low=DPIS[0], high=DPIS[1], given=short_repr(value)))
    return int(digits)


def _read_number(given: Any, name: str) -> float | None:
    """Read a number as users write it, with a hyphen or a minus sign; None if empty."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return None
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise ValueError(ERRORS("number", name=name, given=short_repr(given)))
    word = str(given).strip().replace("−", "-")
    try:
        value = parse_number(word.removeprefix("-"), "tokens") if isinstance(given, str) else abs(float(given))
    except ValueError:
        raise ValueError(ERRORS("number", name=name, given=short_repr(given))) from None
    if not math.isfinite(value) or value > 1e30:
        raise ValueError(ERRORS("large_number", name=name, given=short_repr(given)))
    return -value if word.startswith("-") else value


def _read_labels(given: Any) -> tuple[tuple[str, str], ...]:
    pairs: tuple[tuple[str, str], ...] = tuple(sorted(dict(given).items()))
    if len(pairs) > MOST_LABELS:
        raise ValueError(ERRORS("many_labels", most=MOST_LABELS, count=len(pairs)))
    for name, label in pairs:
        what = ERRORS("of_line.label", name=short_repr(name))
        if not isinstance(label, str) or len(label) > LONGEST_LABEL or not label.strip():
            raise ValueError(ERRORS("label", name=what, most=LONGEST_LABEL, given=short_repr(label)))
        _require_one_line(label, what)
    return pairs
