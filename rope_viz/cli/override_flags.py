"""The flags --hf-overrides and --rope-scaling: a config as a loader has it after merging overrides."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.cli.flags import add_flags
from rope_viz.embedding.spec import short_repr
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.overrides import Merged, merge_overrides
from rope_viz.storage.decode_json import decode_json

HF, SCALING = "--hf-overrides", "--rope-scaling"


@dataclass(frozen=True)
class Override:
    """What a flag asks for: the keys to merge, and the loaders that take them, the first one by default."""

    flag: str
    keys: Mapping[str, Any]
    loaders: Sequence[str]

    def merge(self, model: ModelConfig, loader: str | None = None) -> Merged:
        """Return the config as a loader has it."""
        return merge_overrides(model, self.keys, loader or self.loaders[0])

    def merge_all(self, model: ModelConfig) -> list[Merged]:
        return [self.merge(model, loader) for loader in self.loaders]

    def apply(self, model: ModelConfig, loaders: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return the config for the first of the asked loaders that takes the flag; tell the rest on stderr.

        Raise `ValueError` where that loader or the model raises.
        """
        loader = next((name for name in loaders if name in self.loaders), self.loaders[0])
        merged = self.merge(model, loader)
        for note in merged.notes:
            print(f"rope-viz: {note}.", file=sys.stderr)
        if merged.refusal:
            raise ValueError(f"{loader} refuses the override: {merged.refusal}")
        for other in self.loaders:
            if other != loader and self.merge(model, other) != Merged(other, merged.config, merged.notes):
                print(f"rope-viz: {other} merges this override otherwise; shown is {loader}", file=sys.stderr)
        return merged.config


def add_override_flags(command: argparse.ArgumentParser) -> None:
    """Add both flags; only one of them can be given."""
    add_flags(command.add_mutually_exclusive_group(), "override")


def read_override(parsed: argparse.Namespace) -> Override | None:
    """Return the override of the command line, None without. Raise `ValueError` where it is no JSON object."""
    for flag, name in ((HF, "hf_overrides"), (SCALING, "rope_scaling")):
        text = getattr(parsed, name, None)
        if text is None:
            continue
        keys = decode_json(text, f"{flag} must be a JSON object in quotes, got {short_repr(text)}")
        if not isinstance(keys, dict):
            raise ValueError(f"{flag} must be a JSON object, got {short_repr(keys)}")
        if flag == HF:
            return Override(flag, keys, ("vllm", "sglang"))
        if "rope_scaling" in keys:
            raise ValueError(f"{flag} takes the rope dict itself, without the key rope_scaling around it")
        return Override(flag, {"rope_scaling": keys}, ("transformers",))
    return None
