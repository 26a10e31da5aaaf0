"""The commands on models: compile, run, tune, profile, inspect.

This version has the tensor-expression compiler and no importer of models yet. The commands exist so that scripts get
a clear answer, whatever arguments they pass, and never something that only looks like a result.
"""

from __future__ import annotations

import argparse

from tilewright.support.errors import ModelError

_COMMANDS = {
    "compile": "compile a model to a deployable artefact",
    "run": "run a compiled model",
    "tune": "search for faster schedules for a model",
    "profile": "measure a compiled model kernel by kernel",
    "inspect": "show what is inside a model or an artefact",
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each takes any arguments, since it only says that it is not there yet."""
    for name, summary in _COMMANDS.items():
        parser = commands.add_parser(name, help=f"{summary} (not in this version)", add_help=False)
        parser.set_defaults(run=refuse, command=name, takes_any_argument=True)


def refuse(arguments: argparse.Namespace) -> int:
    """Say that models cannot be imported yet, and what can be used instead."""
    raise ModelError(
        f"'tilewright {arguments.command}' works on models, and model import is not part of this version yet. "
        "What this version compiles are tensor expressions: see tvm.te and tvm.build, or run 'tilewright demo'."
    )
