"""Texts that are almost JSON are repaired for commas, comments and quotes, and for nothing else."""

import json

import pytest
from hypothesis import given, strategies

from rope_viz.models.formats.json_repair import Fix, describe_fixes, drop_emptied_lines, read_lenient, repair_syntax
from rope_viz.models.formats.json_source import read_raw
from rope_viz.storage.limits import REPAIRED_CHARACTERS

# text -> (what it holds, what was repaired): the values are those that a reader of JSON5 or HJSON would take
REPAIRED = {
    "a trailing comma": ('{"a": 1,}', {"a": 1}, ["comma"]),
    "a comma before a bracket": ('{"a": [1, 2, ],\n}', {"a": [1, 2]}, ["comma", "comma"]),
    "a comma before a comment": ('{"a": 1, // last\n}', {"a": 1}, ["comma", "comment"]),
    "a line comment": ('// mine\n{"a": 1}', {"a": 1}, ["comment"]),
    "a hash comment": ('{"a": 1 # one\n}', {"a": 1}, ["comment"]),
    "a block comment": ('{/* a,\n b */"a": 1}', {"a": 1}, ["comment"]),
    "windows lines": ('{\r\n"a": 1, # one\r\n}\r\n', {"a": 1}, ["comma", "comment"]),
    "single quotes": ("{'a': 'b'}", {"a": "b"}, ["quotes", "quotes"]),
    "an apostrophe": (r"{'a': 'it\'s'}", {"a": "it's"}, ["quotes", "quotes"]),
    "double quotes in single": ("{'a': 'say \"b\"'}", {"a": 'say "b"'}, ["quotes", "quotes"]),
    "an escape in single quotes": (r"{'a': 'b\n\u0041\\'}", {"a": "b\nA\\"}, ["quotes", "quotes"]),
    "typographic quotes": ("{\u201ca\u201d: \u201eb\u201c, \u2018c\u2019: 1}", {"a": "b", "c": 1}, ["quotes"] * 3),
    "signs inside strings": (
        '{"url": "http://x/*y*/#z", "b": "1, }", "c": "it\'s \u201cso\u201d",}',
        {"url": "http://x/*y*/#z", "b": "1, }", "c": "it's \u201cso\u201d"},
        ["comma"],
    ),
    "an escaped quote": (r'{"a": "b\" // c",}', {"a": 'b" // c'}, ["comma"]),
    "infinity": ('{"time_step_limit": [0.0, Infinity],}', {"time_step_limit": [0.0, float("inf")]}, ["comma"]),
    "a byte order mark": ('\ufeff{"a": 1,}', {"a": 1}, ["comma"]),
}
REFUSED = {
    "an unclosed brace": '{"a": 1,',
    "an unclosed string": '{"a": "b, }',
    "an unclosed comment": '{"a": 1} /* b',
    "html": "<html><!-- // --></html>",
    "yaml": "# mine\nmodel_type: llama\n",
    "only a comment": "// a",
    "a leading comma": '{,"a": 1}',
    "only a comma": "{,}",
    "two commas": '{"a": [1,,]}',
    "a missing comma": '{"a": 1 // one\n "b": 2}',
    "numbers around a comment": '{"a": 1/**/2}',
    "python's literals": "{'a': None}",
    "an unquoted key": "{a: 1,}",
    "mixed quotes": "{'a\": 1}",
    "a depth bomb": "[" * 100_000 + ",",
    "a deep object": '{"a":' * 500 + "1," + "}" * 500,
    "a list": "[1,]",
    "huge": '{"a": "' + "x" * REPAIRED_CHARACTERS + '",}',
}


@pytest.mark.parametrize("name", REPAIRED)
def test_commas_comments_and_quotes_are_repaired(name):
    text, holds, kinds = REPAIRED[name]
    with pytest.raises(ValueError, match="it is not JSON"):
        read_raw(text)
    raw, fixes = read_lenient(text)
    assert raw.config == holds
    assert [fix.kind for fix in fixes] == kinds
    assert read_lenient(text.encode())[0].config == holds


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused_with_its_own_reason(name):
    text = REFUSED[name]
    with pytest.raises(ValueError, match=r"\w+ \w+") as strict:
        read_raw(text)
    with pytest.raises(ValueError, match=r"\w+ \w+") as lenient:
        read_lenient(text)
    assert str(lenient.value) == str(strict.value)


def test_lines_and_columns_are_those_of_the_file():
    text = "{\n  'a': 1, # one\n  \"b\": [2,]\n}"
    assert repair_syntax(text)[1] == (*(Fix("quotes", 2, 3), Fix("comment", 2, 11), Fix("comma", 3, 10)),)
    assert describe_fixes(repair_syntax(text)[1]) == (
        "1 trailing comma (line 3), 1 comment (line 2), 1 text without double quotes (line 2)"
    )


def test_repeated_keys_are_still_named():
    raw, _ = read_lenient('{"a": 1, "a": 2,}')
    assert (raw.config, raw.repeated) == ({"a": 2}, (("a",),))


def test_lines_that_held_a_comment_are_dropped():
    text = '// mine\n{\n  /* two\n  lines */\n\n  "a": 1\n}'
    assert drop_emptied_lines(text, repair_syntax(text)[0]) == '{\n\n  "a": 1\n}'


# Lone surrogates and NUL are replaced where JSON is decoded (texts/outside_text.py).
LETTERS = strategies.characters(exclude_categories=["Cs"], exclude_characters="\0")
VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-9, 10**6) | strategies.text(LETTERS, max_size=8),
    lambda inner: (
        strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(LETTERS, max_size=4), inner)
    ),
    max_leaves=12,
)


@given(strategies.dictionaries(strategies.text(LETTERS, max_size=6), VALUES, max_size=5), strategies.integers(0, 3))
def test_json_is_left_as_it_is(config, indent):
    text = json.dumps(config, indent=indent or None, ensure_ascii=bool(indent % 2))
    assert repair_syntax(text) == (text, ())
    raw, fixes = read_lenient(text.replace("{", "{ /* # ' */ ", 1) + " // end")
    assert raw.config == config
    assert [fix.kind for fix in fixes] == ["comment", "comment"]
