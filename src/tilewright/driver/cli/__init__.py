"""The command line: ``tilewright`` and ``python -m tilewright``.

Exit codes: 0 is success, 1 a failure of the command, 2 a wrong argument or anything else that the user can fix, 130 an
interrupt.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence

from tilewright import __version__
from tilewright.driver.cli import (
    cache_command,
    compile_command,
    completion,
    demo,
    doctor,
    inspect_command,
    opt_command,
    profile_command,
    quantize_command,
    rpc_command,
    run_command,
    targets,
    tune_command,
)
from tilewright.driver.cli.output import printable
from tilewright.driver.cli.parser import Parser
from tilewright.support.errors import InternalError, TilewrightError
from tilewright.support.wording import command_line

FAILED = 1
USER_ERROR = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal or a pipe of another encoding shows what it can: names may be of any script.
            stream.reconfigure(errors="backslashreplace")
    parser = make_parser()
    parsed, _ = parser.parse_known_args(arguments)
    if parsed.run is None:
        parser.print_help()
        return USER_ERROR
    try:
        with command_line():
            code: int = parsed.run(parsed)
        sys.stdout.flush()
        return code
    except TilewrightError as problem:
        if parsed.verbose:
            traceback.print_exc()
        print(f"tilewright: {printable(str(problem))}", file=sys.stderr)
        return FAILED if isinstance(problem, InternalError) else USER_ERROR
    except KeyboardInterrupt:
        print("tilewright: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away; what is still buffered must not raise again when the interpreter leaves.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as problem:
        # A folder that cannot be written, a disk that is full, a program that is not there.
        named = f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem)
        print(f"tilewright: {printable(named)}", file=sys.stderr)
        return USER_ERROR
    except MemoryError as problem:
        print(f"tilewright: not enough memory: {printable(str(problem))}".rstrip(": "), file=sys.stderr)
        return FAILED


def make_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = Parser(
        prog="tilewright",
        description="An end-to-end deep-learning compiler: from a model to native code.",
        epilog="Start with 'tilewright demo', then 'tilewright compile model.onnx --validate'. "
        "'tilewright COMMAND --help' has the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"tilewright {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the traceback of errors")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in (
        *(demo, compile_command, run_command, tune_command, quantize_command, profile_command),
        *(inspect_command, opt_command, doctor, targets, cache_command, rpc_command, completion),
    ):
        module.add_commands(commands)
    return parser
