"""The command `memory`: the bytes of KV cache and weights at one length."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rope_viz.advice.memory.estimate_memory import describe_memory, memory, with_catalog_sizes
from rope_viz.advice.memory.kv_cache import DTYPES
from rope_viz.advice.memory.weight_storage import WEIGHT_TYPES
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import named, one_line
from rope_viz.cli.spec import NAMES as CONFIGS
from rope_viz.cli.spec import read_config, read_model, tokens

UNREADABLE = 3


def add(commands: Any) -> None:
    """Add the command and its flags."""
    asked = commands.add_parser(
        "memory",
        description="Show the bytes of the KV cache and the weights, and the number of parameters. Exit code 0: at "
        "least one number is known. 1: none is. 2: an argument is invalid. 3: the file cannot be read.",
    )
    asked.add_argument("config", metavar="CONFIG", help=CONFIGS)
    asked.add_argument("--length", required=True, type=tokens, metavar="N", help="tokens, such as 128k")
    asked.add_argument("--sequences", type=tokens, default=1, metavar="K", help="parallel requests; default: 1")
    asked.add_argument("--dtype", choices=DTYPES, help="data type of the KV cache; default: the file's, else bfloat16")
    asked.add_argument("--weight-dtype", choices=WEIGHT_TYPES, help="data type of the weights; default: the file's own")
    asked.add_argument(
        "--runtime",
        metavar="NAME",
        help="also the blocks that this engine reserves (vllm)",
    )
    asked.add_argument(
        "--batched-tokens",
        type=tokens,
        metavar="N",
        help="--max-num-batched-tokens of vLLM, which counts where layers have windows; default: 8,192",
    )
    asked.add_argument("--json", action="store_true", help="print JSON")
    add_hub_flag(asked)
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    try:
        config = read_model(parsed.config, read_config(parsed.config))
        with named(parsed.config):
            _ = config.part
            if not config.problems:  # a model is recognised by its RoPE
                config = with_catalog_sizes(config, config.identity)
    except (ValueError, OSError) as error:
        print(f"rope-viz: {one_line(error)}", file=sys.stderr)
        return UNREADABLE
    with named(parsed.config):
        found = memory(
            config,
            length=parsed.length,
            sequences=parsed.sequences,
            dtype=parsed.dtype,
            weight_dtype=parsed.weight_dtype,
            runtime=parsed.runtime,
            batched_tokens=parsed.batched_tokens,
        )
    print(json.dumps(found, indent=2) if parsed.json else describe_memory(found))
    return 0 if any(found[key] is not None for key in ("kv_cache_bytes", "weight_bytes", "parameters")) else 1
