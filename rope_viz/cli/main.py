"""The entry point `rope-viz` with all its commands.

Results are printed to standard output, one-line errors to standard error. The exit code is 0, or 2 for bad input;
`check` has its own (see `check`). The modules of a command are loaded only when it is used.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rope_viz import __version__
from rope_viz.cli.broken_pipe import ignore_broken_pipe, shorten_name


class Command(NamedTuple):
    """Where a command is: its module, the function that adds it, and its line in the help."""

    module: str
    add: str
    help: str


class LightCommand(Command):
    """A command that multiplies only small arrays: starting OpenBLAS's threads takes longer than all of `check`.

    `search` is one too. It has a thread for each text, and with OpenBLAS's own it would take ten times as long.
    """


COMMANDS: dict[str, Command] = {
    "table": LightCommand("list_commands", "add_table", "print frequency, wavelength and turns of every pair"),
    "app": Command("app", "add", "open the dashboard in a browser, as does `rope-viz` without a command"),
    "figure": Command("figure", "add", "write a picture of the app to a file"),
    "report": Command("report", "add", "write all pictures of a model to one file"),
    "site": Command(
        "site",
        "add",
        "write Home, Learn and pages of models as a folder that any web server can serve",
    ),
    "learn": Command("learn", "add", "write the eight scenes of Learn to one HTML file"),
    "widget": Command("widget", "add", "write the moving pictures as one module of JavaScript, for web pages"),
    "capture": Command("real_model", "add_capture", "write q and k of a real model before rotation to a file"),
    "measure": Command(
        "real_model",
        "add_measure",
        "write the jobs of a real model's heads and its loss by position to a file",
    ),
    "get-model": Command("get_model", "add", "put a real language model into the cache folder"),
    "evaluate": Command(
        "evaluate",
        "add",
        "test whether a real model finds what it read, by depth, length and method",
    ),
    "search": LightCommand("search", "add", "search for better frequencies at a longer context, by trials"),
    "check": LightCommand("check", "add", "find errors in config.json files"),
    "compare": LightCommand("compare", "add", "compare the scaling methods for one config, or two configs"),
    "runtimes": LightCommand("runtimes", "add_runtimes", "show how each runtime reads a config"),
    "badge": LightCommand(
        "badge",
        "add",
        "write a badge for a model card: in how many runtimes the config was checked",
    ),
    "match": LightCommand("match", "add", "compare what a trainer computed with what a server computes"),
    "positions": LightCommand(
        "positions",
        "add",
        "are the positions of packed documents reset, padded, offset as they should be?",
    ),
    "conformance": LightCommand(
        "verify", "add_conformance", "write files that check the rotary embedding of any engine"
    ),
    "export": LightCommand(
        "runtimes",
        "add_export",
        "print this embedding as the keys or flags of a runtime or a trainer",
    ),
    "extend": LightCommand("extend", "add", "how to reach a longer context: methods, reasons, keys and flags"),
    "memory": LightCommand("memory", "add", "bytes of KV cache and weights, and the number of parameters"),
    "verify": LightCommand(
        "verify",
        "add_verify",
        "compare the frequencies of a running model or a file with the config",
    ),
    "probe": Command("probe", "add", "ask a running engine which rotary embedding it computes, by a small model"),
    "models": LightCommand("list_commands", "add_models", "print the models of the list"),
}
"""{name: command}, in the order of the help."""

# Before a command's module loads NumPy.
if isinstance(COMMANDS.get("".join(sys.argv[1:2])), LightCommand):
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def run_command(parsed: argparse.Namespace) -> int:
    """Run the command, return its exit code and print an error as one line."""
    # Here, because help and version need nothing of it.
    from rope_viz.cli.hub_access import allow_hub
    from rope_viz.cli.output import one_line
    from rope_viz.embedding import TEXTS
    from rope_viz.models.no_rope_types import NoRope

    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        with allow_hub(getattr(parsed, "hub", False)):
            return run(parsed)
    except NoRope as absence:
        return report_absence(str(absence), parsed)
    except ArithmeticError:
        print(f"rope-viz: {TEXTS('errors.uncomputable')}", file=sys.stderr)
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError) and folder_is_gone():
            print("rope-viz: the working directory was deleted: change to one that exists", file=sys.stderr)
            return 2
        place = f"{shorten_name(str(error.filename))}: " if isinstance(error, OSError) and error.filename else ""
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


FLAG, NEGATIVE = re.compile(r"--[a-z][\w.-]*"), re.compile(r"-(\.?[0-9][\w.,+-]*|inf(inity)?|nan)", re.IGNORECASE)

# {module: the extra that installs it}; any other missing module is a bug.
EXTRAS = {
    "plotly": "pictures",
    "matplotlib": "pictures",
    "streamlit": "app",
    "uvicorn": "app",
    "torch": "transformers",
    "transformers": "transformers",
    "safetensors": "transformers",
    "optuna": "search",
    "ray": "ray",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Without a command, open the dashboard.
    given = (sys.argv[1:] if arguments is None else list(arguments)) or ["app"]
    with ignore_broken_pipe():
        try:
            parsed = make_parser(given).parse_args(join_negative_values(given))
            return run_command(parsed)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            extra = EXTRAS[error.name]
            print(f"rope-viz: {given[0]} needs {error.name}: pip install 'rope-viz[{extra}]'", file=sys.stderr)
            return 2


def join_negative_values(arguments: Sequence[str]) -> list[str]:
    """Join negative values to their flags, because argparse would take `-1e-3` or `-5,3` for a flag."""
    out: list[str] = []
    for place, word in enumerate(arguments):
        if "--" in arguments[:place] or not (out and FLAG.fullmatch(out[-1]) and NEGATIVE.fullmatch(word)):
            out.append(word)
        else:
            out[-1] += f"={word}"
    return out


def make_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser. Only the modules of the command that `arguments` name are loaded."""
    top = argparse.ArgumentParser(
        prog="rope-viz", description="How rotary position embedding (RoPE) changes attention, in numbers."
    )
    # Python 3.14 prints the help in colours, which `Patient` would replace.
    top.color = False  # type: ignore[attr-defined]
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    asked = next((word for word in arguments if word == "--" or not word.startswith("-")), "")
    if asked not in COMMANDS:
        for name, command in COMMANDS.items():
            commands.add_parser(name, help=command.help)
        return top
    command = COMMANDS[asked]
    add = getattr(importlib.import_module(f"rope_viz.cli.{command.module}"), command.add)
    # A picture has its own flags, so its command needs the arguments.
    add(commands, *([arguments] if asked == "figure" else []))
    for parser in commands.choices.values():
        parser.color = False  # type: ignore[attr-defined]
    return top
