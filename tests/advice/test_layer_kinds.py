"""What each layer of a model does, against executed classes of transformers and against published descriptions."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rope_viz.advice.memory.layer_kinds import list_layers
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.spec_url import Subject
from rope_viz.pages import registry
from rope_viz.picture.picture_request import PictureRequest
from tests.offenders import for_each

# Made by make_turning.py: which layers call a rotation in transformers 5.23.0.
GOLDEN = Path(__file__).parents[1] / "goldens" / "turning.json"
ROTATING: list[dict[str, Any]] = [
    row for row in json.loads(GOLDEN.read_text(encoding="utf-8"))["rows"] if any(row["turning"])
]

# {model: ({what layers see: how many}, how many scaling reaches, how many rotate)}, each from its makers:
PUBLISHED = {
    # https://arxiv.org/abs/2503.19786, section 2: 5 local layers of 1,024 tokens for each global one; 62 layers.
    "gemma-3-27b-global": ({"full": 10, "window": 52}, 10, 62),
    # meta-llama/llama-models, models/llama4/model.py: every 4th of 48 layers has no RoPE, the others see chunks.
    "llama-4-scout": ({"full": 12, "chunk": 36}, 36, 36),
    # https://cdn.openai.com/pdf/419b6906-9da6-406c-a19d-1bb078ac7637/oai_gpt-oss_model_card.pdf, section 2.2:
    # banded windows of 128 tokens and full attention in turn; 24 layers, all of them with YaRN.
    "gpt-oss-20b": ({"full": 12, "window": 12}, 24, 24),
    # The published config of Qwen3.5-9B: 32 layers, every 4th with full attention.
    "qwen3.5-9b": ({"full": 8, "recurrent": 24}, 8, 8),
    # https://arxiv.org/abs/2412.13663, section 2.1: every third of 22 layers is global, the others see 128 tokens.
    "modernbert-base-global": ({"full": 8, "window": 14}, 8, 22),
    # https://arxiv.org/abs/2310.06825, section 2: 32 layers, a window of 4,096 tokens in each.
    "mistral-7b-v0.1": ({"window": 32}, 32, 32),
    "llama-3.1-8b": ({"full": 32}, 32, 32),
}


def now_of(model: str) -> PictureRequest:
    return PictureRequest(Subject(spec_url.model_spec(model), model, spec_url.main_layer_of(model)))


@pytest.mark.parametrize("row", ROTATING, ids=[f"{i}-{row['config']['model_type']}" for i, row in enumerate(ROTATING)])
def test_layers_rotate_as_in_transformers(row: dict[str, Any]) -> None:
    config = {"hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 4096, **row["config"]}
    found = list_layers(ModelConfig.read(config))
    assert [layer.rotates for layer in found.layers] == row["turning"]


@pytest.mark.parametrize("model", PUBLISHED)
def test_a_model_has_the_layers_that_its_makers_describe(model: str) -> None:
    found = list_layers(ModelConfig.read(catalog()[model].whole))
    kinds, scaled, rotating = PUBLISHED[model]
    assert Counter(layer.sees for layer in found.layers) == kinds
    assert found.scaled == scaled
    assert sum(layer.rotates for layer in found.layers) == rotating
    assert not found.assumed


def test_windows_and_chunks_have_their_length() -> None:
    reaches = {
        model: {layer.reach for layer in list_layers(ModelConfig.read(catalog()[model].whole)).layers}
        for model in PUBLISHED
    }
    assert reaches["gemma-3-27b-global"] == {None, 1024}
    assert reaches["llama-4-scout"] == {None, 8192}
    assert reaches["gpt-oss-20b"] == {None, 128}
    assert reaches["mistral-7b-v0.1"] == {4096}


def test_a_missing_number_of_layers_is_called_a_default() -> None:
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 4096}
    assert list_layers(ModelConfig.read(config)).assumed
    assert not list_layers(ModelConfig.read({**config, "num_hidden_layers": 3})).assumed


@for_each(list(catalog()))
def test_every_model_of_the_list_has_a_strip_of_layers(model: str) -> None:
    picture = registry.picture("extend", "layers")
    assert picture.refuses(now_of(model)) == ""
    drawn = picture(now_of(model))
    assert "layers" in drawn.sentence
    assert len(drawn.fig.table()["layer"]) == catalog()[model].sizes.get("num_hidden_layers", 30)


def test_strip_marks_each_layer_once_and_scaled_layers_twice() -> None:
    picture = registry.picture("extend", "layers")
    cells = picture(now_of("gemma-3-27b-global")).fig.data[0].z
    assert cells.shape == (3, 62)
    kinds, scaled = ~(cells[:-1] != cells[:-1]), cells[-1] == cells[-1]
    assert kinds.sum(axis=0).tolist() == [1] * 62
    assert scaled.tolist() == [(index + 1) % 6 == 0 for index in range(62)]
