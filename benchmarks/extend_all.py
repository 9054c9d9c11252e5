"""Run `extend` over the class defaults of every transformers type with RoPE and over the catalog, and count new faults.

For each config and each factor (default: 2 and 8 times its limit):

- findings of the check that the written config has and the config before has not, as whole findings (rule, severity,
  key): errors, warnings and scaling in vain, `runtimes-differ` aside;
- layer types whose frequencies changed although another one was extended;
- `buffers`: transformers itself builds a tiny rotary module from the written config; its frequencies and factor are
  compared with the intended ones, layer type by layer type (types without such a module are counted);
- refusals, and those of them that another checkout of this project answered.

Usage: python benchmarks/extend_all.py [FACTOR ...] [--beside CHECKOUT]
"""

from __future__ import annotations

import argparse
import collections
import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from rope_viz.advice.lint import check
from rope_viz.advice.plan.config_file import IN_VAIN, find_strayed_layers
from rope_viz.advice.plan.extension_plan import ExtensionPlan, make_plan
from rope_viz.embedding.spec import MAX_LENGTH
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig

TOLERANCE = 1e-5
"""transformers computes frequencies in float32."""
# Run in the other checkout: one line per answer. make_plan was named plan before.
ANSWERED = """
import json, sys
try:
    from rope_viz.advice.plan import extension_plan
except ImportError:  # an older checkout
    from rope_viz.advice import extension_plan
make_plan = getattr(extension_plan, "make_plan", None) or extension_plan.plan
for line in sys.stdin:
    name, config, length = json.loads(line)
    try:
        make_plan(config, length, ["transformers"])
        print(json.dumps([name, length]))
    except (ValueError, TypeError, AssertionError, KeyError):
        pass
"""


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


def compare_buffers(plan: ExtensionPlan, before: ModelConfig, written: ModelConfig) -> tuple[list[str], bool]:
    """Return the layer types whose buffers in transformers are not the intended ones, and whether they were built."""
    from transformers import AutoConfig

    kind = written.mapping.get("model_type")
    if written.architecture.remote_code:
        return [], False
    try:
        keys = json.loads(json.dumps({key: value for key, value in written.mapping.items() if key != "_about"}))
        keys.pop("model_type")
        config = AutoConfig.for_model(kind, **keys)
        for key in written.part.loaded:
            config = getattr(config, key)
        rotary = find_rotary_class(config)
        live = None if rotary is None else rotary(config)
    except Exception as error:
        return [f"buffers: transformers raises {type(error).__name__}: {str(error)[:80]}"], True
    if live is None:
        return [], False
    faults, compared = [], False
    for layer, old in before.specs.items():
        intended = plan.way.spec if layer == plan.recognised.layer else old
        name = next((one for one in (f"{layer}_inv_freq", "inv_freq") if hasattr(live, one)), None)
        if name is None or intended.scaling.name in ("dynamic", "longrope"):
            continue  # these depend on the length of the text, and the buffers are those of a short one
        found = np.asarray(getattr(live, name).double().tolist())
        factor = float(getattr(live, name.replace("inv_freq", "attention_scaling"), 1.0))
        wanted, compared = intended.inv_freq(), True
        if type(live).__name__ == "Ernie4_5_VLMoeTextRotaryEmbedding":  # it keeps its frequencies in another order
            found, wanted = np.sort(found), np.sort(wanted)
        same = found.shape == wanted.shape and np.allclose(found, wanted, rtol=TOLERANCE, atol=0.0)
        if not same or abs(factor - intended.attention_factor()) > TOLERANCE:
            faults.append(f"buffers of {layer or 'all layers'}")
    return faults, compared


def find_answers(checkout: str, asked: list[tuple[str, dict[str, Any], int]]) -> set[tuple[str, int]]:
    """Return (name, length) of the questions that another checkout answers."""
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
    return {(name, length) for name, length in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    """Print every fault, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factors", nargs="*", type=int, default=[2, 8])
    parser.add_argument(
        "--beside", dest="checkout", metavar="CHECKOUT", help="another checkout of this project, to compare refusals"
    )
    parsed = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    asked: list[tuple[str, dict[str, Any], int]] = []
    answered: set[tuple[str, int]] = set()
    for name, config in list_configs():
        model = ModelConfig.read(config)
        if model.problems:
            counts["no text RoPE"] += 1
            continue
        for factor in parsed.factors:
            length = min(factor * model.limit, MAX_LENGTH)
            asked.append((name, dict(model.mapping), length))
            counts["runs"] += 1
            try:
                plan = make_plan(model, length, ["transformers"])
                written = ModelConfig.read(plan.file.config)
                faults = find_new_faults(model, written)
                faults += [f"layer {one}" for one in find_strayed_layers(model, written, plan.recognised.layer)]
                buffers, compared = compare_buffers(plan, model, written)
                faults += buffers
                counts["runs with buffers"] += compared
                answered.add((name, length))
            except ValueError as error:
                faults = [f"refused: {error}"]
            for fault in faults:
                counts[fault.partition(":")[0].partition(" of ")[0]] += 1
                print(f"{name} x{factor}: {fault}", flush=True)
    if parsed.checkout:
        before = find_answers(parsed.checkout, asked)
        lost = sorted(before - answered)
        print(f"answered before: {len(before)}, now: {len(answered)}, answers that became refusals: {lost}")
    print(dict(counts))


if __name__ == "__main__":
    main()
