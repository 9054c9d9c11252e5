"""Vision encoders for axes_more.json: towers of transformers 5.23.0, and the rotary classes of timm 1.0.31."""

import json
import sys
import types
from importlib import import_module
from pathlib import Path

import torch
from axes_cases import THW, add, rounded, vector

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

    from transformers.models.lightglue import modeling_lightglue as glue

    torch.manual_seed(5)
    config = {"descriptor_dim": 96, "num_attention_heads": 3, "seed": 5}
    encoder = glue.LightGluePositionalEncoder(types.SimpleNamespace(**config))
    places = torch.tensor([[0.1, -0.7], [-0.9, 0.4], [0.0, 0.5]])
    with torch.no_grad():
        ((cos, sin),) = encoder(places[None])
    x = vector(32).expand(1, 1, 3, 32)
    out = glue.apply_rotary_pos_emb(x, x, cos, sin)[0][0, 0]
    add("vision/lightglue", "transformers LightGluePositionalEncoder", config, places, rounded(out))


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
