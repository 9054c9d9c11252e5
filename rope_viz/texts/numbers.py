"""Numbers as the screen shows them: four significant digits, token counts in k and M."""

from __future__ import annotations

import math


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
        return f"{value / 1e6:.4g} million"
    return f"{value:,.0f}" if value >= 1000 else format_number(value)


def format_wavelength(value: float) -> str:
    """Format as `format_tokens`, but with four significant digits from a million on."""
    return f"{value / 1e6:.4g} million" if 1e6 <= value < 1e13 else format_tokens(value)


def format_number(value: float) -> str:
    """Format with four significant digits; powers of ten only below 10⁻⁴ and from 10⁶."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞" if value > 0 else "−∞"
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


def format_percent(share: float) -> str:
    """Format a share in per cent, whole from 1 % on, with two significant digits below."""
    cent = 100.0 * share
    return f"{cent:.0f} %" if cent >= 1.0 or not cent else f"{format_number(float(f'{cent:.2g}'))} %"


def format_share(share: float) -> str:
    """Format a share in whole per cent; never 100 % for less, nor 0 % for more."""
    if 0.0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1.0:
        return "over 99 %"
    return f"{share:.0%}".replace("%", " %")
