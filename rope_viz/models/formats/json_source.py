"""A config.json as bytes: what it holds, and at which line each key is.

Python's JSON reader takes NaN, Infinity and repeated keys, and so does transformers; it does not take a byte order
mark, which is read here and named. Published configs have Infinity outside RoPE (time_step_limit).
"""

from __future__ import annotations

import json
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rope_viz.embedding.spec import short_repr
from rope_viz.models import TEXTS
from rope_viz.models.formats import FILE, describe_note
from rope_viz.models.formats.argument_text import parse_arguments
from rope_viz.models.formats.gguf import is_gguf, read_header, summarise_header
from rope_viz.models.formats.gguf_config import (
    config_from_gguf,
    describe_gguf,
    is_gguf_summary,
    is_whole_source,
    list_unread,
)
from rope_viz.models.formats.gguf_keys import quote_keys
from rope_viz.models.formats.megatron_config import config_from_megatron, find_arguments
from rope_viz.models.formats.mistral_params import config_from_mistral, is_mistral_params
from rope_viz.storage.decode_json import is_deeper
from rope_viz.storage.limits import CONFIG_BYTES, CONFIG_FILE_BYTES, JSON_LEVELS, PATH_CHARACTERS, SHORT_LIST_BYTES
from rope_viz.storage.read_file import read_limited
from rope_viz.texts.outside_text import clean_json


def to_config(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config with the keys of transformers; the object itself where it is none of the other files.

    Raises `ValueError` where the file lacks what a config needs.
    """
    if is_gguf_summary(found):
        return config_from_gguf(found["gguf"])
    if is_mistral_params(found):
        return config_from_mistral(found)
    arguments = find_arguments(found)
    return found if arguments is None else config_from_megatron(arguments)


def read_other_text(text: str) -> Mapping[str, Any] | None:
    """Return the config of a text that is no JSON but has Megatron's arguments, as flags or YAML; None for others."""
    arguments = find_arguments(parse_arguments(text))
    return None if arguments is None else config_from_megatron(arguments)


def source_file(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is known of the GGUF file that a config was made from; {} for others, and for a broken entry."""
    found = config.get(FILE)
    return found if isinstance(found, Mapping) and is_whole_source(found) else {}


def refuse_unread(config: Mapping[str, Any], part: str) -> None:
    """Raise `ValueError` where a GGUF file has keys under "rope" or "attention" that were not read."""
    names = list_unread(source_file(config), part)
    if names:
        raise ValueError(TEXTS(f"gguf.unknown.{part}", names=quote_keys(names)))


def names_unread_keys(config: Mapping[str, Any]) -> bool:
    """Return whether a config was made from a GGUF file with keys that were not read or that llama.cpp does not use."""
    source = source_file(config)
    return bool(source.get("unread") or source.get("ignored"))


def describe_source(config: Mapping[str, Any]) -> str:
    """Return sentences on the file that a config was made from, and on what was not read; "" for a config.json."""
    source = source_file(config)
    if source:
        return describe_gguf(source)
    found = config.get(FILE)
    return describe_note(found) if isinstance(found, Mapping) else ""


Path: TypeAlias = tuple[str, ...]

LONG_LISTS = frozenset(
    """
        id2label label2id ignore ignored_layers modules_to_not_convert exclude exclude_modules quantized_layers
        layer_quant_config extra_config targets llm_int8_skip_modules block_name_to_quantize
        modules_in_block_to_quantize
    """.split()
)
"""Keys of label lists and of lists of layers that are quantised, or are not. Nothing here reads them."""
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
# What a failed download leaves in place of a config, by how it begins.
OTHERS = {"version https://git-lfs": "lfs", "<": "page"}
KEY_OR_BRACKET = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*:)?|[\[\]{}]', re.DOTALL)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class NotJsonError(ValueError):
    """A text that is not JSON; `line` and `column` count from 1."""

    def __init__(self, sentence: str, line: int, column: int) -> None:
        super().__init__(sentence)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Raw:
    """The object that a text holds, and the text.

    `repeated` are the paths of keys that occur twice; `marked` is true if the text starts with a byte order mark.
    `left_out` names the keys whose long lists are empty in the object.
    """

    config: Mapping[str, Any]
    text: str
    repeated: tuple[Path, ...] = ()
    marked: bool = False
    left_out: tuple[str, ...] = ()


def read_raw(data: str | bytes, *, skip_lists: bool = False) -> Raw:
    """Read the object of a JSON text. Raises `ValueError` with one sentence that tells what to do.

    It is a `NotJsonError` where a place in the text breaks the rules of JSON. With `skip_lists`, long lists of labels
    and layers are read as empty; they never count towards `CONFIG_BYTES`. Lone surrogates and NUL are replaced, also in
    the text that is returned: RoPE is still computed from a config with such a letter.
    """
    if data[:4] == b"GGUF":
        raise ValueError(TEXTS("json_source.gguf"))
    if len(data) > CONFIG_FILE_BYTES:
        raise ValueError(TEXTS("json_source.large", size=CONFIG_FILE_BYTES >> 20))
    text = decode_utf8(data) if isinstance(data, bytes) else data
    marked = text.startswith("\ufeff")
    text = clean_json(text.removeprefix("\ufeff"))
    left_out: list[str] = []
    if len(text) > (SHORT_LIST_BYTES if skip_lists else CONFIG_BYTES):
        lists = find_long_lists(text)
        if len(data) - sum(stop - start for _, start, stop in lists) > CONFIG_BYTES:
            raise ValueError(TEXTS("json_source.large", size=CONFIG_BYTES >> 20))
        if skip_lists:
            text = empty_lists(text, lists)
            left_out = [name for name, _, _ in lists]
    if not text.strip():
        raise ValueError(TEXTS("json_source.empty"))
    twice: dict[int, list[str]] = {}
    kept: list[dict[str, Any]] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice[id(found)] = [name for name, count in counts.items() if count > 1]
            kept.append(found)
        return found

    try:
        config = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        other = next((key for begin, key in OTHERS.items() if text.lstrip().startswith(begin)), None)
        if other is not None:
            raise ValueError(TEXTS(f"json_source.{other}")) from None
        found = read_other_text(text)
        if found is not None:
            # It has none of the keys of the config, so it has no lines to name.
            return Raw(found, "")
        sentence = TEXTS("json_source.not_json", problem=describe_json_error(text, error))
        raise NotJsonError(sentence, error.lineno, error.colno) from None
    except RecursionError:
        raise ValueError(TEXTS("json_source.deep")) from None
    except ValueError:
        # A number of more digits than Python converts.
        raise ValueError(TEXTS("json_source.long_number")) from None
    if not isinstance(config, dict):
        raise ValueError(TEXTS("json_source.no_object", config=short_repr(config)))
    if is_deeper(config, JSON_LEVELS):
        raise ValueError(TEXTS("json_source.levels", deepest=JSON_LEVELS))
    return Raw(
        to_config(config), text, tuple(find_repeated_keys(config, twice)) if twice else (), marked, tuple(left_out)
    )


def read_file(path: pathlib.Path) -> Raw:
    """Read a config.json, or the header of a GGUF file. Raises `ValueError` as `read_raw` does, and `OSError`."""
    return read_raw(read_content(path))


def read_content(path: pathlib.Path) -> bytes:
    """Return the bytes of a file; of a GGUF file its header as JSON.

    Raises `ValueError` for a broken GGUF file, and `OSError`, also for a file that is too large.
    """
    # Pipes and devices have no size to check, and nothing can be read from them twice.
    if path.is_file() and is_gguf(path):
        return json.dumps(summarise_header(read_header(path))).encode()
    return read_limited(path, CONFIG_FILE_BYTES)


def find_long_lists(text: str) -> list[tuple[str, int, int]]:
    """Return (key, start, stop) of every list or object under a known key that is longer than `SHORT_LIST_BYTES`."""
    found: list[tuple[str, int, int]] = []
    depth, key, begun = 0, "", (-1, 0)
    for token in KEY_OR_BRACKET.finditer(text):
        word, start = token.group(), token.start()
        if token.group(1) is not None:
            key = token.group(1)[1:-1] if token.group(2) else ""
        elif word in "[{":
            if begun[0] < 0 and key in LONG_LISTS:
                begun, name = (depth, start), key
            depth, key = depth + 1, ""
        else:
            depth -= 1
            if depth == begun[0]:
                if token.end() - begun[1] > SHORT_LIST_BYTES:
                    found.append((name, begun[1], token.end()))
                begun = (-1, 0)
    return found


def empty_lists(text: str, lists: Sequence[tuple[str, int, int]]) -> str:
    """Return the text with these lists and objects empty."""
    parts, done = [], 0
    for _, start, stop in lists:
        parts += [text[done : start + 1], text[stop - 1]]
        done = stop
    return "".join((*parts, text[done:]))


def decode_utf8(data: bytes) -> str:
    """Return the text of a UTF-8 file. Raises `ValueError` that says what the file may be instead."""
    if b"\x00" in data[:4096] or data[:2] in MARKS:
        unmarked = data[:2] in (b"{\x00", b"\x00{")
        kind = MARKS.get(data[:2]) or ("UTF-16" if unmarked else None)
        kind = "UTF-32" if kind and b"\x00\x00" in data[:8] else kind
        raise ValueError(TEXTS("json_source.coding" if kind else "json_source.no_text", kind=kind))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = data[error.start]
        brace = data.lstrip()[:1] == b"{"
        key = "json_source.byte" if brace else "json_source.no_text"
        raise ValueError(TEXTS(key, line=line, byte=shown)) from None


def describe_json_error(text: str, error: json.JSONDecodeError) -> str:
    """Return what is wrong with a text that is no JSON, and what to change."""
    message = error.msg.removesuffix(" at")
    shown = TEXTS.group("json_source.python").get(message, message)
    where, rest, before = (
        TEXTS("json_source.where", line=error.lineno, column=error.colno),
        text[error.pos :],
        text[: error.pos].rstrip(),
    )
    if rest.startswith(("//", "/*", "#")):
        return TEXTS("json_source.comment", where=where)
    if (before.endswith(",") and rest.lstrip()[:1] in ("}", "]")) or "trailing comma" in error.msg:
        return TEXTS("json_source.comma", where=where)
    if rest.startswith("'"):
        return TEXTS("json_source.single_quotes", where=where)
    if rest.startswith(("None", "True", "False")):
        return TEXTS("json_source.python_word", word=re.split("[^A-Za-z]", rest)[0], where=where)
    if not rest.strip() or error.msg.startswith("Unterminated string"):
        return TEXTS("json_source.cut_off", message=shown, where=where)
    if message == "Extra data":
        return TEXTS("json_source.extra", where=where)
    if rest[0] > "\x7f":
        return TEXTS("json_source.letter", message=shown, where=where, letter=rest[0], code=ord(rest[0]))
    return TEXTS("json_source.problem", message=shown, where=where)


def find_repeated_keys(part: Any, twice: Mapping[int, list[str]], path: Path = ()) -> Iterator[Path]:
    """Return the paths of keys that occur twice in one object."""
    waiting: list[tuple[Any, Path]] = [(part, path)]
    while waiting:
        part, path = waiting.pop()
        if isinstance(part, dict):
            yield from ((*path, name) for name in dict.fromkeys(twice.get(id(part), ())))
            waiting += [(inner, (*path, name)) for name, inner in reversed(part.items())]
        elif isinstance(part, list):
            waiting += [(inner, (*path, str(index))) for index, inner in enumerate(part)]


def find_key_lines(text: str) -> dict[str, tuple[int, int]]:
    """Return {path of a key, joined by dots: its line and column, from 1}; of a repeated key the last one.

    Paths of more than `PATH_CHARACTERS` characters are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    stack: list[list[Any]] = []
    line, start, last_break = 1, 0, -1
    tokens = list(TOKEN.finditer(text))
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        word = token.group()
        line += text.count("\n", start, token.start())
        # Searched from the last token on: a search to the start of a long line would take quadratic time.
        last_break = max(last_break, text.rfind("\n", start, token.start()))
        start = token.start()
        if word in ("{", "["):
            stack.append([word, 0])
        elif word in ("}", "]"):
            if stack:
                stack.pop()
        elif word == "," and stack and stack[-1][0] == "[":
            stack[-1][1] += 1
        elif after is not None and after.group() == ":" and stack and word.startswith('"'):
            stack[-1][1] = json.loads(word, strict=False)
            path = [str(key) for _, key in stack]
            if sum(map(len, path)) <= PATH_CHARACTERS:
                found[".".join(path)] = (line, token.start() - last_break)
    return found
