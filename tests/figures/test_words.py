"""Numbers in sentences that are still parsed."""

import re

from rope_viz.texts.numbers import format_number, format_tokens
from tests.figures.wording import NUMBER, near, value


def test_a_sentence_is_read_as_it_is_written():
    for number in (6.28, 54_410, 131_072, 1 << 20, 45_120_000.0, 1e-9, 6.28e30, 0.5, 999_999):
        for text in (format_number(number), format_tokens(number)):
            assert value(re.fullmatch(NUMBER, text)[0]) == near(number)
