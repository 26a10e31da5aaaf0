"""Fragments in the scopes ``wmma.*``: every thread has the whole matrix, by rows, which a warp's threads have together.

Only the hardware knows which thread holds which element, so that no program can depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from tilewright.ir.expr import Call, IntImm, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.expressions import ExpressionCompiler, Frame, Run
from tilewright.tir.interpreter.memory import Pointer

Shape = tuple[int, int, int]


class Compiler(Protocol):
    """What builders need of the compiler of a kernel."""

    fragment_shapes: dict[Var, Shape]

    def visit(self, node: Any) -> Any:
        """The closure of an expression."""


def _extents(compiler: Compiler, call: Call, var: Any) -> tuple[int, int]:
    """The rows and the columns of a fragment, whose shape a call before has given."""
    shape = compiler.fragment_shapes.get(var)
    if shape is None:
        raise TilewrightError(f"{var} is used as a fragment before it is loaded or filled", span=call.span)
    m, n, k = shape
    kinds = {"wmma.matrix_a": (m, k), "wmma.matrix_b": (k, n), "wmma.accumulator": (m, n)}
    if var.storage_scope not in kinds:
        raise TilewrightError(
            f"{var.name} is not a fragment: its scope is {var.storage_scope!r}", span=call.span
        )
    return kinds[var.storage_scope]


def _declared(compiler: Compiler, call: Call) -> tuple[int, int]:
    """The extents of the fragment that a call names first, with its shape behind."""
    var, sizes = call.args[0], [part.value for part in call.args[1:4] if isinstance(part, IntImm)]
    if not isinstance(var, Var) or len(sizes) != 3:
        raise TilewrightError(f"{call.op.name} takes a fragment and its shape in constants", span=call.span)
    compiler.fragment_shapes[var] = (sizes[0], sizes[1], sizes[2])
    return _extents(compiler, call, var)


def _element(var: Any) -> DataType:
    kind = var.type_annotation
    if not isinstance(kind, PointerType) or not isinstance(kind.element_type, PrimType):
        raise TilewrightError(f"{var.name} does not say of what type its elements are")
    return kind.element_type.dtype


def _numbers(pointer: Pointer, var: Any, index: int, extents: tuple[int, int]) -> Any:
    """A fragment's numbers, to read and to write."""
    cells = pointer.cells[_element(var)]
    size = extents[0] * extents[1]
    start = cells.start + index * size
    return cells.array[start : start + size].reshape(extents)


def _fill(compiler: Compiler, call: Call) -> Run:
    extents = _declared(compiler, call)
    memory, index, value = (compiler.visit(call.args[place]) for place in (0, 4, 5))

    def fill(frame: Frame) -> int:
        _numbers(memory(frame), call.args[0], index(frame), extents)[:] = value(frame)
        return 0

    return fill


def _move(to_memory: bool) -> Callable[[Compiler, Call], Run]:
    def build(compiler: Compiler, call: Call) -> Run:
        extents = _declared(compiler, call)
        memory, index, address, stride = (compiler.visit(call.args[place]) for place in (0, 4, 5, 6))
        layout = call.args[7]
        by_columns = isinstance(layout, StringImm) and layout.value == "col_major"
        row, column = np.indices(extents)

        def move(frame: Frame) -> int:
            own = _numbers(memory(frame), call.args[0], index(frame), extents)
            step = int(stride(frame))
            cells = address(frame).cells[_element(call.args[0])]
            offsets = row + column * step if by_columns else row * step + column
            if to_memory:
                cells.store_lanes(offsets.reshape(-1), own.reshape(-1))
            else:
                own[:] = cells.load_lanes(offsets.reshape(-1)).reshape(extents)
            return 0

        return move

    return build


def _multiply(compiler: Compiler, call: Call) -> Run:
    parts = [
        (
            call.args[place],
            compiler.visit(call.args[place]),
            compiler.visit(call.args[place + 1]),
            _extents(compiler, call, call.args[place]),
        )
        for place in (0, 2, 4, 6)
    ]

    def multiply(frame: Frame) -> int:
        d, a, b, c = (
            _numbers(memory(frame), var, index(frame), extents) for var, memory, index, extents in parts
        )
        wide = np.int64 if d.dtype.kind in "iu" else np.float64
        d[:] = (a.astype(wide) @ b.astype(wide) + c.astype(wide)).astype(d.dtype)
        return 0

    return multiply


_CALLS: Final[dict[str, Any]] = {
    "tvm_fill_fragment": _fill,
    "tvm_load_matrix_sync": _move(to_memory=False),
    "tvm_store_matrix_sync": _move(to_memory=True),
    "tvm_mma_sync": _multiply,
}
ExpressionCompiler.calls.update(_CALLS)
