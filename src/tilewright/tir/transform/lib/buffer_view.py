"""The position of a buffer's elements in flat memory, while buffers are flattened.

A ``BufferView`` is a pointer, an offset and one stride per dimension; ``starts`` are the indices of its first element,
for a buffer of which only a region is allocated. ``bind_view`` makes one buffer a window of another, as ``tensorize``
and ``extern`` require, and returns the values of the variables in its declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith import Analyzer
from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import IntImm, PrimExpr, Ramp, Var
from tilewright.ir.functor import substitute_expr
from tilewright.support.dtype import INT32, DataType
from tilewright.support.errors import LoweringError


@dataclass(frozen=True, slots=True)
class BufferView:
    """The place of a buffer's elements; see the module's text. No strides: compact and row-major."""

    name: str
    data: Var
    dtype: DataType
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...] = ()
    offset: PrimExpr | None = None
    starts: tuple[PrimExpr, ...] = ()

    @staticmethod
    def of_buffer(buffer: Buffer) -> BufferView:
        """A buffer that has its memory from outside, as it is declared."""
        return BufferView(
            buffer.name, buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset
        )

    def all_strides(self) -> tuple[PrimExpr, ...]:
        """One stride a dimension, also for a compact buffer."""
        if self.strides or not self.shape:
            return self.strides
        strides: list[PrimExpr] = [operators.const(1, self.shape[-1].dtype)]
        for extent in reversed(self.shape[1:]):
            strides.append(operators.multiply(strides[-1], extent))
        return tuple(reversed(strides))

    def offset_of(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """The flat offset, in elements, of scalar indices."""
        if len(indices) != len(self.shape):
            raise LoweringError(
                f"buffer {self.name} has {len(self.shape)} dimensions and is accessed with {len(indices)} indices"
            )
        if self.starts:
            indices = [
                operators.subtract(index, start) for index, start in zip(indices, self.starts, strict=True)
            ]
        total: PrimExpr = operators.const(0, self.shape[0].dtype if self.shape else INT32)
        if self.strides:
            for index, stride in zip(indices, self.strides, strict=True):
                total = operators.add(total, operators.multiply(index, stride))
        else:
            for index, extent in zip(indices, self.shape, strict=True):
                total = operators.add(operators.multiply(total, extent), index)
        return total if self.offset is None else operators.add(total, self.offset)

    def element_offset(self, indices: Sequence[PrimExpr], analyzer: Analyzer) -> PrimExpr:
        """The flat offset, in scalars, of one access: a vector where the access reads or writes several."""
        lanes = self.dtype.lanes
        last = indices[-1] if indices else None
        if last is None or last.dtype.lanes == 1:
            offset = analyzer.simplify(self.offset_of(indices))
            if lanes == 1:
                return offset
            return Ramp(analyzer.simplify(operators.multiply(offset, lanes)), 1, lanes)
        if lanes == 1 and isinstance(last, Ramp) and all(index.dtype.lanes == 1 for index in indices[:-1]):
            base = analyzer.simplify(self.offset_of((*indices[:-1], last.base)))
            stride = operators.multiply(last.stride, self.strides[-1]) if self.strides else last.stride
            return Ramp(base, analyzer.simplify(stride), last.lanes)
        if lanes != 1:
            raise LoweringError(
                f"buffer {self.name} of {self.dtype} cannot be accessed with a vector of indices"
            )
        return analyzer.simplify(self.offset_of(indices))

    def size(self) -> PrimExpr:
        """The number of scalars from the pointer to behind the last element."""
        total: PrimExpr = operators.const(1, self.shape[0].dtype if self.shape else INT32)
        if self.strides:
            for extent, stride in zip(self.shape, self.strides, strict=True):
                total = operators.add(total, operators.multiply(operators.subtract(extent, 1), stride))
        else:
            for extent in self.shape:
                total = operators.multiply(total, extent)
        if self.offset is not None:
            total = operators.add(total, self.offset)
        return operators.multiply(total, self.dtype.lanes)


def aligned_strides(
    shape: Sequence[PrimExpr], alignment: dict[int, tuple[int, int]], analyzer: Analyzer
) -> tuple[PrimExpr, ...]:
    """Strides of a row-major buffer in which ``strides[d] % factor == offset`` for each ``d: (factor, offset)``."""
    strides: list[PrimExpr] = []
    stride: PrimExpr = operators.const(1, shape[-1].dtype)
    for dimension in range(len(shape) - 1, -1, -1):
        if dimension in alignment:
            factor, offset = alignment[dimension]
            gap = operators.floormod(operators.subtract(offset, operators.floormod(stride, factor)), factor)
            stride = analyzer.simplify(operators.add(stride, gap))
        strides.append(stride)
        stride = analyzer.simplify(operators.multiply(stride, shape[dimension]))
    return tuple(reversed(strides))


class _Binder:
    """Collects the values of the variables in a buffer's declaration."""

    def __init__(self, buffer: Buffer, analyzer: Analyzer) -> None:
        self.buffer = buffer
        self.analyzer = analyzer
        self.values: dict[Var, PrimExpr] = {}

    def bind(self, declared: PrimExpr, value: PrimExpr, what: str) -> None:
        """The declared expression has this value."""
        if declared.dtype is not value.dtype:
            value = operators.cast(declared.dtype, value)
        if isinstance(declared, Var) and declared not in self.values:
            self.values[declared] = value
            return
        known = substitute_expr(declared, self.values)
        if not self.analyzer.can_prove(operators.equal(known, value)):
            raise LoweringError(
                f"buffer {self.buffer.name} cannot be bound: its {what} is declared as {known}, the region has {value}"
            )


def bind_view(
    buffer: Buffer,
    target: BufferView,
    box: Sequence[tuple[PrimExpr, PrimExpr]],
    analyzer: Analyzer,
    by_element: bool = False,
) -> tuple[BufferView, dict[Var, PrimExpr]]:
    """``buffer`` as the window ``box`` (pairs of start and extent) of another, and the values of its variables. One
    that is accessed ``by_element`` only need not be compact where it does not declare strides."""
    if buffer.dtype is not target.dtype:
        raise LoweringError(
            f"buffer {buffer.name} of {buffer.dtype} cannot be bound to {target.name} of {target.dtype}"
        )
    if len(box) != len(target.shape):
        raise LoweringError(
            f"the region of {target.name} has {len(box)} dimensions, the buffer {len(target.shape)}"
        )
    offset = analyzer.simplify(target.offset_of([start for start, _ in box]))
    extents = [extent for _, extent in box]
    strides = list(target.all_strides())
    surplus = len(extents) - len(buffer.shape)
    for extent in extents[: max(surplus, 0)]:
        if not analyzer.can_prove(operators.equal(extent, 1)):
            raise LoweringError(
                f"buffer {buffer.name} has {len(buffer.shape)} dimensions, the region of {target.name} that it "
                f"is bound to has {len(extents)}, and the outer ones are not 1"
            )
    if surplus < 0:
        raise LoweringError(
            f"buffer {buffer.name} has {len(buffer.shape)} dimensions, the region of {target.name} only {len(extents)}"
        )
    extents, strides = extents[surplus:], strides[surplus:]
    binder = _Binder(buffer, analyzer)
    binder.values[buffer.data] = target.data
    for declared, extent in zip(buffer.shape, extents, strict=True):
        binder.bind(declared, extent, "shape")
    _require_factor(buffer, target, offset, analyzer)
    binder.bind(buffer.elem_offset, offset, "offset")
    if buffer.strides:
        for declared, stride in zip(buffer.strides, strides, strict=True):
            binder.bind(declared, stride, "strides")
    elif not by_element:
        _require_compact(buffer, target, extents, strides, analyzer)
    view = BufferView(buffer.name, target.data, buffer.dtype, tuple(extents), tuple(strides), offset)
    return view, binder.values


def _require_factor(buffer: Buffer, target: BufferView, offset: PrimExpr, analyzer: Analyzer) -> None:
    """The offset is a multiple of what the declaration promises."""
    factor = buffer.offset_factor
    if factor <= 1:
        return
    remainder = operators.floormod(offset, operators.const(factor, offset.dtype))
    if not analyzer.can_prove(operators.equal(remainder, 0)):
        raise LoweringError(
            f"buffer {buffer.name} is declared with offset_factor {factor}, but its region of {target.name} starts at "
            f"{offset}, which is not known to be a multiple of it"
        )


def _require_compact(
    buffer: Buffer, target: BufferView, extents: list[PrimExpr], strides: list[PrimExpr], analyzer: Analyzer
) -> None:
    """The region is as compact as the declaration says; a dimension of size one may have any stride."""
    expected: PrimExpr = operators.const(1, strides[-1].dtype if strides else INT32)
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        is_one = isinstance(extent, IntImm) and extent.value == 1
        if not is_one and not analyzer.can_prove(operators.equal(stride, expected)):
            raise LoweringError(
                f"buffer {buffer.name} is declared compact, but its region of {target.name} has a stride of {stride} "
                f"where {expected} is needed; declare the buffer with strides"
            )
        expected = operators.multiply(expected, extent)
