"""Differences between runtimes on several axes, as found by running them."""

import json
from typing import Any

import numpy as np
import pytest

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.multi_axis.catalog import axes_catalog
from rope_viz.pages.model.runtimes import words
from rope_viz.runtimes.axes import VERSIONS, AxesAnswer, axes_answers, in_blocks, in_words
from rope_viz.texts import use_language
from rope_viz.texts.languages import list_languages


def answers(id: str, **changes: Any) -> dict[str, AxesAnswer]:
    config = {**json.loads(json.dumps(dict(axes_catalog()[id].config))), **changes}
    return {one.runtime: one for one in axes_answers(config)}


def test_every_runtime_answers_and_transformers_first() -> None:
    found = answers("qwen2-vl-7b")
    assert list(found) == list(VERSIONS)
    assert all(one.spec is not None and not one.moved and not one.still for one in found.values())
    assert found["vllm"].sections == "t 16, h 24, w 24 in blocks"


def test_text_after_a_video_starts_elsewhere_in_transformers_5() -> None:
    behind = {name: one.behind for name, one in answers("qwen2-vl-7b").items()}
    assert behind == {
        **{"transformers": 5.0, "transformers-4.57": 9.0, "vllm": 9.0, "sglang": 9.0, "mlx-vlm": 9.0},
        "llama.cpp": 15.0,
    }
    times = {name: one.times for name, one in answers("qwen2.5-vl-7b").items()}
    assert times["transformers"] == times["vllm"] == (0.0, 3.0, 6.0, 9.0)
    assert times["transformers-4.57"] == (0.0, 2.0, 4.0, 6.0)


def test_fractions_of_seconds_are_exact_or_floored() -> None:
    found = answers("qwen3-omni-30b-a3b")
    assert found["transformers"].times == (0.0, 19.5, 39.0, 58.5)
    assert found["vllm"].times == (0.0, 19.0, 39.0, 58.0)


def test_two_pairs_of_qwen3_vl_have_zero_frequency_in_llama_cpp() -> None:
    found = answers("qwen3-vl-8b")
    assert found["llama.cpp"].still == (61, 62)
    assert found["llama.cpp"].moved == ()
    assert all(one.still == () for name, one in found.items() if name != "llama.cpp")
    assert answers("qwen2-vl-7b")["llama.cpp"].still == ()


def test_a_partly_rotated_head_keeps_its_size_in_llama_cpp() -> None:
    spec = answers("qwen3.5-9b")["llama.cpp"].spec
    assert spec is not None
    assert (spec.head_dim, 2 * spec.pairs) == (256, 64)


def test_hunyuan_is_sheared_in_transformers_and_turned_elsewhere() -> None:
    found = answers("hunyuan-ocr")
    sheared = {name for name, one in found.items() if one.spec is not None and not one.spec.is_rotation}
    assert sheared == {"transformers", "vllm"}
    for name in ("mlx-vlm", "llama.cpp"):
        spec = found[name].spec
        assert spec is not None
        assert [int(np.sum(spec.owner == axis)) for axis in range(4)] == [16] * 4
        assert len(found[name].moved) == 48
    assert found["transformers-4.57"].reason == "does not have this model"


def test_ernie_takes_no_scaling_in_transformers() -> None:
    found = answers("ernie-4.5-vl-28b")
    assert found["transformers"].extension.startswith("refuses")
    assert found["vllm"].extension.startswith("over the pair index")
    spec = found["vllm"].spec
    assert spec is not None
    assert not in_blocks(spec)


@pytest.mark.parametrize("id", ["qwen2.5-vl-7b", "qwen3-vl-8b"])
def test_mlx_vlm_ignores_yarn_with_several_axes(id: str) -> None:
    """Source: mlx_vlm/models/rope_utils.py of mlx-vlm 0.7.10, read: MRoPERotaryEmbedding has no scaling."""
    assert answers(id)["mlx-vlm"].extension == "ignored: the class reads base and sections only"


def test_get_rope_without_sections_is_plain() -> None:
    """Source: get_rope of vLLM 0.33.0 (rotary_embedding/__init__.py) and of SGLang 0.5.23 (factory.py), read."""
    config = json.loads(json.dumps(dict(axes_catalog()["qwen3-vl-8b"].config)))
    for part in (config, config["text_config"]) if "text_config" in config else (config,):
        for key in ("rope_scaling", "rope_parameters"):
            part.pop(key, None)
    found = {one.runtime: one for one in axes_answers(config)}
    for runtime in ("vllm", "sglang"):
        assert found[runtime].spec is None
        assert "without mrope_section its get_rope builds a plain RotaryEmbedding" in found[runtime].sections
    assert found["transformers"].sections == "t 24, h 20, w 20 interleaved"


def test_wrong_section_sums_are_refused_rescaled_or_accepted() -> None:
    text = {"rope_scaling": {"mrope_section": [16, 16, 16], "mrope_interleaved": True}}
    config = dict(axes_catalog()["qwen3-vl-8b"].config)
    found = answers("qwen3-vl-8b", text_config={**config["text_config"], **text})
    assert found["transformers"].spec is not None
    assert found["vllm"].spec is None
    assert "add up to the 64 pairs" in found["vllm"].reason
    assert dict(found["sglang"].counts) == {"t": 22, "h": 21, "w": 21}


def test_single_axis_model_has_no_answers() -> None:
    assert axes_answers({"model_type": "llama"}) == ()


@pytest.mark.parametrize("id", [id for id, model in axes_catalog().items() if "_class_name" not in model.config])
def test_every_catalog_model_is_answered(id: str) -> None:
    if axes_catalog()[id].family is None and "text_config" in axes_catalog()[id].config:
        assert not any(one.reason.startswith("refuses") for one in answers(id).values())


def test_axes_of_a_runtime_are_described_in_words() -> None:
    qwen3 = in_words(axes_catalog()["qwen3-vl-8b"].config, "llama.cpp")
    assert "t 22, h 20, w 20 interleaved; pairs 61, 62 have zero frequency. YaRN: over the pair index" in qwen3
    qwen2 = in_words(axes_catalog()["qwen2-vl-7b"].config, "vllm")
    assert "text continues at 9 (transformers 5.24.0: at 5)" in qwen2
    ernie = axes_catalog()["ernie-4.5-vl-28b"].config
    assert "YaRN: refuses any scaling of this model" in in_words(ernie, "transformers")
    assert in_words(ernie, "transformers-4") == "Images and videos: transformers 4.57.6 does not have this model."
    assert in_words(ernie, "mlx-lm").startswith("mlx-lm reads only text. Images and videos in mlx-vlm 0.7.10")
    assert in_words({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8}, "vllm") == ""


@pytest.mark.parametrize("language", list_languages())
def test_runtimes_that_agree_are_not_listed_in_any_language(language: str) -> None:
    with use_language(language):
        described = words.several(axes_answers(axes_catalog()["qwen2-vl-7b"].config))
    assert "axes.same" in described.entries


def test_extend_explains_images_of_a_runtime() -> None:
    config = {**axes_catalog()["qwen2-vl-7b"].config, "num_hidden_layers": 28}
    made = make_plan(config, 131_072, runtimes=("vllm", "llama.cpp"))
    assert "text continues at 9" in made.instructions[0].notes[-1]
    assert "text continues at 15" in made.instructions[1].notes[-1]
