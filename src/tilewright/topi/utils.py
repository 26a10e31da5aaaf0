"""Constants out of expressions, index arithmetic, constant tensors, and layouts as tuning records name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.ir.expr import Any as AnyDim
from tilewright.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr, SizeVar, Var
from tilewright.ir.operators import as_expr, const, floordiv, floormod, multiply
from tilewright.support.errors import TilewrightError
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import bijective_layout, layout
from tilewright.tir.op import all as all_of
from tilewright.tir.op import if_then_else
from tilewright.topi import tag
from tilewright.topi.computed import computed


class InvalidShapeError(TilewrightError, ValueError):
    """The shape of an argument does not fit the operator."""


def ncw_pack_layout(layout_info: str) -> bool:
    """True for ``NCW`` with batch and channels in blocks."""
    return layout_info[:3] == "NCW" and "c" in layout_info and "n" in layout_info


def ncw_xc_layout(layout_info: str) -> bool:
    """True for ``NCW`` with its channels in blocks."""
    return layout_info[:3] == "NCW" and "c" in layout_info and layout_info[3:-1].isnumeric()


def nchw_pack_layout(layout_info: str) -> bool:
    """True for ``NCHW`` with batch and channels in blocks."""
    return layout_info[:4] == "NCHW" and "c" in layout_info and "n" in layout_info


def nchw_xc_layout(layout_info: str) -> bool:
    """True for ``NCHW`` with its channels in blocks, as in ``NCHW16c``."""
    return layout_info[:4] == "NCHW" and "c" in layout_info and layout_info[4:-1].isnumeric()


def traverse_inline(s: Any, final_op: Any, callback: Callable[[Any], None]) -> None:
    """Inline the injective operations above ``final_op``, and call ``callback`` on each operation met, inputs first."""
    visited: set[int] = set()
    pending: list[tuple[Any, bool]] = [(final_op, False)]
    while pending:
        operation, inputs_done = pending.pop()
        if inputs_done:
            callback(operation)
            continue
        if id(operation) in visited:
            continue
        visited.add(id(operation))
        pending.append((operation, True))
        if tag.is_injective(operation.tag):
            if operation is not final_op and not any(operation is output for output in s.outputs):
                s[operation].compute_inline()
            pending.extend(
                (tensor.op, False) for tensor in reversed(operation.input_tensors) if tensor.op.input_tensors
            )


def prod(x: Iterable[ExprLike]) -> Any:
    """The product of numbers or expressions; 1 (int32) of none."""
    values = list(x)
    if not values:
        return const(1, "int32")
    result = values[0]
    for value in values[1:]:
        result = result * value
    return result


def get_const_int(expr: Any) -> int:
    """The value of an expression that is constant, or becomes so when simplified."""
    if isinstance(expr, (int, np.integer)):
        return int(expr)
    simple = expr if isinstance(expr, IntImm) else simplify(as_expr(expr))
    if not isinstance(simple, IntImm):
        raise InvalidShapeError(f"expected a constant integer, not {expr}")
    return int(simple.value)


def get_const_float(expr: Any) -> float:
    """The value of a floating-point expression that is constant, or becomes so when simplified."""
    if isinstance(expr, float):
        return expr
    simple = expr if isinstance(expr, FloatImm) else simplify(as_expr(expr))
    if not isinstance(simple, FloatImm):
        raise InvalidShapeError(f"expected a constant floating-point number, not {expr}")
    return float(simple.value)


def equal_const_int(expr: Any, value: int) -> bool:
    """True if the expression is known to be this constant."""
    if isinstance(expr, (int, np.integer)):
        return int(expr) == value
    simple = expr if isinstance(expr, IntImm) else simplify(as_expr(expr))
    return isinstance(simple, IntImm) and simple.value == value


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """A shape with its constants as Python integers; variables and expressions in them stay as they are."""
    return tuple(_const_or_expr(element) for element in in_tuple)


def _const_or_expr(element: Any) -> Any:
    if isinstance(element, (int, np.integer)):
        return int(element)
    if isinstance(element, IntImm):
        return int(element.value)
    if isinstance(element, AnyDim):
        return SizeVar("any_dim", "int32")
    if isinstance(element, Var):
        return element
    simple = simplify(as_expr(element))
    return int(simple.value) if isinstance(simple, IntImm) else simple


def get_float_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """A tuple with its constants as Python floats; variables stay as they are."""
    return tuple(
        element if isinstance(element, (float, Var)) else get_const_float(element) for element in in_tuple
    )


def simplify(expr: Any) -> Any:
    """The expression simplified; what is not an expression stays as it is."""
    return Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def ravel_index(indices: Sequence[ExprLike], shape: Sequence[ExprLike]) -> Any:
    """The position of an element in row-major order."""
    flat: Any = 0
    for position, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        flat = index if position == 0 else flat * extent + index
    return flat


def unravel_index(idx: Any, shape: Sequence[ExprLike]) -> list[Any]:
    """The indices of the element at a position in row-major order."""
    indices = []
    for position in range(len(shape) - 1, -1, -1):
        # The first index needs no remainder: the position lies inside of the shape.
        indices.append(floormod(idx, shape[position]) if position else as_expr(idx))
        idx = floordiv(idx, shape[position])
    return indices[::-1]


def _choose(values: Any, index: Sequence[Any], dtype: str) -> PrimExpr:
    """The element of an array of constants at an index, as nested choices."""
    if not index:
        return const(values, dtype)
    result = _choose(values[-1], index[1:], dtype)
    for position in range(len(values) - 2, -1, -1):
        result = if_then_else(index[0].equal(position), _choose(values[position], index[1:], dtype), result)
    return result


def const_vector(vector: Any, name: str = "const_vector") -> Tensor:
    """A tensor of the constants of a NumPy vector, written into the program."""
    values = np.asarray(vector)
    kind = str(values.dtype)
    return _constant(values, 1, lambda i: _choose(values.tolist(), [i], kind), name)


def const_matrix(matrix: Any, name: str = "const_matrix") -> Tensor:
    """A tensor of the constants of a NumPy matrix, written into the program."""
    values = np.asarray(matrix)
    kind = str(values.dtype)
    return _constant(values, 2, lambda i, j: _choose(values.tolist(), [i, j], kind), name)


def _constant(values: Any, rank: int, element: Callable[..., PrimExpr], name: str) -> Tensor:
    if values.ndim != rank or values.size == 0:
        raise InvalidShapeError(
            f"{name} needs an array of {rank} dimensions with elements, not {values.shape}"
        )
    return computed(values.shape, element, name=name, tag="", attrs={"const_matrix": True})


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of two that divides ``n`` and is not above ``max_value``."""
    factor = 1
    while n % 2 == 0 and n > 0 and (max_value is None or factor * 2 <= max_value):
        factor *= 2
        n //= 2
    return factor


def get_shape(src_shape: Sequence[ExprLike], src_layout: str, dst_layout: str) -> Any:
    """The shape of a tensor after it moves from one layout to another."""
    if src_layout == dst_layout:
        return get_const_tuple(src_shape)
    mapping = bijective_layout(layout(src_layout), layout(dst_layout))
    if mapping is None:
        raise InvalidShapeError(f"a tensor of layout {src_layout} cannot have the layout {dst_layout}")
    return get_const_tuple(mapping.forward_shape(src_shape))


def within_index(b: ExprLike, e: ExprLike, s: ExprLike, i: ExprLike) -> PrimExpr:
    """True if ``i`` is one of the indices that ``b:e:s`` selects."""
    begin, end, stride, index = (as_expr(value) for value in (b, e, s, i))
    forward = all_of(index >= begin, index < end)
    backward = all_of(index <= begin, index > end)
    inside = if_then_else(stride > 0, forward, backward)
    return all_of(inside, floormod(index - begin, stride).equal(0))


def make_idx(b: ExprLike, e: ExprLike, s: ExprLike, z: ExprLike, i: ExprLike) -> PrimExpr:
    """Where the index ``i`` of a dimension of size ``z`` stands among those that ``b:e:s`` selects.

    It is meant for indices that are selected; for all others the result lies inside of the selection.
    """
    begin, end, stride, extent, index = (as_expr(value) for value in (b, e, s, z, i))
    selected = floordiv(index - begin, stride)
    last = if_then_else(
        stride > 0,
        floordiv(end - begin - 1, stride),
        floordiv(begin - end - 1, multiply(stride, -1)),
    )
    clipped = if_then_else(selected < 0, const(0, selected.dtype), selected)
    clipped = if_then_else(clipped > last, last, clipped)
    return if_then_else(extent > 0, clipped, const(0, clipped.dtype))


def is_empty_shape(shape: Iterable[Any]) -> bool:
    """True if a dimension is known to be zero."""
    return any(equal_const_int(extent, 0) for extent in shape)


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient of two integers, rounded up."""
    return floordiv(a + (b - 1), b) if isinstance(a, PrimExpr) or isinstance(b, PrimExpr) else -(-a // b)


def swap(arr: Sequence[Any], axis: int) -> list[Any]:
    """The sequence with its last element and the one at ``axis`` exchanged."""
    swapped = list(arr)
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    return swapped
