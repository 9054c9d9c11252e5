"""What to give each runtime, checked by emulation: the file or the flags, the command, how to see that it worked."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rope_viz.advice.plan import TEXTS
from rope_viz.advice.plan.config_file import ConfigFile, is_reader
from rope_viz.advice.plan.export import TARGETS, Export, as_json, config_to_change, export, require_target
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.edit_config import write_old_keys
from rope_viz.models.formats.json_source import source_file
from rope_viz.models.model_config import ModelConfig, Source
from rope_viz.runtimes.longest_length import explain_refused_length
from rope_viz.runtimes.releases import format_release
from rope_viz.texts import join
from rope_viz.texts.sentences import remove_period
from rope_viz.texts.texts import join_items, join_list, put_in_brackets

# Snippets that write the frequencies which a running model really uses to inv_freq.json, for `rope-viz verify`. The
# one for transformers is run by tests; those for vLLM, SGLang and mlx-lm follow from their code and were not run.
SNIPPETS = Path(__file__).with_name("snippets")
AUTO_CLASSES = Path(__file__).parents[2] / "models" / "auto_classes.json"

USUAL_CLASS = "AutoModelForCausalLM"


@functools.cache
def read_auto_classes() -> Mapping[str, str]:
    """Return {model type: Auto class of transformers} of the types that another class than the usual one loads."""
    by_class = json.loads(AUTO_CLASSES.read_text(encoding="utf-8"))
    return {kind: name for name, kinds in by_class.items() for kind in kinds}


def find_auto_class(config: Mapping[str, Any]) -> str:
    """Return the Auto class of transformers that loads a model with all of its parts, by its model type."""
    kind = config.get("model_type")
    return read_auto_classes().get(kind, USUAL_CLASS) if isinstance(kind, str) else USUAL_CLASS


def find_snippet(runtime: str, config: Mapping[str, Any], layer: str = "") -> str:
    """Return what to run to get the frequencies of a running model, for layers of this type where types differ."""
    is_transformers = runtime.startswith("transformers")
    file = SNIPPETS / ("transformers.txt" if is_transformers else f"{runtime}.txt")
    text = file.read_text(encoding="utf-8").removesuffix("\n")
    names = f'"{layer}_inv_freq", "inv_freq"' if layer else '"inv_freq",'
    return text.format(auto_class=find_auto_class(config), names=names) if is_transformers else text


OVERRIDE_FLAGS = {"vllm": "--hf-overrides", "sglang": "--json-model-override-args"}


def fill_snippet(snippet: str, runtime: str, command: str, served: int) -> str:
    """Return a snippet with the overrides and the length that the command gives its server."""
    given, flag = shlex.split(command), OVERRIDE_FLAGS.get(runtime)
    overrides = json.loads(given[given.index(flag) + 1]) if flag in given else {}
    return snippet.replace("OVERRIDES", repr(overrides)).replace("LENGTH", str(served))


NAMES = {target: format_release(name, version) for target, (name, version, _) in TARGETS.items()}
"""Each runtime that can be written for, with the version that was read and run."""
LENGTH_FLAGS = {"vllm": "--max-model-len", "sglang": "--context-length", "llama.cpp": "-c"}


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
            key = "proof.remote" if self.made.faithful else "proof.remote_not"
            return join(TEXTS(key, name=self.name, reason=self.made.remote), TEXTS("compare_running"))
        if self.is_checked is None:
            why, source = in_brackets(self.made.reason), in_brackets(self.made.known.source)
            key = "proof.general" if self.made.faithful else "proof.general_not"
            return join(TEXTS(key, name=self.name, source=source, why=why), TEXTS("compare_running"))
        if self.made.faithful:
            key = "proof.layers" if self.made.changed else "proof.all"
            checked = TEXTS(key, name=self.name, layer=next(iter(self.made.changed), ""))
            return join(checked, TEXTS("proof.kept", layers=join_list(self.made.kept)) if self.made.kept else "")
        key, ratio = ("proof.cannot_by", self.made.effect.ratio) if self.made.effect else ("proof.cannot", 1.0)
        return TEXTS(key, name=self.name, ratio=ratio, reason=remove_period(self.made.reason))


def in_brackets(text: str) -> str:
    """Return a reason in brackets; empty where there is none."""
    return put_in_brackets(remove_period(text)) if text else ""


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
    runtime = require_target(runtime)
    model = None if config is None else ModelConfig.read(config)
    served, name = length or spec.target, NAMES[runtime]
    made = export(spec, to=runtime, config=model, layer_type=layer, served=served)
    refused = explain_refused_length(ModelConfig.read(made.config), made.runtime, served)
    if made.faithful and refused:
        made = dataclasses.replace(made, faithful=False, reason=refused)
    text = made.text
    is_read = file is not None and is_reader(runtime, (*file.runtimes, *file.unverified))
    if file is not None and is_read and not file.fragment:
        text = f"{LENGTH_FLAGS[runtime]} {served}" if runtime in LENGTH_FLAGS else ""
    elif file is not None and is_read and text.startswith("{"):
        text = as_json(dict(file.fragment))
    for option in LENGTH_FLAGS.values():
        text = text.replace(f"{option} {spec.target}", f"{option} {served}")
    language = "bash" if text and not text.startswith("{") else "json"
    more = tuple(list_notes(runtime, spec, made, model, served))
    keys: Mapping[str, Any] = {} if model is None else model.mapping
    main = "" if model is None else layer or model.main_layer
    start, log = write_command(runtime, text, served, find_auto_class(keys)), find_log_line(runtime, spec, served)
    check = fill_snippet(find_snippet(runtime, keys, main), runtime, start, served)
    return Instructions(runtime, name, made, text, language, start, more, log, check)


def write_command(runtime: str, text: str, served: int, auto_class: str) -> str:
    """Return the command that starts a runtime; `auto_class` loads the model in transformers."""
    flags = "" if text.startswith("{") else text.strip()
    if runtime.startswith("transformers"):
        return f"python -c \"from transformers import {auto_class} as M; M.from_pretrained('./model')\""
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
        yield TEXTS("vllm.overrides")
        rope = old_rope_scaling(spec, model)
        if rope and spec.is_scaled:
            older = f"--rope-scaling {shlex.quote(json.dumps(rope))} --max-model-len {served}"
            yield TEXTS("vllm.older", option=older)
    if runtime == "sglang":
        yield TEXTS("sglang.overrides")
    if runtime == "llama.cpp":
        yield from describe_gguf(spec, made, "" if model is None else source_file(model.mapping).get("architecture"))
        yield from describe_desktop(spec, served)
    if runtime.startswith("transformers") and spec.is_scaled:
        always = "" if spec.scaling.depends_on_length else TEXTS("transformers.always")
        yield join(TEXTS("transformers.limit"), always)
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


def describe_gguf(spec: RopeSpec, made: Export, architecture: str | None) -> Iterator[str]:
    """Yield what a GGUF file holds, and whether it has to be converted again.

    Source of the cap: https://github.com/ggml-org/llama.cpp/pull/28030, read.
    """
    arch = architecture or "<arch>"
    if made.text.startswith("#"):
        yield TEXTS("gguf.convert")
        return
    yield TEXTS("gguf.unchanged")
    override = f"--override-kv {arch}.context_length=int:{spec.target}"
    if spec.scaling.rope_type == "yarn":
        yield TEXTS("gguf.cap_yarn", arch=arch, option=override)
    else:
        yield TEXTS("gguf.cap", arch=arch, target=spec.target, option=override)
    keys = [f"{arch}.context_length = {spec.target}", f"{arch}.rope.freq_base = {spec.base:g}"]
    if spec.scaling.rope_type in ("yarn", "linear"):
        keys += [
            f"{arch}.rope.scaling.type = {spec.scaling.rope_type}",
            f"{arch}.rope.scaling.factor = {spec.scaling.factor_for(spec):g}",
            f"{arch}.rope.scaling.original_context_length = {spec.context}",
        ]
    yield TEXTS("gguf.converted", keys=join_items(keys))


def describe_desktop(spec: RopeSpec, served: int) -> Iterator[str]:
    """Yield the line of an Ollama Modelfile and the settings of LM Studio.

    Sources, read and not run: https://ollama.readthedocs.io/en/modelfile/ and the load settings of LM Studio
    (https://huggingface.co/lmstudio-community/DeepSeek-V2.5-1210-GGUF/discussions/1).
    """
    yield TEXTS("desktop.ollama_scaled" if spec.is_scaled else "desktop.ollama", served=served)
    key = "linear" if spec.scaling.rope_type == "linear" else "scaled" if spec.is_scaled else "plain"
    yield TEXTS(f"desktop.lm_studio_{key}", served=served, scale=1.0 / spec.scaling.factor_for(spec))


def find_log_line(runtime: str, spec: RopeSpec, served: int) -> str:
    """Return the line to look for when a runtime starts."""
    if runtime == "vllm":
        return TEXTS("log", text=f"max_seq_len={served}", line="Initializing a V1 LLM engine")
    if runtime == "sglang":
        return TEXTS("log", text=f"context_length={served}", line="server_args=ServerArgs(")
    if runtime == "llama.cpp":
        scale = 1.0 / spec.scaling.factor_for(spec)
        return f"llama_context: n_ctx = {served}, freq_base = {spec.base:.1f}, freq_scale = {scale:g}"
    return ""


def format_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what changes in the file, as a unified diff of the two."""
    old, new = (json.dumps(one, indent=2, ensure_ascii=False).splitlines() for one in (before, after))
    lines = difflib.unified_diff(old, new, TEXTS("diff.before"), TEXTS("diff.after"), lineterm="", n=2)
    return "\n".join(lines)
