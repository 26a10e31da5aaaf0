"""``tilewright targets``: the target kinds, their options, known CPUs and tags."""

from __future__ import annotations

import argparse
from typing import Any

from tilewright.codegen import what_is_made
from tilewright.driver.cli.devices import cuda_devices, describe_device
from tilewright.driver.cli.output import bytes_text, show_json, show_table, show_text
from tilewright.target.cpu import describe_cpu
from tilewright.target.cpu_models import MODELS
from tilewright.target.kind import KINDS, get_kind
from tilewright.target.tag import list_tags
from tilewright.target.target import Target

# A CPU of each family is described for a triple on which all of the family's names are valid.
_TRIPLES = {
    "x86": "x86_64-unknown-linux-gnu",
    "aarch64": "aarch64-unknown-linux-gnu",
    "arm": "arm-none-eabi",
    "riscv": "riscv64-unknown-elf",
    "wasm": "wasm32-unknown-unknown",
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("targets", help="list target kinds, known CPUs and tags")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--kind", metavar="KIND", help="list the options of one kind")
    what.add_argument("--cpus", action="store_true", help="list the CPUs known by name")
    what.add_argument("--tags", action="store_true", help="list the tags")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table that was requested."""
    rows: list[dict[str, Any]]
    if arguments.kind:
        options = get_kind(arguments.kind).options
        rows = [{"option": name, "type": options[name]} for name in sorted(options)]
        _show(f"options of {arguments.kind}", rows, arguments.json)
    elif arguments.cpus:
        _show("known processors", _cpu_rows(), arguments.json)
    elif arguments.tags:
        rows = [{"tag": name, "target": str(target)} for name, target in sorted(list_tags().items())]
        _show("target tags", rows, arguments.json)
    else:
        rows = [
            {
                "kind": kind.name,
                "gives": what_is_made(kind.name),
                "keys": list(kind.default_keys),
                "options": sorted(kind.own_options),
            }
            for kind in KINDS.values()
        ]
        if arguments.json:
            show_json(rows)
            return 0
        for row in rows:
            del row["options"]
            row["gives"] = row["gives"] or "a description only"
        _show("target kinds", rows, as_json=False)
        for device in cuda_devices():
            show_text(f"{device}: {describe_device(device)}; its target is {Target.from_device(device)}")
        show_text(
            "The options of a kind: tilewright targets --kind llvm. CPUs by name: tilewright targets --cpus"
        )
    return 0


def _cpu_rows() -> list[dict[str, Any]]:
    rows = []
    for family, models in MODELS.items():
        for name in models:
            found = describe_cpu(f"llvm -mtriple={_TRIPLES[family]} -mcpu={name}")
            rows.append(
                {
                    "family": family,
                    "mcpu": name,
                    "vector_bits": found.vector_bits,
                    "vector_registers": found.vector_registers,
                    "fma": found.has_fma,
                    "l1d_bytes": found.l1d_bytes,
                    "l2_bytes": found.l2_bytes,
                    "l3_bytes": found.l3_bytes,
                }
            )
    return rows


def _show(title: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show_json(rows)
    else:
        show_table(
            title,
            [_heading(name) for name in rows[0]],
            [[_cell(name, value) for name, value in row.items()] for row in rows],
        )


def _heading(column: str) -> str:
    """A column's name in words: of sizes the unit stands in the cells."""
    return (
        column.removesuffix("_bytes")
        .replace("_", " ")
        .replace("l1d", "L1")
        .replace("l2", "L2")
        .replace("l3", "L3")
    )


def _cell(column: str, value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("_bytes"):
        return bytes_text(value) if value else "-"
    return str(value)
