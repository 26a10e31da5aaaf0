"""The options of the commands. Nothing here imports the compiler, so that the command line starts fast."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tilewright.target.kind import KINDS

Commands = argparse._SubParsersAction
"""The result of ``ArgumentParser.add_subparsers``."""

DUMP_FORMATS = ("relay", "tir", "ll", "asm")
OPT_LEVELS = range(5)
"""A pass runs at its own level and above; 4 has those whose results differ, or that do not always pay."""

# The kinds that this version makes deployable code for; their options can be given one by one.
_KINDS = ("llvm", "c")


def _truth(text: str) -> bool:
    """A truth value as TVM's command line takes it."""
    if text.lower() not in ("0", "1", "false", "true"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor 1")
    return text.lower() in ("1", "true")


def add_model_arguments(parser: argparse.ArgumentParser, what: str = "the model, such as model.onnx") -> None:
    """Options for reading a model."""
    parser.add_argument("FILE", help=what)
    parser.add_argument(
        "--model-format",
        metavar="NAME",
        help="the format, if neither the file's suffix nor its content tells, such as onnx, pytorch or tflite; "
        "'tilewright doctor' lists them",
    )
    parser.add_argument(
        "--input-shapes",
        metavar="SHAPES",
        help='shapes of inputs, as in "image:[1,3,224,224] mask:[1,?]"; ? stays unknown',
    )
    parser.add_argument(
        "--dim",
        action="append",
        metavar="NAME=SIZE",
        help="sizes of open dimensions, as in batch=1,seq=128; one without a name is input.axis, as in image.0=1",
    )
    parser.add_argument(
        "--input-value",
        action="append",
        metavar="NAME=VALUE",
        help="compile for one value of an input, as in sr=16000 or axes=0,1; may be repeated",
    )


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the target."""
    parser.add_argument(
        "--target", default="llvm", help='such as "llvm -mcpu=skylake"; default: llvm, which is this machine'
    )
    parser.add_argument(
        "--plugin",
        action="append",
        metavar="MODULE[:OBJECT]",
        help="a Python module with a backend to name in --target, such as my_chip:MyChip; may be repeated",
    )
    group = parser.add_argument_group("options of the target, which override --target")
    for kind in _KINDS:
        for option, value_type in sorted(KINDS[kind].own_options.items()):
            group.add_argument(
                f"--target-{kind}-{option}",
                dest=f"target_{kind}_{option}",
                metavar={"Bool": "0|1", "Integer": "N"}.get(value_type, "TEXT"),
                help=argparse.SUPPRESS if option not in ("mcpu", "mattr", "mtriple") else None,
            )


def target_options(arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The single options that were given, by kind and name."""
    found: dict[str, dict[str, str]] = {}
    given: Mapping[str, Any] = vars(arguments)
    for kind in _KINDS:
        for option in KINDS[kind].own_options:
            value = given.get(f"target_{kind}_{option}")
            if value is not None:
                found.setdefault(kind, {})[option] = value
    return found


def add_pass_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the passes."""
    parser.add_argument(
        "-O",
        "--opt-level",
        type=int,
        choices=OPT_LEVELS,
        default=3,
        metavar="0..4",
        help="optimisation level; default: 3. At 4, results may differ a little more: exp, tanh, erf and softmax are "
        "approximated, and parallel convolutions and products are computed as one",
    )
    parser.add_argument("--desired-layout", choices=("NCHW", "NHWC"), help="the data layout of convolutions")
    parser.add_argument(
        "--pass-config", action="append", metavar="NAME=VALUE", help="an option of a pass; may be repeated"
    )
    parser.add_argument("--disabled-pass", metavar="PASSES", help="passes to skip, separated by commas")


# The options of `compile` that commands which compile a model without writing it leave as they are.
EXECUTOR_OPTIONS: Mapping[tuple[str, str, str], str] = {
    ("executor", "graph", "link-params"): "parameters as constants of the library",
    ("executor", "aot", "link-params"): "parameters as constants of the library, as they always are",
    ("executor", "aot", "unpacked-api"): "functions that take plain pointers",
    ("runtime", "cpp", "system-lib"): "functions that register themselves where they are linked",
    ("runtime", "crt", "system-lib"): "functions that register themselves where they are linked",
}
"""Options of the target that belong to an executor or to a runtime: ``--executor-graph-link-params 1``."""

UNWRITTEN_MODEL: Mapping[str, Any] = {
    **{f"{what}_{name}_{option.replace('-', '_')}": None for what, name, option in EXECUTOR_OPTIONS},
    "runtime": None,
    "executor_aot_interface_api": None,
    "in_place": None,
    "module_name": "default",
}


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``compile``."""
    add_model_arguments(parser)
    add_target_arguments(parser)
    parser.add_argument(
        "-o", "--output", default="module.tar", metavar="PATH", help="default: module.tar; .so is one library"
    )
    parser.add_argument(
        "-f",
        "--output-format",
        choices=("so", "tar", "mlf"),
        help="the library in the package: shared, object files (which need no linker), or model library format; "
        "default: so, or tar where there is no C compiler to link with",
    )
    parser.add_argument(
        "--executor",
        choices=("graph", "vm", "aot"),
        help="graph; vm for dynamic shapes and control flow; aot for C without an executor; "
        "default: graph where the model allows it, else vm",
    )
    parser.add_argument(
        "--executor-aot-interface-api",
        choices=("packed", "c"),
        help="the interface of an ahead-of-time model; default: packed",
    )
    parser.add_argument(
        "--runtime",
        choices=("cpp", "crt"),
        help="what the model is linked with: cpp, or crt where there is no operating system; default: cpp",
    )
    for (what, name, option), meaning in EXECUTOR_OPTIONS.items():
        parser.add_argument(f"--{what}-{name}-{option}", type=_truth, metavar="0|1", help=meaning)
    parser.add_argument(
        "--in-place",
        action="append",
        metavar="INPUT=OUTPUT",
        help="an output that takes the memory of an input, such as a cache: a run changes only what is new, and the "
        "input has the output's value for the next run; may be repeated",
    )
    add_pass_arguments(parser)
    parser.add_argument("--module-name", default="default", metavar="NAME", help="prefix of the names in C")
    parser.add_argument(
        "--dump-code",
        metavar="FORMATS",
        help=f"write these forms of the program next to the output: {','.join(DUMP_FORMATS)}",
    )
    parser.add_argument("--cross-compiler", metavar="CC", help="the compiler that links for the target")
    parser.add_argument(
        "--cross-compiler-options",
        metavar="TEXT",
        help="options for the cross compiler, as in --cross-compiler-options=-O3",
    )
    parser.add_argument(
        "--tuning-records",
        metavar="PATH",
        help="what 'tilewright tune' wrote: use the schedules that it found",
    )


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the inputs of a run."""
    parser.add_argument(
        "-i",
        "--inputs",
        action="append",
        metavar="[NAME=]PATH",
        help="an .npz, an .npy or an image for an input; may be repeated",
    )
    parser.add_argument(
        "--fill-mode",
        choices=("zeros", "ones", "random"),
        default="random",
        help="values of inputs that are not given; default: random",
    )
    parser.add_argument(
        "--fill-shapes",
        metavar="SHAPES",
        help='their shapes where the model leaves sizes open, as in "tokens:[1,128]"; default: 1 for each',
    )
    group = parser.add_argument_group("images")
    group.add_argument(
        "--image-layout", choices=("NCHW", "NHWC"), help="default: inferred from the input's shape"
    )
    group.add_argument("--mean", metavar="M[,M,M]", help="subtracted from pixels of 0 to 255; default 0")
    group.add_argument(
        "--scale", metavar="S[,S,S]", help="pixels are then multiplied by it, as in 1/255; default 1"
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``."""
    parser.add_argument("FILE", help="what 'tilewright compile' wrote")
    add_input_arguments(parser)
    parser.add_argument("-o", "--outputs", metavar="PATH", help="write the outputs as .npz")
    parser.add_argument(
        "--by-position",
        action="store_true",
        help="name the outputs output_0, output_1 and so on in that file, not as the model does",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda", "cl", "metal", "vulkan", "rocm"),
        help="default: what the model was compiled for; on another machine: cpu",
    )
    group = parser.add_argument_group(
        "remote devices", "the secret key of the machines is read from the file in TILEWRIGHT_RPC_KEY_FILE"
    )
    group.add_argument("--rpc-tracker", metavar="HOST[:PORT]", help="run on a device of this tracker")
    group.add_argument("--rpc-key", metavar="KEY", help="the kind of device, as its server is registered")
    group.add_argument("--hostname", metavar="HOST", help="run on the server there, without a tracker")
    group.add_argument("--port", type=int, default=9090, help="the port of that server; default: 9090")
    parser.add_argument("--print-time", action="store_true", help="measure, and print the times")
    parser.add_argument(
        "--print-top", type=int, metavar="N", help="print the N largest values of each output"
    )
    parser.add_argument("--profile", action="store_true", help="print the time of every kernel")
    parser.add_argument(
        "--repeat", type=int, default=10, metavar="N", help="number of measurements; default: 10"
    )
    parser.add_argument(
        "--number", type=int, default=10, metavar="N", help="runs of one measurement; default: 10"
    )
    parser.add_argument(
        "--end-to-end", action="store_true", help="include the copies of the outputs in the times"
    )
