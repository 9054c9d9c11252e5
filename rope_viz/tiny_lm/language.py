"""Vocabulary of tiny_lm as words, so that its texts can be read, typed and sent to a server.

A fact is an animal and a number, filler is common words, a chain's states are letters: `<s> the of fox 37 and … fox`.
"""

from __future__ import annotations

from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.tiny_lm import tasks

_ANIMALS = (
    "ant ape bat bear bee bird boar bull calf cat clam cod colt cow crab crow "
    "cub deer dog dove duck eel elk emu ewe fish flea fly foal fox frog gnat "
    "goat goose gull hare hawk hen horse ibis jay kid kiwi lamb lark lion lynx mole "
    "moose moth mouse mule newt owl ox pig pony pug ram rat seal shark sheep toad"
)
_FILLERS = (
    "the be to of and a in that have i it for not on with he as you "
    "do at this but his by from they we say her she or an will my one all "
    "would there their what so up out if about who get which go me when make can like "
    "time no just him know take people into year your"
)
ANIMALS, FILLERS = _ANIMALS.split(), _FILLERS.split()
LETTERS = [chr(ord("A") + state) for state in range(tasks.STATES)]
WORDS = ("<s>", *ANIMALS, *map(str, range(tasks.VALUES)), *FILLERS, *LETTERS)
"""The word of every token, in the order of `tasks`."""

IDS = {word: token for token, word in enumerate(WORDS)}


def parse(text: str) -> list[int]:
    """Return the tokens of a text. Raises `ValueError` that names a word outside the vocabulary."""
    words = text.split()
    for word in words:
        if word not in IDS:
            raise ValueError(f"tiny_lm does not know the word {short_repr(word)}; it knows {len(WORDS)} words")
    return [IDS[word] for word in words]


def tokenizer() -> dict[str, Any]:
    """Return `tokenizer.json` for the tokenizers library: one token per word, split at spaces."""
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": tasks.START,
                "content": "<s>",
                "special": True,
                "single_word": False,
                "lstrip": True,
                "rstrip": True,
                "normalized": False,
            }
        ],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": IDS, "unk_token": "<s>"},
    }


def tokenizer_config() -> dict[str, Any]:
    """Return the matching `tokenizer_config.json`."""
    return {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "unk_token": "<s>"}
