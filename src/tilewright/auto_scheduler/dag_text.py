"""The text of a graph: one line an operation. Its hash names workloads, so that it must not vary between runs."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.expr import Add, Call, Max, Min, Mul, PrimExpr, Reduce
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation

_SIGNS: dict[type[PrimExpr], str] = {Add: "+=", Mul: "*=", Max: "max=", Min: "min="}


def dag_text(operations: Sequence[Operation], simple: bool) -> str:
    """One line for each output of each operation. ``simple`` leaves out what depends on the sizes of inputs."""
    lines: list[str] = []
    for operation in operations:
        if not isinstance(operation, ComputeOp):
            shape = ", ".join(str(extent) for extent in operation.output(0).shape)
            lines.append(f"{operation.name} = PLACEHOLDER " + ("" if simple else f"[{shape}]"))
            continue
        axes = ", ".join(axis.var.name for axis in operation.axes)
        for number, value in enumerate(operation.body):
            ending = f".v{number}" if len(operation.body) > 1 else ""
            head = f"{operation.name}({axes}){ending}"
            if isinstance(value, Reduce):
                combined = value.combiner.result[number]
                sign = _SIGNS.get(type(combined), f"select= {combined},")
                lines.append(f"{head} {sign} {', '.join(str(one) for one in value.source)}")
            elif simple and isinstance(value, Call):
                lines.append(f"{head} = {value.op}")
            else:
                lines.append(f"{head} = {value}")
    return "\n".join(lines) + "\n"
