"""Run the published classes with positions on several axes, and write axes_more.json beside this file.

    python tests/goldens/make_axes.py        # transformers 5.23.0, diffusers 0.42.1, timm 1.0.31, torch 2.13.0

A case holds the family and the config as `rope_viz.multi_axis.read_family` takes them, the positions the class got, in
its own units, and what its own rotation makes of a fixed vector at each of them, in float32 unless the class says
otherwise. Positions go to some hundred only, so that float32 angles err by less than the tolerance, 2e-5.

axes.json beside it (57 cases of other configs and positions, run in the same way; each names its class and version)
says of itself how it was made.
"""

import json
import math
from importlib import import_module
from pathlib import Path

import axes_diffusion
import axes_towers
import torch
from axes_cases import CASES, THW, add, rotate_half, rounded, vector

FOLDER = Path(__file__).parent
TOLERANCE = 2e-5


def text(kind: str, name: str, config: dict, *, layer: str | None = None, positions: torch.Tensor = THW) -> None:
    module = import_module(f"transformers.models.{kind}.modeling_{kind}")
    configs = import_module(f"transformers.models.{kind}.configuration_{kind}")
    cls = getattr(module, name)
    text_config = next(
        getattr(configs, n)
        for n in (f"{name.removesuffix('RotaryEmbedding').removesuffix('Text')}TextConfig", TEXT_CONFIGS.get(kind, ""))
        if hasattr(configs, n)
    )
    given = {key: value for key, value in config.items() if key != "layer_type"}
    rotary = cls(text_config(**json.loads(json.dumps(given))))
    ids = positions.T[:, None].long()
    more = {"layer_type": layer} if layer else {}
    cos, sin = rotary(torch.zeros(1), ids, **more)
    head = cos.shape[-1]
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    x = vector(size).expand(1, 1, len(positions), size)
    if kind == "neomme":
        out = torch.cat([x[..., :head] * cos + rotate_half(x[..., :head]) * sin, x[..., head:]], -1)
    else:
        out = module.apply_rotary_pos_emb(x, x, cos, sin)[0]
    add(f"text/{kind}", f"transformers {name}", config, positions, rounded(out))


TEXT_CONFIGS = {
    **{"neomme": "NeoMMEConfig", "paddleocr_vl": "PaddleOCRTextConfig", "qwen3_omni_moe": "Qwen3OmniMoeTextConfig"},
    **{"qwen2_5_omni": "Qwen2_5OmniTextConfig", "cohere_compass": "CohereCompassTextConfig"},
}


def texts() -> None:
    small = {"hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 32768}
    qwen2 = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 12, 12]}
    scalings = {
        "linear": {"rope_type": "linear", "factor": 4.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192},
        "llama3": {
            **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
            "original_max_position_embeddings": 8192,
        },
        "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    }
    for kind, name in (
        ("qwen2_vl", "Qwen2VLRotaryEmbedding"),
        ("qwen2_5_vl", "Qwen2_5_VLRotaryEmbedding"),
        ("qwen2_5_omni", "Qwen2_5OmniRotaryEmbedding"),
        ("paddleocr_vl", "PaddleOCRRotaryEmbedding"),
    ):
        text(kind, name, {**small, "head_dim": 64, "rope_parameters": qwen2})
    for scaling in scalings.values():
        text("qwen2_vl", "Qwen2VLRotaryEmbedding", {**small, "rope_parameters": {**qwen2, **scaling}})
    odd = {**qwen2, "mrope_section": [4, 6, 6, 4, 6, 6]}
    text("qwen2_vl", "Qwen2VLRotaryEmbedding", {**small, "rope_parameters": odd})
    qwen3 = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [12, 10, 10], "mrope_interleaved": True}
    for kind, name in (
        ("qwen3_vl", "Qwen3VLTextRotaryEmbedding"),
        ("qwen3_vl_moe", "Qwen3VLMoeTextRotaryEmbedding"),
        ("qwen3_omni_moe", "Qwen3OmniMoeThinkerTextRotaryEmbedding"),
        ("cosmos3_edge", "Cosmos3EdgeTextRotaryEmbedding"),
    ):
        text(kind, name, {**small, "head_dim": 64, "rope_parameters": qwen3})
    for sections in ([2, 2, 2], [0, 16, 16], [8, 4, 12]):
        if sum(sections) != 32 and sections != [2, 2, 2]:
            sections = [32 - sections[1] - sections[2], *sections[1:]]
        given = {**qwen3, "mrope_section": sections}
        text("qwen3_vl", "Qwen3VLTextRotaryEmbedding", {**small, "head_dim": 64, "rope_parameters": given})
    given = {**qwen3, "rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 4096}
    text("qwen3_vl", "Qwen3VLTextRotaryEmbedding", {**small, "head_dim": 64, "rope_parameters": given})
    given = {key: value for key, value in qwen3.items() if key != "mrope_interleaved"}
    text("qwen3_vl", "Qwen3VLTextRotaryEmbedding", {**small, "head_dim": 64, "rope_parameters": given})
    partial = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
    partial |= {"mrope_section": [6, 5, 5], "mrope_interleaved": True}
    for kind, name in (
        ("qwen3_5", "Qwen3_5TextRotaryEmbedding"),
        ("qwen3_5_moe", "Qwen3_5MoeTextRotaryEmbedding"),
        ("qwen4_exp", "Qwen4ExpTextRotaryEmbedding"),
    ):
        text(kind, name, {**small, "head_dim": 128, "rope_parameters": partial})
    glm = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [4, 6, 6]}
    for kind, name in (
        ("glm4v", "Glm4vTextRotaryEmbedding"),
        ("glm4v_moe", "Glm4vMoeTextRotaryEmbedding"),
        ("glm_image", "GlmImageTextRotaryEmbedding"),
        ("glm_ocr", "GlmOcrTextRotaryEmbedding"),
    ):
        text(kind, name, {**small, "head_dim": 64, "rope_parameters": glm})
    whole = {**glm, "partial_rotary_factor": 1.0, "mrope_section": [16, 8, 8]}
    text("glm_ocr", "GlmOcrTextRotaryEmbedding", {**small, "head_dim": 64, "rope_parameters": whole})
    ernie = {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [11, 11, 10]}
    text("ernie4_5_vl_moe", "Ernie4_5_VLMoeTextRotaryEmbedding", {**small, "rope_parameters": ernie})
    four = torch.tensor([[5.0, 5, 5, 5], [40, 3, 7, 0], [41, 4, 7, 1], [300, 300, 300, 300]])
    hunyuan = {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0, "factor": 1.0, "mrope_section": [8, 8, 8, 8]}
    plain = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 12, 8, 8]}
    for given in (hunyuan, plain):
        config = {**small, "head_dim": 64, "rope_parameters": given}
        text("hunyuan_vl", "HunYuanVLRotaryEmbedding", config, positions=four)
    three = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [12, 12, 8]}
    config = {**small, "head_dim": 64, "rope_parameters": three}
    text("hunyuan_vl", "HunYuanVLRotaryEmbedding", config, positions=four[:, 1:])
    layers = {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0},
    }
    for layer in layers:
        config = {"hidden_size": 512, "num_attention_heads": 8, "head_dim": 64, "rope_parameters": layers}
        config["layer_type"] = layer
        text("neomme", "NeoMMERotaryEmbedding", config, layer=layer, positions=THW[:, 1:])
    # Layers that turn with sections, and layers that do not turn at all.
    given = {"rope_type": "default", "rope_theta": 5e4, "mrope_section": [12, 10, 10]}
    for layers in (
        {"sliding_attention": given, "full_attention": None},
        {"sliding_attention": given, "full_attention": qwen3},
    ):
        config = {"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2, "rope_parameters": layers}
        layer = "full_attention" if layers["full_attention"] else "sliding_attention"
        config |= {"layer_types": list(layers), "layer_type": layer}
        text("cohere_compass", "CohereCompassRotaryEmbedding", config, layer=layer)


if __name__ == "__main__":
    texts()
    axes_towers.towers()
    axes_towers.other_towers()
    axes_diffusion.diffusers()
    axes_towers.timm()
    about = " ".join(__doc__.split())
    versions = {"transformers": "5.23.0", "diffusers": "0.42.1", "timm": "1.0.31", "torch": torch.__version__}
    assert math.isclose(float(vector(2)[0]), math.cos(0.3), rel_tol=1e-6)
    for case in CASES:
        case.setdefault("tolerance", TOLERANCE)
    text_out = json.dumps({"about": about, "versions": versions, "cases": CASES}, separators=(",", ":"))
    (FOLDER / "axes_more.json").write_text(text_out + "\n", encoding="utf-8")
    print(len(CASES), "cases,", len(text_out), "bytes")
