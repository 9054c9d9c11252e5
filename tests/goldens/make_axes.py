"""Run the published classes with positions on several axes, and write axes_more.json beside this file.

    python tests/goldens/make_axes.py        # transformers 5.23.0, diffusers 0.42.1, timm 1.0.31, torch 2.13.0

A case holds the family and the config as `rope_viz.configs.axes.read` takes them, the positions the class was given, in
its own units, and what its own rotation makes of a fixed vector at each of them, in float32 unless the class says
otherwise. Positions go to some hundred only, so that float32 angles err by less than the tolerance, 2e-5.

axes.json beside it (57 cases of other configs and positions, run in the same way; each names its class and version)
says of itself how it was made.
"""

import json
import math
import sys
import types
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parent
TOLERANCE = 2e-5


def vector(dim: int) -> torch.Tensor:
    """The fixed vector, as the test makes it."""
    return torch.tensor(np.cos(1.7 * np.arange(dim) + 0.3), dtype=torch.float32)


def rounded(table: torch.Tensor) -> list:
    return [[round(float(v), 6) for v in row] for row in table.reshape(-1, table.shape[-1])]


CASES: list = []


def add(family: str, source: str, config: dict, positions, out, **more) -> None:
    positions = torch.as_tensor(positions, dtype=torch.float64).tolist()
    CASES.append({"family": family, "source": source, "config": config, "positions": positions, "out": out, **more})


THW = torch.tensor([[3.0, 3.0, 3.0], [57.0, 61.0, 58.0], [0.0, 11.0, 40.0], [120.0, 7.0, 33.0]])


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


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


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


HW = torch.tensor([[1.0, 1.0], [0.0, 7.0], [13.0, 2.0], [50.0, 71.0]])
VISION = {
    "qwen2_vl": ("Qwen2VLVisionRotaryEmbedding", "Qwen2VLVisionConfig", {"embed_dim": 320, "num_heads": 4}),
    "qwen2_5_vl": ("Qwen2_5_VLVisionRotaryEmbedding", "Qwen2_5_VLVisionConfig", {"hidden_size": 320, "num_heads": 4}),
    "qwen2_5_omni": (
        "Qwen2_5OmniVisionRotaryEmbedding",
        "Qwen2_5OmniVisionEncoderConfig",
        {"hidden_size": 320, "num_heads": 4},
    ),
    "qwen3_vl": ("Qwen3VLVisionRotaryEmbedding", "Qwen3VLVisionConfig", {"hidden_size": 288, "num_heads": 4}),
    "qwen3_5": ("Qwen3_5VisionRotaryEmbedding", "Qwen3_5VisionConfig", {"hidden_size": 288, "num_heads": 4}),
    "glm4v": ("Glm4vVisionRotaryEmbedding", "Glm4vVisionConfig", {"hidden_size": 256, "num_heads": 2}),
    "ernie4_5_vl_moe": (
        "Ernie4_5_VLMoeVisionRotaryEmbedding",
        "Ernie4_5_VLMoeVisionConfig",
        {"hidden_size": 320, "num_heads": 4},
    ),
    "paddleocr_vl": (
        "PaddleOCRVisionRotaryEmbedding",
        "PaddleOCRVisionConfig",
        {"hidden_size": 288, "num_attention_heads": 4},
    ),
    "exaone4_5": ("Exaone4_5_VisionRotaryEmbedding", "Exaone4_5_VisionConfig", {"hidden_size": 320, "num_heads": 4}),
    "lfm3_vl": ("Lfm3VlVisionRotaryEmbedding", "Lfm3VlVisionConfig", {"hidden_size": 256, "num_attention_heads": 4}),
    "video_llama_3": (
        "VideoLlama3VisionRotaryEmbedding",
        "VideoLlama3VisionConfig",
        {"hidden_size": 256, "num_attention_heads": 4},
    ),
    "dots3_note": (
        "Dots3NoteVisionRotaryEmbedding",
        "Dots3NoteVisionConfig",
        {"hidden_size": 1536, "num_attention_heads": 24},
    ),
    "cohere_compass": (
        "CohereCompassVisionRotaryEmbedding",
        "CohereCompassVisionConfig",
        {"hidden_size": 288, "num_heads": 4},
    ),
    "mlcd": ("MLCDRotaryEmbedding", "MLCDVisionConfig", {"hidden_size": 416, "num_attention_heads": 4}),
    "step3p7": ("Step3p7VisionRotaryEmbedding", "Step3p7VisionConfig", {"hidden_size": 384, "num_attention_heads": 4}),
    "muse_spark": (
        "MuseSparkVisionRotaryEmbedding",
        "MuseSparkVisionConfig",
        {"hidden_size": 384, "num_attention_heads": 4},
    ),
    "inkling2": (
        "Inkling2VisionRotaryEmbedding",
        "Inkling2VisionConfig",
        {"hidden_size": 256, "num_attention_heads": 4},
    ),
    "kimi_k25": (
        "Kimi_K25VisionRotaryEmbedding",
        "Kimi_K25VisionConfig",
        {"hidden_size": 288, "num_attention_heads": 4},
    ),
    "pixtral": (
        "PixtralVisionRotaryEmbedding",
        "PixtralVisionConfig",
        {"hidden_size": 256, "num_attention_heads": 4, "head_dim": 64},
    ),
    "gemma4": (
        "Gemma4VisionRotaryEmbedding",
        "Gemma4VisionConfig",
        {"hidden_size": 256, "num_attention_heads": 4, "head_dim": 72},
    ),
    "minimax_m3_vl": (
        "MiniMaxM3VLVisionRotaryEmbedding",
        "MiniMaxM3VLVisionConfig",
        {"hidden_size": 320, "num_attention_heads": 4},
    ),
    "sam3": ("Sam3ViTRotaryEmbedding", "Sam3ViTConfig", {"hidden_size": 256, "num_attention_heads": 4}),
    "sam2_video": (
        "Sam2VideoVisionRotaryEmbedding",
        "Sam2VideoConfig",
        {"memory_attention_hidden_size": 128, "memory_attention_num_attention_heads": 2},
    ),
    "edgetam_video": (
        "EdgeTamVideoVisionRotaryEmbedding",
        "EdgeTamVideoConfig",
        {"memory_attention_hidden_size": 128, "memory_attention_downsample_rate": 2},
    ),
}


def towers() -> None:
    for kind, (name, config_name, config) in VISION.items():
        for extra in ({}, {"rope_parameters": {"rope_type": "axial", "rope_theta": 500.0}}):
            if extra and kind not in ("qwen3_vl", "pixtral", "gemma4", "kimi_k25", "minimax_m3_vl", "inkling2"):
                continue
            tower(kind, name, config_name, {**config, **extra})


def tower(kind: str, name: str, config_name: str, config: dict) -> None:
    module = import_module(f"transformers.models.{kind}.modeling_{kind}")
    configs = import_module(f"transformers.models.{kind}.configuration_{kind}")
    rotary = getattr(module, name)(getattr(configs, config_name)(**json.loads(json.dumps(config))))
    ids = THW if kind == "minimax_m3_vl" else HW
    cos, sin = rotary(torch.zeros(1), ids[None].long() if kind == "gemma4" else ids.long())
    heads = config.get("num_attention_heads", config.get("num_heads", 1))
    size = config.get("head_dim") or config.get("embed_dim", config.get("hidden_size", 0)) // heads
    if "memory_attention_hidden_size" in config:
        size = cos.shape[-1]
    x = vector(size).expand(len(ids), 1, size)
    if kind == "gemma4":
        out = module.apply_multidimensional_rope(x[None], cos, sin, ids[None])[0]
    elif kind in ("sam3", "sam2_video", "edgetam_video"):
        apply = next(
            getattr(module, n)
            for n in ("apply_rotary_pos_emb_2d", "apply_rotary_pos_emb_2d_self_attn")
            if hasattr(module, n)
        )
        out = apply(x.transpose(0, 1)[None], x.transpose(0, 1)[None], cos=cos[0], sin=sin[0])[0]
    elif kind == "pixtral":
        out = module.apply_rotary_pos_emb(x.transpose(0, 1), x.transpose(0, 1), cos, sin, unsqueeze_dim=0)[0]
    else:
        out = module.apply_rotary_pos_emb_vision(x, x, cos, sin)[0]
    add(f"vision/{kind}", f"transformers {name}", config, ids, rounded(out))


def other_towers() -> None:
    from transformers.models.dinov3_vit import modeling_dinov3_vit as dino
    from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
    from transformers.models.llama4 import modeling_llama4 as llama
    from transformers.models.llama4.configuration_llama4 import Llama4VisionConfig
    from transformers.models.vjepa2 import modeling_vjepa2 as jepa

    config = {"hidden_size": 352, "num_attention_heads": 4, "image_size": 70, "patch_size": 14}
    x = vector(88).expand(1, 26, 1, 88)
    freqs = llama.Llama4VisionRotaryEmbedding(Llama4VisionConfig(**config))(torch.zeros(1))
    out = llama.vision_apply_rotary_emb(x, x, freqs)[0][0, :, 0]
    tokens = [0, 1, 7, 24, 25]
    places = [[1, 1], [2, 1], [3, 2], [5, 5], [0, 0]]
    add(
        "vision/llama4",
        "transformers Llama4VisionRotaryEmbedding",
        {**config, "tokens": tokens},
        places,
        rounded(out[tokens]),
        grid=True,
    )

    config = {"hidden_size": 256, "num_attention_heads": 4, "patch_size": 16, "rope_theta": 50.0}
    rope = dino.DINOv3ViTRopePositionEmbedding(DINOv3ViTConfig(**config)).eval()
    cos, sin = rope(torch.zeros(1, 3, 80, 48))
    x = vector(64).expand(1, 1, 15, 64)
    out = dino.apply_rotary_pos_emb(x, x, cos, sin)[0][0, 0]
    places = dino.get_patches_center_coordinates(5, 3, torch.float32, torch.device("cpu"))
    tokens = [0, 4, 14]
    given = {**config, "image": [80, 48], "grid": [5, 3], "tokens": tokens}
    add(
        "vision/dinov3",
        "transformers DINOv3ViTRopePositionEmbedding",
        given,
        places[tokens],
        rounded(out[tokens]),
        grid=True,
    )

    for heads, width in ((4, 352), (4, 256)):
        size = width // heads
        d = int(2 * (size // 3 // 2))
        places = torch.tensor([[1.0, 2.0, 3.0], [7.0, 0.0, 15.0]])
        x = vector(size).expand(1, 1, 2, size)
        parts = [jepa.rotate_queries_or_keys(x[..., k * d : (k + 1) * d], places[:, k]) for k in range(3)]
        out = torch.cat([*parts, x[..., 3 * d :]], -1)
        config = {"hidden_size": width, "num_attention_heads": heads}
        add("vision/vjepa2", "transformers VJEPA2RopeAttention", config, places, rounded(out))


def timm() -> None:
    root = Path(import_module("importlib.util").find_spec("timm").origin).parent
    for name in ("timm", "timm.layers"):  # the package itself wants torchvision
        module = types.ModuleType(name)
        module.__path__ = [str(root / name.replace("timm", "").replace(".", ""))]
        sys.modules[name] = module
    rope = import_module("timm.layers.pos_embed_sincos")
    cases = (
        {"dim": 64, "grid": [6, 9], "temperature": 100.0, "in_pixels": False, "grid_indexing": "xy"},
        {"dim": 64, "grid": [6, 9], "temperature": 1e4, "in_pixels": False, "ref_feat_shape": [3, 3]},
        {"dim": 48, "grid": [5, 4], "temperature": 1e4, "in_pixels": False, "grid_offset": 1.0, "rotate_half": True},
        {"dim": 32, "grid": [4, 5], "in_pixels": True, "max_res": 32},
        {"dim": 32, "grid": [4, 5], "in_pixels": True, "max_res": 16, "linear_bands": True},
        {
            **{"dim": 32, "grid": [4, 6], "in_pixels": False, "grid_type": "centered", "normalize_coords": "max"},
            "temperature": 100.0,
        },
    )
    for config in cases:
        given = {key: value for key, value in config.items() if key != "grid"}
        table = rope.RotaryEmbeddingCat(**given).get_embed(config["grid"])
        out = rope.apply_rot_embed_cat(
            vector(config["dim"]).expand(1, 1, len(table), config["dim"]), table, half=config.get("rotate_half", False)
        )
        grid_type = config.get("grid_type", "pixel" if config["in_pixels"] else "index")
        grid = rope._build_grid(
            config["grid"],
            grid_type=grid_type,
            ref_feat_shape=config.get("ref_feat_shape"),
            grid_offset=config.get("grid_offset", 0.0),
            grid_indexing=config.get("grid_indexing", "ij"),
            normalize_coords=config.get("normalize_coords", "separate"),
        ).reshape(-1, 2)
        pick = [0, 1, len(grid) // 2, len(grid) - 1]
        rows = rounded(out[0, 0, pick])
        add("vision/timm-axial", "timm RotaryEmbeddingCat", {**config, "tokens": pick}, grid[pick], rows, grid=True)
    for config in ({"dim": 72, "mrope_section": [12, 12, 12]}, {"dim": 64, "mrope_section": [8, 12, 12]}):
        table = rope.RotaryEmbeddingMRope(**config).get_embed([4, 5])
        out = rope.apply_rot_embed_cat(vector(config["dim"]).expand(1, 1, 20, config["dim"]), table, half=True)[0, 0]
        pick = [1, 5, 19]
        places = [[0, 0, 1], [0, 1, 0], [0, 3, 4]]
        given = {**config, "grid": [4, 5], "tokens": pick}
        add("vision/timm-mrope", "timm RotaryEmbeddingMRope", given, places, rounded(out[pick]), grid=True)
    for config in (
        {"dim": 64, "temperature": 100.0, "grid": [4, 6], "normalize_coords": "min"},
        {"dim": 32, "temperature": None, "min_period": 0.5, "max_period": 90.0, "grid": [3, 3], "rotate_half": False},
    ):
        given = {key: value for key, value in config.items() if key != "grid"}
        table = rope.RotaryEmbeddingDinoV3(**given).get_embed(config["grid"])
        out = rope.apply_rot_embed_cat(
            vector(config["dim"]).expand(1, 1, len(table), config["dim"]), table, half=config.get("rotate_half", True)
        )[0, 0]
        places = rope.make_coords_dinov3(*config["grid"], normalize_coords=config.get("normalize_coords", "separate"))
        pick = [0, 1, len(table) - 1]
        given = {**config, "tokens": pick}
        add("vision/timm-dinov3", "timm RotaryEmbeddingDinoV3", given, places[pick], rounded(out[pick]), grid=True)
    torch.manual_seed(11)
    config = {"dim": 256, "num_heads": 4, "depth": 3, "temperature": 10.0, "seed": 11, "grid": [5, 7], "layer": 2}
    model = rope.RotaryEmbeddingMixed(256, 3, 4, temperature=10.0, feat_shape=[5, 7], grid_indexing="xy")
    table = model.get_embed([5, 7])[2]
    out = rope.apply_rot_embed_cat(vector(64).expand(1, 4, 35, 64), table)[0]
    pick = [1, 7, 34]
    places = [[1, 0], [0, 1], [6, 4]]
    rows = [rounded(out[head, pick]) for head in range(4)]
    add(
        "vision/rope-mixed",
        "timm RotaryEmbeddingMixed",
        {**config, "tokens": pick},
        places,
        rows,
        heads=True,
        grid=True,
    )


def diffusers() -> None:
    from diffusers.models.embeddings import (
        apply_rotary_emb,
        get_2d_rotary_pos_embed,
        get_2d_rotary_pos_embed_lumina,
        get_3d_rotary_pos_embed,
    )

    def module(name: str):
        return import_module(f"diffusers.models.transformers.transformer_{name}")

    def real(table, dim: int, unbind: int = -1):
        x = vector(dim).expand(1, 1, len(table[0]), dim)
        return apply_rotary_emb(x, table, use_real=True, use_real_unbind_dim=unbind)[0, 0]

    def complexed(table, dim: int):
        table = table.reshape(-1, table.shape[-1])
        x = vector(dim).expand(1, len(table), 1, dim)
        return apply_rotary_emb(x, table[None].to(torch.complex64), use_real=False)[0, :, 0]

    def matrices(table, dim: int):
        """Tables of 2 × 2 matrices, applied to adjacent dimensions."""
        table = table.reshape(-1, dim // 2, 2, 2).float()
        return (table @ vector(dim).reshape(1, -1, 2, 1)).reshape(len(table), dim)

    ids = torch.tensor([[0.0, 0, 0], [0, 1, 1], [0, 0, 63], [1, 40, 5], [7, 12, 80]])
    for name, cls, config in (
        ("flux", "FluxPosEmbed", {"theta": 10000, "axes_dim": [8, 20, 20]}),
        ("bria", "BriaPosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("bria_fibo", "BriaFiboEmbedND", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("krea2", "Krea2RotaryPosEmbed", {"theta": 1000, "axes_dim": [16, 24, 24]}),
        ("longcat_image", "LongCatImagePosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("ovis_image", "OvisImagePosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
    ):
        out = real(getattr(module(name), cls)(**config)(ids), sum(config["axes_dim"]))
        add(f"dit/{cls}", f"diffusers {cls}", config, ids, rounded(out))
    four = torch.cat([ids, torch.tensor([[0.0], [3], [0], [9], [21]])], 1)
    for name, cls, base in (("flux2", "Flux2PosEmbed", 2000), ("flux3", "Flux3PosEmbed", 10000)):
        config = {"theta": base, "axes_dim": [16, 16, 16, 16]}
        add(
            f"dit/{cls}",
            f"diffusers {cls}",
            config,
            four,
            rounded(real(getattr(module(name), cls)(**config)(four), 64)),
        )
    config = {"theta": 10000, "axes_dim": [32, 16, 16]}
    out = matrices(module("hidream_image").HiDreamImageEmbedND(**config)(ids[None]), 64)
    add("dit/HiDreamImageEmbedND", "diffusers HiDreamImageEmbedND", config, ids, rounded(out))
    config = {"dim": 64, "theta": 10000, "axes_dim": [32, 32]}
    out = matrices(module("prx").PRXEmbedND(**config)(ids[None, :, 1:]), 64)
    add("dit/PRXEmbedND", "diffusers PRXEmbedND", config, ids[:, 1:], rounded(out))
    for name in ("z_image", "bria_fibo2"):
        config = {"axes_dims": [16, 24, 24], "rope_theta": 256.0}
        embed = module(name).RopeEmbedder(theta=256.0, axes_dims=[16, 24, 24], axes_lens=[64, 64, 128])
        out = complexed(embed(ids.long()), 64)
        add(
            "dit/z-image" if name == "z_image" else "dit/bria-fibo2",
            "diffusers RopeEmbedder",
            config,
            ids,
            rounded(out),
        )

    video = torch.zeros(1, 4, 5, 12, 16)
    pick = [1, 8, 48, 239]
    places = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [4, 5, 7]]
    for name, cls in (
        ("hunyuan_video", "HunyuanVideoRotaryPosEmbed"),
        ("hunyuan_video15", "HunyuanVideo15RotaryPosEmbed"),
        ("motif_video", "MotifVideoRotaryPosEmbed"),
    ):
        config = {"rope_axes_dim": [8, 28, 28], "rope_theta": 256.0, "latents": [5, 12, 16], "patch_size": 2}
        out = real(getattr(module(name), cls)(2, 1, [8, 28, 28], 256.0)(video), 64)[pick]
        add(f"dit/{cls}", f"diffusers {cls}", {**config, "tokens": pick}, places, rounded(out), grid=True)
    out = real(module("hunyuanimage").HunyuanImageRotaryPosEmbed([2, 2], [32, 32], 256.0)(video[:, :, 0]), 64)
    config = {"rope_axes_dim": [32, 32], "rope_theta": 256.0, "grid": [6, 8], "tokens": [0, 9, 47]}
    add(
        "dit/hunyuan-image",
        "diffusers HunyuanImageRotaryPosEmbed",
        config,
        [[0, 0], [1, 1], [5, 7]],
        rounded(out[[0, 9, 47]]),
        grid=True,
    )
    frames = module("hunyuan_video_framepack").HunyuanVideoFramepackRotaryPosEmbed(2, 1, [8, 28, 28], 256.0)
    out = real(frames(torch.tensor([0, 9, 40]), 4, 6, torch.device("cpu")), 64)
    config = {"rope_axes_dim": [8, 28, 28], "grid": [2, 3], "frame_indices": [0, 9, 40], "tokens": [1, 7, 17]}
    add(
        "dit/framepack",
        "diffusers HunyuanVideoFramepackRotaryPosEmbed",
        config,
        [[0, 0, 1], [9, 0, 1], [40, 1, 2]],
        rounded(out[[1, 7, 17]]),
        grid=True,
    )

    for name, cls, size in (
        ("wan", "WanRotaryPosEmbed", 64),
        ("wan", "WanRotaryPosEmbed", 100),
        ("skyreels_v2", "SkyReelsV2RotaryPosEmbed", 64),
        ("sana_video", "WanRotaryPosEmbed", 112),
    ):
        cos, sin = getattr(module(name), cls)(size, (1, 2, 2), 64)(video)
        out = real((cos[0, :, 0], sin[0, :, 0]), size)[pick]
        family = {"sana_video": "dit/sana-video", "skyreels_v2": "dit/skyreels-v2"}.get(name, "dit/wan")
        config = {"attention_head_dim": size, "latents": [5, 12, 16], "patch_size": [1, 2, 2], "tokens": pick}
        add(family, f"diffusers {cls}", config, places, rounded(out), grid=True)
    edit = module("chronoedit").ChronoEditRotaryPosEmbed(96, (1, 2, 2), 64, temporal_skip_len=8)
    cos, sin = edit(video[:, :, :2])
    out = real((cos[0, :, 0], sin[0, :, 0]), 96)
    config = {"attention_head_dim": 96, "latents": [2, 12, 16], "patch_size": [1, 2, 2], "tokens": [1, 48, 95]}
    add(
        "dit/chronoedit",
        "diffusers ChronoEditRotaryPosEmbed",
        config,
        [[0, 0, 1], [7, 0, 0], [7, 5, 7]],
        rounded(out[[1, 48, 95]]),
        grid=True,
    )
    helios = module("helios").HeliosRotaryPosEmbed((16, 24, 24), 10000.0)
    table = helios(torch.tensor([[3.0, 8.0]]), 2, 3, "cpu")[0].flatten(1)
    out = real((table[:64].T, table[64:].T), 64)
    config = {
        "rope_dim": [16, 24, 24],
        "rope_theta": 10000.0,
        "grid": [2, 3],
        "frame_indices": [3, 8],
        "tokens": [1, 6, 11],
    }
    add(
        "dit/helios",
        "diffusers HeliosRotaryPosEmbed",
        config,
        [[3, 0, 1], [8, 0, 0], [8, 1, 2]],
        rounded(out[[1, 6, 11]]),
        grid=True,
    )

    crops = ((4, 0), (26, 45))
    table = get_3d_rotary_pos_embed(64, crops, (3, 9), 2)
    tokens = [1, 9, 53]
    grid = torch.tensor([[0, 4, 5.0], [0, 4 + (26 * 2 / 3 - 4) / 2, 0], [1, 26 * 2 / 3, 40]], dtype=torch.float64)
    config = {"embed_dim": 64, "grid": [3, 9], "crops_coords": crops, "frames": 2, "tokens": tokens}
    add("dit/cogvideox", "diffusers get_3d_rotary_pos_embed", config, grid, rounded(real(table, 64)[tokens]), grid=True)
    table = get_3d_rotary_pos_embed(48, None, (3, 9), 2, grid_type="slice", max_size=(30, 45))
    config = {"embed_dim": 48, "grid": [3, 9], "grid_type": "slice", "frames": 2, "tokens": tokens}
    add(
        "dit/cogvideox",
        "diffusers get_3d_rotary_pos_embed",
        config,
        [[0, 0, 1], [0, 1, 0], [1, 2, 8]],
        rounded(real(table, 48)[tokens]),
        grid=True,
    )
    table = get_2d_rotary_pos_embed(88, ((4, 0), (28, 32)), (6, 8))
    tokens = [1, 8, 47]
    config = {"embed_dim": 88, "grid": [6, 8], "crops_coords": ((4, 0), (28, 32)), "tokens": tokens}
    grid = [[4.0, 4.0], [0, 4 + (28 * 5 / 6 - 4) / 5], [28, 28 * 5 / 6]]
    add(
        "dit/hunyuan-dit",
        "diffusers get_2d_rotary_pos_embed",
        config,
        grid,
        rounded(real(table, 88)[tokens]),
        grid=True,
    )
    for linear, ntk in ((1.0, 3.0), (2.0, 1.0)):
        table = get_2d_rotary_pos_embed_lumina(96, 4, 6, linear_factor=linear, ntk_factor=ntk)
        config = {"embed_dim": 96, "grid": [4, 6], "linear_factor": linear, "ntk_factor": ntk, "tokens": [1, 6, 23]}
        add(
            "dit/lumina-next",
            "diffusers get_2d_rotary_pos_embed_lumina",
            config,
            [[0, 1], [1, 0], [3, 5]],
            rounded(complexed(table, 96)[[1, 6, 23]]),
            grid=True,
        )

    latents = torch.zeros(1, 4, 12, 20)
    for name, cls, config, grid in (
        ("cogview4", "CogView4RotaryPosEmbed", {"dim": 40, "rope_axes_dim": [64, 48]}, [[0, 4], [10, 0], [53, 43]]),
        ("glm_image", "GlmImageRotaryPosEmbed", {"dim": 40}, [[0, 1], [1, 0], [5, 9]]),
    ):
        more = {"rope_axes_dim": (64, 48)} if name == "cogview4" else {}
        out = real(getattr(module(name), cls)(40, 2, **more)(latents), 40, -2)
        config = {**config, "grid": [6, 10], "tokens": [1, 10, 59]}
        add(f"dit/{name.replace('_', '-')}", f"diffusers {cls}", config, grid, rounded(out[[1, 10, 59]]), grid=True)
    for scale, fps in (((1.0, 3.0, 3.0), 12), ((2.0, 1.0, 1.0), None)):
        rope = module("cosmos").CosmosRotaryPosEmbed(64, (32, 64, 64), (1, 2, 2), 24, scale)
        out = real(rope(torch.zeros(1, 4, 4, 8, 12), fps), 64, -2)
        step = 1.0 if fps is None else 24 / fps
        config = {
            "attention_head_dim": 64,
            "rope_scale": scale,
            "fps": fps,
            "base_fps": 24,
            "grid": [4, 4, 6],
            "tokens": [1, 6, 95],
        }
        add(
            "dit/cosmos",
            "diffusers CosmosRotaryPosEmbed",
            config,
            [[0, 0, 1], [0, 1, 0], [3 * step, 3, 5]],
            rounded(out[[1, 6, 95]]),
            grid=True,
        )
    for name, cls in (("kandinsky", "Kandinsky5RoPE3D"), ("kandinsky6", "Kandinsky6RoPE3D")):
        rope = getattr(module(name), cls)((16, 24, 24))
        pos = [torch.arange(2), torch.arange(3), torch.arange(4)]
        table = rope((1, 2, 3, 4), pos, (1.0, 2.0, 2.0)) if name == "kandinsky" else rope(tuple(pos), (1.0, 2.0, 2.0))
        config = {"axes_dims": [16, 24, 24], "scale_factor": [1.0, 2.0, 2.0], "grid": [2, 3, 4], "tokens": [1, 4, 23]}
        add(
            f"dit/{cls}",
            f"diffusers {cls}",
            config,
            [[0, 0, 0.5], [0, 0.5, 0], [1, 1, 1.5]],
            rounded(matrices(table, 64)[[1, 4, 23]]),
            grid=True,
        )

    for name, cls, family, layered in (
        ("qwenimage", "QwenEmbedRope", "dit/qwen-image", False),
        ("qwenimage", "QwenEmbedLayer3DRope", "dit/qwen-image-layered", True),
    ):
        rope = getattr(module(name), cls)(10000, [8, 28, 28], scale_rope=True)
        shapes = [(1, 4, 6), (1, 3, 5)]
        images, words = rope([shapes], max_txt_seq_len=4, device=torch.device("cpu"))
        out = torch.cat([complexed(images, 64), complexed(words, 64)])
        tokens = [0, 23, 24, 38, 39, 42]
        second = -1 if layered else 1
        grid = [[0, -2, -3], [0, 1, 2], [second, -2, -3], [second, 0, 1], [3, 3, 3], [6, 6, 6]]
        config = {"axes_dims_rope": [8, 28, 28], "shapes": shapes, "text": 4, "tokens": tokens}
        add(family, f"diffusers {cls}", config, grid, rounded(out[tokens]), grid=True)
    rope = module("qwenimage21").QwenImage21Rope(10000, [8, 28, 28])
    mask = torch.tensor([False] * 3 + [True] * 6 + [False] * 2 + [True] * 4 + [False])
    out = complexed(rope([(1, 2, 3), (1, 2, 2)], mask, torch.device("cpu")), 64)
    layout = [["text", 3], ["image", [2, 3]], ["text", 2], ["image", [2, 2]], ["text", 1]]
    config = {"axes_dims_rope": [8, 28, 28], "layout": layout, "tokens": [2, 3, 8, 9, 11, 14, 15]}
    grid = [[2, 2, 2], [3, -1, -2], [3, 0, 0], [6, 6, 6], [8, -1, -1], [8, 0, 0], [10, 10, 10]]
    add(
        "dit/qwen-image-2.1",
        "diffusers QwenImage21Rope",
        config,
        grid,
        rounded(out[[2, 3, 8, 9, 11, 14, 15]]),
        grid=True,
    )

    lumina = module("lumina2").Lumina2RotaryPosEmbed(10000, [16, 24, 24], [64, 64, 64], 2)
    everything = lumina(torch.zeros(1, 4, 6, 8), torch.ones(1, 5).long())[3]
    config = {"axes_dim_rope": [16, 24, 24], "text": 5, "grid": [3, 4], "tokens": [4, 5, 16]}
    add(
        "dit/lumina2",
        "diffusers Lumina2RotaryPosEmbed",
        config,
        [[4, 0, 0], [5, 0, 0], [5, 2, 3]],
        rounded(complexed(everything, 64)[[4, 5, 16]]),
        grid=True,
    )

    rope = module("mochi").MochiRoPE()
    torch.manual_seed(5)
    weights = torch.rand(3, 4, 16) * 2 - 1
    cos, sin = rope(weights, 2, 3, 4, dtype=torch.float32)
    config = {"seed": 5, "num_attention_heads": 4, "attention_head_dim": 32, "grid": [2, 3, 4], "tokens": [0, 7, 23]}
    heads = []
    for head in range(4):
        table = torch.complex(cos[:, head], sin[:, head])
        heads.append(rounded(complexed(table, 32)[[0, 7, 23]]))
    places = rope._get_positions(2, 3, 4, dtype=torch.float32)[[0, 7, 23]]
    add("dit/mochi", "diffusers MochiRoPE", config, places, heads, heads=True, grid=True, tolerance=2e-4)

    for heads_count, size in ((2, 32), (2, 20)):
        width = heads_count * size
        rope = module("ltx").LTXVideoRotaryPosEmbed(width)
        scale = (0.32, 32, 32)
        cos, sin = rope(torch.zeros(1), 2, 3, 4, scale)
        x = vector(size).repeat(heads_count).expand(1, 24, width)
        out = module("ltx").apply_rotary_emb(x, (cos, sin))[0].reshape(24, heads_count, size)
        tokens = [0, 1, 23]
        config = {
            "inner_dim": width,
            "num_attention_heads": heads_count,
            "grid": [2, 3, 4],
            "rope_interpolation_scale": scale,
            "tokens": tokens,
        }
        places = [[-1, -1, -1], [-1, -1, -0.96875], [2 * 0.016 - 1, 2 * 2 / 64 - 1, 2 * 3 / 64 - 1]]
        rows = [rounded(out[tokens, head]) for head in range(heads_count)]
        add(
            "dit/ltx-video",
            "diffusers LTXVideoRotaryPosEmbed",
            config,
            places,
            rows,
            heads=True,
            grid=True,
            tolerance=6e-3,
        )
    for kind in ("interleaved", "split"):
        ltx2 = module("ltx2")
        rope = ltx2.LTX2AudioVideoRotaryPosEmbed(dim=64, rope_type=kind, num_attention_heads=2)
        coords = rope.prepare_video_coords(1, 2, 2, 3, torch.device("cpu"))
        table = rope(coords)
        x = vector(32).repeat(2).expand(1, 12, 64)
        if kind == "split":
            wide = x.reshape(1, 12, 2, 32).transpose(1, 2)
            out = ltx2.apply_split_rotary_emb(wide, table)[0].transpose(0, 1)
        else:
            out = ltx2.apply_interleaved_rotary_emb(x, table)[0].reshape(12, 2, 32)
        middle = coords.mean(-1)[0].T / torch.tensor([20.0, 2048, 2048])
        config = {"dim": 64, "num_attention_heads": 2, "rope_type": kind, "grid": [2, 2, 3], "tokens": [0, 5, 11]}
        rows = [rounded(out[[0, 5, 11], head]) for head in range(2)]
        add(
            "dit/ltx2",
            "diffusers LTX2AudioVideoRotaryPosEmbed",
            config,
            (2 * middle - 1)[[0, 5, 11]],
            rows,
            heads=True,
            grid=True,
            tolerance=6e-3,
        )

    h3 = module("minimax_h3")
    rope = h3.MiniMaxH3RotaryPosEmbed(5, 500.0)
    cos, sin = rope(THW)
    x = vector(40).expand(1, 4, 1, 40)
    out = h3._apply_rotary_emb(x, cos, sin)[0, :, 0]
    config = {"rope_freq_dim": 5, "attention_head_dim": 40, "rope_theta": 500.0}
    add("dit/minimax-h3", "diffusers MiniMaxH3RotaryPosEmbed", config, THW, rounded(out))
    mrope = module("ideogram4").Ideogram4MRoPE(64, 5_000_000, (12, 10, 10))
    cos, sin = mrope(THW[None])
    x = vector(64).expand(1, 1, 4, 64)
    out = x * cos[:, None] + rotate_half(x) * sin[:, None]
    config = {"attention_head_dim": 64, "rope_theta": 5e6, "mrope_section": [12, 10, 10]}
    add("dit/ideogram4", "diffusers Ideogram4MRoPE", config, THW, rounded(out))
    rope = module("sana_wm").SanaWMRotaryPosEmbed(48, (1, 1, 1), 64, fhw_dim=(24, 12, 12))
    out = complexed(rope((2, 3, 4))[0, 0], 48)
    config = {"attention_head_dim": 48, "fhw_dim": [24, 12, 12]}
    add(
        "dit/sana-wm",
        "diffusers SanaWMRotaryPosEmbed",
        config,
        [[0, 0, 1], [0, 1, 0], [1, 2, 3]],
        rounded(out[[1, 4, 23]]),
    )
    ernie = module("ernie_image").ErnieImageEmbedND3(64, 256, (16, 24, 24))
    angles = ernie(ids[None])[0, :, 0]
    x = vector(64).expand(5, 64)
    out = x * angles.cos() + rotate_half(x) * angles.sin()
    config = {"rope_axes_dim": [16, 24, 24], "rope_theta": 256}
    add("dit/ernie-image", "diffusers ErnieImageEmbedND3", config, ids, rounded(out))


if __name__ == "__main__":
    texts()
    towers()
    other_towers()
    diffusers()
    timm()
    about = " ".join(__doc__.split())
    versions = {"transformers": "5.23.0", "diffusers": "0.42.1", "timm": "1.0.31", "torch": torch.__version__}
    assert math.isclose(float(vector(2)[0]), math.cos(0.3), rel_tol=1e-6)
    for case in CASES:
        case.setdefault("tolerance", TOLERANCE)
    text_out = json.dumps({"about": about, "versions": versions, "cases": CASES}, separators=(",", ":"))
    (FOLDER / "axes_more.json").write_text(text_out + "\n", encoding="utf-8")
    print(len(CASES), "cases,", len(text_out), "bytes")
