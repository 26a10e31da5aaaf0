"""``tilewright profile``: where a model's time and memory go."""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.driver import profile, tvmc
from tilewright.driver.cli.kernel_table import show_kernels
from tilewright.driver.cli.output import bytes_text, check_output, show_json, show_text
from tilewright.driver.cli.progress import Progress, progress
from tilewright.driver.tvmc.arguments import (
    UNWRITTEN_MODEL,
    Commands,
    add_input_arguments,
    add_model_arguments,
    add_pass_arguments,
    add_target_arguments,
)
from tilewright.support.cbuild import write_bytes
from tilewright.support.errors import ModelError

if TYPE_CHECKING:
    from tilewright.driver.profile.collect import ProfileReport


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "profile",
        help="profile a model kernel by kernel, and write a report",
        usage="%(prog)s [OPTIONS] FILE",
        epilog="For example: tilewright profile model.onnx -o report.html",
    )
    add_model_arguments(parser, "a model, or what 'tilewright compile' wrote")
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write a report for the browser: one .html file"
    )
    parser.add_argument("--trace", metavar="PATH", help="write a trace for Perfetto or chrome://tracing")
    parser.add_argument(
        "--repeat", type=int, default=10, metavar="N", help="number of measurements; default: 10"
    )
    parser.add_argument(
        "--executor",
        choices=("graph", "vm"),
        help="default: graph, or vm for a model whose inputs have open sizes; a compiled model has its own",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    add_target_arguments(parser)
    add_pass_arguments(parser)
    add_input_arguments(parser)
    parser.set_defaults(run=run, **UNWRITTEN_MODEL)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and write."""
    if arguments.repeat < 1:
        raise ModelError(f"--repeat takes a number of at least 1, not {arguments.repeat}")
    for option, path in (("-o", arguments.output), ("--trace", arguments.trace)):
        if path:
            check_output(path, option, [arguments.FILE])
    with progress(f"reading {arguments.FILE}", arguments.json) as shown:
        report = _collect(arguments, shown)
        shown.step("writing")
        if arguments.output:
            profile.report.write_report(report, arguments.output)
        if arguments.trace:
            write_bytes(Path(arguments.trace), profile.trace.trace_json(report).encode())
    if arguments.json:
        show_json(report.as_json())
        return 0
    show_kernels(arguments.FILE, report.kernels)
    memory = report.memory
    if report.executor == "vm":
        show_text(
            f"Memory: {bytes_text(memory.parameter_bytes)} of parameters; "
            "the virtual machine allocates tensors as it runs."
        )
    else:
        show_text(
            f"Memory: {bytes_text(memory.arena_bytes)} for intermediate tensors, of which at most "
            f"{bytes_text(memory.peak_bytes)} are in use at once; {bytes_text(memory.parameter_bytes)} of parameters."
        )
    if arguments.output:
        show_text(f"report written to {arguments.output}: open it in a browser")
    if arguments.trace:
        show_text(f"trace written to {arguments.trace}: open it at ui.perfetto.dev or in chrome://tracing")
    if not arguments.output:
        show_text(f"For graphs, a roofline and the code: tilewright profile {arguments.FILE} -o report.html")
    return 0


def _collect(arguments: argparse.Namespace, shown: Progress) -> ProfileReport:
    path = Path(arguments.FILE)
    collect, runner = profile.collect, tvmc.runner
    is_package = path.suffix in (".so", ".dll", ".dylib", ".tar") or (
        path.is_file() and tarfile.is_tarfile(path)
    )
    shapes = runner.fill_shapes_from_arguments(arguments)
    if is_package:
        package = tvmc.TVMCPackage(arguments.FILE)
        if arguments.executor not in (None, package.executor_type):
            raise ModelError(
                f"{path} was compiled for the {package.executor_type} executor: omit --executor, or profile the model"
            )
        shown.step(f"measuring {path}")
        inputs = runner.inputs_from_arguments(arguments, package.content.inputs)
        return collect.profile_package(
            package, path.name, inputs, arguments.fill_mode, arguments.repeat, shapes
        )
    model = tvmc.compiler.load_from_arguments(arguments)
    infos = tvmc.tensors.module_inputs(model.mod, model.params)
    if arguments.executor is None:
        arguments.executor = "graph" if all(one.is_static for one in infos) else "vm"
    settings = tvmc.compiler.settings_from_arguments(arguments)
    inputs = runner.inputs_from_arguments(arguments, infos)
    shown.step(f"compiling and measuring {path}")
    return collect.profile_model(
        model, settings, path.name, inputs, arguments.fill_mode, arguments.repeat, shapes
    )
