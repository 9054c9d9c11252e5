"""Vision encoders for axes_more.json: towers of transformers 5.23.0, and the rotary classes of timm 1.0.31."""

import json
import sys
import types
from importlib import import_module
from pathlib import Path

import torch
from axes_cases import THW, add, rounded, vector

HW = torch.tensor([[3.0, 3.0, 3.0], [57.0, 61.0, 58.0], [0.0, 11.0, 40.0], [120.0, 7.0, 33.0]])


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
