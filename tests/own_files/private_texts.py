"""Random texts that stay with the owner of a config, and configs that hold them under every key."""

from __future__ import annotations

import json
import random
import string
from typing import Any

from rope_viz.models.read_upload import read_upload
from rope_viz.own_files.config_keys import DECLARED, PRIVATE
from tests.configs import QWEN3_8B

LETTERS = string.ascii_letters + string.digits
NAMES = "Annelore Quistorf Bartholdy Xanthippe Wunderlich Oyelaran Jürgensmeier Nguyễn-Đặng Zbigniew".split()
UNKNOWN = ("token", "user", "run", "path", "wandb_project", "output_dir", "trust_remote_code_from", "unsloth_version")
LISTS = ("architectures", "id2label", "tags", "modules_to_not_convert")


def make_texts(count: int, seed: int) -> list[str]:
    """Return different texts: tokens, paths, addresses of people and of pages, names, sentences."""
    chance = random.Random(seed)

    def word(length: int) -> str:
        return "".join(chance.choices(LETTERS, k=length))

    makers = (
        lambda: f"hf_{word(34)}",
        lambda: f"sk-{word(24)}",
        lambda: f"ghp_{word(36)}",
        lambda: f"/home/{word(8)}/checkpoints/{word(12)}",
        lambda: f"{word(8)}.{word(6)}@{word(9)}.example",
        lambda: f"https://{word(12)}.internal:8443/{word(6)}",
        lambda: f"{chance.choice(NAMES)} {chance.choice(NAMES)} {word(5)}",
        lambda: f"Dear {chance.choice(NAMES)}, the budget of {word(7)} is ours",
        lambda: word(16),
    )
    return [makers[number % len(makers)]() for number in range(count)]


def is_read(config: dict[str, Any]) -> bool:
    """Return whether a config still has pages."""
    try:
        read_upload(json.dumps(config))
    except ValueError:
        return False
    return True


def fill_config(texts: list[str], base: dict[str, Any] = QWEN3_8B) -> dict[str, Any]:
    """Return a config that can be read and has one of the texts under every key that is read as a text, and others.

    The sizes stay those of the base, so that there is something to show.
    """
    config = dict(base)
    texts = list(texts)
    for key in (*DECLARED["texts"], *sorted(PRIVATE), *UNKNOWN):
        tried = {**config, key: texts[0]}
        if is_read(tried):
            config = tried
            texts = texts[1:] + texts[:1]
    inner = {
        "label2id": {texts[0]: 0, texts[1]: 1},
        "auto_map": {"AutoConfig": texts[2]},
        "quantization_config": {
            "quant_method": texts[3],
            "bits": 4,
            "ignore": [texts[4]],
            texts[5]: texts[6],
            "config_groups": {"group_0": {"format": texts[7], "targets": [texts[8]]}},
        },
        "vision_config": {"model_type": texts[9], "hidden_size": 64, "name": texts[10]},
        "task_specific_params": {texts[11]: {"prefix": texts[12]}},
        "_source_file": {"format": "Mistral's params.json", "remarks": [texts[13]], "unread": [texts[14]]},
        "_about": {"name": texts[15], "wrapper": texts[16]},
        **{key: [texts[17], texts[18]] for key in LISTS},
    }
    for key, value in inner.items():
        if is_read({**config, key: value}):
            config[key] = value
    return config
