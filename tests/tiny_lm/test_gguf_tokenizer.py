"""The tokenizer of a GGUF file gives the ids of transformers, and refuses what it cannot build."""

import json
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from rope_viz.models.formats.gguf import read_header
from rope_viz.models.identity.local_models import MODELS
from rope_viz.real_models.gguf_model import make_tokenizer
from tests.tiny_lm.gguf_writer import vocabulary, write

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "smollm2_ids.json").read_text(encoding="utf-8"))


def tokenizer(folder, *args, **keys):
    write(folder / "t.gguf", {"general.architecture": "llama"} | vocabulary(*args, **keys), {})
    return make_tokenizer(read_header(folder / "t.gguf", long_arrays=True))


def test_merges_digits_and_special_tokens_are_applied(tmp_path):
    made = tokenizer(tmp_path)
    assert made.encode("in the<|end|>").tokens == ["in", "Ġthe", "<|end|>"]
    assert made.encode("the  12").tokens == ["the", "ĠĠ", "1", "2"]
    assert made.decode(made.encode("in the é 12").ids) == "in the é 12"


@pytest.mark.parametrize(
    ("pre", "tokens"),
    [
        ("gpt-2", ["the", "Ġ", "Ġ", "1", "2"]),
        ("qwen2", ["the", "Ġ", "Ġ", "1", "2"]),
        ("llama-bpe", ["<|end|>", "the", "Ġ", "Ġ", "1", "2"]),
    ],
)
def test_each_way_to_split_is_its_own(pre, tokens, tmp_path):
    assert tokenizer(tmp_path, pre).encode("the  12").tokens == tokens


def test_the_beginning_token_follows_the_key(tmp_path):
    assert tokenizer(tmp_path, add_bos_token=True).encode("in").tokens == ["<|end|>", "in"]
    assert tokenizer(tmp_path, "llama-bpe", add_bos_token=False).encode("in").tokens == ["in"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model": "llama"}, "the tokenizer of the GGUF file is 'llama'"),
        ({"pre": "tekken"}, "with 'tekken', which is not built in"),
        ({"merges": ["the"]}, "no lists of tokens and merges"),
        ({"merges": ["x yz"]}, "do not fit its tokens"),
    ],
)
def test_an_unknown_tokenizer_is_refused(keys, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        tokenizer(tmp_path, **keys)


@pytest.mark.real_model
def test_smollm2_gives_the_ids_of_transformers():
    path = MODELS["smollm2"].weights
    made = make_tokenizer(read_header(path, long_arrays=True))
    assert len(GOLDEN["rows"]) >= 20
    for row in GOLDEN["rows"]:
        assert made.encode(row["text"]).ids == row["ids"], row["text"]
