"""The elements of small integer tensors that are computed from shapes, as expressions of symbolic dimensions.

A program of open sizes computes shapes with its own operators: it takes dimensions from ``shape_of``, multiplies some
of them, and concatenates them with constants. Whatever else an element depends on, nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tilewright.ir import operators
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant, Tuple

Values = tuple[PrimExpr, ...]
"""The elements of a scalar or of a vector."""

LONGEST: Final = 16
"""Elements of a vector that may be a shape."""
LARGEST: Final = 2**31 - 1
"""Of the numbers that a dimension may be."""
MOVED: Final = ("expand_dims", "squeeze", "reshape", "copy")
"""Operators that leave the elements and their order as they are."""
ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": operators.add,
    "subtract": operators.subtract,
    "multiply": operators.multiply,
}


def shape_values(
    expr: RelayExpr, known: Mapping[RelayExpr, Values], type_of: Callable[[RelayExpr], Type], dtype: str
) -> Values | None:
    """The elements of an expression in ``dtype``, where they follow from dimensions; ``known`` are those of its
    arguments, and ``type_of`` gives symbolic types."""
    if not _is_small(expr):
        return None
    if isinstance(expr, Constant):
        numbers = [int(one) for one in np.ravel(expr.data.numpy())]
        fits = all(-LARGEST <= one <= LARGEST for one in numbers)
        return tuple(IntImm(dtype, one) for one in numbers) if fits else None
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return None
    name, attrs = expr.op.name, expr.attrs
    if name == "shape_of":
        kind = type_of(expr.args[0])
        return tuple(kind.shape) if isinstance(kind, TensorType) else None
    if name == "concatenate":
        fields = expr.args[0].fields if isinstance(expr.args[0], Tuple) else ()
        parts = [known.get(field) for field in fields]
        return tuple(one for part in parts for one in part or ()) if parts and None not in parts else None
    given = [known.get(argument) for argument in expr.args]
    if not given or given[0] is None:
        return None
    if name in MOVED or (name == "cast" and str(expr.checked_type.dtype) in ("int32", "int64")):
        return given[0]
    if name == "take":
        return _taken(given[0], expr.args[1], attrs)
    if name == "strided_slice":
        return _sliced(given[0], attrs)
    if name in ARITHMETIC and given[1] is not None:
        return _combined(ARITHMETIC[name], given[0], given[1])
    return None


def _is_small(expr: RelayExpr) -> bool:
    """True for scalars and short vectors of integers."""
    kind = getattr(expr, "_checked_type_", None)
    if isinstance(expr, Constant):
        kind = expr.tensor_type
    if not isinstance(kind, TensorType) or str(kind.dtype) not in ("int32", "int64") or len(kind.shape) > 1:
        return False
    return all(isinstance(size, IntImm) and size.value <= LONGEST for size in kind.shape)


def _taken(values: Values, indices: RelayExpr, attrs: Any) -> Values | None:
    if not isinstance(indices, Constant) or attrs.axis not in (None, 0):
        return None
    places = [int(one) for one in np.ravel(indices.data.numpy())]
    return tuple(values[one] for one in places) if all(0 <= one < len(values) for one in places) else None


def _sliced(values: Values, attrs: Any) -> Values | None:
    """Constant slices of a vector whose bounds are inside of it."""
    if attrs.slice_mode != "end" or attrs.axes not in (None, (0,)):
        return None
    bounds: list[Sequence[int | None]] = [attrs.begin or (), attrs.end or (), attrs.strides or (1,)]
    first, last, step = (one[0] if len(one) == 1 else None for one in bounds)
    if first is None or last is None or step is None or first < 0 or step < 1:
        return None
    return values[first:last:step]


def _combined(operator: Callable[[Any, Any], Any], first: Values, second: Values) -> Values | None:
    if len(first) != len(second) and 1 not in (len(first), len(second)):
        return None
    count = max(len(first), len(second))

    def spread(values: Sequence[PrimExpr]) -> Sequence[PrimExpr]:
        return values if len(values) == count else [values[0]] * count

    return tuple(operator(*pair) for pair in zip(spread(first), spread(second), strict=True))
