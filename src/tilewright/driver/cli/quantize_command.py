"""``tilewright quantize``: a model of 8-bit integers from one of floats, measured on the user's data."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.driver import quantization, tvmc
from tilewright.driver.cli.output import bytes_text, check_output, show_json, show_table, show_text
from tilewright.driver.cli.progress import Progress, progress
from tilewright.driver.tvmc.arguments import (
    UNWRITTEN_MODEL,
    Commands,
    add_model_arguments,
    add_pass_arguments,
    add_target_arguments,
)
from tilewright.support.errors import OpNotImplemented

if TYPE_CHECKING:
    from tilewright.driver.tvmc.model import TVMCModel
    from tilewright.relay.quantize.study import Quantised

SENSITIVE = ("float32", "bfloat16")
METHODS = ("mse", "minmax", "percentile", "entropy", "power2")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "quantize",
        help="quantise a float model to 8-bit integers, measured on data",
        usage="%(prog)s [OPTIONS] --data PATH FILE",
        epilog="For example: tilewright quantize model.onnx --data samples.npz --labels labels.npy --budget 0.5%%",
    )
    add_model_arguments(parser)
    add_data_arguments(parser)
    group = parser.add_argument_group("how it is quantised")
    group.add_argument(
        "--method",
        choices=METHODS,
        default="mse",
        help="how ranges of tensors are chosen: least squared error, all that was seen, 99.999 %% of it, least "
        "entropy lost (Kullback-Leibler), or powers of two; default: mse",
    )
    group.add_argument(
        "--symmetric", action="store_true", help="int8 data around zero; default: uint8 with a zero point"
    )
    group.add_argument(
        "--per-tensor",
        action="store_true",
        help="one scale for all weights of a layer; default: one per channel",
    )
    group.add_argument(
        "--keep", action="append", metavar="LAYER", help="leave a layer in float32; may be repeated"
    )
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o", "--output", metavar="PATH", help="the compiled model; default: FILE with .int8.tar"
    )
    group.add_argument(
        "--onnx", metavar="PATH", help="the model as ONNX (QDQ); default: FILE with .int8.onnx"
    )
    group.add_argument(
        "--report", metavar="PATH", help="a report for the browser, with a picture of the error by layer"
    )
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    add_target_arguments(parser)
    add_pass_arguments(parser)
    parser.set_defaults(run=run, executor="graph", tuning_records=None, **UNWRITTEN_MODEL)


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the data that a model is measured on."""
    group = parser.add_argument_group("data to quantise with")
    group.add_argument(
        "--data",
        metavar="PATH",
        help="samples of the inputs: an .npz with arrays by input, an .npy, or a folder of these or of images",
    )
    group.add_argument(
        "--labels",
        metavar="PATH",
        help="the right classes: .npy, a text, or the name of an array in the .npz",
    )
    group.add_argument(
        "--budget",
        metavar="SHARE",
        help="what may be lost, as in 0.5%%: of accuracy with --labels, else the error of the outputs; "
        "default: 0.5%% or 5%%",
    )
    group.add_argument(
        "--sensitive",
        choices=SENSITIVE,
        help="what layers are computed in that lose too much on integers; default: float32",
    )
    group.add_argument("--samples", type=int, metavar="N", help="use the first N samples; default: all")
    group.add_argument("--image-layout", choices=("NCHW", "NHWC"), help="of images; default: inferred")
    group.add_argument("--mean", metavar="M[,M,M]", help="subtracted from pixels of 0 to 255; default 0")
    group.add_argument("--scale", metavar="S[,S,S]", help="pixels are then multiplied by it; default 1")


def run(arguments: argparse.Namespace) -> int:
    """Quantise, print and write; 1 if the budget was not held."""
    source = Path(arguments.FILE)
    output = arguments.output or f"{source.with_suffix('')}.int8.tar"
    onnx = arguments.onnx or f"{source.with_suffix('')}.int8.onnx"
    read = [arguments.FILE, *([arguments.data] if arguments.data else [])]
    for option, path in (("-o", output), ("--onnx", onnx), ("--report", arguments.report)):
        if path:
            check_output(path, option, read)
    settings = tvmc.compiler.settings_from_arguments(arguments)
    with progress(f"reading {source}", arguments.json) as shown:
        model = tvmc.compiler.load_from_arguments(arguments)
        options = quantization.model.Options(
            arguments.method,
            arguments.symmetric,
            not arguments.per_tensor,
            quantization.model.parse_budget(arguments.budget),
            tuple(arguments.keep or ()),
            arguments.sensitive or SENSITIVE[0],
        )
        model, found, notes = quantise_from_arguments(arguments, model, options, shown)
        shown.step(f"compiling {source}")
        quantised = tvmc.TVMCModel(found.module, {})
        compiled = settings.compile(found.module, {})
        tvmc.compiler.write_package(quantised, compiled, output)
        written = [output]
        try:
            quantization.model.write_onnx(found, Path(onnx), source.stem)
            written.append(onnx)
            if found.portable is not found.module:
                notes.append(f"{onnx} has its sensitive layers in float32, for runtimes without bfloat16")
        except OpNotImplemented as problem:
            notes.append(f"{onnx} was not written: {problem}")
        if arguments.report:
            quantization.report.write_report(found, source.name, arguments.report)
            written.append(arguments.report)
    sizes = {path: Path(path).stat().st_size for path in written}
    if arguments.json:
        made: dict[str, Any] = {"model": arguments.FILE, **quantization.model.as_json(found)}
        show_json({**made, "written": sizes, "notes": notes})
    else:
        show_quantised(arguments.FILE, found)
        for note in notes:
            show_text(note)
        for path, size in sizes.items():
            show_text(f"written {path} ({bytes_text(size)})")
    return 0 if found.within_budget else 1


def quantise_from_arguments(
    arguments: argparse.Namespace, model: TVMCModel, options: Any, shown: Progress
) -> tuple[TVMCModel, Quantised, list[str]]:
    """The model with fixed sizes, what became of it on the data that the arguments name, and notes."""
    if not arguments.data:
        raise tvmc.TVMCException(
            "quantising needs samples of the model's inputs: give a folder, an .npz or an .npy file with --data"
        )
    model, note = quantization.model.with_batch(model, arguments.FILE, arguments.model_format)
    data = Path(arguments.data)
    labels: Any = None
    member: str | None = None
    if arguments.labels:
        labels, member = quantization.data.read_labels(arguments.labels, data)
    images = tvmc.images.ImageOptions(
        arguments.image_layout,
        tvmc.images.parse_numbers(arguments.mean, 0.0, "--mean"),
        tvmc.images.parse_numbers(arguments.scale, 1.0, "--scale"),
    )
    infos = tvmc.tensors.module_inputs(model.mod, model.params)
    samples = quantization.data.Samples(data, infos, images, member, arguments.samples)
    found = quantization.model.quantise(model, samples, options, labels, shown.step)
    return model, found, [] if note is None else [note]


def show_quantised(name: str, found: Quantised) -> None:
    """The layers as a table, and what the model loses."""
    rows = [
        [
            one.name,
            one.operator,
            "-" if math.isinf(one.decibels) else f"{one.decibels:.1f} dB",
            f"{one.output_error:.2%}",
            f"{one.error_along:.2%}",
            one.computed_in,
            one.why,
        ]
        for one in found.layers
    ]
    show_table(
        f"{name}, measured on {found.samples} samples ({found.method})",
        ["layer", "type", "signal to noise", "output error", "built up", "computed in", "why"],
        rows,
    )
    quantised = sum(one.quantised for one in found.layers)
    share = quantization.report.share_of_work(found)
    show_text(
        f"{quantised} of {len(found.layers)} layers are on integers, with {share:.1%} of the multiplications."
    )
    show_text(quantization.report.summary(found))
    if not found.within_budget and found.portable is not found.module:
        show_text("bfloat16 is over the budget as well: --sensitive float32 holds it.")
    show_text(quantization.report.jump_sentence(found))
    if found.bias_corrected:
        show_text(
            "Biases are corrected by the mean error of their channels, which made the outputs more exact."
        )
