"""Roundings of published implementations of RoPE: angles, tables and products.

From the sources of the named versions and from public reports; not executed unless `ran` is true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Practice:
    """One implementation: its roundings, by name in `precision.ROUNDINGS`, and a link as evidence.

    `key` finds its description in the texts of the Precision page. Empty `roundings` mean float32 throughout with a
    float32 table, or arithmetic that is not emulated here.
    """

    key: str
    library: str
    roundings: tuple[str, ...]
    source: str
    ran: bool = False


PRACTICES: tuple[Practice, ...] = (
    Practice(
        "transformers",
        "transformers 5.23.0",
        ("float32-angles", "bf16-products"),
        "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/llama/modeling_llama.py",
        ran=True,
    ),
    Practice(
        "vllm",
        "vLLM 0.33.0",
        ("float32-angles", "bf16-table"),
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/model_executor/layers/rotary_embedding/base.py",
    ),
    Practice(
        "sglang",
        "SGLang, JIT kernel rope.cuh",
        ("float32-angles",),
        "https://github.com/sgl-project/sglang/tree/0e5721d",
    ),
    Practice(
        "llama-cpp",
        "llama.cpp",
        ("running-product",),
        "https://github.com/ggml-org/llama.cpp/blob/0c1e57098/ggml/src/ggml-cpu/ops.cpp",
    ),
    Practice(
        "te-fused",
        "Transformer Engine, fused",
        ("float32-angles",),
        "https://github.com/NVIDIA/TransformerEngine/pull/875",
    ),
    Practice(
        "te-unfused",
        "Transformer Engine and Megatron-LM, unfused",
        ("float32-angles", "bf16-products"),
        "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a6",
    ),
    Practice(
        "flash-attention",
        "flash-attention, Triton rotary",
        ("bf16-table",),
        "https://github.com/Dao-AILab/flash-attention/blob/0251105/flash_attn/ops/triton/rotary.py",
    ),
    Practice(
        "flashinfer",
        "FlashInfer 0.7.2, angles in the kernel",
        ("float32-angles",),
        "https://github.com/flashinfer-ai/flashinfer/blob/main/include/flashinfer/pos_enc.cuh",
    ),
    Practice(
        "liger",
        "Liger 0.8.5",
        ("bf16-products",),
        "https://github.com/linkedin/Liger-Kernel/blob/main/src/liger_kernel/ops/rope.py",
    ),
    Practice(
        "xformers",
        "xformers, rope_padded",
        (),
        "https://github.com/facebookresearch/xformers/tree/ca6d2aa",
    ),
    Practice(
        "rotary-embedding-torch",
        "rotary-embedding-torch 0.9.1",
        ("bf16-positions",),
        "https://github.com/lucidrains/rotary-embedding-torch",
        ran=True,
    ),
    Practice(
        "transformers-mistral",
        "transformers, Mistral, 2024",
        ("bf16-inv-freq",),
        "https://github.com/huggingface/transformers/issues/29496",
    ),
    Practice(
        "transformers-autocast",
        "transformers, Llama and Gemma, until 2024",
        ("bf16-angles",),
        "https://github.com/huggingface/transformers/pull/29285",
    ),
    Practice(
        "transformers-tf32",
        "transformers with TF32 matrix products",
        (),
        "https://github.com/huggingface/transformers/issues/48428",
    ),
    Practice(
        "gpt-neox",
        "GPT-NeoX, 2023",
        ("bf16-angles",),
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
    ),
    Practice(
        "candle",
        "candle, Qwen2",
        ("bf16-angles",),
        "https://github.com/huggingface/candle/pull/3520",
    ),
    Practice(
        "sglang-jax",
        "sglang-jax, until July 2026",
        ("bf16-inv-freq",),
        "https://github.com/sgl-project/sglang-jax/issues/1472",
    ),
    Practice(
        "modalities",
        "Modalities, until September 2026",
        ("bf16-inv-freq",),
        "https://github.com/Modalities/modalities/pull/462",
    ),
    Practice(
        "modded-nanogpt",
        "modded-nanogpt, 2024",
        ("bf16-table",),
        "https://github.com/KellerJordan/modded-nanogpt/issues/39",
    ),
    Practice(
        "vllm-2023",
        "vLLM, 2023",
        ("bf16-table",),
        "https://github.com/vllm-project/vllm/issues/863",
    ),
    Practice(
        "rope-viz",
        "RoPE Viz kernels",
        ("phase64",),
        "rope_viz/kernels",
    ),
)


def practised_by(where: str) -> tuple[Practice, ...]:
    """Return the implementations with this rounding, in the order of the list."""
    return tuple(each for each in PRACTICES if where in each.roundings)
