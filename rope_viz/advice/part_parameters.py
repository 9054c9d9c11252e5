"""Count the weights of vision and audio parts of a multimodal config, by the usual sizes of a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PARTS = ("vision_config", "audio_config", "vision_tower_config", "audio_encoder_config", "visual", "vit_config")


def count_other_parts(config: Mapping[str, Any], text_width: int) -> tuple[int, tuple[str, ...]]:
    """Return (number of weights, parts whose sizes are missing) of vision and audio towers at one level of a config."""
    total, missing = 0, []
    for key in PARTS:
        part = config.get(key)
        if not isinstance(part, Mapping) or not part:
            continue
        count = count_tower(part, text_width)
        if count is None:
            missing.append(key)
        total += count or 0
    return total, tuple(missing)


def read_size(part: Mapping[str, Any], *names: str) -> int:
    """Return the first of these sizes that is a whole number, 0 where none is."""
    values = (part.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0), 0)


def count_tower(part: Mapping[str, Any], text_width: int) -> int | None:
    """Return the number of weights of one tower with its projector, None where its sizes are missing."""
    depth = read_size(part, "depth", "num_hidden_layers", "encoder_layers", "num_layers", "layers", "n_layers")
    width = read_size(part, "embed_dim", "hidden_size", "d_model", "width", "n_embd")
    out = read_size(part, "out_hidden_size", "output_dim", "projector_output_dim") or text_width
    if "embed_dim" in part and "out_hidden_size" not in part:
        out = read_size(part, "hidden_size") or text_width
    if not depth or not width:
        return None
    inner = read_size(part, "intermediate_size", "encoder_ffn_dim", "ffn_dim")
    inner = inner or int(width * (part.get("mlp_ratio") or 4))
    gated = 3 if part.get("hidden_act") in ("silu", "swiglu") else 2
    depth += read_size(part, "num_global_layers")
    total = depth * (4 * width * width + gated * width * inner + 4 * width)
    patch, channels = read_size(part, "patch_size"), read_size(part, "in_channels", "num_channels", "in_chans") or 3
    total += width * channels * patch * patch * (read_size(part, "temporal_patch_size") or 1)
    total += width * read_size(part, "num_position_embeddings")
    merge = read_size(part, "spatial_merge_size")
    if merge:
        merged = width * merge * merge
        indexes = part.get("deepstack_visual_indexes")
        mergers = 1 + (len(indexes) if isinstance(indexes, (list, tuple)) else 0)
        return total + mergers * merged * (merged + out)
    return total + width * out
