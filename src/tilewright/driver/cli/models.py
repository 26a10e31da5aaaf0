"""Commands on models that are not in this version: they say so, whatever their arguments."""

from __future__ import annotations

import argparse

from tilewright.support.errors import ModelError

_COMMANDS = {
    "tune": (
        "search for faster schedules for a model",
        "tuning is not in this version. 'tilewright compile' computes schedules from the CPU's "
        "registers and caches and needs no tuning.",
    ),
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each takes any arguments, since it only says that it is not there yet."""
    for name, (summary, _) in _COMMANDS.items():
        parser = commands.add_parser(name, help=f"{summary} (not in this version)", add_help=False)
        parser.set_defaults(run=refuse, command=name, takes_any_argument=True)


def refuse(arguments: argparse.Namespace) -> int:
    """Say that the command is not there, and what can be used instead."""
    raise ModelError(f"'tilewright {arguments.command}': {_COMMANDS[arguments.command][1]}")
