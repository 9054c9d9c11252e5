"""Run the command that was parsed, and print its errors as one line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from rope_viz.cli.hub_access import allow_hub
from rope_viz.cli.output import one_line
from rope_viz.embedding.spec import UNCOMPUTABLE
from rope_viz.models.no_rope_types import NoRope


def run_command(parsed: argparse.Namespace) -> int:
    """Run the command, return its exit code and print an error as one line."""
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        with allow_hub(getattr(parsed, "hub", False)):
            return run(parsed)
    except NoRope as absence:
        return report_absence(str(absence), parsed)
    except ArithmeticError:
        print(f"rope-viz: {UNCOMPUTABLE}", file=sys.stderr)
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError) and folder_is_gone():
            print("rope-viz: the working directory was deleted: change to one that exists", file=sys.stderr)
            return 2
        place = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        print(f"rope-viz: {place}{one_line(error)}", file=sys.stderr)
    return 2


def folder_is_gone() -> bool:
    """True if the working directory was deleted."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def report_absence(sentence: str, parsed: argparse.Namespace) -> int:
    """Report a model without RoPE: exit code 0, but 2 if the command should have written a file."""
    # `extend` and `compare` write a file only with --output.
    asked_in_words = (hasattr(parsed, "to") or hasattr(parsed, "other")) and getattr(parsed, "output", "") is None
    if hasattr(parsed, "output") and not asked_in_words:
        print(f"rope-viz: {sentence}", file=sys.stderr)
        return 2
    if getattr(parsed, "json", False) or getattr(parsed, "format", "") == "json":
        print(json.dumps({"rope": False, "reason": sentence}, indent=2))
    else:
        print(f"{sentence}.", file=sys.stderr if getattr(parsed, "csv", False) else sys.stdout)
    return 0
