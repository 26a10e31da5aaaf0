"""Buffers: typed, shaped, strided views of memory.

Element ``(i, j)`` of a buffer is ``data[elem_offset + i * strides[0] + j * strides[1]]``; without strides the layout is
compact and row-major. ``data_alignment`` is in bytes. ``offset_factor`` says that ``elem_offset`` is a multiple of it,
and 0 that the offset is zero. ``buffer_type`` "auto_broadcast" lets dimensions of size one match any size (their
strides are zero).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import BufferLoad, Call, ExprLike, IntImm, PrimExpr, Ramp, Range, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import INT32, DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Children, Node, node
from tilewright.support.slot import BUFFER_STORE
from tilewright.support.span import Span

DEFAULT_ALIGNMENT = 128
"""Bytes: TVM's default, which asks for nothing. A buffer with another alignment requires it of its memory."""

READ, WRITE = 1, 2


@node
class Buffer(Node):
    """A view of memory; see the module's text. Identity decides: two buffers with equal fields are two buffers."""

    data: Var
    dtype: DataType
    shape: Children[PrimExpr]
    strides: Children[PrimExpr]
    elem_offset: PrimExpr
    name: str
    data_alignment: int
    offset_factor: int
    buffer_type: str
    span: Span | None = None

    READ = READ
    WRITE = WRITE

    def scope(self) -> str:
        """The storage scope of the memory."""
        return self.data.storage_scope

    def access_ptr(
        self,
        access_mask: int | str,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: ExprLike = 0,
    ) -> PrimExpr:
        """A pointer to the first element, with what will be done through it ("r", "w", "rw", or a mask)."""
        if isinstance(access_mask, str):
            letters = access_mask
            access_mask = 0
            for letter in letters:
                if letter not in "rw":
                    raise ExpressionError(f"an access mask has the letters r and w, not {letters!r}")
                access_mask |= READ if letter == "r" else WRITE
        if self.strides:
            extent: PrimExpr = operators.multiply(self.strides[0], self.shape[0])
        else:
            extent = self.size
        total = operators.subtract(extent, offset)
        start = operators.add(self.elem_offset, offset)
        element = self.dtype
        if content_lanes > 1:
            if self.dtype.lanes != 1:
                raise ExpressionError(
                    f"content_lanes needs a buffer of scalars, {self.name} has {self.dtype}"
                )
            total = operators.floordiv(total, content_lanes)
            start = operators.floordiv(start, content_lanes)
            element = self.dtype.with_lanes(content_lanes)
        annotation = operators.call("type_annotation", element, [])
        return operators.call("tvm_access_ptr", ptr_type, [annotation, self.data, start, total, access_mask])

    @property
    def size(self) -> PrimExpr:
        """The number of elements."""
        total: PrimExpr = operators.const(1, self.shape[0].dtype if self.shape else INT32)
        for extent in self.shape:
            total = operators.multiply(total, extent)
        return total

    def vload(self, begin: ExprLike | Sequence[ExprLike], dtype: str | None = None) -> PrimExpr:
        """Load from these indices; a vector type loads consecutive elements of the last dimension."""
        indices = self._vector_indices(begin, DataType(dtype) if dtype else self.dtype)
        return BufferLoad(self, indices)

    def vstore(self, begin: ExprLike | Sequence[ExprLike], value: ExprLike) -> Any:
        """A statement that stores a scalar or a vector at these indices."""
        stored = operators.as_expr(value)
        return BUFFER_STORE.value(self, stored, self._vector_indices(begin, stored.dtype))

    def _vector_indices(self, begin: ExprLike | Sequence[ExprLike], dtype: DataType) -> list[PrimExpr]:
        """The indices, the last one a ramp if several elements are meant."""
        given = list(begin) if isinstance(begin, (tuple, list)) else [begin]
        indices = [operators.as_expr(index) for index in given]
        if dtype.element is not self.dtype.element:
            raise ExpressionError(f"buffer {self.name} holds {self.dtype}, not {dtype}")
        if len(indices) != len(self.shape):
            raise ExpressionError(
                f"buffer {self.name} has {len(self.shape)} dimensions, {len(indices)} indices were given"
            )
        lanes = dtype.lanes // self.dtype.lanes
        if lanes > 1:
            indices[-1] = Ramp(indices[-1], 1, lanes)
        return indices

    def offset_of(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """The flat element offset of these indices, ``elem_offset`` included. Vector indices give vector offsets."""
        if not indices:
            return self.elem_offset
        if self.strides:
            total = operators.multiply(indices[0], self.strides[0])
            for index, stride in zip(indices[1:], self.strides[1:], strict=True):
                total = operators.add(total, operators.multiply(index, stride))
        else:
            total = indices[0]
            for index, extent in zip(indices[1:], self.shape[1:], strict=True):
                total = operators.add(operators.multiply(total, extent), index)
        return operators.add(self.elem_offset, total)

    def __getitem__(self, indices: Any) -> PrimExpr:
        given = indices if isinstance(indices, tuple) else (indices,)
        return BufferLoad(self, [operators.as_expr(index) for index in given])

    def __repr__(self) -> str:
        return f"buffer({self.name}, {self.data.name})"

    def __hash__(self) -> int:
        return object.__hash__(self)


def decl_buffer(
    shape: ExprLike | Sequence[ExprLike],
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    span: Span | None = None,
) -> Buffer:
    """A new symbolic buffer; what is not given is compact and starts at offset zero."""
    kind = DataType(dtype or "float32")
    dimensions = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    extents = tuple(operators.as_expr(extent) for extent in dimensions)
    index_type = extents[0].dtype if extents else INT32
    if offset_factor != 0 and elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", index_type)
    if data is None:
        storage = DataType("int8") if kind.is_bool else kind
        data = Var(name, PointerType(PrimType(storage), "" if scope == "global" else scope), span)
    stride_values = tuple(operators.as_expr(stride) for stride in strides or ())
    if stride_values and len(stride_values) != len(extents):
        raise ExpressionError(f"buffer {name} has {len(extents)} dimensions and {len(stride_values)} strides")
    if buffer_type == "auto_broadcast" and not stride_values:
        # Whether a stride is zero is known when the argument comes.
        stride_values = tuple(
            Var(f"{name}_stride_{position}", extent.dtype) for position, extent in enumerate(extents)
        )
    for extent in extents:
        if isinstance(extent, IntImm) and extent.value < 0:
            raise ExpressionError(f"buffer {name} has a negative extent: {extent.value}")
        if isinstance(extent, StringImm) or not extent.dtype.is_integral:
            raise ExpressionError(f"buffer {name} has an extent that is not an integer: {extent}")
    return Buffer(
        data,
        kind,
        extents,
        stride_values,
        operators.const(0, index_type) if elem_offset is None else operators.as_expr(elem_offset),
        name,
        data_alignment if data_alignment > 0 else DEFAULT_ALIGNMENT,
        offset_factor if offset_factor > 0 else 1,
        "auto_broadcast" if buffer_type == "auto_broadcast" else "",
        span,
    )


@node
class BufferRegion(Node):
    """A box of a buffer: one range a dimension."""

    buffer: Buffer
    region: Children[Range]


__all__ = ["DEFAULT_ALIGNMENT", "Buffer", "BufferRegion", "Call", "decl_buffer"]
