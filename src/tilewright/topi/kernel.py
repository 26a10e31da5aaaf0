"""What the operators that are written as loops share: access to buffers, and a tensor seen as rows along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import as_expr, floordiv, floormod, logical_not
from tilewright.te.extern import extern
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import same_address
from tilewright.topi.arguments import product

Body = Callable[[IRBuilder, Sequence[BufferVar], Sequence[BufferVar]], None]


def loop_kernel(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[tuple[Sequence[Any], str]],
    body: Body,
    tag: str = "",
) -> list[Tensor]:
    """Tensors of the given shapes and types, which ``body(builder, inputs, outputs)`` fills with loops."""

    def emit(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        builder = IRBuilder()
        read = [builder.buffer_ptr(buffer) for buffer in ins]
        written = [builder.buffer_ptr(buffer) for buffer in outs]
        body(builder, read, written)
        return builder.get()

    made = extern(
        [tuple(as_expr(extent) for extent in shape) for shape, _ in outputs],
        list(inputs),
        emit,
        name=name,
        dtype=[dtype for _, dtype in outputs],
        tag=tag or name,
    )
    return made if isinstance(made, list) else [made]


class Rows:
    """The elements of a tensor along an axis: ``count`` rows of ``length`` elements that lie ``stride`` apart."""

    def __init__(self, shape: Sequence[PrimExpr], axis: int) -> None:
        self.length = shape[axis]
        self.outer = product(shape[:axis])
        self.stride = product(shape[axis + 1 :])
        self.count = self.outer * self.stride

    def start(self, row: PrimExpr, length: PrimExpr | None = None) -> PrimExpr:
        """Where a row begins, in a tensor of this shape or of one with another length along the axis."""
        extent = self.length if length is None else length
        return floordiv(row, self.stride) * (extent * self.stride) + floormod(row, self.stride)


def copy_elements(builder: IRBuilder, source: BufferVar, target: BufferVar, count: PrimExpr) -> None:
    """Copy a whole buffer."""
    with builder.for_range(0, count, name="element") as i:
        target[i] = source[i]


def copy_unless_in_place(builder: IRBuilder, source: BufferVar, target: BufferVar, count: PrimExpr) -> None:
    """Copy a whole buffer, unless the two are the same memory: executors may give an operator that changes few elements
    of its argument the argument's memory for the result."""
    with builder.if_scope(logical_not(same_address(source.asobject(), target.asobject()))):
        copy_elements(builder, source, target, count)


def fill(builder: IRBuilder, target: BufferVar, count: Any, value: Any) -> None:
    """Set the first ``count`` elements to a value."""
    with builder.for_range(0, count, name="element") as i:
        target[i] = value


def scalar(builder: IRBuilder, dtype: str, name: str, value: Any) -> BufferVar:
    """A variable of the program, read and written at index 0."""
    cell = builder.allocate(dtype, 1, name=name, scope="local")
    cell[0] = value
    return cell
