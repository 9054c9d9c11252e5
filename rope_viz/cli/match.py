"""The command `match`: does a server compute the rotary embedding that a trainer trained?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from rope_viz.advice.training.make_match import Remedy, find_remedy
from rope_viz.advice.training.match_training import Match, describe_match, match_training
from rope_viz.cli.hub_access import add_hub_flag
from rope_viz.cli.output import named, one_line
from rope_viz.cli.spec import NAMES, read_config, read_model, refuse_diffusion, tokens
from rope_viz.models.formats.argument_text import parse_flags
from rope_viz.models.no_rope_types import NoRope
from rope_viz.models.user_config import parse_config
from rope_viz.runtimes.releases import format_version
from rope_viz.runtimes.trainers import TRAINERS
from rope_viz.storage.read_file import read_limited_text

SAME, DIFFERS, REFUSED, UNREADABLE = range(4)


def add(commands: Any) -> None:
    """Add the command and its flags."""
    known = ", ".join(TRAINERS)
    asked = commands.add_parser(
        "match",
        description="Compare the rotary embedding that a trainer computes with that of a server. Exit code 0: the "
        "same. 1: they differ. 2: one of them refuses. 3: the config cannot be read.",
    )
    asked.add_argument("config", metavar="CONFIG", help=NAMES)
    asked.add_argument("--trainer", required=True, metavar="NAME[=VERSION]", help=f"one of {known}")
    asked.add_argument(
        "--trainer-args",
        metavar="JSON|FILE",
        help="the trainer's own options as a JSON object, a file of one, or flags; without it those that state CONFIG",
    )
    asked.add_argument(
        "--server", default="transformers", metavar="NAME[=VERSION]", help="the runtime (default: transformers)"
    )
    asked.add_argument(
        "--permuted",
        action="store_true",
        help="the checkpoint was converted: the rows of q and k are in the order of the server's pairs",
    )
    asked.add_argument("--length", type=tokens, help="length of the training sequences in tokens")
    asked.add_argument("--layer", help="layer type, such as full_attention")
    asked.add_argument("--json", action="store_true", help="as JSON, with the trainer's frequencies")
    add_hub_flag(asked)
    asked.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    try:
        config = read_config(parsed.config)
        with named(parsed.config):
            refuse_diffusion(config)
            model = read_model(parsed.config, config)
            if not model.specs:
                raise ValueError("it describes no rotary embedding")
            model.find_layer(parsed.layer)
    except NoRope as absence:
        print(f"rope-viz: {absence}", file=sys.stderr)
        return REFUSED
    except (ValueError, OSError) as error:
        print(f"rope-viz: {one_line(error)}", file=sys.stderr)
        return UNREADABLE
    trainer, version = split_version(parsed.trainer)
    found = match_training(
        config,
        trainer,
        version=version,
        arguments=read_arguments(parsed.trainer_args),
        server=split_version(parsed.server),
        length=parsed.length,
        layer_type=parsed.layer,
        is_permuted=parsed.permuted,
    )
    remedy = find_remedy(found, config, length=parsed.length, layer_type=parsed.layer)
    if parsed.json:
        print(json.dumps({**match_dict(found), **remedy_dict(remedy)}, indent=2))
    else:
        print(describe_match(found))
        for text in (*found.notes, *(one.text for one in found.training.rules)):
            print(f"  {text}")
        if remedy.text:
            print(f"\n{describe_remedy(remedy, found)}\n{remedy.text}")
        if remedy.reason and not remedy.matches:
            print(f"rope-viz: {remedy.reason}", file=sys.stderr)
    if found.same is None:
        return REFUSED
    return SAME if found.same else DIFFERS


def split_version(written: str) -> tuple[str, str | None]:
    """Return name and version of NAME[=VERSION]."""
    name, _, version = written.partition("=")
    return name, version or None


def read_arguments(written: str | None) -> Mapping[str, Any] | None:
    """Return a trainer's options from a JSON object, a file of one, or flags. Raise `ValueError` for anything else."""
    if written is None:
        return None
    with named("--trainer-args"):
        if written.startswith("--"):
            return parse_flags(written)
        if written.lstrip().startswith("{"):
            return parse_config(written)
        text = read_limited_text(written)
        return parse_flags(text) if text.lstrip().startswith("--") else parse_config(text)


def match_dict(found: Match) -> dict[str, Any]:
    """Return a comparison as JSON data."""
    training, server = found.training, found.emulation
    return {
        "trainer": training.trainer.name,
        "trainer_version": training.version,
        "server": server.runtime,
        "server_version": format_version(server.version),
        "same": found.same,
        "same_values": found.same_values,
        "same_pairs": found.same_pairs,
        "sentence": describe_match(found),
        "worst_pair": None if found.effect is None else found.effect.pair,
        "worst_ratio": find_ratio(found),
        "score_ratio": found.score_ratio,
        "score_ratio_unrotated": found.score_ratio_unrotated,
        "far_position": found.far_position,
        "attention_factor": training.attention_factor,
        "softmax_scale_multiplier": training.softmax_multiplier,
        "factor_place": training.factor_place,
        "pairing": training.pairing,
        "evidence": training.evidence,
        "source": training.trainer.source,
        "server_known": server.known.how,
        "reason": training.reason or server.reason,
        "rules": {rule.key: rule.text for rule in training.rules},
        "trainer_args": dict(training.arguments),
        "notes": list(found.notes),
        "inv_freq": None if training.inv_freq is None else training.inv_freq.tolist(),
    }


def describe_remedy(remedy: Remedy, found: Match) -> str:
    """Return the line above what makes a server match."""
    what = "write these keys into config.json" if remedy.is_config else "give it these options"
    checked = " (checked with its rules)" if remedy.matches else ", the closest that it can be told"
    also = "" if found.same_pairs else "permute q and k and "
    return f"To make {found.emulation.name} match, {also}{what}{checked}:"


def remedy_dict(remedy: Remedy) -> dict[str, Any]:
    """Return what makes a server match as JSON data."""
    reason = "" if remedy.matches else remedy.reason
    return {"make_it_match": remedy.text or None, "make_it_match_checked": remedy.matches, "not_expressible": reason}


def find_ratio(found: Match) -> float | None:
    """Return the largest ratio of frequencies, 1 where they agree, None where they cannot be compared."""
    if found.effect is not None:
        return found.effect.ratio
    return None if found.same_values is None or found.widths_differ else 1.0
