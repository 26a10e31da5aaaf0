"""``tilewright inspect``: what is in a model or a package."""

from __future__ import annotations

import argparse
import tarfile
import textwrap
from pathlib import Path
from typing import Any

from tilewright.driver import tvmc
from tilewright.driver.cli.output import bytes_text, printable, show_json, show_table
from tilewright.driver.cli.progress import progress
from tilewright.driver.tvmc.arguments import Commands, add_model_arguments
from tilewright.support.errors import ModelError


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "inspect", help="show what is inside a model or a package", usage="%(prog)s [OPTIONS] FILE"
    )
    add_model_arguments(parser, "a model, or what 'tilewright compile' wrote")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is inside."""
    path = Path(arguments.FILE)
    if path.is_dir():
        raise ModelError(f"{path} is a folder: name a model, or what 'tilewright compile' wrote")
    with progress(f"reading {path}", arguments.json):
        if path.suffix in (".so", ".dll", ".dylib", ".tar") or (path.is_file() and tarfile.is_tarfile(path)):
            found = tvmc.inspection.inspect_package(str(path))
        else:
            shapes = (
                tvmc.compiler.shapes_from_text(arguments.input_shapes) if arguments.input_shapes else None
            )
            found = tvmc.inspection.inspect_model(str(path), arguments.model_format, shapes)
    if arguments.json:
        show_json(found)
    elif found["kind"] == "package":
        _show_package(found)
    else:
        _show_model(found)
    return 0


def _show_model(found: dict[str, Any]) -> None:
    print(f"{found['file']}: a model ({found['format']}), {bytes_text(found['bytes'])}")
    if found["producer"]:
        _line("producer", found["producer"])
    if found["versions"]:
        _line("versions", ", ".join(f"{name} {version}" for name, version in found["versions"].items()))
    parameters = found["parameters"]
    where = [f"{one['tensors']} in {name}" for name, one in parameters["stored"].items() if one["tensors"]]
    stored = f" ({', '.join(where)})" if where else ""
    _line("weights", _weights(parameters, f"{parameters['elements']:,} elements") + stored)
    if found["multiply_accumulates"]:
        _line("work", f"{found['multiply_accumulates']:,} multiply-accumulates")
    if found["problem"]:
        _line("problem", f"the model cannot be compiled as it is: {found['problem']}")
    print()
    _show_tensors(found)
    _show_counts("operators", found["operators"])


def _show_package(found: dict[str, Any]) -> None:
    what = "a model library" if found["format"] == "mlf" else "a package"
    if Path(found["file"]).suffix != ".tar" and found["format"] == "classic":
        what = "a shared library with a model inside"
    print(f"{found['file']}: {what}, {bytes_text(found['bytes'])}")
    _line("executor", found["executor"])
    _line("target", found["target"] or "not known")
    if found["machine"] or found["features"]:
        features = f" with {', '.join(found['features'])}" if found["features"] else ", any"
        _line("needs", f"{found['machine'] or 'a processor'}{features}")
    parameters = found["parameters"]
    _line("weights", _weights(parameters))
    workspace = found["workspace_bytes"]
    _line(
        "memory",
        "allocated as it runs, as much as the shapes need"
        if workspace is None
        else f"{bytes_text(workspace)} for intermediate tensors",
    )
    _line("code", f"{found['library']}, {bytes_text(found['library_bytes'])}")
    print()
    _show_tensors(found)
    if found["kernels"]:
        _show_counts("kernels", found["kernels"])


def _weights(parameters: dict[str, Any], *more: str) -> str:
    count = parameters["tensors"]
    return ", ".join([f"{count} tensor{'' if count == 1 else 's'}", *more, bytes_text(parameters["bytes"])])


def _line(name: str, text: str) -> None:
    """A name and what is to be said of it, in lines of 80 columns."""
    head = f"  {name:<9} "
    # A target or a version is copied from here: what belongs together stays on one line.
    print(
        textwrap.fill(
            printable(text),
            80,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _show_tensors(found: dict[str, Any]) -> None:
    rows = [
        [kind, one["name"], one["dtype"], _shape(one["shape"], one.get("dimensions"))]
        for kind, name in (("input", "inputs"), ("output", "outputs"))
        for one in found[name]
    ]
    show_table("inputs and outputs", ["", "name", "type", "shape"], rows)


def _shape(shape: list[int | str | None] | None, names: list[str] | None = None) -> str:
    if shape is None:
        return "not known"
    named = zip(shape, names or [""] * len(shape), strict=True)
    return ", ".join((name or "?") if size is None else str(size) for size, name in named) or "()"


def _show_counts(name: str, counts: dict[str, int]) -> None:
    show_table(name, [name.rstrip("s"), "calls"], [[one, count] for one, count in counts.items()])
