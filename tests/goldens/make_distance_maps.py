"""Makes distance_maps.json: the distance that the published code of two methods gives to each query and key.

Run with torch 2.13.0 and transformers 5.23.0: python tests/goldens/make_distance_maps.py CHUNKLLAMA SELFEXTEND
with chunkllama_attn_replace.py of HKUNLP/ChunkLlama at 2add4d7 and self_extend_patch/Llama.py of datamllab/LongLM at
cdbbb06. Their attention runs with one pair and q = k, so that a logit is the cosine of the distance.
"""

import ast
import json
import math
import sys
import typing
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from transformers.cache_utils import Cache
from transformers.models.llama.modeling_llama import repeat_kv, rotate_half

TRAINED, LENGTH, TURN = 32, 96, 0.01
GROUP, WINDOW = 4, 8


class FoundError(Exception):
    """Carries the logits out of the published code."""


def load(path: str, names: set[str]) -> dict:
    """Execute some functions and classes of a file, with what they import."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    body = [node for node in tree.body if getattr(node, "name", "") in names]
    space = {"torch": torch, "math": math, "nn": nn, "Cache": Cache, "rotate_half": rotate_half, "repeat_kv": repeat_kv}
    space |= {"Optional": typing.Optional, "Tuple": tuple, "MAX_NEW_TOKENS": 0}
    exec(compile(ast.Module(body, []), path, "exec"), space)
    return space


def raise_logits(logits, **_):
    raise FoundError(logits)


def distances(run) -> torch.Tensor:
    """Run attention up to softmax and turn its logits into distances."""
    original, nn.functional.softmax = nn.functional.softmax, raise_logits
    try:
        run()
    except FoundError as found:
        return torch.arccos((found.args[0].double() * math.sqrt(2.0)).clamp(-1, 1)) / TURN
    finally:
        nn.functional.softmax = original
    raise RuntimeError("no softmax was reached")


def module(rotary) -> SimpleNamespace:
    """Return what both attentions ask of `self`: one head of two dimensions, whose q and k are (1, 0)."""
    sizes = {"num_heads": 1, "num_key_value_heads": 1, "num_key_value_groups": 1, "head_dim": 2, "hidden_size": 2}
    same = {"q_proj": lambda x: x, "k_proj": lambda x: x, "v_proj": lambda x: x, "rotary_emb": rotary}
    return SimpleNamespace(**sizes, **same, layer_idx=0, config=SimpleNamespace(pretraining_tp=1))


def dual_chunk(path: str) -> list[list[float]]:
    """Return one row of keys per query, from the code for one new token."""
    names = {"get_mscale", "ChunkLlamaRotaryEmbedding", "apply_rotary_pos_emb", "forward"}
    space = load(path, names)
    space |= {"chunk_size": TRAINED * 3 // 4, "local_window": TRAINED // 8}
    rotary = space["ChunkLlamaRotaryEmbedding"](2, LENGTH, scaling_factor=1 / TURN)
    return [[0.0], *(decode(space, rotary, query) for query in range(1, LENGTH))]


def decode(space: dict, rotary, query: int) -> list[float]:
    """Return the distances of one new token to itself and all keys before it."""
    keys = torch.tensor([[[[1.0, 0.0]] * (query + 1)]])
    _, _, _, _, cos, sin = rotary(keys, seq_len=query + 1)
    rotated = space["apply_rotary_pos_emb"](keys, cos, sin, torch.arange(query + 1)[None])
    cache = SimpleNamespace(get_usable_length=lambda *_: query, update=lambda *_, **__: (rotated, rotated))
    one, at = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[query]])
    found = distances(lambda: space["forward"](module(rotary), one, position_ids=at, past_key_value=cache))
    return [float(round(value)) for value in found.flatten().tolist()]


def self_extend(path: str) -> list[list[float]]:
    """Return one row of keys per query, from the code for a whole text."""
    space = load(path, {"apply_rotary_pos_emb", "self_extend_forward", "rotate_half", "repeat_kv"})

    def rotary(values, positions, seq_len=None):
        angle = positions.double()[..., None] * TURN
        return angle.cos().repeat(1, 1, 2), angle.sin().repeat(1, 1, 2)

    text = torch.tensor([[[1.0, 0.0]] * LENGTH], dtype=torch.float64)
    more = {"position_ids": torch.arange(LENGTH)[None], "group_size_1": GROUP, "group_size_2": WINDOW}
    found = distances(lambda: space["self_extend_forward"](module(rotary), text, **more))
    return [[round(value, 3) for value in row[: at + 1]] for at, row in enumerate(found[0, 0].tolist())]


def main() -> None:
    sizes = {"trained": TRAINED, "length": LENGTH, "group": GROUP, "window": WINDOW}
    maps = {"dual_chunk": dual_chunk(sys.argv[1]), "self_extend": self_extend(sys.argv[2])}
    made = "tests/goldens/make_distance_maps.py, HKUNLP/ChunkLlama 2add4d7, datamllab/LongLM cdbbb06"
    text = json.dumps({"_made_by": made, **sizes, **maps})
    Path(__file__).with_name("distance_maps.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
