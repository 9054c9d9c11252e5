"""Ask transformers 5.24.0 for the frequencies of models of the list: writes tests/goldens/catalog.json.

Run from the root of the repository with torch and transformers 5.24.0: python tests/goldens/make_catalog.py
The rotary module of each model's own class computes them, from the entry's keys as the published file has them.
Older entries are in transformers_5.23.0_models.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers_classes import rotary_frequencies

from rope_viz.models.catalog import catalog

HERE = Path(__file__).parent
OLDER = HERE / "transformers_5.23.0_models.json"
# The code of these travels with the model: transformers has no class of theirs.
TWINS = {"mimo": "qwen2"}
# Ling 2.6: its latent and its linear layers compute what these classes do (bailing_moe_linear.py of vLLM 0.33.0).
LING = "BailingMoeV2_5ForCausalLM"
LING_LAYERS = {
    "full_attention": ("deepseek_v3", ("head_dim", "partial_rotary_factor")),
    "linear_attention": ("glm4_moe", ()),
}


def ask(config: dict[str, Any]) -> dict[str, Any]:
    """Return {layer type: frequencies and factor} as the class's rotary module has them."""
    kind = config["model_type"]
    values = {key: value for key, value in config.items() if key not in ("_about", "model_type")}
    if LING in values.pop("architectures", ()):
        return {
            layer: ask({key: value for key, value in values.items() if key not in unread} | {"model_type": twin})[""]
            for layer, (twin, unread) in LING_LAYERS.items()
        }
    built: PreTrainedConfig = CONFIG_MAPPING[TWINS.get(kind, kind)](**values)
    return {
        layer: {"inv_freq": [float(f"{value:.9g}") for value in inv_freq], "attention_factor": factor}
        for layer, (inv_freq, factor) in rotary_frequencies(built).items()
    }


def main() -> None:
    """Write one row per model."""
    older = json.loads(OLDER.read_text())["presets"]
    asked = (id for id in sorted(catalog()) if id not in older and not id.startswith("rope-viz"))
    rows = {id: ask(json.loads(json.dumps(dict(catalog()[id].whole)))) for id in asked}
    about = "Made by make_catalog.py from the rotary modules of transformers 5.24.0, torch on the CPU, float32."
    lines = ",\n".join(f"{json.dumps(id)}: {json.dumps(layers)}" for id, layers in rows.items())
    (HERE / "catalog.json").write_text(f'{{"_about": {json.dumps(about)}, "models": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
