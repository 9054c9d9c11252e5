"""DeepSeek V4 in each release of vLLM and SGLang that has it, as rules over those of today's release.

The code that builds the frequencies of a layer was run (tests/goldens/deepseek_v4_releases.json). Layers without
compression, "main", have plain RoPE in the published code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rope_viz.runtimes import sglang, vllm
from rope_viz.runtimes.releases import SGLANG_DEEPSEEK_V4, VLLM_DEEPSEEK_V4
from rope_viz.runtimes.rule_engine import Case, Rule, refuse, rule

# Between these two the main layers were scaled: (first, last).
SCALED_BY_VLLM = ("0.20.0", "0.29.0")
SCALED_BY_SGLANG = ("0.5.14", "0.5.17")


@rule("deepseek-v4-main-yarn", lambda case: case.layer == "main")
def scale_main_layers(case: Case) -> Case:
    """The layers without compression get the scaling of the compressed ones too, over their own base."""
    given = case.fields.mapping("rope_scaling") or case.fields.mapping("rope_parameters") or {}
    scaling = {key: value for key, value in given.items() if key not in ("rope_theta", "partial_rotary_factor")}
    return case.with_rope(**scaling, attention_factor=1.0) if scaling else case


REFUSE_NESTED = refuse("deepseek_v4.keyerror_rope_type", sglang.is_nested_deepseek_v4)


def list_between(releases: tuple[str, ...], first: str, last: str) -> tuple[str, ...]:
    """Return the releases from the first to the last; they are listed newest first."""
    return releases[releases.index(last) : releases.index(first) + 1]


def build_rules() -> Iterator[tuple[tuple[str, str], tuple[Rule, ...]]]:
    """Yield (runtime and release, its rules)."""
    wrong = list_between(VLLM_DEEPSEEK_V4, *SCALED_BY_VLLM)
    for release in VLLM_DEEPSEEK_V4:
        yield ("vllm", release), (*((REFUSE_NESTED, scale_main_layers) if release in wrong else ()), *vllm.RULES)
    wrong = list_between(SGLANG_DEEPSEEK_V4, *SCALED_BY_SGLANG)
    for release in SGLANG_DEEPSEEK_V4:
        yield ("sglang", release), (*((scale_main_layers,) if release in wrong else ()), *sglang.RULES)


RULES: Mapping[tuple[str, str], tuple[Rule, ...]] = dict(build_rules())
"""By runtime and release."""
