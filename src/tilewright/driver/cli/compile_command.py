"""``tilewright compile``: compiles a model to a package, and validates it on request."""

from __future__ import annotations

import argparse
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.compile.units import watched
from tilewright.driver import quantization, tuning, tvmc
from tilewright.driver.cli.output import bytes_text, check_output, printable, show_json, show_table, show_text
from tilewright.driver.cli.progress import Progress, progress
from tilewright.driver.cli.quantize_command import (
    SENSITIVE,
    add_data_arguments,
    quantise_from_arguments,
    show_quantised,
)
from tilewright.driver.tvmc.arguments import Commands, add_compile_arguments
from tilewright.runtime.export import links_without_compiler
from tilewright.support.cbuild import copy_runtime, has_compiler, is_host
from tilewright.support.errors import ModelError
from tilewright.support.triple import Triple, host_triple

if TYPE_CHECKING:
    from tilewright.driver.tvmc.compiler import Settings
    from tilewright.driver.tvmc.model import TVMCModel
    from tilewright.driver.tvmc.validation import Validation


MIXED_PRECISIONS = ("bfloat16", "float16", "int8")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compile",
        help="compile a model to a deployable package",
        usage="%(prog)s [OPTIONS] FILE",
        epilog="For example: tilewright compile model.onnx --validate -o model.tar",
    )
    add_compile_arguments(parser)
    parser.add_argument(
        "--validate",
        action="store_true",
        help="compare the package with the reference, and with ONNX Runtime",
    )
    parser.add_argument(
        "--validate-inputs",
        action="append",
        metavar="PATH",
        help="an .npz of inputs to compare with, in addition to random ones; may be repeated",
    )
    parser.add_argument(
        "--mixed-precision",
        choices=MIXED_PRECISIONS,
        help="compute in 16-bit floats, or in 8-bit integers (which needs --data), where that pays",
    )
    add_data_arguments(parser)
    parser.add_argument(
        "--check-indices",
        action="store_true",
        help="make the program fail where an index of Gather, Scatter and the like is out of range",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="the largest allowed error, relative to a tensor's largest value; by default, what rounding explains",
    )
    parser.add_argument(
        "--list-unsupported", action="store_true", help="list the operators that cannot be compiled, and stop"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print for each kernel how its operators are computed, and why not otherwise",
    )
    parser.add_argument(
        "--with-runtime",
        metavar="FOLDER",
        help="also write what a C or C++ program needs to run the model: headers and the runtime library",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile; 1 if operators are missing or the package is wrong."""
    if arguments.list_unsupported:
        return _list_unsupported(arguments)
    _check_precision_options(arguments)
    compiler = tvmc.compiler
    formats = compiler.dump_formats(arguments.dump_code) if arguments.dump_code else []
    settings = compiler.settings_from_arguments(arguments)
    if arguments.check_indices:
        settings = replace(settings, config={**settings.config, "relay.check_indices": True})
    triple = str(settings.target.attrs.get("mtriple", ""))
    if arguments.validate and not is_host(triple):
        raise ModelError(f"code for {triple} cannot run on this machine: omit --validate")
    form = tvmc.export.choose_format(
        arguments.output_format, arguments.output, settings.target, arguments.cross_compiler
    )
    check_output(arguments.output, "-o", [arguments.FILE, *(arguments.validate_inputs or ())])
    started = time.perf_counter()
    with progress(f"reading {arguments.FILE}", arguments.json) as shown:
        original, model, quantised = _in_precision(arguments, compiler.load_from_arguments(arguments), shown)
        settings = settings.for_model(model.mod)
        shown.step(f"compiling {arguments.FILE}")
        counted = watched(
            lambda done, count: shown.step(f"compiling {arguments.FILE}: {done} of {count} kernels")
        )
        with tuning.records.applied_records(arguments.tuning_records) as applied, counted:
            compiled = settings.compile(model.mod, model.params)
        seconds = time.perf_counter() - started
        shown.step(f"writing {arguments.output}")
        compiler.write_package(
            model,
            compiled,
            arguments.output,
            arguments.cross_compiler,
            arguments.cross_compiler_options,
            form,
        )
        output = Path(arguments.output)
        runtime = copy_runtime(Path(arguments.with_runtime), triple) if arguments.with_runtime else []
        compiler.save_dumps(output.stem, compiler.make_dumps(model, compiled, formats), str(output.parent))
        validation = _validate(arguments, original, model, settings, shown) if arguments.validate else None
        explained = settings.explain(model.mod, model.params, compiled) if arguments.explain else None
        partition = settings.partition(model.mod, model.params)
    report = {
        "model": arguments.FILE,
        "output": arguments.output,
        "bytes": output.stat().st_size,
        "executor": settings.executor,
        "target": str(settings.target),
        "triple": triple,
        "seconds": seconds,
        "inputs": [one.as_json() for one in tvmc.tensors.module_inputs(model.mod, model.params)],
        "outputs": [one.as_json() for one in tvmc.tensors.module_outputs(model.mod)],
        **_made_of(compiled),
        "dumped": [str(output.parent / f"{output.stem}.{name}") for name in formats],
        "interface": settings.target.attrs.get("interface-api"),
        "format": form,
        "lacks_linker": (form == "tar" and arguments.output_format is None)
        or (form == "so" and not arguments.cross_compiler and not has_compiler(triple)),
        "runtime": [str(path) for path in runtime],
        "tuned_kernels": None if applied is None else applied.used,
        "precision_note": quantization.mixed.note_on_precision(
            arguments.mixed_precision, settings.target, settings.opt_level
        ),
        "tuning_notes": [] if applied is None else applied.lines(),
    }
    if arguments.json:
        more: dict[str, Any] = {}
        if quantised is not None:
            more["quantisation"] = quantization.model.as_json(quantised)
        if explained is not None:
            more["kernel_choices"] = [one.as_json() for one in explained]
        if partition is not None:
            more["partition"] = partition.as_json()
        checked = None if validation is None else validation.as_json()
        show_json({**report, **more, "validation": checked})
    else:
        if explained is not None and partition is not None:
            print(printable(partition.text()), end="\n\n")
        if explained is not None:
            print(printable("\n\n".join(one.text() for one in explained)), end="\n\n")
        if quantised is not None:
            show_quantised(arguments.FILE, quantised)
        _show(report)
        if validation is not None:
            show_validation(validation)
    return 0 if validation is None or validation.agrees else 1


def _check_precision_options(arguments: argparse.Namespace) -> None:
    """An error for options of int8 that lack it, and for int8 that lacks one."""
    if arguments.mixed_precision == "int8" and not arguments.data:
        raise ModelError(
            "--mixed-precision int8 measures the model on samples of its inputs: give them with --data"
        )
    for option, given in (("--data", arguments.data), ("--sensitive", arguments.sensitive)):
        if given and arguments.mixed_precision != "int8":
            raise ModelError(f"{option} is for --mixed-precision int8: ask for it, or omit {option}")


def _in_precision(
    arguments: argparse.Namespace, model: TVMCModel, shown: Progress
) -> tuple[TVMCModel, TVMCModel, Any]:
    """The model to compare with, the one to compile in the precision that was asked for, and how it was quantised."""
    if arguments.mixed_precision == "int8":
        options = quantization.model.Options(
            budget=quantization.model.parse_budget(arguments.budget),
            sensitive=arguments.sensitive or SENSITIVE[0],
        )
        original, quantised, _ = quantise_from_arguments(arguments, model, options, shown)
        return original, tvmc.TVMCModel(quantised.module, {}), quantised
    if arguments.mixed_precision:
        return model, quantization.mixed.in_mixed_precision(model, arguments.mixed_precision), None
    return model, model, None


def _made_of(compiled: Any) -> dict[str, Any]:
    """How many kernels were made anew, and the memory plan, where the executor has one."""
    found: dict[str, Any] = {}
    report = getattr(compiled, "cache_report", None)
    if report is not None:
        found["kernels"] = {"compiled": report.compiled, "from_cache": report.cached}
    memory = getattr(compiled, "memory", None)
    if memory is not None:
        found["memory"] = {"workspace": memory.arena_bytes, "parameters": memory.parameter_bytes}
    return found


def _validate(
    arguments: argparse.Namespace,
    original: TVMCModel,
    model: TVMCModel,
    settings: Settings,
    shown: Progress,
) -> Validation:
    """Compare the package with the model that was compiled, and that with the one in the file, layer by layer."""
    shown.step(f"comparing {arguments.output} with the reference")
    package = tvmc.TVMCPackage(arguments.output)
    infos = package.content.inputs
    given = [tvmc.runner.read_inputs([path], infos) for path in arguments.validate_inputs or ()]
    return tvmc.validation.validate(
        model,
        tvmc.runner.make_runnable(package),
        settings,
        given,
        tolerance=arguments.tolerance,
        # ONNX Runtime would compute another precision than the one that was asked for.
        onnx_path=None if arguments.mixed_precision else arguments.FILE,
        original=original if arguments.mixed_precision else None,
        choices=tvmc.compiler.open_inputs_from_arguments(arguments),
    )


def _show(report: dict[str, Any]) -> None:
    tensor = tvmc.tensors.TensorInfo.from_json
    print(f"compiled {report['model']} in {report['seconds']:.1f} s")
    print(f"  target    {report['target']}")
    print(f"  executor  {report['executor']}")
    for name in ("inputs", "outputs"):
        print(f"  {name:<9} {printable(', '.join(tensor(one).text() for one in report[name]))}")
    if "kernels" in report:
        counts = report["kernels"]
        print(f"  kernels   {counts['compiled']} compiled, {counts['from_cache']} from the cache")
    if "memory" in report:
        memory = report["memory"]
        print(
            f"  memory    {bytes_text(memory['workspace'])} for intermediate tensors, "
            f"{bytes_text(memory['parameters'])} of parameters"
        )
    for line in report["tuning_notes"]:
        print(f"  tuned     {printable(line)}")
    if report["precision_note"]:
        show_text(report["precision_note"])
    for path in report["dumped"]:
        print(f"  dumped    {path}")
    print(f"  written   {report['output']} ({bytes_text(report['bytes'])})")
    if report["runtime"]:
        print(f"  runtime   {', '.join(report['runtime'])}")
    if report["lacks_linker"]:
        _say_what_a_linker_is_for(report["output"], report["triple"], report["format"])
    if report["interface"] == "c":
        print(f"It is C code for your program: tar xf {report['output']}")
    elif is_host(report["triple"]):
        print(f"Run it: tilewright run {report['output']} --print-time")
    else:
        print(f"It is code for {report['triple']}: run it there.")


_INSTALL = "install a C compiler (cc, gcc or clang) or ziglang (pip install ziglang)"
_NDK = "install the Android NDK and put its bin folder on the PATH"
_XCODE = "link on a Mac with Xcode"


def _say_what_a_linker_is_for(output: str, triple: str, form: str) -> None:
    where = f" for {triple}" if triple else ""
    if form == "so":
        text = (
            f"No C compiler{where} was found, so {output} has no copy of the runtime inside: Python loads it as it is, "
            "and a program in C or C++ links the runtime library (--with-runtime writes it). For a library that needs "
            f"nothing, {_INSTALL}."
        )
    else:
        parsed = Triple.parse(triple) if triple else host_triple()
        install = _INSTALL if parsed.zig_has_libraries else _XCODE if parsed.system == "ios" else _NDK
        needed = "" if links_without_compiler(triple) else f"{install}, and "
        suffix = parsed.library_suffix
        runs = "Python runs it as it is" if is_host(triple) else "The runtime there runs it as it is"
        opens = "a JavaScript or WASI host opens" if suffix == ".wasm" else "C and C++ open"
        text = (
            f"No C compiler{where} was found, so {output} has object code and no shared library. {runs}. For a "
            f"{suffix}, which {opens}, {needed}compile with -o model{suffix}."
        )
    print(textwrap.fill(text, 80, break_on_hyphens=False))


def show_validation(validation: Validation) -> None:
    """The comparisons as a table, and where the model goes wrong."""
    rows = [
        [
            one.output,
            one.peer,
            f"{one.deviation.absolute:.1e}",
            f"{one.deviation.relative:.1e}",
            f"{one.deviation.allowed:.1e}",
            "agrees" if one.deviation.agrees else "DIFFERS",
        ]
        for one in validation.comparisons
    ]
    show_table(
        f"the worst of {validation.runs} inputs; relative errors are to the largest value",
        ["output", "beside", "absolute", "relative", "allowed", "verdict"],
        rows,
    )
    if validation.first is not None:
        first = validation.first
        place = f" ({first.place})" if first.place else ""
        print(
            f"The first operator that is wrong is {first.operator}{place}, of shape {first.shape}: "
            f"its relative error is {first.relative:.1e} where those before it agree."
        )
    if validation.by_layer is not None:
        show_text(validation.by_layer.sentence())
    for note in validation.notes:
        print(note)


def _list_unsupported(arguments: argparse.Namespace) -> int:
    missing = tvmc.inspection.unsupported_operators(arguments.FILE, arguments.model_format)
    if arguments.json:
        show_json([one.as_json() for one in missing])
    elif missing:
        rows = [[one.label, one.count, ", ".join(one.nodes[:3])] for one in missing]
        show_table(f"not supported in {arguments.FILE}", ["operator", "nodes", "such as"], rows)
    else:
        print(f"every operator of {arguments.FILE} is supported")
    return 1 if missing else 0
