"""What a config really computes in each runtime: frequencies, factor on cos and sin, softmax multiplier, and why.

Values were got by executing the runtimes (tests/goldens/runtimes.json says how); the rules that reproduce them are in
one module per runtime, over the one core of `rope_viz.embedding.scaling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rope_viz.embedding.scaling import PaperYarn, Yarn, mscale
from rope_viz.embedding.spec import FloatArray, checked_length, shorten
from rope_viz.models.model_config import ModelConfig, Source, normalise_errors
from rope_viz.runtimes import llamacpp, mlx, older_releases, paper, sglang, tensorrt, transformers, vllm
from rope_viz.runtimes.provenance import Known, find_provenance
from rope_viz.runtimes.rule_engine import Case, Refused, Rule, apply, build_case, frequencies, spec_of

LLAMA_CPP = "0c1e57098 (llama-cpp-python 0.3.36)"
TENSORRT = "functional.py@0071496 + _torch/attention_backend/interface.py@000a01d (two stored versions)"

RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    **{("transformers", version): rules for version, rules in transformers.RELEASES.items()},
    ("vllm", "0.33.0"): vllm.RULES,
    ("sglang", "0.5.23"): sglang.RULES,
    ("llama.cpp", LLAMA_CPP): llamacpp.RULES,
    ("mlx-lm", "0.32.2"): mlx.RULES,
    ("tensorrt-llm", TENSORRT): tensorrt.RULES,
    ("paper", "2309.00071"): paper.RULES,
}
"""Every runtime that can be emulated, by name and version: those that are put side by side."""
ALL = {**RULES, **older_releases.RULES}
"""The same and older releases, which a reader may ask for in place of today's."""

UNTOLD = Known("not known", "")
RUNTIMES = tuple(RULES)


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
    known: Known = UNTOLD
    remote: str = ""


def emulate(
    config: Source,
    *,
    runtime: str,
    version: str | None = None,
    length: int | None = None,
    layer_type: str | None = None,
    flags: str | Mapping[str, object] | None = None,
) -> Emulation:
    """What the runtime computes for a config.json.

    `length` is max_model_len for vllm, n_ctx for llama.cpp, max_seq_len for tensorrt-llm, and the current length
    elsewhere. `version` may be shortened to its first word, or left out for the newest. `flags` are command-line
    overrides of llama.cpp. Raises `ValueError` for an unknown runtime, version, layer type or flag, and for a config
    that describes no rotary embedding.
    """
    name, release = resolve_release(runtime, version)
    if flags and name != "llama.cpp":
        raise ValueError(f"flags are for llama.cpp, not for {name}")
    overrides = llamacpp.parse_flags(flags)
    if length is None and "ctx" in overrides:
        length = int(overrides["ctx"]) or None
    return emulated(name, release, read_case(config, length=length, layer_type=layer_type), overrides)


def read_case(config: Source, *, length: int | None = None, layer_type: str | None = None) -> Case:
    """Return what every runtime starts from, to be read once for all of them. Raises `ValueError` as `emulate` does."""
    with normalise_errors():
        return build_case(ModelConfig.read(config), layer_type, checked_length(length))


def emulated(name: str, release: str, case: Case, flags: Mapping[str, str | float] | None = None) -> Emulation:
    """Return what one runtime, by its full name and version, makes of a case. Raises `ValueError` as `emulate` does."""
    return _emulated(name, release, case, flags or {})


def _emulated(name: str, release: str, case: Case, flags: Mapping[str, str | float]) -> Emulation:
    told = find_provenance(name, release, case.fields, case.kind)
    try:
        with normalise_errors():
            case, applied = apply(ALL[name, release], case)
            inv_freq, attention, softmax = computed(name, case, flags)
    except Refused as refusal:
        return Emulation(name, release, False, None, None, None, (), str(refusal), told)
    own = name == "transformers" and release == RUNTIMES[0][1] and case.architecture.remote_code
    remote = f"{shorten(case.model).strip(chr(39))} is remote code, not in transformers" if own else ""
    return Emulation(name, release, True, inv_freq, attention, softmax, applied, known=told, remote=remote)


def resolve_release(runtime: str, version: str | None = None) -> tuple[str, str]:
    """The full name and version. Raises `ValueError` that lists what is known."""
    versions = [release for name, release in ALL if name == runtime]
    if not versions:
        names = dict.fromkeys(name for name, _ in RUNTIMES)
        raise ValueError(f"runtime must be one of {', '.join(names)}, got {shorten(runtime)}")
    if version is None:
        return runtime, versions[0]
    found = next((release for release in versions if version in (release, release.split(" ")[0])), None)
    if found is None:
        short = ", ".join(release.split(" ")[0] for release in versions)
        raise ValueError(f"version of {runtime} must be one of {short}, got {shorten(version)}")
    return runtime, found


def computed(name: str, case: Case, overrides: Mapping[str, str | float]) -> tuple[FloatArray, float, float | None]:
    """Frequencies, factor on cos and sin and softmax multiplier of what the rules left."""
    if name == "llama.cpp":
        kernel, attention, softmax = llamacpp.kernel(case, overrides)
        return llamacpp.rotate(case, kernel), attention, softmax
    spec = spec_of(case)
    if case.path == "paper" and isinstance(spec.scaling, Yarn):
        yarn = spec.scaling
        ramp = PaperYarn(yarn.factor, yarn.beta_slow, yarn.beta_fast)
        return ramp.inv_freq(spec), mscale(yarn.factor), case.softmax
    attention = spec.attention_factor(case.length) if case.attention is None else case.attention
    return frequencies(case, spec), attention, case.softmax
