"""Numbers as a sentence writes them, for the sentences whose numbers are still parsed."""

import re

from tests.figures.specs import *  # noqa: F403

SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"−?-?\d[\d,]*(?:\.\d+)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?:[kM](?!\w)| million)?"


def value(text):
    """A number as the sentences write it: 54,410, 128k, 45.12 million, 1.2·10⁻⁷."""
    text = text.replace(",", "").replace("−", "-")
    for unit, size in (("k", 1024.0), ("M", 1048576.0), (" million", 1e6)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    mantissa, _, exponent = text.partition("·10")
    return float(mantissa) * 10.0 ** int(exponent.translate(SUPERSCRIPT) or 0)


def found(pattern, text):
    """The numbers at each # of a pattern, which must fit all of the text."""
    match = re.fullmatch(pattern.replace("#", f"({NUMBER})"), text)
    assert match, f"{pattern!r} does not fit {text!r}"
    return [None if group is None else value(group) for group in match.groups()]
