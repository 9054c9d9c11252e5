"""Diffusion transformers for axes_more.json, the classes and functions of diffusers 0.42.1."""

from importlib import import_module

import torch
from axes_cases import THW, add, rotate_half, rounded, vector
from diffusers.models.embeddings import (
    apply_rotary_emb,
    get_2d_rotary_pos_embed,
    get_2d_rotary_pos_embed_lumina,
    get_3d_rotary_pos_embed,
)

IDS = torch.tensor([[0.0, 0, 0], [0, 1, 1], [0, 0, 63], [1, 40, 5], [7, 12, 80]])


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


def diffusers() -> None:
    lists()
    films()
    grids()
    streams()


def lists() -> None:
    """Classes that are given positions, one row per token."""
    for name, cls, config in (
        ("flux", "FluxPosEmbed", {"theta": 10000, "axes_dim": [8, 20, 20]}),
        ("bria", "BriaPosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("bria_fibo", "BriaFiboEmbedND", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("krea2", "Krea2RotaryPosEmbed", {"theta": 1000, "axes_dim": [16, 24, 24]}),
        ("longcat_image", "LongCatImagePosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
        ("ovis_image", "OvisImagePosEmbed", {"theta": 10000, "axes_dim": [8, 12, 12]}),
    ):
        out = real(getattr(module(name), cls)(**config)(IDS), sum(config["axes_dim"]))
        add(f"dit/{cls}", f"diffusers {cls}", config, IDS, rounded(out))
    four = torch.cat([IDS, torch.tensor([[0.0], [3], [0], [9], [21]])], 1)
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
    out = matrices(module("hidream_image").HiDreamImageEmbedND(**config)(IDS[None]), 64)
    add("dit/HiDreamImageEmbedND", "diffusers HiDreamImageEmbedND", config, IDS, rounded(out))
    config = {"dim": 64, "theta": 10000, "axes_dim": [32, 32]}
    out = matrices(module("prx").PRXEmbedND(**config)(IDS[None, :, 1:]), 64)
    add("dit/PRXEmbedND", "diffusers PRXEmbedND", config, IDS[:, 1:], rounded(out))
    for name in ("z_image", "bria_fibo2"):
        config = {"axes_dims": [16, 24, 24], "rope_theta": 256.0}
        embed = module(name).RopeEmbedder(theta=256.0, axes_dims=[16, 24, 24], axes_lens=[64, 64, 128])
        out = complexed(embed(IDS.long()), 64)
        add(
            "dit/z-image" if name == "z_image" else "dit/bria-fibo2",
            "diffusers RopeEmbedder",
            config,
            IDS,
            rounded(out),
        )


def films() -> None:
    """Classes that lay out the frames of a film themselves."""
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


def grids() -> None:
    """Functions and classes of one image, and Cosmos and Kandinsky."""
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


def streams() -> None:
    """Text and images in one stream, learned directions, and tables of other kinds."""
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
    angles = ernie(IDS[None])[0, :, 0]
    x = vector(64).expand(5, 64)
    out = x * angles.cos() + rotate_half(x) * angles.sin()
    config = {"rope_axes_dim": [16, 24, 24], "rope_theta": 256}
    add("dit/ernie-image", "diffusers ErnieImageEmbedND3", config, IDS, rounded(out))
