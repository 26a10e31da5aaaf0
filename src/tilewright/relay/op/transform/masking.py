"""Operators that find or replace elements by their position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.operators import const as number
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import combine, dims, normal_axis, same, tensor, tensors
from tilewright.relay.op.transform.indexing import check_indices
from tilewright.relay.op.transform.support import Array, least, result_shape, shape_program
from tilewright.support.errors import ExpressionError
from tilewright.te.tensor import Tensor
from tilewright.topi.arguments import product


def _argwhere_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    condition = tensor(types[0], "the argument of argwhere")
    return condition and TensorType([AnyDimension(), len(condition.shape)], "int32")


def _argwhere_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    """How many elements are not zero."""
    condition = inputs[0]

    def program(builder: Any, ins: Any, outs: Any) -> None:
        outs[0][0] = 0
        outs[0][1] = len(condition.shape)
        with builder.for_range(0, product(condition.shape), name="i") as i:
            value = ins[0][i]
            with builder.if_scope(value != number(0, value.dtype)):
                outs[0][0] = outs[0][0] + number(1, "int64")

    return shape_program("argwhere_shape", [condition], [2], program)


_ARGWHERE = define(
    "argwhere",
    arguments=("condition",),
    relation=_argwhere_relation,
    compute=lambda attrs, inputs, out_type: [topi.argwhere(result_shape(out_type), inputs[0])],
    reference=lambda attrs, condition: np.argwhere(condition).astype("int32"),
    kind=OpPattern.OPAQUE,
    shape_function=_argwhere_shape,
    data_dependent=True,
    level=10,
    description="The indices of the elements that are not zero.",
)


def argwhere(condition: RelayExpr) -> Call:
    """The index vectors of the elements that are not zero, in row-major order, as rows of a matrix."""
    return Call(_ARGWHERE, (condition,))


@attributes
class SequenceMaskAttrs(OpAttrs):
    """The value behind the end of each sequence, and the axis along which they run."""

    mask_value: float = 0.0
    axis: int = 0


def _sequence_mask_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of sequence_mask", "the lengths")
    if found is None:
        return None
    data, lengths = found
    if len(data.shape) < 2:
        raise RelationError(f"sequence_mask takes data of two dimensions or more, not {data}")
    axis = normal_axis(attrs.axis, len(data.shape))
    if axis > 1:
        raise RelationError(f"sequence_mask: the axis is 0 or 1, not {attrs.axis}")
    if len(lengths.shape) != 1:
        raise RelationError(f"sequence_mask: the lengths are a vector, not {lengths}")
    same(dims(lengths)[0], dims(data)[1 - axis], "the number of lengths of sequence_mask")
    return data


def _sequence_masked(attrs: Any, data: Array, lengths: Array) -> Array:
    axis = attrs.axis % data.ndim
    places = np.arange(data.shape[axis])
    behind = places[:, None] >= lengths[None, :] if axis == 0 else places[None, :] >= lengths[:, None]
    mask = behind.reshape(behind.shape + (1,) * (data.ndim - 2))
    return np.where(mask, np.asarray(attrs.mask_value).astype(data.dtype), data)


_SEQUENCE_MASK = define(
    "sequence_mask",
    arguments=("data", "valid_length"),
    attrs=SequenceMaskAttrs,
    relation=_sequence_mask_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.sequence_mask(inputs[0], inputs[1], attrs.mask_value, attrs.axis)
    ],
    reference=_sequence_masked,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Sequences with everything behind their lengths replaced by a value.",
)


def sequence_mask(data: RelayExpr, valid_length: RelayExpr, mask_value: float = 0, axis: int = 0) -> Call:
    """Everything behind ``valid_length[batch]`` along ``axis`` (0 or 1; the other is the batch) replaced by a value."""
    return Call(_SEQUENCE_MASK, (data, valid_length), SequenceMaskAttrs(float(mask_value), axis))


@attributes
class MatrixSetDiagAttrs(OpAttrs):
    """The lowest and the highest diagonal, and to which side shorter ones are aligned above and below the main one."""

    k1: int = 0
    k2: int = 0
    super_diag_right_align: bool = True
    sub_diag_right_align: bool = False

    @property
    def align(self) -> str:
        """As the function names it, such as "RIGHT_LEFT"."""
        sides = (self.super_diag_right_align, self.sub_diag_right_align)
        return "_".join("RIGHT" if right else "LEFT" for right in sides)


def _matrix_set_diag_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of matrix_set_diag", "the diagonals")
    if found is None:
        return None
    data, diagonal = found
    shape, given = dims(data), dims(diagonal)
    several = attrs.k1 != attrs.k2
    if attrs.k1 > attrs.k2:
        raise RelationError(f"matrix_set_diag: diagonal {attrs.k1} is above {attrs.k2}")
    if data.dtype is not diagonal.dtype:
        raise RelationError(f"matrix_set_diag: element types {data.dtype} and {diagonal.dtype} differ")
    if len(shape) < 2 or len(given) != len(shape) - (0 if several else 1):
        raise RelationError(
            f"matrix_set_diag: {diagonal} does not hold the diagonals {attrs.k1} to {attrs.k2} of {data}"
        )
    for place in range(len(shape) - 2):
        same(given[place], shape[place], f"matrix_set_diag: dimension {place}")
    if several:
        same(given[-2], attrs.k2 - attrs.k1 + 1, "the number of diagonals of matrix_set_diag")
    rows, columns = shape[-2:]
    longest = least(
        combine(lambda count: count + min(attrs.k2, 0), rows),
        combine(lambda count: count - max(attrs.k1, 0), columns),
    )
    same(given[-1], longest, "the length of the longest diagonal of matrix_set_diag")
    return data


def _matrix_set_diag_reference(attrs: Any, data: Array, diagonal: Array) -> Array:
    made = data.copy()
    rows, columns = data.shape[-2:]
    for k in range(attrs.k1, attrs.k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        if length <= 0:
            continue
        row = np.arange(length) + max(-k, 0)
        values = diagonal if attrs.k1 == attrs.k2 else diagonal[..., attrs.k2 - k, :]
        # The main diagonal is aligned left if either side is.
        right = (k < 0 or attrs.super_diag_right_align) and (k > 0 or attrs.sub_diag_right_align)
        first = values.shape[-1] - length if right and attrs.k1 != attrs.k2 else 0
        made[..., row, row + k] = values[..., first : first + length]
    return made


_MATRIX_SET_DIAG = define(
    "matrix_set_diag",
    arguments=("input", "diagonal"),
    attrs=MatrixSetDiagAttrs,
    relation=_matrix_set_diag_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.matrix_set_diag(inputs[0], inputs[1], (attrs.k1, attrs.k2), attrs.align)
    ],
    reference=_matrix_set_diag_reference,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="Matrices with diagonals replaced.",
)


def matrix_set_diag(data: RelayExpr, diagonal: RelayExpr, k: Any = 0, align: str = "RIGHT_LEFT") -> Call:
    """Matrices (of the last two axes) with diagonal ``k`` replaced, or those from ``k[0]`` to ``k[1]``."""
    low, high = (k, k) if isinstance(k, int) else (int(k[0]), int(k[-1]))
    sides = align.split("_")
    if len(sides) != 2 or any(side not in ("LEFT", "RIGHT") for side in sides):
        raise ExpressionError(
            f"matrix_set_diag: align is two of LEFT and RIGHT, such as RIGHT_LEFT, not {align!r}"
        )
    attrs = MatrixSetDiagAttrs(low, high, sides[0] == "RIGHT", sides[1] == "RIGHT")
    return Call(_MATRIX_SET_DIAG, (data, diagonal), attrs)


def _invert_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of invert_permutation")
    if data is None:
        return None
    check_indices(data, "the elements of a permutation")
    if len(data.shape) != 1:
        raise RelationError(f"invert_permutation takes a vector, not {data}")
    return data


def _inverted(attrs: Any, data: Array) -> Array:
    made = np.zeros_like(data)
    made[data] = np.arange(data.size, dtype=data.dtype)
    return made


_INVERT_PERMUTATION = define(
    "invert_permutation",
    arguments=("data",),
    relation=_invert_relation,
    compute=lambda attrs, inputs, out_type: [topi.invert_permutation(inputs[0])],
    reference=_inverted,
    kind=OpPattern.OPAQUE,
    level=10,
    description="The permutation that undoes another.",
)


def invert_permutation(data: RelayExpr) -> Call:
    """The vector in which the element at ``data[i]`` is ``i``."""
    return Call(_INVERT_PERMUTATION, (data,))
