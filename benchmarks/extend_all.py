"""Run `extend` over the class defaults of every transformers type with RoPE and over the catalog, and judge the result.

For each config, each factor (default: 2, 8 and 64 times its limit) and each runtime, what is written is judged by what
transformers itself computes: a tiny rotary module is built from the config before and from the config after. Where
transformers has no such module, the emulation of transformers computes it instead (`judged by emulation`).

- `faster`: pairs that turn faster than in the config before; methods that depend on the length at both limits, too;
- `factor`: a factor on cos and sin, or DeepSeek's on the softmax scale, that is dropped;
- `layer`: layer types whose frequencies changed although another one was extended;
- `buffers`: frequencies that are not the intended ones; `window`: a key of a window or chunk that changed;
- `not recommended`: such a way is written without being asked for;
- `length`: the runtime's own rule refuses the length (vLLM and SGLang; re-typed from config/model.py of vLLM 0.33.0 and
  srt/utils/hf_transformers/common.py of SGLang 0.5.23);
- `finding`: what the check finds in the written config and not in the config before (rule, severity, key): errors,
  warnings and scaling in vain, `runtimes-differ` aside. Warnings are told, they are no fault;
- `refused`: nothing is written, by reason.

With --beside, requests that another checkout answers with exit code 0 and this one does not are listed with the way
that the other one writes.

Usage: python benchmarks/extend_all.py [FACTOR ...] [--runtime NAME ...] [--beside CHECKOUT]
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.advice.lint import check
from rope_viz.advice.plan.config_file import IN_VAIN
from rope_viz.advice.plan.extension_plan import ExtensionPlan, make_plan
from rope_viz.embedding.spec import MAX_LENGTH, lists
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate

TOLERANCE = 1e-5
"""transformers computes frequencies in float32."""
RUNTIMES = ("transformers", "vllm", "sglang", "llama.cpp", "mlx-lm")
WINDOWS = re.compile("window|chunk")
# Run in the other checkout: one line per answer with exit code 0. make_plan was named plan before.
ANSWERED = """
import json, sys
try:
    from rope_viz.advice.plan import extension_plan
except ImportError:  # an older checkout
    from rope_viz.advice import extension_plan
make_plan = getattr(extension_plan, "make_plan", None) or extension_plan.plan
for line in sys.stdin:
    name, config, length, runtime = json.loads(line)
    try:
        plan = make_plan(config, length, [runtime])
    except (ValueError, TypeError, AssertionError, KeyError):
        continue
    if plan.file.fit and all(one.made.faithful for one in plan.instructions):
        print(json.dumps([[name, length, runtime], f"{plan.way.title} ({plan.way.rank})"]))
"""
Question: TypeAlias = tuple[str, int, str]


def list_configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and config of every model of the catalog and of every configuration class of transformers."""
    yield from ((id, dict(model.config)) for id, model in catalog().items())
    from transformers import CONFIG_MAPPING, logging

    logging.set_verbosity_error()
    for kind in CONFIG_MAPPING:
        try:
            yield f"class {kind}", CONFIG_MAPPING[kind]().to_dict()
        except Exception as error:
            print(f"{kind}: no class default ({type(error).__name__})", file=sys.stderr)


def find_new_faults(before: ModelConfig, after: ModelConfig) -> list[str]:
    """Return the findings that only the config after the change has, by rule, severity and key."""
    slow = ("runtimes-differ",)
    known = {(one.rule, one.severity, unify(one.key)) for one in check(before, without=slow)}
    after = dataclasses.replace(after, changed_from=before.identity)
    return [
        f"finding {one.severity} {one.rule} {one.key}"
        for one in check(after, without=slow)
        if (one.rule, one.severity, unify(one.key)) not in known and (one.severity != "note" or one.rule in IN_VAIN)
    ]


def unify(key: str) -> str:
    """Return a place in either generation of keys under one name."""
    return key.replace("rope_parameters", "rope_scaling")


def find_rotary_class(config: Any) -> Any:
    """Return the rotary class of a text configuration's model file that takes a config; None where there is none."""
    name = type(config).__module__.replace("configuration_", "modeling_")
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    stem = type(config).__name__.removesuffix("Config").removesuffix("Text")
    found = [
        one
        for label, one in vars(module).items()
        if inspect.isclass(one) and label.endswith("RotaryEmbedding") and "Vision" not in label
        if "config" in inspect.signature(one.__init__).parameters and one.__module__ == name
    ]
    found.sort(key=lambda one: (not one.__name__.startswith(stem), len(one.__name__)))
    return found[0] if found else None


Computed: TypeAlias = "dict[str, tuple[Any, float]]"
"""{layer type: (frequencies, factor on cos and sin)}."""


def load_config(model: ModelConfig) -> Any:
    """Return the language model's configuration, as transformers loads it."""
    from transformers import AutoConfig

    keys = json.loads(json.dumps({key: value for key, value in model.mapping.items() if key != "_about"}))
    config = AutoConfig.for_model(keys.pop("model_type"), **keys)
    for key in model.part.loaded:
        config = getattr(config, key)
    return config


def execute(model: ModelConfig, length: int) -> Computed | None:
    """Return what transformers computes at a length; None where it has no rotary module that says it."""
    import torch

    if model.architecture.remote_code:
        return None
    config = load_config(model)
    rotary = find_rotary_class(config)
    live = None if rotary is None else rotary(config)
    if live is None:
        return None
    # It keeps its frequencies in another order.
    shuffled = type(live).__name__ == "Ernie4_5_VLMoeTextRotaryEmbedding"
    found: Computed = {}
    for layer, spec in model.specs.items():
        name = next((one for one in (f"{layer}_inv_freq", "inv_freq") if hasattr(live, one)), None)
        if name is None:
            return None
        if spec.scaling.depends_on_length:
            given = {"layer_type": layer} if "layer_type" in inspect.signature(live.forward).parameters else {}
            live.forward(torch.zeros(1, 1, 1), torch.tensor([[length - 1]]), **given)
        values = np.asarray(getattr(live, name).double().tolist())
        factor = float(getattr(live, name.replace("inv_freq", "attention_scaling"), 1.0))
        found[layer] = (np.sort(values)[::-1] if shuffled else values, factor)
    return found


def emulate_all(model: ModelConfig, length: int) -> Computed:
    """Return what transformers computes at a length by our own rules."""
    return {layer: (spec.inv_freq(length), spec.attention_factor(length)) for layer, spec in model.specs.items()}


def can_execute(model: ModelConfig) -> bool:
    """Return whether transformers computes something for the config as it is; it refuses some cut ones."""
    try:
        return execute(model, 1) is not None
    except Exception:
        return False


def read_softmax(model: ModelConfig, layer: str) -> float:
    """Return the factor on the softmax scale by the rules for transformers, 1 where it has none."""
    return emulate(model, "transformers", layer_type=layer or None).softmax_multiplier or 1.0


def judge(plan: ExtensionPlan, before: ModelConfig, written: ModelConfig) -> tuple[list[str], bool]:
    """Return the faults of the written config by what transformers computes, and whether it was executed."""
    faults: list[str] = []
    layer, executed = plan.recognised.layer, can_execute(before)
    compute = execute if executed else emulate_all
    old = before.specs[layer]
    reached = max(old.target, old.context + bool(lists(old.scaling)))
    for length in sorted({old.context, reached, max(reached, plan.target)}):
        was, now = compute(before, min(length, reached)), compute(written, length)
        if was is None or now is None:
            return [*faults, "buffers: transformers has no rotary module any more"], executed
        faults += [f"layer {each}" for each in was if each != layer and not is_close(was[each], now.get(each))]
        faults += [f"faster: {text}" for text in compare_pairs(was[layer][0], now[layer][0])]
        if is_dropped(was[layer][1], now[layer][1]):
            faults.append(f"factor {was[layer][1]:.4g} became {now[layer][1]:.4g}")
        wanted = plan.way.spec
        if executed and not is_close(
            (wanted.inv_freq(length), wanted.attention_factor(length)), now[layer], exact=False
        ):
            faults.append(f"buffers of {layer or 'all layers'}")
    softmax = read_softmax(before, layer), read_softmax(written, layer)
    if is_dropped(*softmax):
        faults.append(f"factor on the softmax scale {softmax[0]:.4g} became {softmax[1]:.4g}")
    for key, value in before.part.config.items():
        if WINDOWS.search(key) and key in written.part.config and written.part.config[key] != value:
            faults.append(f"window: {key} became {written.part.config[key]}")
    return list(dict.fromkeys(faults)), executed


def is_dropped(before: float, after: float) -> bool:
    """Return whether a factor is nearer to 1 than before."""
    return (before - 1.0) * (before - after) > TOLERANCE * abs(before - 1.0)


def is_close(wanted: tuple[Any, float], found: tuple[Any, float] | None, *, exact: bool = True) -> bool:
    """Return whether frequencies and factor are the same; without `exact` in any order."""
    if found is None or wanted[0].shape != found[0].shape or abs(wanted[1] - found[1]) > TOLERANCE:
        return False
    first, second = (wanted[0], found[0]) if exact else (np.sort(wanted[0]), np.sort(found[0]))
    return bool(np.allclose(first, second, rtol=TOLERANCE, atol=0.0))


def compare_pairs(before: Any, after: Any) -> Iterator[str]:
    """Yield how many pairs turn faster than before, and by how much."""
    if before.shape != after.shape:
        yield f"{len(after)} pairs, not {len(before)}"
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(after > 0, after / before, 0.0)
    if (ratio > 1.0 + TOLERANCE).any():
        yield f"{np.count_nonzero(ratio > 1.0 + TOLERANCE)} of {len(ratio)} pairs, up to x{ratio.max():.3g}"


VLLM_KEYS = """
max_position_embeddings n_positions max_seq_len seq_length model_max_length max_target_positions max_sequence_length
max_seq_length seq_len
""".split()
SGLANG_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
LIMIT_HOLDS_FACTOR = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")


def find_longest(written: ModelConfig, runtime: str) -> float:
    """Return the longest length that a server accepts for a config, infinite where that is not known."""
    if runtime not in ("vllm", "sglang") or written.architecture.remote_code:
        return np.inf
    config = load_config(written)
    rope = getattr(config, "rope_parameters", None) or {}
    nested = [one for one in rope.values() if isinstance(one, dict)]
    if runtime == "sglang":
        rope = getattr(config, "rope_scaling", None) or {}
        fixed = "original_max_position_embeddings" in rope or rope.get("rope_type") == "llama3"
        scale = 1.0 if fixed else float(rope.get("factor") or 1.0)
        lengths = [getattr(config, key, None) for key in SGLANG_KEYS]
        return next((int(scale * length) for length in lengths if length is not None), 2048)
    factor = 1.0
    for one in nested or [rope]:
        if one and one.get("rope_type") not in LIMIT_HOLDS_FACTOR and "gemma3" not in written.model_type:
            factor = float(one.get("factor", factor) or 1.0)
    given = [getattr(config, key, None) for key in VLLM_KEYS]
    longest = min((float(value) for value in given if value is not None), default=float("inf")) * factor
    return max(longest, getattr(config, "model_max_length", None) or 0)


def find_answers(checkout: str, asked: list[tuple[str, dict[str, Any], int, str]]) -> dict[Question, str]:
    """Return {(name, length, runtime): way} of the questions that another checkout answers with exit code 0."""
    lines = "\n".join(json.dumps(one, default=str) for one in asked)
    path = os.pathsep.join((checkout, os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-c", ANSWERED],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
        input=lines,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return {(name, length, runtime): way for (name, length, runtime), way in map(json.loads, done.stdout.splitlines())}


JUDGED: dict[str, tuple[list[str], bool]] = {}


def examine(model: ModelConfig, length: int, runtime: str, counts: collections.Counter[str]) -> tuple[list[str], bool]:
    """Return the faults of one answer, and whether its exit code is 0."""
    try:
        plan = make_plan(model, length, [runtime])
    except ValueError as error:
        return [f"no answer: {error}"], False
    if plan.refused:
        return [f"refused: {reason}" for reason in dict.fromkeys(plan.refused.values())][:1], False
    written = ModelConfig.read(plan.file.config)
    faults = find_new_faults(model, written)
    if plan.way.rank == "not advised":
        faults.append(f"not recommended: {plan.way.title}")
    try:
        # Runtimes that read one file get one judgement.
        asked = json.dumps([dict(model.mapping), dict(written.mapping), plan.way.id, length], default=str)
        judged, executed = JUDGED[asked] = JUDGED.get(asked) or judge(plan, model, written)
        counts["judged by execution" if executed else "judged by emulation"] += 1
        faults += judged
        is_read = all(one.made.faithful for one in plan.instructions)
        if is_read and executed and plan.target > find_longest(written, runtime):
            faults.append(f"length: {runtime} accepts {find_longest(written, runtime):,.0f}")
    except Exception as error:  # whatever a model's own code raises is a fault of what was written
        faults.append(f"transformers raises {type(error).__name__}: {str(error)[:80]}")
    return faults, plan.file.fit and all(one.made.faithful for one in plan.instructions)


def main() -> None:
    """Print every fault, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factors", nargs="*", type=int, default=[2, 8, 64])
    parser.add_argument("--runtime", nargs="*", default=RUNTIMES, help="default: all that extend can ask")
    parser.add_argument(
        "--beside", dest="checkout", metavar="CHECKOUT", help="another checkout of this project, to compare refusals"
    )
    parser.add_argument("--smallest", action="store_true", help="the first five configs only")
    parsed = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    asked: list[tuple[str, dict[str, Any], int, str]] = []
    told: dict[Question, list[str]] = {}
    answered: set[Question] = set()
    for name, config in islice(list_configs(), 5 if parsed.smallest else None):
        model = ModelConfig.read(config)
        if model.problems:
            counts["no text RoPE"] += 1
            continue
        for factor in parsed.factors:
            length = min(factor * model.limit, MAX_LENGTH)
            for runtime in parsed.runtime:
                question = (name, length, runtime)
                asked.append((name, dict(model.mapping), length, runtime))
                counts["runs"] += 1
                faults, done = examine(model, length, runtime, counts)
                told[question] = faults
                answered |= {question} if done else set()
                for fault in faults:
                    counts[" ".join(fault.split(":")[0].split()[:2])] += 1
                    print(f"{name} x{factor} {runtime}: {fault}", flush=True)
    if parsed.checkout:
        before = find_answers(parsed.checkout, asked)
        lost = sorted(before.keys() - answered)
        print(f"answered before: {len(before)}, now: {len(answered)}, answers that became refusals: {len(lost)}")
        for question in lost:
            print("  became a refusal:", *question, "|", before[question], "|", *told[question][:1])
    print(dict(counts))


if __name__ == "__main__":
    main()
