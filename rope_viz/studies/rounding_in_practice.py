"""Roundings of published implementations of RoPE: angles, tables and products.

From the sources of the named versions and from public reports; not executed unless `ran` is true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Practice:
    """One implementation: its roundings, by name in `precision.ROUNDINGS`, a description, and a link as evidence.

    Empty `roundings` mean float32 throughout with a float32 table, or arithmetic that is not emulated here.
    """

    library: str
    roundings: tuple[str, ...]
    description: str
    source: str
    was_run: bool = False


PRACTICES: tuple[Practice, ...] = (
    Practice(
        "transformers 5.23.0",
        ("float32-angles", "bf16-products"),
        "Angles in float32; cos and sin cast to the model's dtype, products in it.",
        "https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/llama/modeling_llama.py",
        was_run=True,
    ),
    Practice(
        "vLLM 0.33.0",
        ("float32-angles", "bf16-table"),
        "Angles in float32; the cos/sin cache cast to the model's dtype when it is built, products in float32.",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/model_executor/layers/rotary_embedding/base.py",
    ),
    Practice(
        "SGLang, JIT kernel rope.cuh",
        ("float32-angles",),
        "A float32 table and float32 products.",
        "https://github.com/sgl-project/sglang/tree/0e5721d",
    ),
    Practice(
        "llama.cpp",
        ("running-product",),
        "Float32 angles, each pair's made from the one before by a product; float32 cos, sin and products.",
        "https://github.com/ggml-org/llama.cpp/blob/0c1e57098/ggml/src/ggml-cpu/ops.cpp",
    ),
    Practice(
        "Transformer Engine, fused",
        ("float32-angles",),
        "A float32 table of angles, cos and sin in the kernel, float32 products.",
        "https://github.com/NVIDIA/TransformerEngine/pull/875",
    ),
    Practice(
        "Transformer Engine and Megatron-LM, unfused",
        ("float32-angles", "bf16-products"),
        "Float32 angles; cos and sin cast to the tensor's dtype, products in it.",
        "https://github.com/NVIDIA/Megatron-LM/tree/d98e8a6",
    ),
    Practice(
        "flash-attention, Triton rotary",
        ("bf16-table",),
        "cos and sin in the dtype the caller gives (often bf16), products in float32.",
        "https://github.com/Dao-AILab/flash-attention/blob/0251105/flash_attn/ops/triton/rotary.py",
    ),
    Practice(
        "FlashInfer 0.7.2, angles in the kernel",
        ("float32-angles",),
        "Float32 angles from fast approximate power, sine and cosine: worse than float32 angles by themselves.",
        "https://github.com/flashinfer-ai/flashinfer/blob/main/include/flashinfer/pos_enc.cuh",
    ),
    Practice(
        "Liger 0.8.5",
        ("bf16-products",),
        "Products in the dtype of cos and sin, so bf16 under transformers in bf16.",
        "https://github.com/linkedin/Liger-Kernel/blob/main/src/liger_kernel/ops/rope.py",
    ),
    Practice(
        "xformers, rope_padded",
        (),
        "Angles in the kernel in float32, or in float64 on request.",
        "https://github.com/facebookresearch/xformers/tree/ca6d2aa",
    ),
    Practice(
        "rotary-embedding-torch 0.9.1",
        ("bf16-positions",),
        "Positions in the dtype of the tensor: for bf16 the output is off by 18 % at 257 and 36 % at 511.",
        "https://github.com/lucidrains/rotary-embedding-torch",
        was_run=True,
    ),
    Practice(
        "transformers, Mistral, 2024",
        ("bf16-inv-freq",),
        "inv_freq was a buffer, so casting the model to bf16 rounded it.",
        "https://github.com/huggingface/transformers/issues/29496",
    ),
    Practice(
        "transformers, Llama and Gemma, until 2024",
        ("bf16-angles",),
        "Autocast ran the angles in bf16 until they were kept in float32.",
        "https://github.com/huggingface/transformers/pull/29285",
    ),
    Practice(
        "transformers with TF32 matrix products",
        (),
        "The angles are a matrix product; where that runs in TF32, 2049 becomes 2048. Open in 2026.",
        "https://github.com/huggingface/transformers/issues/48428",
    ),
    Practice(
        "GPT-NeoX, 2023",
        ("bf16-angles",),
        "Positions, inv_freq and angles in the model's dtype.",
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
    ),
    Practice(
        "candle, Qwen2",
        ("bf16-angles",),
        "Positions and inv_freq cast to the model's dtype before their product: 15962 becomes 15936. Open in 2026.",
        "https://github.com/huggingface/candle/pull/3520",
    ),
    Practice(
        "sglang-jax, until July 2026",
        ("bf16-inv-freq",),
        "inv_freq cast to the model's dtype before the product with float32 positions.",
        "https://github.com/sgl-project/sglang-jax/issues/1472",
    ),
    Practice(
        "Modalities, until September 2026",
        ("bf16-inv-freq",),
        "inv_freq cast to the activations' dtype before the product.",
        "https://github.com/Modalities/modalities/pull/462",
    ),
    Practice(
        "modded-nanogpt, 2024",
        ("bf16-table",),
        "cos and sin cached in bf16.",
        "https://github.com/KellerJordan/modded-nanogpt/issues/39",
    ),
    Practice(
        "vLLM, 2023",
        ("bf16-table",),
        "The table in the model's dtype, asked to be float32.",
        "https://github.com/vllm-project/vllm/issues/863",
    ),
    Practice(
        "RoPE Viz kernels",
        ("phase64",),
        "A 64-bit fixed-point phase and float32 polynomials; a float32 table where bits must match.",
        "rope_viz/kernels",
    ),
)


def find_practices(where: str) -> tuple[Practice, ...]:
    """Return the implementations with this rounding, in the order of the list."""
    return tuple(each for each in PRACTICES if where in each.roundings)
