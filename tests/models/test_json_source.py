"""Any bytes are a config or raise a clear error; oddities are reported."""

import json

import pytest

from rope_viz.advice.lint.check_text import check_text
from rope_viz.cli.main import main
from rope_viz.models.formats.json_source import find_key_lines, read_raw
from rope_viz.storage.limits import CONFIG_BYTES, CONFIG_FILE_BYTES, SHORT_LIST_BYTES
from tests.offenders import for_each

GOOD = {
    "model_type": "llama",
    "_name_or_path": "Élan/modèle",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 8192,
    "rope_theta": 500000.0,
}
TEXT = json.dumps(GOOD, ensure_ascii=False, indent=1)

# (bytes, what the sentence says): none of these is a config
BROKEN = {
    "empty": (b"", "empty"),
    "spaces": (b" \n\t ", "empty"),
    "a mark alone": (b"\xef\xbb\xbf", "empty"),
    "cut off after a brace": (b"{", "truncated"),
    "cut off in a string": (TEXT.encode()[:40], "truncated"),
    "cut off after a comma": (TEXT[: TEXT.index('"hidden')].encode(), "truncated"),
    "cut off in the middle": (TEXT.encode()[: len(TEXT) // 2], "it is not JSON"),
    "a line comment": (TEXT.replace('"hidden', '// width\n"hidden').encode(), "a comment at line"),
    "a block comment": (b"/* mine */" + TEXT.encode(), "a comment at line 1"),
    "a hash comment": (b"# mine\n" + TEXT.encode(), "a comment at line 1"),
    "a trailing comma": (TEXT.replace("500000.0", "500000.0,").encode(), "a comma before the closing bracket"),
    "single quotes": (TEXT.replace('"', "'").encode(), "single quotes"),
    "python's literals": (TEXT.replace("500000.0", "None").encode(), "JSON uses null, true and false"),
    "python's true": (TEXT.replace("500000.0", "True").encode(), "JSON uses null, true and false"),
    "latin-1": (TEXT.encode("latin-1"), "save it as UTF-8"),
    "utf-16": (TEXT.encode("utf-16"), "UTF-16"),
    "utf-16 without a mark": (TEXT.encode("utf-16-le"), "text in UTF-16"),
    "utf-16 the other way round": (TEXT.encode("utf-16-be"), "text in UTF-16"),
    "utf-32": (TEXT.encode("utf-32"), "text in UTF-32"),
    "binary": (bytes(range(256)), "not text in UTF-8"),
    "safetensors": (b"\x10\x00\x00\x00\x00\x00\x00\x00{}" + b"\x00" * 64, "not text in UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00", "not text in UTF-8"),
    "a list": (b"[]", "must be an object"),
    "a list of configs": (b"[" + TEXT.encode() + b"]", "must be an object"),
    "a number": (b"3", "must be an object"),
    "a string": (b'"llama"', "must be an object"),
    "null": (b"null", "must be an object"),
    "true": (b"true", "must be an object"),
    "not a number": (b"NaN", "must be an object"),
    "two objects": (TEXT.encode() + b"\n" + TEXT.encode(), "text after the end of the object, at line 9"),
    "yaml": (b"model_type: llama\nhidden_size: 4096\n", "it is not JSON"),
    "html": (b"<!DOCTYPE html><html></html>", "a web page"),
    "a pointer of git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "git lfs pull"),
    "too deep": (b"[" * 100_000, "nested too deeply"),
    "objects too deep": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "lists that Python still reads": (b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", "nested more than 100 levels"),
    "objects that Python still reads": (b'{"a": ' * 500 + b"1" + b"}" * 500, "nested more than 100 levels"),
    "curly quotes": ("{\u201cmodel_type\u201d: 1}".encode(), "U+201C"),
    "a number of 5000 digits": (b'{"hidden_size": ' + b"1" * 5000 + b"}", "number that is too long"),
    "huge": (b'{"a": "' + b"x" * CONFIG_BYTES + b'"}', "larger than 4 MiB"),
    "an unquoted key": (b"{model_type: 1}", "it is not JSON"),
    "a control character": (b'{"model_type": "lla\nma"}', "it is not JSON"),
    "a missing comma": (b'{"model_type": "llama" "hidden_size": 1}', "it is not JSON"),
    "hexadecimal": (b'{"hidden_size": 0x1000}', "it is not JSON"),
    "a number with a plus": (b'{"hidden_size": +4096}', "it is not JSON"),
    "a number with spaces": (b'{"hidden_size": 4 096}', "it is not JSON"),
}


@for_each(list(BROKEN))
def test_bytes_that_are_no_config_raise_a_clear_error(name):
    data, said = BROKEN[name]
    with pytest.raises(ValueError, match=r"\w+ \w+") as caught:
        check_text(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", BROKEN)
def test_check_exits_with_3_for_bytes_that_are_no_config(capsys, tmp_path, name):
    path = tmp_path / "config.json"
    path.write_bytes(BROKEN[name][0])
    assert main(["check", str(path)]) == 3
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (1, "")
    assert out.startswith(f"{path}: error: ")


def test_byte_order_mark_is_read_and_reported():
    raw, found = check_text(b"\xef\xbb\xbf" + TEXT.encode())
    assert raw.config == GOOD
    assert [(one.rule, one.severity) for one in found] == [("byte-order-mark", "error")]
    assert check_text(TEXT.encode())[1] == []


def test_repeated_key_is_named_with_the_value_that_counts():
    text = TEXT[:-2] + ',\n "hidden_size": 2048\n}'
    raw, found = check_text(text.encode())
    (one,) = [finding for finding in found if finding.rule == "repeated-keys"]
    assert (one.severity, one.key) == ("warning", "hidden_size")
    assert "The last one counts, 2048" in one.message
    assert raw.config["hidden_size"] == 2048


def test_repeated_nested_key_has_its_path():
    text = '{"model_type": "llava", "text_config": {"model_type": "llama", "rope_theta": 1e4, "rope_theta": 1e6}}'
    assert read_raw(text).repeated == (("text_config", "rope_theta"),)
    assert read_raw('{"a": [{"b": 1, "b": 1, "b": 2}]}').repeated == (("a", "0", "b"),)


def test_nonfinite_numbers_are_refused_where_rope_reads_them():
    for value in ("NaN", "Infinity", "-Infinity", "1e999"):
        found = check_text(TEXT.replace("500000.0", value).encode())[1]
        assert [one.severity for one in found] == ["error"], value
        assert check_text(TEXT.replace("500000.0", f'500000.0, "time_step_limit": {value}').encode())[1] == []


@pytest.mark.parametrize("text", [TEXT, json.dumps({"a": {"b": [{"c": 1}, {"c": '"x": {'}], "d\\n": {}}, "e": "}"})])
def test_line_of_every_key_is_found(text):
    places = find_key_lines(text)
    config = json.loads(text)
    rows = text.split("\n")

    def walk(part, path):
        if isinstance(part, dict):
            for key, value in part.items():
                line, column = places[".".join((*path, key))]
                assert rows[line - 1][column - 1 :].startswith(json.dumps(key, ensure_ascii=False))
                walk(value, (*path, key))
        elif isinstance(part, list):
            for index, value in enumerate(part):
                walk(value, (*path, str(index)))

    walk(config, ())


def test_repeated_key_is_named_even_without_rope():
    found = [one.rule for one in check_text('{"model_type": "llama", "model_type": "gpt2"}')[1]]
    assert found == ["repeated-keys", "no-rope"]


def test_repeated_keys_are_found_among_many():
    pairs = [*((f"key {number}", number) for number in range(20_000)), ("key 7", 8)]
    text = "{" + ",".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"
    assert read_raw(text).repeated == (("key 7",),)


class CountedText(str):
    """A text that counts how many characters were searched backwards."""

    searched = 0

    def rfind(self, part, start=0, end=None):
        end = len(self) if end is None else end
        self.searched += end - start
        return super().rfind(part, start, end)


def test_lines_of_keys_are_found_in_one_pass():
    config = {f"key {number}": number for number in range(1000)}
    text = CountedText(json.dumps(config))
    found = find_key_lines(text)
    assert text.searched <= len(text)
    assert found == {key: (1, text.index(f'"{key}"') + 1) for key in config}


def test_lines_of_very_long_keys_are_left_out():
    text = json.dumps({"k" * 5000: {f"key {number}": number for number in range(1000)}, "short": {"key": 1}})
    assert set(find_key_lines(text)) == {"short", "short.key"}


def quantised(experts):
    """A config with a list of quantised layers as ModelOpt writes it (hf_quant_config.json), and a text like a list."""
    layers = {
        f"model.layers.{layer}.experts.{expert}.down_proj": {"quant_algo": "NVFP4"}
        for layer in range(94)
        for expert in range(experts)
    }
    kept = {"model_type": "qwen3_moe", "note": 'an "ignore": [', "quantization_config": {"quant_method": "modelopt"}}
    return kept | {"quantization_config": {"quantized_layers": layers, "ignore": ["lm_head"]}, "num_hidden_layers": 94}


def test_long_lists_do_not_count():
    text = json.dumps(quantised(700))
    assert CONFIG_BYTES < len(text) < CONFIG_FILE_BYTES
    assert read_raw(text).config == quantised(700)
    short = read_raw(text, skip_lists=True)
    assert short.left_out == ("quantized_layers",)
    assert short.config == quantised(0)


def test_short_lists_are_read():
    text = json.dumps(quantised(1))
    assert len(text) < SHORT_LIST_BYTES
    assert read_raw(text, skip_lists=True).config == quantised(1)
    labels = {"id2label": {str(label): "x" * 20 for label in range(1000)}, "hidden_size": 8}
    assert read_raw(json.dumps(labels), skip_lists=True).config == {"id2label": {}, "hidden_size": 8}


def test_what_is_no_list_counts():
    text = json.dumps(quantised(700) | {"text": "x" * CONFIG_BYTES})
    with pytest.raises(ValueError, match="larger than 4 MiB"):
        read_raw(text)
    with pytest.raises(ValueError, match="larger than 32 MiB"):
        read_raw('{"ignore": ["' + "x" * CONFIG_FILE_BYTES + '"]}')


def test_an_unclosed_list_is_one_sentence():
    with pytest.raises(ValueError, match="truncated"):
        read_raw('{"ignore": ["' + '", "x' * SHORT_LIST_BYTES + '"', skip_lists=True)
