"""Model types whose code is not in transformers but published with the model: what they read, and where that was read.

Sizes are those of the first published checkpoint. tests/goldens/published.json holds what model files of servers that
run these models compute for configs of theirs, and what TeleChat's own class does (make_published.py, make_remote.py).
"""

from __future__ import annotations

from typing import Any

VLLM = "vllm/model_executor/models/{} of vLLM 0.10.2"


def facts(hidden_size: int, heads: int, length: int, **more: Any) -> dict[str, Any]:
    """What a Llama-like type reads: the sizes of a checkpoint, and what else is its own."""
    return {"hidden_size": hidden_size, "num_attention_heads": heads, "max_position_embeddings": length, **more}


TYPES: dict[str, dict[str, Any]] = {
    "aquila": facts(4096, 32, 2048),
    "arctic": facts(7168, 56, 4096),
    "baichuan": facts(4096, 32, 4096, aliases={"model_max_length": "max_position_embeddings"}),
    "bailing_moe": facts(2048, 16, 16384, head_dim=128, default_theta=600_000.0),
    "bailing_moe_linear": facts(2048, 16, 131072, head_dim=128, default_theta=600_000.0, partial=True),
    "bailing_moe_v2": facts(2048, 16, 32768, head_dim=128, default_theta=600_000.0, partial=True),
    "chatglm": {
        "aliases": {"kv_channels": "head_dim", "seq_length": "max_position_embeddings"},
        **facts(4096, 32, 2048, head_dim=128, pairing="interleaved", partial=True),
    },
    "deepseek": facts(2048, 16, 2048),
    "exaone": facts(4096, 32, 4096, aliases={"num_layers": "num_hidden_layers"}),
    "grok-1": facts(6144, 48, 8192),
    "internlm": facts(4096, 32, 2048),
    "internlm2": facts(4096, 32, 2048),
    "kimi_k2": facts(
        7168,
        64,
        131072,
        head="qk_rope_head_dim",
        head_wins=True,
        pairing="interleaved",
        rope_interleave=True,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        default_theta=50_000.0,
    ),
    "mimo": facts(4096, 32, 32768, default_theta=640_000.0),
    "minicpm": facts(2304, 36, 4096),
    "minimax_m1": facts(6144, 64, 10240000, head_dim=128, default_theta=10_000_000.0, partial=True),
    "minimax_text_01": facts(6144, 64, 10240000, head_dim=128, default_theta=10_000_000.0, partial=True),
    "orion": facts(5120, 40, 4096),
    "phi3small": facts(4096, 32, 8192),
    "qwen": {
        "aliases": {"kv_channels": "head_dim", "seq_length": "max_position_embeddings"},
        **facts(4096, 32, 8192, head_dim=128, partial=True),
    },
    "step3_text": {
        "aliases": {"max_position_embedding": "max_position_embeddings"},
        **facts(7168, 64, 65536, head_dim=256, default_theta=500_000.0),
    },
    "telechat": {
        "aliases": {"n_head": "num_attention_heads", "n_layer": "num_hidden_layers"},
        **facts(4096, 32, 8192),
    },
    "xverse": facts(5120, 40, 8192),
}
TYPES["telechat"]["aliases"] |= {"seq_length": "max_position_embeddings"}

SOURCES: dict[str, str] = {
    "aquila": f"{VLLM.format('registry.py')}: a Llama",
    "arctic": "modeling_arctic.py in Snowflake-Labs/transformers@2d05ff8, and " + VLLM.format("arctic.py"),
    "baichuan": "models/modeling_baichuan.py in baichuan-inc/Baichuan-7B@0ae400d: base 10000 in the code",
    "bailing_moe": VLLM.format("bailing_moe.py"),
    "bailing_moe_linear": "mlx_lm/models/bailing_moe_linear.py of mlx-lm 0.32.2",
    "bailing_moe_v2": "modeling_bailing_moe_v2.py in inclusionAI/Ming@4a6dffb",
    "chatglm": "modeling_chatglm.py as in vllm/model_executor/models/chatglm.py of vLLM 0.33.0",
    "deepseek": VLLM.format("deepseek.py"),
    "exaone": VLLM.format("exaone.py"),
    "grok-1": VLLM.format("grok1.py") + ": base 10000 in the code",
    "internlm": f"{VLLM.format('registry.py')}: a Llama whose base may stand in rotary.base",
    "internlm2": VLLM.format("internlm2.py"),
    "kimi_k2": "deepseek-ai/DeepSeek-V3@9b4e978, whose code travels with Kimi K2, and mlx_lm/utils.py of mlx-lm 0.32.2",
    "mimo": VLLM.format("mimo.py") + ": a Qwen 2",
    "minicpm": VLLM.format("minicpm.py"),
    "minimax_m1": VLLM.format("minimax_text_01.py"),
    "minimax_text_01": VLLM.format("minimax_text_01.py"),
    "orion": VLLM.format("orion.py"),
    "phi3small": "mlx_lm/models/phi3small.py of mlx-lm 0.32.2",
    "qwen": VLLM.format("qwen.py") + ", and mlx_lm/models/qwen.py of mlx-lm 0.32.2",
    "step3_text": VLLM.format("step3_text.py"),
    "telechat": "models/12B/modeling_telechat.py in Tele-AI/Telechat@14c009a, run: base 10000 in the code. "
    "Beyond training_seqlen base and factor grow with the length that is asked for",
    "xverse": f"{VLLM.format('registry.py')}: a Llama",
}
"""{model type: where its code was read}."""

WRAPPERS: dict[str, dict[str, Any]] = {
    "deepseek_vl_v2": {"text": ["language_config"], "type": "deepseek_v2"},
    "kimi_vl": {"text": ["text_config"], "type": "deepseek_v3"},
    "mimo_vl": {"text": ["text_config"], "type": "mimo"},
    "minimax_vl_01": {"text": ["text_config"], "type": "minimax_text_01"},
    "step3_vl": {"text": ["text_config"], "type": "step3_text"},
}
"""Composite types: where their language model stands, and its type where it names none."""
