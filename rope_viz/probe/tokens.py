"""The vocabulary of a probe: one token per byte, so that a text of letters and signs names exactly its tokens."""

from __future__ import annotations

import json
from typing import Any

BYTES = 256
BEGIN, END, UNUSED = 256, 257, 258
VOCABULARY = 320
"""Bytes, three special tokens, and as many more as make a multiple of 64, to which engines pad."""
FIRST, LAST = 33, 126
"""Prompts have tokens from here to there: signs that no tokenizer treats in a way of its own, as it does spaces."""
SPECIAL = {BEGIN: "<s>", END: "</s>", UNUSED: "<unused>"}


def list_letters() -> list[str]:
    """Return the letter by which byte-level BPE writes each byte, as GPT-2 published it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(BYTES, 2 * BYTES))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(BYTES)]


def list_tokens() -> list[str]:
    """Return every token in the order of its id."""
    names = [SPECIAL.get(id, f"<unused{id}>") for id in range(BYTES, VOCABULARY)]
    return [*list_letters(), *names]


def to_text(ids: list[int]) -> str:
    """Return the text whose tokens are these ids. Raises `ValueError` for an id outside of prompts."""
    if any(not FIRST <= id <= LAST for id in ids):
        raise ValueError(f"only tokens from {FIRST} to {LAST} have a text of their own")
    return bytes(ids).decode("ascii")


def make_tokenizer_files() -> dict[str, bytes]:
    """Return {file name: content} of a byte-level BPE without merges, as fast tokenizers and engines read it."""
    tokens = list_tokens()
    special = [
        {"id": id, "content": tokens[id], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for id in range(BYTES, VOCABULARY)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": [],
        },
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BEGIN],
        "eos_token": SPECIAL[END],
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1 << 30,
    }
    return {
        "tokenizer.json": json.dumps(tokenizer, ensure_ascii=False).encode(),
        "tokenizer_config.json": json.dumps(settings, indent=2).encode(),
    }
