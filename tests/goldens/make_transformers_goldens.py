"""Write the goldens of tests/test_architectures.py: what transformers 5.24.0 computes for its own architectures.

Run: `pip install transformers==5.24.0 torch==2.13.0` into an environment of its own, then
`python tests/goldens/make_transformers_goldens.py`. Nothing is downloaded: only configurations and rotary modules are
made. It writes `transformers_5.24.0_defaults.json` (every architecture, default config) and
`transformers_5.24.0_random.json` (random configs, seeded). Frequencies are float32 with 9 significant digits, each
array kept once under `frequencies` and named by its index.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from make_architectures import SIZES
from records import read_records
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers_classes import build, rotary_frequencies, text_types

FOLDER = Path(__file__).parent
SEED, RANDOM_CONFIGS, NEWEST_CONFIGS = 20260101, 320, 6
NEWEST = "5.24.0"
# The keys of a configuration that can matter to RoPE; the rest of to_dict is left out.
KEPT = frozenset(SIZES) | frozenset(
    (
        *("model_type", "rope_parameters", "rope_theta", "partial_rotary_factor", "layer_types", "per_layer_config"),
        *("compress_rope_theta", "rope_interleave", "n_embd", "n_head", "n_positions", "kv_channels", "d_model"),
        *("n_heads", "max_seq_len", "attention_head_dim", "model_max_length", "attention_window_size"),
    )
)
# Architectures whose module has its frequencies in another order or another attention factor than it applies.
LEFT_OUT = {"ernie4_5_vl_moe_text": "the buffer is permuted for images; text positions see the plain order"}


# Published keys that no random config has: sarvam-105b's scaling, whose type only its class and vLLM know.
DEEPSEEK_YARN = {
    **{"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
    **{"original_max_position_embeddings": 4096, "type": "deepseek_yarn"},
}
SARVAM = {"model_type": "sarvam_mla", "head_dim": 576, "max_position_embeddings": 131072, "rope_theta": 10000.0}
WRITTEN: tuple[dict[str, Any], ...] = (
    {**SARVAM, "rope_scaling": DEEPSEEK_YARN},
    {**SARVAM, "rope_scaling": {**DEEPSEEK_YARN, "mscale_all_dim": 0.5}, "rope_interleave": False},
)


class Frequencies(list[list[float]]):
    """Arrays of frequencies, each once."""

    def place(self, array: np.ndarray) -> int:
        """The index of an array, added if it is new."""
        rounded = [float(f"{value:.9g}") for value in array]
        if rounded not in self:
            self.append(rounded)
        return self.index(rounded)


def main() -> None:
    write("defaults", defaults)
    write("random", random_configs)


def write(name: str, make: Any) -> None:
    """One file of goldens."""
    frequencies = Frequencies()
    rows = make(frequencies)
    about = "transformers 5.24.0, torch 2.13.0 CPU float32, made by tests/goldens/make_transformers_goldens.py"
    lines = {"frequencies": frequencies, "rows": rows}
    body = ",\n".join(
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in part) + "\n ]" for key, part in lines.items()
    )
    path = FOLDER / f"transformers_5.24.0_{name}.json"
    path.write_text("{\n" + f' "_about": {json.dumps(about)},\n{body}\n' + "}\n")
    print(f"{path.name}: {len(rows)} rows, {len(frequencies)} arrays, {path.stat().st_size} bytes")


def defaults(frequencies: Frequencies) -> list[dict[str, Any]]:
    """Every architecture with text RoPE, composite ones included, at its class defaults."""
    rows = []
    for name in sorted(CONFIG_MAPPING):
        config = build(CONFIG_MAPPING[name])
        text = config if config is None or name in text_types() else config.get_text_config(decoder=True)
        if text is None or text.model_type not in text_types() or text.model_type in LEFT_OUT:
            continue
        written = keep_known_keys(json.loads(config.to_json_string()))
        rows.append({"config": written, "layers": layers(text, frequencies)})
    return rows


def keep_known_keys(config: Any) -> Any:
    """The part of a configuration that matters, its sub-configurations included."""
    found = {}
    for key, value in config.items():
        inside = keep_known_keys(value) if isinstance(value, dict) and key not in KEPT else {}
        if key in KEPT and value is not None:
            found[key] = value
        elif inside.keys() - {"model_type"}:
            found[key] = inside
    return found


def layers(config: PreTrainedConfig, frequencies: Frequencies, length: int | None = None) -> dict[str, Any]:
    """{layer type: [index of the frequencies, attention factor]}."""
    found = rotary_frequencies(config, length)
    return {layer: [frequencies.place(values), float(f"{factor:.9g}")] for layer, (values, factor) in found.items()}


def random_configs(frequencies: Frequencies) -> list[dict[str, Any]]:
    """Random values under the keys of random architectures, as far as transformers accepts them.

    The types that are new in this release have rows of their own at the end, so that the others stay the same.
    """
    draw = random.Random(SEED)
    records = read_records()
    names = sorted(set(text_types()) - set(LEFT_OUT))
    newest = [name for name in names if records[name]["since"] == NEWEST]
    earlier = [name for name in names if name not in newest]
    rows: list[dict[str, Any]] = []
    while len(rows) < RANDOM_CONFIGS + NEWEST_CONFIGS * len(newest):
        beyond = len(rows) - RANDOM_CONFIGS
        name = draw.choice(earlier) if beyond < 0 else newest[beyond // NEWEST_CONFIGS]
        values = random_values(draw, CONFIG_MAPPING[name])
        config = build(CONFIG_MAPPING[name], **values)
        found = rotary_frequencies(config) if config is not None else {}
        if not found or not all(len(array) and np.isfinite(array).all() for array, _ in found.values()):
            continue
        # A second module of the same config may differ: building one can change the config. So always a fresh one.
        row = {"config": {"model_type": name, **values}, "layers": layers(fresh(name, values), frequencies)}
        types = json.dumps(values)
        if "dynamic" in types or "longrope" in types:
            longest = fresh(name, values).max_position_embeddings
            length = draw.choice([longest // 2, longest + 1, 2 * longest, 4 * longest])
            row["at"] = {str(length): layers(fresh(name, values), frequencies, length)}
        rows.append(row)
    for values in WRITTEN:
        name = values["model_type"]
        rows.append({"config": values, "layers": layers(fresh(name, {**values}), frequencies)})
    return rows


def fresh(name: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    """A configuration that nothing has touched."""
    config = build(CONFIG_MAPPING[name], **copy.deepcopy(dict(values)))
    assert config is not None
    return config


def random_values(draw: random.Random, kind: type) -> dict[str, Any]:
    """Sizes, old keys and RoPE parameters, each present by chance."""
    values: dict[str, Any] = {}
    if draw.random() < 0.4:
        values["hidden_size"], values["num_attention_heads"] = draw.choice([(2048, 16), (1024, 8), (768, 12)])
    for key, chance, choices in CHANCES:
        if draw.random() < chance:
            values[key] = draw.choice(choices)
    config = build(kind, **values)
    found = rotary_frequencies(config) if config is not None else {}
    pairs = {layer: len(array) for layer, (array, _) in found.items()} or {"": 32}
    if draw.random() < 0.15:
        return values
    key = draw.choice(["rope_scaling", "rope_parameters", "rope_parameters"])
    if "" in pairs or key == "rope_scaling":
        values[key] = random_parameters(draw, next(iter(pairs.values())))
    else:
        values[key] = {layer: random_parameters(draw, count) for layer, count in pairs.items()}
    return values


CHANCES: tuple[tuple[str, float, list[Any]], ...] = (
    ("head_dim", 0.2, [64, 96, 128, 256, 80]),
    ("max_position_embeddings", 0.4, [2048, 4096, 32768, 131072, 40960]),
    ("qk_rope_head_dim", 0.2, [32, 64]),
    ("original_max_position_embeddings", 0.1, [2048, 4096]),
    ("rope_theta", 0.4, [10000.0, 1e6, 500000]),
    ("partial_rotary_factor", 0.15, [0.5, 0.25, 0.75, 0.4]),
    ("rotary_pct", 0.1, [0.25, 0.5, 1.0]),
    ("rotary_emb_base", 0.1, [10000, 50000]),
    ("rope_local_base_freq", 0.15, [10000.0, 20000.0]),
    ("global_rope_theta", 0.1, [100000.0]),
    ("local_rope_theta", 0.1, [5000.0]),
    ("global_head_dim", 0.1, [128, 256]),
    ("rotary_dim", 0.1, [32, 64]),
    ("compress_rope_theta", 0.1, [200000.0]),
    ("n_embd", 0.05, [2048]),
    ("n_positions", 0.05, [4096]),
    ("kv_channels", 0.05, [64]),
)


def random_parameters(draw: random.Random, pairs: int) -> dict[str, Any]:
    """One set of RoPE parameters of a random type."""
    kind = draw.choice(["default", "linear", "dynamic", "yarn", "yarn", "llama3", "longrope", "proportional"])
    factor = draw.choice([1.0, 1.5, 2.0, 4.0, 8, 16.0, 40.0, 32])
    found: dict[str, Any] = {draw.choice(["rope_type", "rope_type", "rope_type", "type"]): kind}
    optional: dict[str, list[Any]] = {
        "rope_theta": [10000.0, 500000, 1e6, 25000.0],
        "partial_rotary_factor": [0.25, 0.5, 0.75, 1.0, 0.4, 0.35],
    }
    if kind in ("linear", "dynamic", "llama3", "yarn"):
        found["factor"] = factor
    if kind in ("yarn", "llama3", "longrope") and draw.random() < 0.8:
        found["original_max_position_embeddings"] = draw.choice([2048, 4096, 8192, 32768])
    if kind == "yarn":
        optional.update(beta_fast=[16.0, 32, 64, 4, 0], beta_slow=[1, 2.0, 0.5, 0], mscale=[1.0, 0.707, 0, None])
        optional.update(mscale_all_dim=[1.0, 0.707, 0, 2.0], truncate=[True, False], attention_factor=[1.0, 1.3, None])
    if kind == "llama3":
        found["low_freq_factor"], found["high_freq_factor"] = draw.choice([(1.0, 4.0), (1, 8), (2.0, 4), (1.0, 1.0)])
    if kind == "longrope":
        found["short_factor"] = [round(draw.uniform(1, 2), 3) for _ in range(pairs)]
        found["long_factor"] = [round(draw.uniform(1, 60), 3) for _ in range(pairs)]
        optional.update(factor=[factor], attention_factor=[1.0, 1.19])
    if kind == "proportional":
        optional["factor"] = [factor]
    for key, choices in optional.items():
        if draw.random() < 0.35:
            found[key] = draw.choice(choices)
    return found


if __name__ == "__main__":
    main()
