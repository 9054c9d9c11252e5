"""What to write for each runtime, checked by emulation: the file or the flags, the command, how to see that it worked.

The file is written in the keys from before transformers 5 wherever they can say it: releases 4 and 5 read them alike,
and so do the servers. Only otherwise is it `rope_parameters`, which no release before 5 reads.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.advice.check_change import find_new_findings, find_strayed_layers
from rope_viz.advice.export import (
    TARGETS,
    Export,
    as_json,
    config_to_change,
    describe_difference,
    export,
    find_changed_layers,
)
from rope_viz.advice.lint import Finding, check
from rope_viz.advice.other_parts import extend_other_parts
from rope_viz.advice.snippets import SNIPPETS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.edit_config import write_new_keys, write_old_keys
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.models.user_config import join_words
from rope_viz.runtimes import RUNTIMES, emulate_case, read_case
from rope_viz.runtimes.releases import format_release

NAMES = {target: format_release(name, version) for target, (name, version, _) in TARGETS.items()}
"""Each runtime that can be written for, with the version that was read and run."""
LENGTH_FLAGS = {"vllm": "--max-model-len", "sglang": "--context-length", "llama.cpp": "-c"}
GENERAL = " (general rules, not verified for this model)"
COMPARE = "Compare the running model's frequencies with rope-viz verify before you rely on it."


@dataclass(frozen=True)
class ConfigFile:
    """The whole config.json to write.

    `fragment` are its keys that are new or changed (null: the key has to go; {}: nothing changes). `generation` says
    which keys it is written in. `runtimes` are those that compute the intended frequencies from it, `others` those that
    do not, each with the reason. `unverified` are those that do by their general rules, while it is
    not known how they read this model. `findings` are those of the check, by the rules that may find an error.
    `is_safe`: the check finds nothing in it that it does not find in the config before, and other layers are unchanged.
    """

    config: Mapping[str, Any]
    fragment: Mapping[str, Any]
    generation: str
    runtimes: tuple[str, ...]
    others: tuple[str, ...]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...] = ()
    is_safe: bool = True

    @property
    def fit(self) -> bool:
        """Whether the check finds no error in it, so that it may be offered."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def proof(self) -> tuple[str, ...]:
        """Which runtimes read it as it is meant, which do not, and for which that is not known, in sentences."""
        able = (
            (f"Checked: {join_words(list(self.runtimes))} {compute(self.runtimes)} from this.",)
            if self.runtimes
            else ()
        )
        unable = tuple(f"Not in {other.rstrip('.')}." for other in self.others)
        if not self.unverified:
            return able + unable
        general = f"By general rules, not verified for this model, {join_words(list(self.unverified))}"
        return (*able, *unable, f"{general} {compute(self.unverified)}{' too' if able else ''}. {COMPARE}")


@dataclass(frozen=True)
class Instructions:
    """What to give one runtime: `text` to copy, and the `command` that starts it.

    `notes` are about generations of keys, GGUF and older versions. `log` is the line to look for. `check` is a snippet
    that writes the frequencies of the running model for `rope-viz verify`.
    """

    runtime: str
    name: str
    made: Export
    text: str
    language: str
    command: str
    notes: tuple[str, ...]
    log: str
    check: str

    @property
    def is_checked(self) -> bool | None:
        """Whether the runtime computes what is meant; None where it is not known how it reads this model."""
        return None if self.made.known.how == "not known" or self.made.remote else self.made.faithful

    @property
    def proof(self) -> str:
        """Whether the runtime computes what is meant, in a sentence."""
        if self.made.remote:
            gives = "gives" if self.made.faithful else "does not give"
            return (
                f"Not verified: {self.name} alone refuses this model, because {self.made.remote}. The model's own code "
                f"was read, not executed in it: with that code the file {gives} the intended frequencies. {COMPARE}"
            )
        if self.is_checked is None:
            gives = "give" if self.made.faithful else "do not give"
            why, source = in_brackets(self.made.reason), in_brackets(self.made.known.source)
            return (
                f"Not verified: it is unknown how {self.name} reads this model{source}. "
                f"Its general rules {gives} the intended frequencies{why}. {COMPARE}"
            )
        if self.made.faithful:
            return f"Checked: {self.name} computes the intended frequencies and factor from this."
        size = f" (off by up to ×{self.made.effect.ratio:.3g})" if self.made.effect else ""
        return f"{self.name} cannot do this{size}: {self.made.reason.rstrip('.')}."


@dataclass(frozen=True)
class RuntimeSupport:
    """Which runtimes compute the embedding from a file, which do not, and which do by general rules only."""

    able: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How good a file is: the newest transformers must read it, then as many runtimes as can."""
        return any(name.startswith("transformers 5") for name in self.able), len(self.able), len(self.unverified)


def write_config_file(spec: RopeSpec, config: Source | None, layer: str | None = None) -> ConfigFile:
    """Return the config.json to write, the same for every runtime that reads one."""
    model = config_to_change(config, spec)
    if model.specs.get(layer if layer in model.specs else model.main_layer) == spec:
        return check_config_file(model, {}, "The file does not need to change.", find_support(model, spec, layer))
    main = layer if layer in model.specs else model.main_layer
    judged: list[tuple[bool, ModelConfig, Mapping[str, Any], RuntimeSupport, bool]] = []
    for old in (True, False):
        try:
            change = (write_old_keys if old else write_new_keys)(model, spec, layer)
        except ValueError:
            continue
        file = ModelConfig.read(change.whole)
        safe = not file.problems and not find_strayed_layers(model, file, main) and not find_new_findings(model, file)
        judged.append((old, file, change.fragment, find_support(file, spec, layer, before=model), safe))
        if safe and not judged[-1][3].unable:
            break  # every runtime reads it, and the old keys are preferred
    if not judged:
        made = export(spec, to="transformers", config=model, layer_type=layer)
        file = ModelConfig.read(made.config)
        safe = not file.problems and not find_strayed_layers(model, file, main) and not find_new_findings(model, file)
        judged.append((False, file, made.fragment, find_support(file, spec, layer, before=model), safe))
    old, file, fragment, found, safe = max(judged, key=lambda one: (one[4], one[3].rank, one[0]))
    # A value that is equal stays as it is written: 4 does not become 4.0.
    same = {key: value for key, value in model.mapping.items() if key in file.mapping and file.mapping[key] == value}
    best = {key: same.get(key, value) for key, value in file.mapping.items()}
    others = extend_other_parts(model, spec)
    best, fragment = {**best, **others.whole}, {**fragment, **others.fragment}
    fragment = {key: value for key, value in fragment.items() if model.mapping.get(key, file) != value}
    return check_config_file(
        ModelConfig.read(best), fragment, " ".join((describe_generation(old, found, model), *others.notes)), found, safe
    )


def check_config_file(
    model: ModelConfig, fragment: Mapping[str, Any], generation: str, found: RuntimeSupport, is_safe: bool = True
) -> ConfigFile:
    """Return a file with what the check finds in it, without slow rules that find no errors."""
    slow = ("runtimes-differ", "trained-length", "not-as-shipped", "base-too-small")
    findings = tuple(check(model, without=slow))
    return ConfigFile(
        model.mapping, fragment, generation, found.able, found.unable, findings, found.unverified, is_safe
    )


def describe_generation(old: bool, found: RuntimeSupport, model: ModelConfig) -> str:
    """Return which keys a file is written in, who reads those, and what transformers_version has to do with it."""
    four = any(name.startswith("transformers 4") for name in found.able)
    if not found.able and found.unverified:
        keys = "rope_theta and rope_scaling" if old else "rope_parameters"
        text = f"Written as {keys}, by general rules: it is unknown whether any release of transformers reads them."
    elif old and four:
        text = "Written as rope_theta and rope_scaling: transformers 4 and 5 read these in the same way."
    elif old:
        text = "Written as rope_theta and rope_scaling; no executed release 4 of transformers has this model."
    else:
        text = "Written as rope_parameters, for transformers 5: releases before 5 do not read this key."
    version = model.mapping.get("transformers_version") or model.part.config.get("transformers_version")
    if isinstance(version, str):
        text += (
            f' transformers_version stays "{version[:20]}": it names the release that wrote the file. No runtime uses '
            "it to decide how to read these keys."
        )
    return text


def compute(names: Sequence[str]) -> str:
    """Return the end of a sentence about these runtimes, with the verb in the right number."""
    return f"{'computes' if len(names) == 1 else 'compute'} the intended frequencies"


def in_brackets(text: str) -> str:
    """Return a reason in brackets; empty where there is none."""
    return f" ({text.rstrip('.')})" if text else ""


def find_support(
    model: ModelConfig, spec: RopeSpec, layer: str | None, *, before: ModelConfig | None = None
) -> RuntimeSupport:
    """Return which runtimes compute the embedding from the file as it is.

    With `before`, the config before the change, its layers of other types must keep their embeddings.
    """
    able: list[str] = []
    unable: list[str] = []
    unverified: list[str] = []
    length = spec.target if spec.scaling.name in ("longrope", "dynamic") else None
    try:
        case = read_case(model, length=length, layer_type=layer)
    except ValueError as error:
        return RuntimeSupport(unable=(f"any runtime: {error}",))
    for runtime, version in RUNTIMES:
        if runtime in ("paper", "tensorrt-llm"):
            continue
        name, why = f"{runtime} {version.split(' ')[0]}", ""
        try:
            found = emulate_case(runtime, version, case)
        except ValueError as error:
            unable.append(f"{name}, which cannot be emulated: {error}")
            continue
        if found.remote:
            why = f"which refuses it without the model's own code: {found.remote}"
        elif not found.supported:
            why = f"which refuses it: {found.reason}"
        elif describe_difference(spec, found, length):
            applied = "; ".join(rule.text.rstrip(".") for rule in found.rules)
            why = f"by its rules: {applied or 'it reads other keys'}"
        elif before is not None and len(before.specs) > 1:
            strayed = find_changed_layers(before, model, layer or before.main_layer, runtime, version)
            why = f"where it also changes the {join_words(strayed)} layers" if strayed else ""
        unknown = found.known.how == "not known"
        if why:
            unable.append(f"{name}, {why.rstrip('.')}{GENERAL if unknown else ''}")
        else:
            (unverified if unknown else able).append(name)
    return RuntimeSupport(tuple(able), tuple(unable), tuple(unverified))


def write_instructions(
    spec: RopeSpec,
    runtime: str,
    *,
    config: Source | None = None,
    layer: str | None = None,
    length: int | None = None,
    file: ConfigFile | None = None,
) -> Instructions:
    """Return what to write for one of `NAMES`, to serve `length` tokens, by default the spec's target.

    With `file`, the config.json to write, runtimes that read it and have no flags for this get its keys. Raises
    `ValueError` for another name, and for a config that cannot be read.
    """
    if runtime not in NAMES:
        raise ValueError(f"the runtime must be one of {', '.join(NAMES)}, got {runtime!r}")
    model = None if config is None else ModelConfig.read(config)
    made = export(spec, to=runtime, config=model, layer_type=layer)
    served, text, name = length or spec.target, made.text, NAMES[runtime]
    readers = [] if file is None else [one.casefold() for one in (*file.runtimes, *file.unverified)]
    is_read = name.casefold() in readers
    if file is not None and is_read and not file.fragment:
        text = f"{LENGTH_FLAGS[runtime]} {served}" if runtime in LENGTH_FLAGS else ""
    elif file is not None and is_read and text.startswith("{"):
        text = as_json(dict(file.fragment))
    for option in LENGTH_FLAGS.values():
        text = text.replace(f"{option} {spec.target}", f"{option} {served}")
    language = "bash" if text and not text.startswith("{") else "json"
    more = tuple(list_notes(runtime, spec, made, model, served))
    start, log = write_command(runtime, text, served), find_log_line(runtime, spec, served)
    return Instructions(runtime, name, made, text, language, start, more, log, SNIPPETS[runtime])


def write_command(runtime: str, text: str, served: int) -> str:
    """Return the command that starts a runtime."""
    flags = "" if text.startswith("{") else text.strip()
    if runtime.startswith("transformers"):
        return "python -c \"from transformers import AutoModelForCausalLM as M; M.from_pretrained('./model')\""
    if runtime == "vllm":
        return f"vllm serve ./model {flags}".strip()
    if runtime == "sglang":
        if flags.startswith("#"):
            return f"python -m sglang.launch_server --model-path ./model --context-length {served}"
        return f"python -m sglang.launch_server --model-path ./model {flags}".strip()
    if runtime == "llama.cpp":
        return f"llama-server -m model.gguf {flags if not flags.startswith('#') else f'-c {served}'}"
    return "mlx_lm.server --model ./model"


def list_notes(runtime: str, spec: RopeSpec, made: Export, model: ModelConfig | None, served: int) -> Iterator[str]:
    """Yield what else there is to know: generations of keys, GGUF, older versions."""
    if runtime == "vllm":
        yield "--hf-overrides is merged into the loaded config, in the keys of transformers 5; the file can stay."
        rope = old_rope_scaling(spec, model)
        if rope and spec.scaling.name != "none":
            older = f"--rope-scaling {shlex.quote(json.dumps(rope))} --max-model-len {served}"
            yield f"vLLM before 0.11.1 has its own option, which was not executed here: {older}"
    if runtime == "sglang":
        yield (
            "The override is merged into the loaded config, too. If --context-length is above the config's limit, set "
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in the environment."
        )
    if runtime == "llama.cpp":
        yield from describe_gguf(spec, made)
    if runtime.startswith("transformers") and spec.scaling.name != "none":
        yield "generate() ignores the limit. The factor is in the file, so it applies to every text."
    if model is not None and not has_one_axis(model.mapping):
        # Imported here because plain configs do not need the rooms about several axes.
        from rope_viz.runtimes.axes import in_words

        text = in_words(model.mapping, runtime)
        if text:
            yield text


def old_rope_scaling(spec: RopeSpec, model: ModelConfig | None) -> dict[str, Any]:
    """Return the rope_scaling that says this embedding; {} where there is none."""
    try:
        return write_old_keys(config_to_change(model, spec), spec).keys.get("rope_scaling") or {}
    except ValueError:
        return {}


def describe_gguf(spec: RopeSpec, made: Export) -> Iterator[str]:
    """Yield what a GGUF file holds, and whether it has to be converted again."""
    if made.text.startswith("#"):
        yield "Convert the GGUF again: no flag can do this, so write it into config.json before."
        return
    yield "The GGUF does not need to change: flags override its contents."
    keys = [f"<arch>.context_length = {spec.target}", f"<arch>.rope.freq_base = {spec.base:g}"]
    if spec.scaling.name in ("yarn", "linear"):
        keys += [
            f"<arch>.rope.scaling.type = {spec.scaling.name}",
            f"<arch>.rope.scaling.factor = {spec.scaling.factor_for(spec):g}",
            f"<arch>.rope.scaling.original_context_length = {spec.context}",
        ]
    yield f"Converted again from the new config.json it contains {', '.join(keys)}, and needs only -c."


def find_log_line(runtime: str, spec: RopeSpec, served: int) -> str:
    """Return the line to look for when a runtime starts."""
    if runtime == "vllm":
        return f"max_seq_len={served} in the line that begins with: Initializing a V1 LLM engine"
    if runtime == "sglang":
        return f"context_length={served} in the line that begins with: server_args=ServerArgs("
    if runtime == "llama.cpp":
        scale = 1.0 / spec.scaling.factor_for(spec)
        return f"llama_context: n_ctx = {served}, freq_base = {spec.base:.1f}, freq_scale = {scale:g}"
    return ""


def format_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what changes in the file, as a unified diff of the two."""
    old, new = (json.dumps(one, indent=2, ensure_ascii=False).splitlines() for one in (before, after))
    lines = difflib.unified_diff(old, new, "config.json (yours)", "config.json (to write)", lineterm="", n=2)
    return "\n".join(lines)
