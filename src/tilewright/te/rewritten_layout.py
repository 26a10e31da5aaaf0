"""Layouts in which the loops of a schedule read a weight.

The dimensions of the rewritten weight are parts of the original ones, in the order of the loops over it. As text, a
layout lists the extent and the axis of each: ``4k16j8k``, where the last part of an axis is its innermost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, ProducerLoad
from tilewright.ir.functor import Mutator
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import recursion_room
from tilewright.te.operation import ComputeOp, placeholder, share_reduction
from tilewright.te.tensor import Operation, Tensor

LAYOUT_FREE: Final = "layout_free_placeholders"
"""The attribute of a computation that names the inputs which may have any layout."""

Array = np.ndarray[Any, Any]

_ITEM: Final = re.compile(r"(\d+)([^\d\s]+)")


@dataclass(frozen=True, slots=True)
class Part:
    """``(index // stride) % extent`` of a dimension. ``last``: nothing is left above it."""

    dimension: int
    stride: int
    extent: int
    last: bool = False

    def of(self, index: PrimExpr) -> PrimExpr:
        """The part of an index."""
        if self.extent == 1:
            return operators.const(0, index.dtype)
        found = index if self.stride == 1 else operators.floordiv(index, self.stride)
        return found if self.last else operators.floormod(found, self.extent)


@dataclass(frozen=True, slots=True)
class RewrittenLayout:
    """The dimensions of a weight as parts of its original ones."""

    parts: tuple[Part, ...]

    @staticmethod
    def from_text(text: str, axes: Sequence[str]) -> RewrittenLayout:
        """The layout that a text says, for a weight whose original dimensions are these axes."""
        extents = get_shape_from_rewritten_layout(text, axes)
        strides = [1] * len(axes)
        parts: list[Part] = []
        for extent, axis in reversed(parse_layout(text)):
            if axis not in axes:
                raise ScheduleError(
                    f"the layout {text} has the axis {axis}; the weight has {', '.join(axes)}"
                )
            dimension = axes.index(axis)
            stride = strides[dimension]
            strides[dimension] *= extent
            parts.append(Part(dimension, stride, extent, strides[dimension] == extents[dimension]))
        return RewrittenLayout(tuple(reversed(parts)))

    def text(self, axes: Sequence[str]) -> str:
        """The layout as text, with these names for the original dimensions."""
        return "".join(f"{part.extent}{axes[part.dimension]}" for part in self.parts)

    @property
    def is_nested(self) -> bool:
        """True if the parts of each dimension come from the outermost to the innermost, as a text says them."""
        innermost: dict[int, int] = {}
        for part in self.parts:
            if part.extent > 1 and part.stride >= innermost.get(part.dimension, part.stride + 1):
                return False
            if part.extent > 1:
                innermost[part.dimension] = part.stride
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rewritten weight."""
        return tuple(part.extent for part in self.parts)

    @property
    def original_shape(self) -> tuple[int, ...]:
        """The shape that the weight had."""
        rank = 1 + max(part.dimension for part in self.parts)
        return tuple(
            prod(part.extent for part in self.parts if part.dimension == dimension)
            for dimension in range(rank)
        )

    def new_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Where an element of the original layout is in the new one."""
        return [part.of(indices[part.dimension]) for part in self.parts]

    def old_indices(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Where an element of the new layout was in the original one."""
        found: list[PrimExpr] = [operators.const(0, "int32") for _ in self.original_shape]
        for part, index in zip(self.parts, indices, strict=True):
            scaled = index if part.stride == 1 else operators.multiply(index, part.stride)
            found[part.dimension] = operators.add(found[part.dimension], scaled)
        return found

    def rewrite(self, weight: Array) -> Array:
        """The values of a weight in this layout."""
        order = self._by_dimension()
        split = weight.reshape([self.parts[place].extent for place in order])
        return np.ascontiguousarray(split.transpose(np.argsort(order)))

    def restore(self, weight: Array) -> Array:
        """The values of a rewritten weight in the original layout."""
        return weight.transpose(self._by_dimension()).reshape(self.original_shape)

    def _by_dimension(self) -> list[int]:
        """The places of the parts: those of each original dimension together, its outermost first."""
        parts = self.parts
        return sorted(range(len(parts)), key=lambda place: (parts[place].dimension, -parts[place].stride))

    def compute(self, weight: Tensor, compute: Callable[[Tensor], Sequence[Tensor]]) -> list[Tensor]:
        """What a computation of a weight in its original layout gives, reading the rewritten one."""
        if known_shape(weight.shape) != self.shape:
            raise ScheduleError(
                f"a weight of the shape {list(weight.shape)} does not have the layout {list(self.shape)}"
            )
        original: Tensor = placeholder(self.original_shape, weight.dtype, weight.op.name)
        return reading(compute(original), original, weight, self)


def known_shape(shape: Sequence[PrimExpr]) -> tuple[int, ...] | None:
    """The extents of a tensor; None where one is not a constant."""
    extents = [extent.value for extent in shape if isinstance(extent, IntImm)]
    return tuple(extents) if len(extents) == len(shape) else None


def reading(
    results: Sequence[Tensor], original: Tensor, rewritten: Tensor, layout: RewrittenLayout
) -> list[Tensor]:
    """Results with every read of a weight made a read of the rewritten one."""
    made: dict[Tensor, Tensor] = {}
    done: set[Operation] = set()
    pending = [tensor.op for tensor in reversed(results)]
    while pending:
        operation = pending[-1]
        before = [tensor.op for tensor in operation.input_tensors if tensor.op not in done]
        if operation not in done and before:
            pending += before
            continue
        pending.pop()
        if operation not in done:
            done.add(operation)
            current = read_rewritten(operation.replace_inputs(made), original, rewritten, layout)
            if current is not operation:
                made.update(zip(operation.outputs, current.outputs, strict=True))
    return [made.get(tensor, tensor) for tensor in results]


def read_rewritten(
    operation: Operation, original: Tensor, rewritten: Tensor, layout: RewrittenLayout
) -> Operation:
    """An operation that reads the rewritten weight where the given one reads the original."""
    if original not in operation.input_tensors:
        return operation
    if not isinstance(operation, ComputeOp):
        raise ScheduleError(f"operation {operation.name} cannot read {original.op.name} in another layout")
    rewriter = _ReadsElsewhere(original, rewritten, layout)
    with recursion_room():
        body = [rewriter.visit(value) for value in operation.body]
    attrs: Mapping[str, object] = {
        **operation.attrs,
        LAYOUT_FREE: [one for one in operation.attrs.get(LAYOUT_FREE, ()) if one is not original],
    }
    return ComputeOp(
        operation.name, operation.tag, attrs, operation.axes, share_reduction(body), operation.span
    )


class _ReadsElsewhere(Mutator):
    """Makes reads of a weight reads of the rewritten one."""

    def __init__(self, original: Tensor, rewritten: Tensor, layout: RewrittenLayout) -> None:
        super().__init__()
        self.original = original
        self.rewritten = rewritten
        self.layout = layout

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        if node.producer is not self.original:
            return made
        return ProducerLoad(self.rewritten, self.layout.new_indices(made.indices), made.span)


def parse_layout(layout: str) -> list[tuple[int, str]]:
    """The extents and axes of a layout such as ``4k16j8k``."""
    items = _ITEM.findall(layout)
    if not items or "".join(f"{extent}{axis}" for extent, axis in items) != layout.replace(" ", ""):
        raise ScheduleError(f"{layout!r} is not a layout such as 4k16j8k")
    return [(int(extent), axis) for extent, axis in items]


def get_shape_from_rewritten_layout(rewritten_layout: str, axis_names: Sequence[str]) -> list[int]:
    """The shape that an input had before its layout was rewritten, for its axes in their old order."""
    items = parse_layout(rewritten_layout)
    shape: list[int] = []
    for name in axis_names:
        extents = [extent for extent, axis in items if axis == name]
        if not extents:
            raise ScheduleError(f"the layout {rewritten_layout} has no axis {name}")
        shape.append(prod(extents))
    return shape
