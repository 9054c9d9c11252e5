"""Colours of a file: light, dark, transparent, and grey without loss of information."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rope_viz.figures import theme

RGB = re.compile(r"rgba?\(\s*([\d.]+)\s*,\s*([\d.]+)\s*,\s*([\d.]+)\s*(?:,\s*([\d.]+)\s*)?\)")
HEX = re.compile(r"#[0-9A-Fa-f]{6}")
WHOLE = re.compile(rf"#[0-9A-Fa-f]{{6}}(?:[0-9A-Fa-f]{{2}})?|{RGB.pattern}")
IN_TEXT = re.compile(r"(color:\s*)([^;\"']+)")
DATA = ("x", "y", "z", "customdata", "ticktext", "tickvals")
CLEAR = "#FFFFFF00"
NAMES = {"white": "#FFFFFF", "black": "#000000", "none": CLEAR, "transparent": CLEAR}

Colour = tuple[float, float, float, float]
Recolour = Callable[[str], str]

# Greys for the palette's colours. Dashes distinguish lines, brightness distinguishes ranges.
INKS = {theme.PLAIN: "#7A7A7A", theme.CURRENT: "#000000", theme.TEXT: "#1A1A1A", theme.RULE: "#6E6E6E"}
INKS |= dict(zip(theme.FURTHER, ("#2E2E2E", "#484848", "#5E5E5E", "#3A3A3A"), strict=False))
TINTS = dict(zip(theme.BAND_COLOURS, ("#00000008", "#0000001C", "#0000002A", "#00000014", "#00000038"), strict=True))
FALLING = [[0.0, "#FFFFFF"], [1.0, "#101010"]]
RISING = [[0.0, "#141414"], [0.5, "#8C8C8C"], [1.0, "#FAFAFA"]]


def parse_rgba(name: str) -> Colour:
    """Return a colour as four shares from #RRGGBB, #RRGGBBAA, rgb() or rgba(); raise `ValueError` for others."""
    name = NAMES.get(name, name)
    if re.fullmatch(r"#[0-9A-Fa-f]{6}([0-9A-Fa-f]{2})?", name):
        red, green, blue, alpha = (int(name[i : i + 2] or "FF", 16) / 255 for i in (1, 3, 5, 7))
        return red, green, blue, alpha
    found = RGB.fullmatch(name)
    if found is None:
        raise ValueError(f"a figure's colour must be #RRGGBB or rgb(…), got {name!r}")
    red, green, blue = (min(float(part) / 255, 1.0) for part in found.groups()[:3])
    return red, green, blue, float(found[4] or 1)


def ramp(scale: Sequence[Sequence[Any]], share: Any) -> Any:
    """Return the colours (…, 4) of values from 0 to 1 on a colour scale, transparent for NaN."""
    at = np.array([float(stop) for stop, _ in scale])
    stops = np.array([parse_rgba(name) for _, name in scale])
    share = np.asarray(share, dtype=float)
    known = np.clip(np.nan_to_num(share), 0.0, 1.0)
    # Two stops at one position are a step; the second applies from there on.
    right = np.clip(np.searchsorted(at, known, side="right"), 1, len(at) - 1)
    wide = at[right] - at[right - 1]
    part = np.where(wide > 0, (known - at[right - 1]) / np.where(wide > 0, wide, 1.0), 1.0)[..., None]
    out = stops[right - 1] * (1 - part) + stops[right] * part
    out[np.isnan(share)] = 0.0
    return out


def recolour(value: Any, change: Recolour) -> Any:
    """Change every colour in plain data; other texts and data arrays stay unchanged."""
    if isinstance(value, str):
        if WHOLE.fullmatch(value):
            return change(value)
        return IN_TEXT.sub(lambda found: found[1] + change(found[2]), value) if "<span" in value else value
    if isinstance(value, Mapping):
        # A list of texts is data; a single text may contain markup.
        skipped = {*DATA, *(["text"] if not isinstance(value.get("text"), str) else [])}
        return {key: item if key in skipped else recolour(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [recolour(item, change) for item in value]
    return value


def to_dark(name: str) -> str:
    """Replace every colour in a text by its dark variant, if it has one."""
    return HEX.sub(lambda found: theme.DARK.get(found[0].upper(), found[0]), name)


def to_grey(name: str) -> str:
    """Convert the colours in a text to grey: those of the palette by table, others by luminance."""

    if WHOLE.fullmatch(name) and len(name) == 9 and int(name[7:], 16) < 0x40 and name[:7].upper() in TINTS:
        return TINTS[name[:7].upper()]

    def replace_hex(found: re.Match[str]) -> str:
        known = found[0].upper()
        if known in INKS:
            return INKS[known]
        red, green, blue, _ = parse_rgba(known)
        level = round(255 * (0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2) ** (1 / 2.2))
        return f"#{level:02X}{level:02X}{level:02X}"

    def replace_rgb(found: re.Match[str]) -> str:
        red, green, blue = (round(float(part)) for part in found.groups()[:3])
        return replace_hex(re.match(".*", f"#{red:02X}{green:02X}{blue:02X}"))  # type: ignore[arg-type]

    return RGB.sub(replace_rgb, HEX.sub(replace_hex, name))


def invert_greys(name: str) -> str:
    """Invert the greys in a text for a dark background."""

    def invert(found: re.Match[str]) -> str:
        level = round(232 - int(found[0][1:3], 16) * (232 - 17) / 255)
        return f"#{level:02X}{level:02X}{level:02X}"

    return HEX.sub(invert, name)


def grey_pair(name: str) -> tuple[str, str]:
    """Return a palette colour as grey on a light background, and on a dark one."""
    return to_grey(name), invert_greys(to_grey(name))


def grey_scale(scale: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return a scale in greys of monotonic lightness: white to dark if it is one-sided, else dark to light.

    Steps stay steps, each with its own grey.
    """
    at = [float(stop) for stop, _ in scale]
    names = [str(name) for _, name in scale]
    kinds = list(dict.fromkeys(names))
    if len(set(at)) < len(at) and len(kinds) == len(at) // 2:
        levels = np.linspace(90, 225, len(kinds)).round().astype(int)
        own = {name: f"#{level:02X}{level:02X}{level:02X}" for name, level in zip(kinds, levels, strict=True)}
        return [[stop, own[name]] for stop, name in zip(at, names, strict=True)]
    light = [sum(parse_rgba(to_grey(name))[:3]) for name in names]
    two_sided = light[0] < max(light) > light[-1] or light[0] > min(light) < light[-1]
    return [list(stop) for stop in (RISING if two_sided else FALLING)]
