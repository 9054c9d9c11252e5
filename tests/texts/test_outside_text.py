"""Text from outside: what no output can hold is replaced once, what nothing shows is replaced where it is shown."""

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rope_viz.models.formats.json_source import read_raw
from rope_viz.storage.decode_json import decode_json
from rope_viz.storage.decode_toml import decode_toml
from rope_viz.studies.tensors import parse_header
from rope_viz.texts.outside_text import (
    BROKEN,
    HIDDEN,
    clean_json,
    clean_record,
    clean_text,
    clean_values,
    dump_printable,
    escape_hidden,
    printable,
)

LETTERS = '\ud800\udbff\udc00\udfff\0\x01\x1b\x7f\x85\x9f\u202e\u2066\ufffe\uffff\t\n\r"\\/u0dD8bfrθ😀\u2028'
TEXTS = some.text(some.one_of(some.sampled_from(LETTERS), some.characters()), max_size=12)
VALUES = some.recursive(
    some.one_of(TEXTS, some.integers(), some.none(), some.booleans()),
    lambda inner: some.one_of(some.lists(inner, max_size=4), some.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def clean(value):
    """Return a value of JSON with its texts cleaned, the slow and plain way."""
    if isinstance(value, str):
        return "".join("\ufffd" if letter == "\0" or 0xD800 <= ord(letter) < 0xE000 else letter for letter in value)
    if isinstance(value, dict):
        return {clean(key): clean(inner) for key, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value


def shown(value):
    """Return a value of JSON with its texts as they are shown."""
    if isinstance(value, dict):
        return {printable(key): shown(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shown(inner) for inner in value]
    return printable(value) if isinstance(value, str) else value


@given(VALUES)
def test_every_decoder_gives_clean_texts(value):
    # json.loads joins two escaped halves of a letter, which the plain way does not know.
    text = json.dumps(value)
    expected = clean(json.loads(text))
    assert clean_values(json.loads(text)) == expected
    assert decode_json(text, "no JSON") == decode_json(text.encode(), "no JSON") == expected
    assert json.loads(clean_json(text)) == expected
    raw = json.dumps(value, ensure_ascii=False)
    assert decode_json(raw, "no JSON") == clean(value)
    assert decode_json(raw.encode("utf-8", "surrogatepass"), "no JSON") == clean(value)
    config = {"model_type": "llama", "x": value}
    found = read_raw(json.dumps(config))
    assert dict(found.config) == clean(json.loads(json.dumps(config)))
    assert found.text.count("\n") == 0
    assert parse_header(json.dumps({"x": value}).encode()) == {"x": expected}


@given(VALUES)
def test_json_that_is_shown_hides_nothing(value):
    value = json.loads(json.dumps(value))
    for options in ({}, {"ensure_ascii": False}, {"indent": 2}):
        text = dump_printable(value, **options)
        assert HIDDEN.search(text) is None
        assert json.loads(text) == shown(value)
    data = escape_hidden(json.dumps(clean_values(value), ensure_ascii=False))
    assert HIDDEN.search(data) is None
    assert json.loads(data) == clean_values(value)


@given(TEXTS)
def test_a_printable_text_can_be_written_anywhere(text):
    out = printable(text)
    assert not HIDDEN.search(out)
    out.encode()
    assert printable(out) == out
    assert [sign for sign in out if sign in "\t\n"] == [sign for sign in text if sign in "\t\n"]
    cleaned = clean_text(text)
    assert not BROKEN.search(cleaned)
    assert len(cleaned) == len(text)
    cleaned.encode()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain θ 😀\t\n", "plain θ 😀\t\n"),
        ("one\r\ntwo\rthree", "one\ntwo\ufffdthree"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("exe.\u202egpj", "exe.\ufffdgpj"),
        ("a\u200db", "a\u200db"),
    ],
)
def test_what_is_shown(text, found):
    assert printable(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
        (r'"\u0000\u0001"', "\ufffd\x01"),
    ],
)
def test_escapes_are_read_as_json_reads_them(text, found):
    assert decode_json(text, "no JSON") == found


SURROGATES = [chr(code) for code in range(0xD800, 0xE000, 97)]
OTHERS = [chr(code) for code in range(0x10000) if HIDDEN.fullmatch(chr(code)) and not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("letter", [*SURROGATES, *OTHERS], ids=ascii)
def test_each_hidden_letter_is_found_in_json(letter):
    for ascii_only in (True, False):
        assert json.loads(dump_printable({letter: letter}, ensure_ascii=ascii_only)) == {"\ufffd": "\ufffd"}


def test_lines_of_a_cleaned_config_stay():
    raw = read_raw('{\n"a\\ud800": 1,\n"model_type": "x\\u0000"}')
    assert raw.text == '{\n"a\\ufffd": 1,\n"model_type": "x\\ufffd"}'
    assert dict(raw.config) == {"a\ufffd": 1, "model_type": "x\ufffd"}


def test_toml_is_cleaned():
    assert decode_toml('"a\\u0000" = ["\\u0000", {b = "\\u0000"}]') == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}]}
    with pytest.raises(ValueError, match="scalar"):
        decode_toml('a = "\\ud800"')


def test_a_line_of_the_log_is_printable():
    try:
        raise ValueError("\x1b[31m\ud800")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "%s failed", ("\x1b[2J",), sys.exc_info())
    assert clean_record(record)
    line = logging.Formatter().format(record)
    assert not HIDDEN.search(line)
    assert "\ufffd[2J failed" in line
