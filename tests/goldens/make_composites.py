"""Write composites_5.23.0.json: composite configs extended by our export, loaded by transformers' own classes.

Run: `pip install transformers==5.23.0 torch==2.13.0` into an environment of its own, then
`python tests/goldens/make_composites.py [VLLM] [SGLANG]`. Nothing is downloaded.

Every composite class of transformers 5.23.0 with a rotary embedding in its language model, at its defaults, and the
shapes of published configs (`PUBLISHED`) are extended by YaRN to twice their reach. What is intended is set directly in
the loaded configuration object and computed by the rotary class. Then the exported config is loaded by the
configuration class, and the rotary class has to compute the same from it; where it does not, the script ends with an
error. The golden keeps the configs, what was exported from them, and the frequencies. With the paths of an unpacked
vLLM 0.33.0 (`vllm/config/model.py`) and SGLang 0.5.23 (`sglang/srt/utils/hf_transformers/config.py`) their own code
also merges the overrides into the loaded configs, and the outcome is held to the same frequencies.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from make_transformers_goldens import Frequencies, kept
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers_classes import attribute, build, rotary_frequencies, text_types

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from rope_viz.advice.plan.export import export  # noqa: E402
from rope_viz.models.edit_config import merge_dicts  # noqa: E402
from rope_viz.models.rope_config import from_config  # noqa: E402
from rope_viz.models.spec_url import with_method  # noqa: E402
from rope_viz.models.user_config import main_layer  # noqa: E402

Layers = dict[str, tuple[np.ndarray, float]]
Merge = Callable[[PreTrainedConfig, dict[str, Any]], None]

# Types whose classes cannot be extended by YaRN at their defaults, and why.
CANNOT = {
    "cosmos3_edge": "its class takes the default rope type only",
    "ernie4_5_vl_moe": "its rotary class takes the default rope type only",
    "glm4v_moe": "an odd number of dimensions rotates at its defaults: RuntimeError",
    "qwen3_omni_moe": "an odd number of dimensions rotates at its defaults: RuntimeError",
    "qwen3_omni_moe_thinker": "an odd number of dimensions rotates at its defaults: RuntimeError",
}
QWEN2_VL = {
    **{"hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32768, "rope_theta": 1000000.0},
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
}
OMNI = {"mrope_section": [16, 24, 24], "rope_type": "default", "type": "default"}
INTERLEAVED = {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"}
MINISTRAL = {
    **{"rope_type": "yarn", "type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0},
    **{"beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384},
    "llama_4_scaling_beta": 0.1,
}
DEEPSEEK = {
    **{"type": "yarn", "factor": 64.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
    "original_max_position_embeddings": 4096,
}


def text(kind: str, heads: int, width: int, length: int, **keys: Any) -> dict[str, Any]:
    """The part of a language model."""
    sizes = {"num_attention_heads": heads, "hidden_size": width, "max_position_embeddings": length}
    return {"model_type": kind, **sizes, **keys}


# Published configs, cut down to what concerns RoPE: {name: config}.
PUBLISHED: dict[str, dict[str, Any]] = {
    "gemma-3-4b": {
        "model_type": "gemma3",
        "text_config": {
            **text("gemma3_text", 8, 2560, 131072, head_dim=256, rope_theta=1000000.0, rope_local_base_freq=10000.0),
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
    },
    "llama-4-scout": {
        "model_type": "llama4",
        "text_config": {
            **text("llama4_text", 40, 5120, 10485760, head_dim=128, rope_theta=500000.0, attention_chunk_size=8192),
            "rope_scaling": {
                **{"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0},
                "original_max_position_embeddings": 8192,
            },
        },
    },
    "llama-4-maverick": {
        "model_type": "llama4",
        "text_config": text("llama4_text", 40, 5120, 1048576, head_dim=128, rope_theta=500000.0, rope_scaling=None),
    },
    "mistral-small-3.1": {
        "model_type": "mistral3",
        "text_config": text("mistral", 32, 5120, 131072, head_dim=128, rope_theta=1000000000.0),
    },
    "ministral-3-8b": {
        "model_type": "mistral3",
        "text_config": text("ministral3", 32, 4096, 262144, head_dim=128, rope_parameters=MINISTRAL),
    },
    "pixtral-12b": {
        "model_type": "llava",
        "text_config": text("mistral", 32, 5120, 131072, head_dim=128, rope_theta=1000000000.0),
    },
    "qwen2-vl-7b": {"model_type": "qwen2_vl", **QWEN2_VL},
    "qwen2.5-vl-7b": {"model_type": "qwen2_5_vl", **QWEN2_VL, "max_position_embeddings": 128000},
    "qwen2.5-omni-7b": {
        "model_type": "qwen2_5_omni",
        "thinker_config": {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": {**text("qwen2_5_omni_text", 28, 3584, 32768, rope_theta=1000000.0), "rope_scaling": OMNI},
        },
    },
    "qwen3-omni-30b": {
        "model_type": "qwen3_omni_moe",
        "thinker_config": {
            "model_type": "qwen3_omni_moe_thinker",
            "text_config": text(
                "qwen3_omni_moe_text", 32, 2048, 65536, head_dim=128, rope_theta=1000000.0, rope_scaling=INTERLEAVED
            ),
        },
    },
    "qwen3-vl-8b": {
        "model_type": "qwen3_vl",
        "text_config": text(
            "qwen3_vl_text", 32, 4096, 262144, head_dim=128, rope_theta=5000000.0, rope_scaling=INTERLEAVED
        ),
    },
    "qwen3.5-9b": {
        "model_type": "qwen3_5",
        "text_config": text(
            *("qwen3_5_text", 16, 4096, 262144),
            head_dim=256,
            partial_rotary_factor=0.25,
            rope_parameters={
                **{"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
                **{"mrope_interleaved": True, "mrope_section": [11, 11, 10]},
            },
        ),
    },
    "glm-4.1v-9b": {
        "model_type": "glm4v",
        "text_config": text(
            *("glm4v_text", 32, 4096, 65536),
            partial_rotary_factor=0.5,
            rope_theta=10000.0,
            rope_scaling={"type": "default", "mrope_section": [8, 12, 12]},
        ),
    },
    "glm-4.5v": {
        "model_type": "glm4v_moe",
        "text_config": text(
            *("glm4v_moe_text", 96, 4096, 131072),
            head_dim=128,
            partial_rotary_factor=0.5,
            rope_theta=10000.0,
            rope_scaling={"rope_type": "default", "mrope_section": [8, 12, 12]},
        ),
    },
    "internvl3-8b": {
        "model_type": "internvl",
        "text_config": text(
            *("qwen2", 28, 3584, 32768),
            rope_theta=1000000.0,
            rope_scaling={"type": "dynamic", "rope_type": "dynamic", "factor": 2.0},
        ),
    },
    "llava-1.5-7b": {"model_type": "llava", "text_config": {"model_type": "llama", "max_position_embeddings": 4096}},
    "llava-mixtral": {"model_type": "llava_next", "text_config": {"model_type": "mixtral", "rope_theta": 1000000.0}},
    "kimi-k2.5": {
        "model_type": "kimi_k25",
        "text_config": text(
            "deepseek_v3", 64, 7168, 262144, qk_rope_head_dim=64, rope_theta=50000.0, rope_scaling=DEEPSEEK
        ),
    },
    "voxtral-mini-3b": {
        "model_type": "voxtral",
        "text_config": text("llama", 32, 3072, 131072, head_dim=128, rope_theta=100000000.0),
    },
    "llama-3.2-11b-vision": {
        "model_type": "mllama",
        "text_config": {
            **text("mllama_text_model", 32, 4096, 131072, rope_theta=500000.0),
            "rope_scaling": {
                **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
                "original_max_position_embeddings": 8192,
            },
        },
    },
    "modernvbert": {
        "model_type": "modernvbert",
        "text_config": {"model_type": "modernbert", "global_rope_theta": 160000.0, "local_rope_theta": 10000.0},
    },
}


def main(vllm: str = "", sglang: str = "") -> None:
    merges = {
        name: merge(path) for name, path, merge in (("vllm", vllm, of_vllm), ("sglang", sglang, of_sglang)) if path
    }
    frequencies, rows, failed = Frequencies(), [], 0
    for name, config in [*classes(), *PUBLISHED.items()]:
        try:
            wrong, row = tried(name, config, frequencies, merges)
        except Exception as error:  # whatever a class raises at its own defaults has to be looked at
            wrong, row = f"{type(error).__name__}: {str(error).splitlines()[-1]}", None
        failed += bool(wrong)
        print(f"{name}: {wrong or 'as intended'}")
        if row is not None:
            rows.append(row)
    print(
        f"{len(rows)} rows, {failed} wrong, {len(CANNOT)} cannot be extended; "
        f"overrides merged by {list(merges) or 'none'}"
    )
    if failed:
        raise SystemExit(1)
    write(rows, frequencies, list(merges))


def classes() -> list[tuple[str, dict[str, Any]]]:
    """Every composite class whose language model has a rotary embedding, at its defaults."""
    found = []
    for name in sorted(CONFIG_MAPPING):
        config = build(CONFIG_MAPPING[name])
        if config is None or name in CANNOT or language(config) is config:
            continue
        if language(config).model_type in text_types():
            whole = json.loads(config.to_json_string(use_diff=False))
            found.append((name, counted(kept(whole), whole)))
    return found


def counted(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """With the number of layers where layer types are kept: some classes compare the two."""
    for key, inner in part.items():
        if isinstance(inner, dict) and isinstance(whole[key], dict):
            counted(inner, whole[key])
    if "layer_types" in part and "num_hidden_layers" in whole:
        part["num_hidden_layers"] = whole["num_hidden_layers"]
    return part


def language(config: PreTrainedConfig) -> PreTrainedConfig:
    """The language model of a loaded configuration. Blt is a stack of four: the one over patches."""
    return config.global_config if config.model_type == "blt" else config.get_text_config(decoder=True)


def loaded(config: dict[str, Any]) -> PreTrainedConfig:
    """A configuration object by transformers' own class."""
    return CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))


def intended(config: dict[str, Any], layer: str, length: int) -> tuple[Layers, float]:
    """Frequencies of all layers with YaRN on one type to twice the length, set in the loaded object; and the factor.

    A model that has YaRN keeps the rest of it.
    """
    model = language(loaded(config))
    params = copy.deepcopy(model.rope_parameters)
    part = params[layer] if layer else params
    scaled = part["rope_type"] in ("yarn", "llama3", "longrope")
    original = part["original_max_position_embeddings"] if scaled else length
    factor = 2.0 * length / original
    own = part if part["rope_type"] == "yarn" else {k: v for k, v in part.items() if k in ("rope_theta", *BESIDE)}
    part = {**own, "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original}
    model.rope_parameters = {**params, layer: part} if layer else part
    model.max_position_embeddings = 2 * length
    if "head_dim" in type(model).__dataclass_fields__ and attribute(model, "head_dim") is None:
        # transformers multiplies it: without a value it raises TypeError.
        model.head_dim = model.hidden_size // model.num_attention_heads
    return rotary_frequencies(model), factor


BESIDE = ("partial_rotary_factor", "mrope_section", "mrope_interleaved", "llama_4_scaling_beta")


def tried(
    name: str, config: dict[str, Any], frequencies: Frequencies, merges: dict[str, Merge]
) -> tuple[str, dict[str, Any] | None]:
    """What is wrong with the export of one config, and its row."""
    specs = from_config(config)
    layer = main_layer(specs)
    start = specs[layer]
    if start.scaling.name == "proportional":
        # YaRN turns pairs that stand still in these models: nothing to hold the frequencies to.
        return "", None
    wanted, factor = intended(config, layer, language(loaded(config)).max_position_embeddings)
    spec = with_method(dataclasses.replace(start, target=2 * start.target), "yarn")
    made = export(spec, to="transformers", config=config, layer_type=layer or None)
    for whole in (made.config, merge_dicts(made.fragment, config)):
        wrong = different(rotary_frequencies(language(loaded(whole))), wanted)
        if wrong or not made.faithful:
            return wrong or made.reason, None
    for runtime, merge in merges.items():
        words = export(spec, to=runtime, config=config, layer_type=layer or None).text
        if not words.startswith("#"):
            object_ = loaded(config)
            merge(object_, json.loads(shlex.split(words)[1]))
            wrong = different(rotary_frequencies(language(object_)), wanted)
            if wrong:
                return f"merged by {runtime}: {wrong}", None
    layers = {key: [frequencies.place(array), float(f"{att:.9g}")] for key, (array, att) in wanted.items()}
    return "", {
        "name": name,
        "config": config,
        "layer": layer,
        "factor": factor,
        "written": made.fragment,
        "layers": layers,
    }


def different(found: Layers, wanted: Layers) -> str:
    """How frequencies differ from those wanted; empty where they do not."""
    if set(found) != set(wanted):
        return f"layers {sorted(found)} and not {sorted(wanted)}"
    for layer, (array, attention) in wanted.items():
        ours, factor = found[layer]
        if ours.shape != array.shape or not np.allclose(ours, array, rtol=2e-6, atol=0.0):
            return f"other frequencies in {layer or 'all layers'}"
        if not np.isclose(factor, attention, rtol=2e-6):
            return f"attention factor {factor} and not {attention} in {layer or 'all layers'}"
    return ""


def of_vllm(path: str) -> Merge:
    """ModelConfig._apply_dict_overrides of vLLM, taken out of its file and run."""
    source = Path(path).read_text()
    model = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "ModelConfig")
    wanted = ("_update_nested", "_apply_dict_overrides")
    parts = [n for n in model.body if isinstance(n, ast.FunctionDef) and n.name in wanted]
    methods = [
        textwrap.indent(textwrap.dedent(ast.get_source_segment(source, n, padded=True) or ""), "    ") for n in parts
    ]
    names: dict[str, Any] = {"PreTrainedConfig": PreTrainedConfig, "Any": Any}
    exec("from __future__ import annotations\nclass Merging:\n" + "\n".join(methods), names)

    def merge(config: PreTrainedConfig, override: dict[str, Any]) -> None:
        config.update({key: value for key, value in override.items() if not isinstance(value, dict)})
        names["Merging"]()._apply_dict_overrides(config, {k: v for k, v in override.items() if isinstance(v, dict)})

    return merge


def of_sglang(path: str) -> Merge:
    """The loop of SGLang's get_config over the override, taken out of its file and run."""
    source = Path(path).read_text()
    function = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "get_config")
    loop = next(
        n for n in ast.walk(function) if isinstance(n, ast.For) and "model_override_args" in ast.unparse(n.iter)
    )

    def merge(config: PreTrainedConfig, override: dict[str, Any]) -> None:
        names = {"config": config, "model_override_args": override, "PretrainedConfig": PreTrainedConfig}
        exec(ast.unparse(loop), names)

    return merge


def write(rows: list[dict[str, Any]], frequencies: Frequencies, merged: list[str]) -> None:
    """The golden, one row a line."""
    about = (
        "transformers 5.23.0, torch 2.13.0 CPU float32, made by tests/goldens/make_composites.py; overrides merged by "
        f"the code of {' and '.join(merged) or 'no runtime'}"
    )
    lines = {"frequencies": frequencies, "rows": rows}
    body = ",\n".join(
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in part) + "\n ]" for key, part in lines.items()
    )
    path = FOLDER / "composites_5.23.0.json"
    path.write_text("{\n" + f' "_about": {json.dumps(about)},\n "cannot": {json.dumps(CANNOT)},\n{body}\n' + "}\n")
    print(f"{path.name}: {len(rows)} rows, {len(frequencies)} arrays, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
