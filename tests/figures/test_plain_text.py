"""Text from a link or a file is shown literally: its Markdown has no effect."""

import re

import pytest

from rope_viz.figures.words import plain

HOSTILE = [
    "[Sign in](https://evil.example/x)",
    "![x](https://evil.example/x.png)",
    "https://evil.example",
    "www.evil.example",
    "me@evil.example",
    "<img src=x onerror=alert(1)>",
    "**bold** _it_ `code` ~~gone~~",
    "# heading",
    "- list",
    "1. list",
    "+ list",
    "> quote",
    "$x^2$",
    ":red[x] :material/home:",
    "a | b",
    "&lt;b&gt;",
    "a\n\n# b",
    "\\[x](y)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_is_left(text):
    escaped = plain(text)
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]<>$~|#&]|(?<!\\):\w|://|www\.|\w@\w|^[-+]|^\d\.|\n", escaped)


def test_ordinary_sentence_is_unchanged():
    sentence = "Not possible: rotary_dim must be even, got 9 (of 128).".replace("rotary_dim", "it")
    assert plain(sentence) == sentence
