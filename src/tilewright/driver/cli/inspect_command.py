"""``tilewright inspect``: what is in a model or a package."""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path
from typing import Any

from tilewright.driver import tvmc
from tilewright.driver.cli.output import bytes_text, printable, show_json, show_table
from tilewright.driver.cli.progress import progress
from tilewright.driver.tvmc.arguments import Commands, add_model_arguments


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
    with progress(f"reading {path}", arguments.json):
        if path.is_file() and (path.suffix in (".so", ".dll", ".dylib") or tarfile.is_tarfile(path)):
            found = tvmc.inspection.inspect_package(str(path))
        elif path.suffix == ".tar":
            found = tvmc.inspection.inspect_package(str(path))  # which says why it is none
        else:
            shapes = (
                tvmc.compiler.shapes_from_text(arguments.input_shapes) if arguments.input_shapes else None
            )
            found = tvmc.inspection.inspect_model(str(path), arguments.model_format, shapes)
    if arguments.json:
        show_json(found)
    else:
        _show(found)
    return 0


def _show(found: dict[str, Any]) -> None:
    print(f"{found['file']}: a {found['kind']}, {bytes_text(found['bytes'])}")
    if found["kind"] == "package":
        print(f"  executor {found['executor']}, format {found['format']}, name {printable(found['name'])}")
        print(f"  target   {printable(found['target'] or 'not known')}")
        print(f"  library  {printable(found['library'])}, {bytes_text(found['library_bytes'])}")
        print(f"  memory   {bytes_text(found['workspace_bytes'])} for intermediate tensors")
    parameters = found["parameters"]
    elements = f", {parameters['elements']:,} elements" if "elements" in parameters else ""
    print(f"  parameters {parameters['tensors']} tensors, {bytes_text(parameters['bytes'])}{elements}")
    if found.get("multiply_accumulates"):
        print(f"  work     {found['multiply_accumulates']:,} multiply-accumulates")
    print()
    tensors = [
        [
            kind,
            one["name"],
            one["dtype"],
            ", ".join("?" if size is None else str(size) for size in one["shape"]),
        ]
        for kind, name in (("input", "inputs"), ("output", "outputs"))
        for one in found[name]
    ]
    show_table("inputs and outputs", ["", "name", "type", "shape"], tensors)
    name = "operators" if "operators" in found else "kernels"
    rows = [[one, count] for one, count in found[name].items()]
    show_table(name, [name.rstrip("s"), "calls"], rows)
