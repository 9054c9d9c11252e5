"""Numbers as the screen shows them: four significant digits, token counts in k and M."""

from __future__ import annotations

import math

from rope_viz.texts.languages import current_language, read_entries


def format_tokens(value: float) -> str:
    """Format a number of tokens: 4096 is 4k, 131072 is 128k, 1048576 is 1M."""
    if math.isinf(value):
        return "∞"
    if value >= 1e13:
        return format_number(value)
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{int(value) // size}{unit}"
    if value >= 10_000_000:
        return _format_large(value)
    return f"{value:,.0f}" if value >= 1000 else format_number(value)


def format_wavelength(value: float) -> str:
    """Format as `format_tokens`, but with four significant digits from a million on."""
    return _format_large(value) if 1e6 <= value < 1e13 else format_tokens(value)


def _format_large(value: float) -> str:
    """Format with four significant digits and a word: a million, or what the language counts in."""
    parts = {"millions": value / 1e6, "myriads": value / 1e4, "hundred_millions": value / 1e8}
    return _read("large" if value < 1e8 else "larger").format(**parts)


def _read(key: str) -> str:
    return read_entries("numbers", current_language())[key]


def format_number(value: float) -> str:
    """Format with four significant digits; powers of ten only below 10⁻⁴ and from 10⁶."""
    if not math.isfinite(value):
        return _read("undefined") if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}·10{format_exponent(int(exponent))}"


def format_brief(value: float) -> str:
    """Format with two significant digits."""
    return format_number(float(f"{value:.2g}"))


def format_exponent(exponent: int) -> str:
    """Format a whole number in superscript digits."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def format_signed(value: float) -> str:
    """Format with a sign and three decimals; what rounds to zero has no sign."""
    text = f"{value:+.3f}"
    return text.replace("-", "−") if float(text) else text[1:]


def format_percent(share: float) -> str:
    """Format a share in per cent, whole from 1 % on, with two significant digits below."""
    cent = 100.0 * share
    return f"{cent:.0f} %" if cent >= 1.0 or not cent else f"{format_number(float(f'{cent:.2g}'))} %"


def format_share(share: float) -> str:
    """Format a share in whole per cent; never 100 % for less, nor 0 % for more."""
    if 0.0 < share < 0.005:
        return _read("under_percent")
    if 0.995 <= share < 1.0:
        return _read("over_percent")
    return f"{share:.0%}".replace("%", " %")
