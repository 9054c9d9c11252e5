"""Run `extend` over the class defaults of every transformers type with RoPE and over the catalog, and count new faults.

For each config and for 2 and 8 times its limit: the findings of the check that the written config has and the config
before has not (errors, warnings, scaling in vain; `runtimes-differ` aside), layers of other types that changed, and
refusals. Usage: python benchmarks/extend_all.py [FACTOR ...]
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from typing import Any

from rope_viz.advice.check_change import find_new_findings, find_strayed_layers
from rope_viz.advice.extension_plan import make_plan
from rope_viz.embedding.spec import MAX_LENGTH
from rope_viz.models.catalog import catalog
from rope_viz.models.model_config import ModelConfig


def list_configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and config of every model of the catalog and of every configuration class of transformers."""
    yield from ((id, dict(model.config)) for id, model in catalog().items())
    from transformers import CONFIG_MAPPING, logging

    logging.set_verbosity_error()
    for kind in CONFIG_MAPPING:
        try:
            yield kind, CONFIG_MAPPING[kind]().to_dict()
        except Exception as error:
            print(f"{kind}: no class default ({type(error).__name__})", file=sys.stderr)


def main() -> None:
    """Print every fault, and the counts."""
    factors = [int(given) for given in sys.argv[1:]] or [2, 8]
    counts: collections.Counter[str] = collections.Counter()
    for name, config in list_configs():
        model = ModelConfig.read(config)
        if model.problems:
            counts["no text RoPE"] += 1
            continue
        for factor in factors:
            counts["runs"] += 1
            try:
                plan = make_plan(model, min(factor * model.limit, MAX_LENGTH), ["transformers"])
                written = ModelConfig.read(plan.file.config)
                faults = [f"{one.severity} {one.rule}" for one in find_new_findings(model, written)]
                faults += [f"layer {one}" for one in find_strayed_layers(model, written, plan.recognised.layer)]
            except ValueError as error:
                faults = [f"refused: {error}"]
            for fault in faults:
                counts[fault.partition(":")[0]] += 1
                print(f"{name} x{factor}: {fault}")
    print(dict(counts))


if __name__ == "__main__":
    main()
