"""The flags of the commands, which `flags.toml` lists with their help."""

from __future__ import annotations

import argparse
import functools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

TYPES = {"int": int, "float": float, "lower": str.lower}


@functools.cache
def read_tables() -> dict[str, dict[str, Any]]:
    """Return the tables of `flags.toml` by name."""
    return tomllib.loads(Path(__file__).with_name("flags.toml").read_text(encoding="utf-8"))


def find_table(name: str) -> dict[str, Any]:
    """Return {names of a flag: arguments of `add_argument`} and the description of a command."""
    return read_tables().get(name, {})


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], **values: Any
) -> argparse.ArgumentParser:
    """Add a command with its description and flags, and return its parser. `values` are as in `add_flags`."""
    command: argparse.ArgumentParser = commands.add_parser(name, description=find_table(name).get("description"))
    command.set_defaults(run=run)
    add_flags(command, name, **values)
    return command


def add_flags(command: Any, table: str, **values: Any) -> None:
    """Add the flags of a table to a command or a group. `values` replace their names in braces in the table."""
    for names, options in find_table(table).items():
        if names != "description":
            filled = {key: fill_in(value, TYPES | values) for key, value in options.items()}
            command.add_argument(*names.split(), **filled)


def fill_in(written: Any, values: dict[str, Any]) -> Any:
    """Return the value whose name in braces is all that is written, else the text with such names replaced."""
    if not isinstance(written, str):
        return written
    for name, value in values.items():
        if written == f"{{{name}}}":
            return value
        if f"{{{name}}}" in written:
            text = str(value) if isinstance(value, (str, int)) else ", ".join(value)
            written = written.replace(f"{{{name}}}", text)
    return written
