"""``tilewright run``: runs a package on inputs from files, or on generated ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.driver import tvmc
from tilewright.driver.cli.kernel_table import show_kernels
from tilewright.driver.cli.output import check_output, printable, show_json, show_table
from tilewright.driver.cli.progress import progress
from tilewright.driver.tvmc.arguments import Commands, add_run_arguments
from tilewright.support.errors import ModelError


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="run a compiled model",
        usage="%(prog)s [OPTIONS] FILE",
        epilog="For example: tilewright run model.tar --inputs photo.png --scale 1/255 --print-top 5",
    )
    add_run_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the package once, and more often if it is measured."""
    if arguments.print_top is not None and arguments.print_top < 1:
        raise ModelError(f"--print-top takes a number of at least 1, not {arguments.print_top}")
    output = str(tvmc.model.npz_path(arguments.outputs)) if arguments.outputs else None
    if output:
        check_output(output, "-o", [arguments.FILE, *_paths(arguments.inputs or ())])
    with progress(f"running {arguments.FILE}", arguments.json):
        package = tvmc.TVMCPackage(arguments.FILE)
        result = tvmc.runner.run_from_arguments(arguments, package)
        if output:
            result.save(output, arguments.by_position)
    if arguments.json:
        show_json(_as_json(result, arguments.print_top))
        return 0
    show_table(
        f"outputs of {arguments.FILE}",
        ["output", "type", "smallest", "mean", "largest"],
        [[name, _kind(value), *_summary(value)] for name, value in result.outputs.items()],
    )
    if arguments.print_top:
        for name, value in result.outputs.items():
            rows = [[index, f"{number:.6g}"] for index, number in largest(value, arguments.print_top)]
            show_table(f"the largest values of {name}", ["index", "value"], rows)
    if result.times is not None:
        print(result.format_times())
    if result.profile is not None:
        show_kernels(arguments.FILE, result.profile)
    if output:
        print(f"outputs written to {output}")
    if result.filled:
        values = "random values" if arguments.fill_mode == "random" else arguments.fill_mode
        print(f"{printable(', '.join(result.filled))} was filled with {values}: use --inputs to set it")
    return 0


def _paths(inputs: Sequence[str]) -> list[str]:
    """The files of inputs that may begin with a name."""
    return [part for one in inputs for part in (one, one.partition("=")[2]) if part]


def _kind(value: np.ndarray[Any, Any]) -> str:
    return f"{value.dtype}{list(value.shape)}"


def _summary(value: np.ndarray[Any, Any]) -> list[str]:
    if value.size == 0:
        return ["-", "-", "-"]
    return [f"{float(number):.6g}" for number in (value.min(), value.mean(), value.max())]


def largest(value: np.ndarray[Any, Any], count: int) -> list[tuple[str, float]]:
    """The largest values with their indices, the largest first; an index of a row or of one batch is one number."""
    numbers = value.reshape(-1)
    order = np.argsort(-numbers.astype("float64"), kind="stable")[:count]
    shape = tuple(size for size in value.shape if size != 1) or (1,)
    found = []
    for place in order:
        index = ", ".join(str(int(part)) for part in np.unravel_index(int(place), shape))
        found.append((index, float(numbers[place])))
    return found


def _as_json(result: Any, top: int | None) -> dict[str, Any]:
    outputs = []
    for name, value in result.outputs.items():
        smallest, mean, greatest = (
            (None, None, None) if value.size == 0 else (value.min(), value.mean(), value.max())
        )
        entry: dict[str, Any] = {
            "name": name,
            "shape": list(value.shape),
            "dtype": str(value.dtype),
            "smallest": None if smallest is None else float(smallest),
            "mean": None if mean is None else float(mean),
            "largest": None if greatest is None else float(greatest),
        }
        if top:
            entry["top"] = [{"index": index, "value": number} for index, number in largest(value, top)]
        outputs.append(entry)
    times = result.times
    return {
        "outputs": outputs,
        "seconds": None
        if times is None
        else {name: getattr(times, name) for name in ("mean", "median", "max", "min", "std", "results")},
        "profile": None
        if result.profile is None
        else [kernel.as_json() for kernel in result.profile.kernels()],
    }
