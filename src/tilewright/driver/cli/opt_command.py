"""``tilewright opt``: run passes on a program, and print what they make of it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.driver import opt, tvmc
from tilewright.driver.cli.output import DiffOutput, check_output, show_json, terminal_width
from tilewright.driver.tvmc.arguments import OPT_LEVELS, Commands, add_model_arguments
from tilewright.ir.diagnostics import override_renderer
from tilewright.ir.instrument import PrintAfterAll, PrintBeforeAll, PrintChanged
from tilewright.ir.transform import Pass, PassContext
from tilewright.support.errors import ModelError
from tilewright.target import Target

PIPELINES = ("prepare", "fuse", "lower", "host", "device")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "opt",
        help="run passes on a program, and print what they make of it",
        usage="%(prog)s [OPTIONS] FILE",
        epilog="For example: tilewright opt model.onnx --passes 'SimplifyInference, FuseOps{level=2}'",
    )
    add_model_arguments(
        parser, "Relay text, a TVMScript program, or a model such as model.onnx; - is standard input"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "-p", "--passes", metavar="TEXT", help="the passes as text, or @FILE that has it; all of them run"
    )
    what.add_argument(
        "--pipeline",
        action="append",
        choices=PIPELINES,
        help="passes of the compiler: prepare and fuse for graphs, lower, host and device for loops; may be repeated",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write the program there instead of printing it"
    )
    parser.add_argument(
        "--target", default="llvm", help='such as "llvm -mcpu=skylake"; default: llvm, which is this machine'
    )
    parser.add_argument(
        "-O",
        "--opt-level",
        type=int,
        choices=OPT_LEVELS,
        default=3,
        metavar="0..4",
        help="the level that pipelines and passes go by; default: 3",
    )
    parser.add_argument(
        "--pass-config",
        action="append",
        metavar="NAME=VALUE",
        help="an option of the context; may be repeated",
    )
    parser.add_argument(
        "--verify", action="store_true", help="verify the program before, and after every pass"
    )
    group = parser.add_argument_group("what is written to standard error on the way")
    group.add_argument("--print-before-all", action="store_true", help="the program before every pass")
    group.add_argument("--print-after-all", action="store_true", help="the program after every pass")
    group.add_argument("--print-changed", action="store_true", help="what each pass changes, as a diff")
    group = parser.add_argument_group("without a program")
    group.add_argument(
        "--list-passes", action="store_true", help="list the passes with their options, and stop"
    )
    group.add_argument("--json", action="store_true", help="with --list-passes: print JSON")
    group.add_argument(
        "--print-pipeline", action="store_true", help="print the passes as text that --passes takes, and stop"
    )
    parser.set_defaults(run=run)
    # A file is not needed for lists; argparse has no other way to say so of what add_model_arguments adds.
    next(action for action in parser._actions if action.dest == "FILE").nargs = "?"


def run(arguments: argparse.Namespace) -> int:
    """Run the passes, or list what there is."""
    if arguments.list_passes:
        _list_passes(arguments.json)
        return 0
    target = Target(arguments.target)
    with PassContext(
        opt_level=arguments.opt_level,
        config=tvmc.common.parse_configs(arguments.pass_config),
        instruments=_instruments(arguments),
    ):
        passes = _passes(arguments, target)
        if arguments.print_pipeline:
            print(opt.pipelines.pipeline_text(passes), end="")
            return 0
        if arguments.FILE is None:
            raise ModelError("name the file with the program, or - for standard input")
        if arguments.output:
            check_output(arguments.output, "-o", [arguments.FILE])
        module = _read(arguments)
        if arguments.verify:
            opt.running.verify_program(module)
        module = opt.running.run_passes(module, passes, target)
    _show(module, arguments.output)
    return 0


def _read(arguments: argparse.Namespace) -> Any:
    """The program. What is wrong with it is told once: by the error, not when it is found as well."""
    shapes = tvmc.compiler.shapes_from_text(arguments.input_shapes) if arguments.input_shapes else None
    override_renderer(lambda context: None)
    try:
        return opt.programs.read_program(arguments.FILE, arguments.model_format, shapes)
    finally:
        override_renderer(None)


def _passes(arguments: argparse.Namespace, target: Target) -> list[Pass]:
    """What --passes or --pipeline asks for; nothing where neither is given."""
    if arguments.passes is not None:
        return opt.pipelines.passes_from_text(arguments.passes)
    return opt.pipelines.passes_of(arguments.pipeline or (), target)


def _instruments(arguments: argparse.Namespace) -> list[Any]:
    made: list[Any] = []
    if arguments.verify:
        made.append(opt.running.verifying())
    for wanted, instrument in (
        (arguments.print_before_all, PrintBeforeAll(output=sys.stderr)),
        (arguments.print_after_all, PrintAfterAll(output=sys.stderr)),
        (arguments.print_changed, PrintChanged(DiffOutput())),
    ):
        if wanted:
            made.append(instrument)
    return made


def _show(module: Any, output: str | None) -> None:
    if output:
        Path(output).write_text(opt.programs.program_text(module, complete=True), encoding="utf-8")
        return
    # A pipe may lead to a reader of programs; a person wants no kilobytes of weights.
    print(opt.programs.program_text(module, complete=not sys.stdout.isatty()), end="")


def _list_passes(as_json: bool) -> None:
    if as_json:
        show_json([asdict(one) for one in opt.listing.describe_passes()])
    else:
        print(opt.listing.pass_list(terminal_width() or 80), end="")
