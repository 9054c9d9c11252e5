"""Published measurements of context extension, to cite for a method; none of them are ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """One published finding about these methods and these models of the catalog (none: all), with its source."""

    methods: tuple[str, ...]
    models: tuple[str, ...]
    text: str
    source: str


QWEN3 = ("qwen3-8b", "qwen3-8b-yarn")
EVIDENCE = (
    Evidence(
        ("yarn",),
        QWEN3,
        "RULER scores of Qwen3-8B with YaRN × 4, not thinking: 96.3 at 4k, 91.2 at 32k, 82.1 at 64k, 77.4 at 128k. "
        "Thinking: 94.7, 80.8, 78.3, 72.0.",
        "Qwen3 Technical Report, table 23, https://arxiv.org/abs/2505.09388",
    ),
    Evidence(
        ("yarn",),
        (),
        "YaRN needed 10 times fewer tokens and 2.5 times fewer training steps than earlier methods.",
        "Peng et al., abstract, https://arxiv.org/abs/2309.00071",
    ),
    Evidence(
        ("yarn",),
        ("deepseek-v3", "deepseek-v2", "deepseek-v2-lite"),
        "DeepSeek-V3 was extended with YaRN from 4k to 32k and then to 128k, in 1,000 steps each.",
        "DeepSeek-V3 Technical Report, section 4.3, https://arxiv.org/abs/2412.19437",
    ),
    Evidence(
        ("linear",),
        (),
        "Fine-tuning with linear interpolation extended LLaMA models to 32,768 tokens within 1,000 steps.",
        "Chen et al., abstract, https://arxiv.org/abs/2306.15595",
    ),
    Evidence(
        ("longrope",),
        (),
        "LongRoPE reached over 2 million tokens with divisors found by search, after 1,000 fine-tuning steps at 256k.",
        "Ding et al., abstract, https://arxiv.org/abs/2402.13753",
    ),
    Evidence(
        ("ntk", "dynamic", "none"),
        (),
        "With a base too small for the length, a model has good perplexity but cannot retrieve. "
        "The mean cosine over the head should stay positive up to the length.",
        "Men et al., https://arxiv.org/abs/2405.14591",
    ),
)


def evidence(method: str, model: str = "") -> tuple[Evidence, ...]:
    """Return what was measured of a method: for this model first, then in general."""
    found = [one for one in EVIDENCE if method in one.methods and (not one.models or model in one.models)]
    return tuple(sorted(found, key=lambda one: not one.models))
