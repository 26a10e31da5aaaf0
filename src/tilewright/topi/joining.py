"""Several tensors as one, and one as several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.op import if_then_else
from tilewright.topi.arguments import as_int, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.tag import INJECTIVE
from tilewright.topi.utils import simplify


def _tensors(name: str, given: Any) -> list[Tensor]:
    tensors = [given] if isinstance(given, Tensor) else list(given)
    if not tensors:
        raise ExpressionError(f"{name} takes one tensor or more")
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ExpressionError(
                f"{name}: types {tensors[0].dtype} and {tensor.dtype} differ: cast one of them"
            )
        if len(tensor.shape) != len(tensors[0].shape):
            raise ExpressionError(
                f"{name}: {shape_text(tensors[0].shape)} and {shape_text(tensor.shape)} differ in dimensions"
            )
    return tensors


def _same_but_for(name: str, tensors: Sequence[Tensor], axis: int) -> None:
    """All tensors have one shape, but for an axis."""
    first = tensors[0].shape
    for tensor in tensors[1:]:
        for position, (one, other) in enumerate(zip(first, tensor.shape, strict=True)):
            if position != axis and known_different(one, other):
                raise ExpressionError(
                    f"{name}: {shape_text(first)} and {shape_text(tensor.shape)} differ on axis {position}"
                )


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis."""
    tensors = _tensors("concatenate", a_tuple)
    position = real_axis("concatenate", axis, len(tensors[0].shape))
    _same_but_for("concatenate", tensors, position)
    starts: list[PrimExpr] = [operators.const(0)]
    for tensor in tensors:
        starts.append(simplify(starts[-1] + tensor.shape[position]))
    shape = [*tensors[0].shape[:position], starts[-1], *tensors[0].shape[position + 1 :]]

    def element(*i: PrimExpr) -> PrimExpr:
        index = i[position]

        def read(number: int) -> PrimExpr:
            return tensors[number](*i[:position], index - starts[number], *i[position + 1 :])

        chosen = read(len(tensors) - 1)
        for number in range(len(tensors) - 2, -1, -1):
            chosen = if_then_else(index < starts[number + 1], read(number), chosen)
        return chosen

    return computed(shape, element, name="T_concat", tag=INJECTIVE)


def stack(a: Sequence[Tensor], axis: int) -> Tensor:
    """The tensors along a new axis."""
    tensors = _tensors("stack", a)
    position = real_axis("stack", axis, len(tensors[0].shape) + 1)
    _same_but_for("stack", tensors, -1)
    shape = [*tensors[0].shape[:position], len(tensors), *tensors[0].shape[position:]]

    def element(*i: PrimExpr) -> PrimExpr:
        rest = (*i[:position], *i[position + 1 :])
        chosen = tensors[-1](*rest)
        for number in range(len(tensors) - 2, -1, -1):
            chosen = if_then_else(operators.equal(i[position], number), tensors[number](*rest), chosen)
        return chosen

    return computed(shape, element, name="T_stack", tag=INJECTIVE)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """The parts of a tensor along an axis: that many equal ones, or those that end at the given indices and the
    rest."""
    position = real_axis("split", axis, len(ary.shape))
    extent = ary.shape[position]
    begins = _split_points(extent, indices_or_sections, ary)
    ends = [*begins[1:], extent]
    parts = []
    for begin, end in zip(begins, ends, strict=True):
        size = simplify(operators.subtract(end, begin))
        if isinstance(size, IntImm) and size.value < 0:
            raise ExpressionError(
                f"split: {indices_or_sections} are not ascending indices into axis {position} of "
                f"{shape_text(ary.shape)}"
            )
        shape = [*ary.shape[:position], size, *ary.shape[position + 1 :]]
        parts.append(
            computed(
                shape,
                lambda *i, begin=begin: ary(*i[:position], i[position] + begin, *i[position + 1 :]),
                name="T_split_sections",
                tag=INJECTIVE,
            )
        )
    return parts


def _split_points(extent: PrimExpr, indices_or_sections: Any, ary: Tensor) -> list[PrimExpr]:
    """Where the parts begin."""
    if hasattr(indices_or_sections, "__iter__"):
        return [operators.const(0), *[operators.as_expr(index) for index in indices_or_sections]]
    sections = as_int("split", "the number of sections", indices_or_sections)
    if sections <= 0 or (isinstance(extent, IntImm) and extent.value % sections != 0):
        raise ExpressionError(
            f"split: {extent} elements of {shape_text(ary.shape)} do not make {sections} equal parts"
        )
    size = operators.floordiv(extent, sections)
    return [simplify(size * number) for number in range(sections)]


def meshgrid(a_tuple: Sequence[Tensor], indexing: str) -> list[Tensor]:
    """Coordinate tensors from coordinate vectors; ``xy`` exchanges the first two axes, ``ij`` keeps them."""
    vectors = list(a_tuple)
    if indexing not in ("ij", "xy"):
        raise ExpressionError(f"meshgrid: indexing is 'ij' or 'xy', not {indexing!r}")
    for vector in vectors:
        if len(vector.shape) > 1:
            raise ExpressionError(f"meshgrid takes vectors and scalars, not {shape_text(vector.shape)}")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[0], axes[1] = 1, 0
    extents: list[Any] = [1] * len(vectors)
    for vector, axis in zip(vectors, axes, strict=True):
        extents[axis] = vector.shape[0] if vector.shape else 1

    def grid(vector: Tensor, axis: int) -> Tensor:
        return computed(
            extents, lambda *i: vector(*[i[axis]] if vector.shape else []), name="T_meshgrid", tag=INJECTIVE
        )

    return [grid(vector, axis) for vector, axis in zip(vectors, axes, strict=True)]
