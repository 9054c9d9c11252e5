"""What to write for each runtime, proved by sending it back: the file or the flags, the command, how to see it took.

The file is written in the keys from before transformers 5 wherever those say it: releases 4 and 5 read them alike, and
so do the servers. Only where they cannot is it `rope_parameters`, and then no release before 5 reads it.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.advice.export import TARGETS, Export, architecture, export
from rope_viz.advice.lint import Finding, check
from rope_viz.advice.snippets import SNIPPETS
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.edit_config import rewritten, rewritten_old
from rope_viz.models.model_config import ModelConfig, from_config
from rope_viz.models.rope_config import find_main_layer
from rope_viz.runtimes import RUNTIMES, emulated, read_case
from rope_viz.runtimes.provenance import Known

NAMES = {
    "transformers": "transformers 5.23.0",
    "transformers-4": "transformers 4.57.6",
    "vllm": "vLLM 0.33.0",
    "sglang": "SGLang 0.5.23",
    "llama.cpp": "llama.cpp 0c1e57098",
    "mlx-lm": "mlx-lm 0.32.2",
}
"""Each runtime that can be written for, with the version that was read and run."""
GENERAL = " (general rules, not verified for this model)"
COMPARE = "Compare the running model's frequencies with rope-viz verify before you rely on it."


@dataclass(frozen=True)
class Whole:
    """The whole config.json to write.

    `config` is it, `fragment` the keys of it that are new or others (null: the key has to go; {}: nothing changes),
    `generation` says in which keys and who reads them, `readers` are the runtimes that compute what is meant from it as
    it stands, executed or by rule, `others` those that do not, each with why. `unverified` are those that do by their
    general rules, while it is not known how they read this model. `findings` are what the check finds in it by the
    rules that may find an error.
    """

    config: Mapping[str, Any]
    fragment: Mapping[str, Any]
    generation: str
    readers: tuple[str, ...]
    others: tuple[str, ...]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether it may be offered: the check finds no error in it."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def text(self) -> str:
        """The file."""
        return json.dumps(self.config, indent=2, ensure_ascii=False) + "\n"

    @property
    def proof(self) -> tuple[str, ...]:
        """Who reads it as it is meant, who does not, and of whom that is not known, in sentences."""
        able = (f"Proved: sent back, it means what is intended to {', '.join(self.readers)}.",) if self.readers else ()
        unable = tuple(f"Not to {other.rstrip('.')}." for other in self.others)
        if not self.unverified:
            return able + unable
        said = f"By the general rules, not verified for this model, also to {', '.join(self.unverified)}."
        return (*able, *unable, f"{said if able else said.replace('also', 'it means what is intended')} {COMPARE}")


@dataclass(frozen=True)
class Writing:
    """What to give one runtime: `text` to copy, the `command` that starts it, and whether it then does what is meant.

    `notes` are about generations of keys, GGUF and older versions, `log` is the line to look for, `check` a snippet
    that prints the frequencies of the running model for `rope-viz verify`.
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
    def proved(self) -> bool | None:
        """Whether it gives what is meant; None where it is not known how this runtime reads this model."""
        return None if self.made.known.how == "not known" or self.made.remote else self.made.faithful

    @property
    def proof(self) -> str:
        """Whether it gives what is meant, in a sentence."""
        if self.made.remote:
            gives = "gives" if self.made.faithful else "does not give"
            return (
                f"Not verified: {self.name} alone refuses it, as {self.made.remote}. By the code that travels with the "
                f"model, which was read and not run in it, the file {gives} what is intended. {COMPARE}"
            )
        if self.proved is None:
            gives = "give" if self.made.faithful else "do not give"
            why = f" ({self.made.reason.rstrip('.')})" if self.made.reason else ""
            return (
                f"Not verified: how {self.name} reads this model is not known"
                f"{because(self.made.known)}. Its general rules {gives} what is intended{why}. {COMPARE}"
            )
        if self.made.faithful:
            return f"Proved: sent back through the rules of {self.name}, it gives the intended frequencies and factor."
        size = f", by up to ×{self.made.effect.ratio:.3g}" if self.made.effect else ""
        return f"{self.name} does not do this{size}: {self.made.reason.rstrip('.')}."


def whole(spec: RopeSpec, config: Mapping[str, Any] | None, layer: str | None = None) -> Whole:
    """The config.json to write, the same for every runtime that reads one."""
    model = dict(config) if config is not None else architecture(spec)
    model.pop("_about", None)
    if unchanged(spec, model, layer):
        found = readers(model, spec, layer)
        kept = "Nothing in the file has to change."
        return Whole(model, {}, kept, found.able, found.unable, checked(model), found.unverified)
    judged: list[tuple[bool, Mapping[str, Any], Mapping[str, Any], Readers]] = []
    for old in (True, False):
        try:
            change = (rewritten_old if old else rewritten)(model, spec, layer)
        except ValueError:
            continue
        found = readers(change.whole, spec, layer)
        judged.append((old, change.whole, change.fragment, found))
        if not found.unable:
            break  # everybody reads it, and the old keys come first
    if not judged:
        made = export(spec, to="transformers", config=model, layer_type=layer)
        judged.append((False, made.config, made.fragment, readers(made.config, spec, layer)))
    old, best, fragment, found = max(judged, key=lambda one: (weight(one[3]), one[0]))
    best = {key: model[key] if key in model and model[key] == value else value for key, value in best.items()}
    fragment = {key: value for key, value in fragment.items() if key not in model or model[key] != value}
    said = generation(old, found, model)
    return Whole(best, fragment, said, found.able, found.unable, checked(best), found.unverified)


def checked(config: Mapping[str, Any]) -> tuple[Finding, ...]:
    """What the check finds by the rules that may find an error: the others take the most of its time."""
    return tuple(check(config, without=("runtimes-differ", "trained-length", "not-as-shipped", "base-too-small")))


def unchanged(spec: RopeSpec, config: Mapping[str, Any], layer: str | None) -> bool:
    """Whether the config says this embedding as it stands."""
    specs = from_config(config)
    return specs.get(layer if layer in specs else find_main_layer(specs)) == spec


@dataclass(frozen=True)
class Readers:
    """Who computes the embedding from a file, who does not, and who does by general rules, not verified for it."""

    able: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


def weight(found: Readers) -> tuple[bool, int, int]:
    """How good a file is: the newest transformers must read it, then as many runtimes as can."""
    return any(name.startswith("transformers 5") for name in found.able), len(found.able), len(found.unverified)


def generation(old: bool, found: Readers, config: Mapping[str, Any]) -> str:
    """In which keys it is written, who reads those, and what transformers_version has to do with it."""
    four = any(name.startswith("transformers 4") for name in found.able)
    if not found.able and found.unverified:
        keys = "rope_theta and rope_scaling" if old else "rope_parameters"
        text = f"Written as {keys}, by the general rules: whether any release of transformers reads them is not known."
    elif old and four:
        text = "Written as rope_theta and rope_scaling: transformers 4 and 5 read these alike."
    elif old:
        text = "Written as rope_theta and rope_scaling; no release 4 of transformers that was run has this model."
    else:
        text = "Written as rope_parameters, for transformers 5: releases before 5 do not read this key."
    version = config.get("transformers_version") or ModelConfig.read(config).part.config.get("transformers_version")
    if isinstance(version, str):
        text += (
            f' transformers_version stays "{version[:20]}": it names the release that wrote the file, and no runtime '
            "decides by it how to read these keys."
        )
    return text


def because(known: Known) -> str:
    """Why an answer is not known, in brackets."""
    return f" ({known.source.rstrip('.')})" if known.source else ""


def readers(config: Mapping[str, Any], spec: RopeSpec, layer: str | None) -> Readers:
    """The runtimes that compute the embedding from the file as it stands, the others, and those that are not known."""
    able: list[str] = []
    unable: list[str] = []
    unverified: list[str] = []
    length = spec.target if spec.scaling.name in ("longrope", "dynamic") else None
    asked = [(runtime, version) for runtime, version in RUNTIMES if runtime not in ("paper", "tensorrt-llm")]
    try:
        case = read_case(config, length=length, layer_type=layer)
    except ValueError as error:
        return Readers(unable=(f"any runtime: {error}",))
    for runtime, version in asked:
        name = f"{runtime} {version.split(' ')[0]}"
        try:
            found = emulated(runtime, version, case)
        except ValueError as error:
            unable.append(f"{name}, which cannot be asked: {error}")
            continue
        why = ""
        if found.remote:
            why = f"which refuses it without the model's own code: {found.remote}"
        elif not found.supported or found.inv_freq is None or found.attention_factor is None:
            why = f"which refuses it: {found.reason}"
        elif not agrees(found.inv_freq, found.attention_factor, spec, length):
            applied = "; ".join(rule.text.rstrip(".") for rule in found.rules)
            why = f"by its rules: {applied or 'it reads other keys'}"
        unknown = found.known.how == "not known"
        if why:
            unable.append(f"{name}, {why.rstrip('.')}{GENERAL if unknown else ''}")
        else:
            (unverified if unknown else able).append(name)
    return Readers(tuple(able), tuple(unable), tuple(unverified))


def agrees(inv_freq: Any, attention: float, spec: RopeSpec, length: int | None) -> bool:
    """Whether frequencies and factor are those of the spec."""
    meant = spec.inv_freq(length)
    return (
        len(meant) == len(inv_freq)
        and bool(np.allclose(meant, inv_freq, rtol=2e-6, atol=0.0))
        and abs(attention - spec.attention_factor(length)) <= 2e-6 * abs(spec.attention_factor(length))
    )


def writing(
    spec: RopeSpec,
    runtime: str,
    *,
    config: Mapping[str, Any] | None = None,
    layer: str | None = None,
    length: int | None = None,
    file: Whole | None = None,
) -> Writing:
    """What to write for one of `NAMES`; `length` is what is to be served, the spec's own target unless told.

    With `file`, the config.json to write, runtimes that read it and have no flags for this get its keys.

    Raises `ValueError` for another name, and for a config that cannot be read.
    """
    if runtime not in NAMES:
        raise ValueError(f"the runtime must be one of {', '.join(NAMES)}, got {runtime!r}")
    made = export(spec, to=runtime, config=config, layer_type=layer)
    served = length or spec.target
    text = made.text
    if file is not None and text.startswith("{") and reads(file, runtime):
        text = json.dumps(file.fragment, indent=2) if file.fragment else ""
    for option in ("--max-model-len", "--context-length", "-c"):
        text = text.replace(f"{option} {spec.target}", f"{option} {served}")
    language = "bash" if text and not text.startswith("{") else "json"
    return Writing(
        runtime,
        NAMES[runtime],
        made,
        text,
        language,
        command(runtime, text, served),
        tuple(notes(runtime, spec, made, config, served)),
        log(runtime, spec, served),
        snippet(runtime),
    )


def reads(file: Whole, runtime: str) -> bool:
    """Whether a runtime reads the file as it is meant, as far as is known."""
    name = NAMES[runtime]
    return name in file.readers or name in file.unverified


def command(runtime: str, text: str, served: int) -> str:
    """The command that starts it."""
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


def notes(runtime: str, spec: RopeSpec, made: Export, config: Mapping[str, Any] | None, served: int) -> Iterator[str]:
    """What else there is to know: generations of keys, GGUF, older versions."""
    if runtime == "vllm":
        yield "--hf-overrides is merged into the loaded config, in the keys of transformers 5; the file may stay."
        rope = rope_of(spec, config)
        if rope and spec.scaling.name != "none":
            older = f"--rope-scaling {shlex.quote(json.dumps(rope))} --max-model-len {served}"
            yield f"vLLM before 0.11.1 has an option of its own, which was not run here: {older}"
    if runtime == "sglang":
        yield (
            "The override is merged into the loaded config, too. Where --context-length is beyond what that says, it "
            "wants SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in the environment."
        )
    if runtime == "llama.cpp":
        yield from gguf(spec, made)
    if runtime.startswith("transformers") and spec.scaling.name != "none":
        yield "generate() does not look at the limit; the factor is in the file, so it is on for every text."
    if config is not None and not has_one_axis(config):
        # Here, so that plain configs do not wait for the rooms about several axes.
        from rope_viz.runtimes.axes import in_words

        said = in_words(config, runtime)
        if said:
            yield said


def rope_of(spec: RopeSpec, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The rope_scaling that says it, with the keys of the method alone."""
    try:
        found = rewritten_old(config if config is not None else architecture(spec), spec).keys.get("rope_scaling")
    except ValueError:
        return {}
    return {} if not isinstance(found, dict) else found


def gguf(spec: RopeSpec, made: Export) -> Iterator[str]:
    """What a GGUF file holds, and whether it has to be converted again."""
    if made.text.startswith("#"):
        yield "The GGUF has to be converted again: no flag says this, so it must stand in config.json beforehand."
        return
    yield "The GGUF stays as it is: the flags win over what it holds."
    keys = [f"<arch>.context_length = {spec.target}", f"<arch>.rope.freq_base = {spec.base:g}"]
    if spec.scaling.name in ("yarn", "linear"):
        keys += [
            f"<arch>.rope.scaling.type = {spec.scaling.name}",
            f"<arch>.rope.scaling.factor = {spec.scaling.factor_for(spec):g}",
            f"<arch>.rope.scaling.original_context_length = {spec.context}",
        ]
    yield f"Converted again from the written config.json it holds {', '.join(keys)}, and needs -c alone."


def log(runtime: str, spec: RopeSpec, served: int) -> str:
    """The line to look for when it starts."""
    factor = spec.scaling.factor_for(spec)
    if runtime == "vllm":
        return f"max_seq_len={served} in the line that begins with: Initializing a V1 LLM engine"
    if runtime == "sglang":
        return f"context_length={served} in the line that begins with: server_args=ServerArgs("
    if runtime == "llama.cpp":
        return f"llama_context: n_ctx = {served}, freq_base = {spec.base:.1f}, freq_scale = {1.0 / factor:g}"
    return ""


def snippet(runtime: str) -> str:
    """Python or shell that writes the frequencies of the running model for `rope-viz verify`."""
    return SNIPPETS[runtime]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What changes in the file, as a unified diff of the two."""
    old, new = (json.dumps(one, indent=2, ensure_ascii=False).splitlines() for one in (before, after))
    lines = difflib.unified_diff(old, new, "config.json (yours)", "config.json (to write)", lineterm="", n=2)
    return "\n".join(lines)


assert set(NAMES) == set(TARGETS), "everything that can be exported has a name"
