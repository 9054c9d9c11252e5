"""What each runtime computes from a config: frequencies, factor on cos and sin, softmax multiplier, and why.

Values were measured by executing the runtimes (tests/goldens/runtimes.json says how). The rules that reproduce them are
in one module per runtime, over the core of `rope_viz.embedding.scaling`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import FloatArray, check_length, short_repr
from rope_viz.models.model_config import Source, as_model_config, normalise_errors
from rope_viz.models.overrides import merge_overrides
from rope_viz.runtimes import deepseek_v4, gguf_converter, llamacpp, mlx, paper, sglang, tensorrt, transformers, vllm
from rope_viz.runtimes.asked_engines import find_asked
from rope_viz.runtimes.known_types import find_missing_wrapper
from rope_viz.runtimes.llamacpp import override_keys, split_flags
from rope_viz.runtimes.provenance import Known, find_provenance
from rope_viz.runtimes.releases import RELEASES, RUNTIMES, format_release, resolve_release
from rope_viz.runtimes.rule_engine import Case, Refused, Rule, apply, build_case, build_spec, compute_frequencies
from rope_viz.runtimes.texts import TEXTS
from rope_viz.texts.sentences import describe_error

__all__ = ["RUNTIMES", "Emulation", "Known", "emulate", "emulate_case", "read_case", "resolve_release"]

RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    **{("transformers", version): rules for version, rules in transformers.RULES.items()},
    resolve_release("vllm"): vllm.RULES,
    resolve_release("sglang"): sglang.RULES,
    resolve_release("llama.cpp"): gguf_converter.RULES,
    resolve_release("mlx-lm"): mlx.RULES,
    resolve_release("tensorrt-llm"): tensorrt.RULES,
    resolve_release("paper"): paper.RULES,
    **vllm.OLDER_RULES,
    **deepseek_v4.RULES,
}
"""Every runtime that can be emulated, by name and release."""

NOT_KNOWN = Known("not known", "")


@dataclass(frozen=True, eq=False)
class Emulation:
    """What one runtime does with one layer type of a config.

    `inv_freq` is in radians per position, float64, shape (pairs,), read-only; None where the runtime refuses, and then
    `reason` says why. `remote` is why the runtime alone refuses it where what is computed is the code that travels with
    the model. `attention_factor` multiplies cos and sin, `softmax_multiplier` the softmax scale (None: not
    measured). `rules` are those that changed something, in order. `known` says how all this is known.
    """

    runtime: str
    version: str
    supported: bool
    inv_freq: FloatArray | None
    attention_factor: float | None
    softmax_multiplier: float | None
    rules: tuple[Rule, ...]
    reason: str = ""
    known: Known = NOT_KNOWN
    remote: str = ""

    @property
    def name(self) -> str:
        """Name and version as people write them: "vLLM 0.33.0"."""
        return format_release(self.runtime, self.version)


def emulate(
    config: Source,
    runtime: str,
    *,
    version: str | None = None,
    length: int | None = None,
    layer_type: str | None = None,
    flags: str | Mapping[str, object] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Emulation:
    """Return what a runtime computes for a config.json.

    `length` is max_model_len for vllm, n_ctx for llama.cpp, max_seq_len for tensorrt-llm, and the current length
    elsewhere. `version` may be shortened to its first word, or left out for the newest. `flags` are command-line
    overrides of llama.cpp. `overrides` are keys of config.json, as from_pretrained of transformers, --hf-overrides of
    vLLM and --json-model-override-args of SGLang take them. Raises `ValueError` for an unknown runtime, version, layer
    type or flag, and for a config that describes no rotary embedding.
    """
    name, release = resolve_release(runtime, version)
    if flags and name != "llama.cpp":
        raise ValueError(f"flags are for llama.cpp, not for {name}")
    keys: Mapping[str, tuple[str, str]] = {}
    if isinstance(flags, str):
        keys, flags = split_flags(flags)
    given = llamacpp.parse_flags(flags)
    if length is None and "ctx" in given:
        length = int(given["ctx"]) or None
    if overrides is None:
        case = read_case(config, length=length, layer_type=layer_type)
        return emulate_case(name, release, override_keys(case, keys) if keys else case, given)
    merged = merge_overrides(config, overrides, name)
    case = read_case(merged.config, length=length, layer_type=layer_type)
    if merged.refusal:
        known = find_provenance(name, release, case.fields, case.kind)
        return Emulation(name, release, False, None, None, None, (), merged.refusal, known)
    return emulate_case(name, release, case, given)


def read_case(config: Source, *, length: int | None = None, layer_type: str | None = None) -> Case:
    """Return what every runtime starts from, read once for all of them. Raises `ValueError` as `emulate` does."""
    with normalise_errors():
        return build_case(as_model_config(config), layer_type, check_length(length))


def emulate_case(name: str, release: str, case: Case, flags: Mapping[str, str | float] | None = None) -> Emulation:
    """Return what one runtime, by its full name and version, makes of a case. Raises `ValueError` as `emulate` does."""
    known = find_provenance(name, release, case.fields, case.kind)
    known = dataclasses.replace(known, asked=find_asked(name, release, case.fields, case.kind))
    if RELEASES[name].find_only_type(release) not in ("", case.model):
        return Emulation(name, release, False, None, None, None, (), known.source, known)
    try:
        with normalise_errors():
            from_gguf = name == "llama.cpp" and gguf_converter.is_gguf_file(case)
            case, applied = apply(gguf_converter.FILE_RULES if from_gguf else RULES[name, release], case)
            inv_freq, attention, softmax = compute(name, case, flags or {})
    except Refused as refusal:
        return Emulation(name, release, False, None, None, None, (), describe_error(refusal), known)
    foreign = ""
    if name == "transformers":
        foreign = find_missing_wrapper(name, release, case.fields.wrappers)
        foreign = case.model if not foreign and case.architecture.remote_code else foreign
    remote = TEXTS("transformers.remote_code", model=short_repr(foreign).strip(chr(39))) if foreign else ""
    return Emulation(name, release, True, inv_freq, attention, softmax, applied, known=known, remote=remote)


def compute(name: str, case: Case, flags: Mapping[str, str | float]) -> tuple[FloatArray, float, float | None]:
    """Return frequencies, factor on cos and sin and softmax multiplier of a case after its rules."""
    if name == "llama.cpp":
        return llamacpp.apply_flags(case, flags)
    spec = build_spec(case)
    paper = spec.scaling.as_in_paper
    if case.path == "paper" and paper is not None:
        return paper.inv_freq(spec), paper.attention_factor(spec), case.softmax
    attention = spec.attention_factor(case.length) if case.attention is None else case.attention
    return compute_frequencies(case, spec), attention, case.softmax
