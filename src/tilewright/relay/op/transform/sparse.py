"""Operators on sparse tensors, which are rows of index vectors and a vector of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.operators import cast, maximum
from tilewright.ir.operators import const as number
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleWrapper, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import dims, same, tensors
from tilewright.relay.op.transform.indexing import check_indices
from tilewright.relay.op.transform.support import (
    Array,
    as_int64,
    constant_shape,
    integers,
    is_computed,
    require,
    result_shape,
    shape_program,
    with_extent,
)
from tilewright.te.tensor import Tensor
from tilewright.tir.op import all as all_of


@attributes
class SparseToDenseAttrs(OpAttrs):
    """The shape of the dense tensor."""

    output_shape: tuple[int, ...] | None = None


def check_sparse(indices: TensorType, values: TensorType, rank: int, what: str) -> None:
    """Index vectors of a tensor of this rank, and as many values, or one for all."""
    check_indices(indices, f"the indices of {what}")
    if len(indices.shape) > 2 or len(values.shape) > 1:
        raise RelationError(
            f"{what} takes rows of indices and a vector of values, not {indices} and {values}"
        )
    depth = dims(indices)[1] if len(indices.shape) == 2 else 1
    same(depth, rank, f"the length of the index vectors of {what}")
    if values.shape:
        count = dims(indices)[0] if indices.shape else 1
        same(count, dims(values)[0], f"the numbers of indices and values of {what}")


def _to_dense_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of sparse_to_dense", "the values", "the default value")
    if found is None:
        return None
    indices, values, default = found
    check_sparse(indices, values, len(attrs.output_shape), "sparse_to_dense")
    if default.shape:
        raise RelationError(f"the default value of sparse_to_dense is a scalar, not {default}")
    return TensorType(attrs.output_shape, values.dtype)


def of_depth(indices: Tensor, depth: int) -> Tensor:
    """Rows of indices with their length as a constant, which their type may leave open."""
    return with_extent(indices, 1, depth) if len(indices.shape) == 2 else indices


def dense_array(indices: Array, values: Array, default: Array, shape: Sequence[int]) -> Array:
    """The reference: values at indices, those out of range left out, the default elsewhere."""
    made = np.full(shape, default.astype(values.dtype), values.dtype)
    rows = indices.reshape(-1, len(shape))
    every = np.broadcast_to(values.reshape(-1), len(rows))
    inside = ((rows >= 0) & (rows < np.asarray(shape))).all(axis=1)
    made[tuple(rows[inside].T)] = every[inside]
    return made


_SPARSE_TO_DENSE = define(
    "sparse_to_dense",
    arguments=("sparse_indices", "sparse_values", "default_value"),
    attrs=SparseToDenseAttrs,
    relation=_to_dense_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.sparse_to_dense(
            of_depth(inputs[0], len(attrs.output_shape)), attrs.output_shape, inputs[1], inputs[2]
        )
    ],
    reference=lambda attrs, indices, values, default: dense_array(
        indices, values, default, attrs.output_shape
    ),
    kind=OpPattern.OPAQUE,
    description="The dense tensor of a sparse one.",
)


def sparse_to_dense(
    sparse_indices: RelayExpr, output_shape: Any, sparse_values: RelayExpr, default_value: Any = 0
) -> Call:
    """A tensor of ``default_value`` with values at indices: one index, a vector of them, or rows of index vectors.

    The shape may be an expression.
    """
    default = default_value if isinstance(default_value, RelayExpr) else const(default_value)
    if is_computed(output_shape):
        return call("dyn.sparse_to_dense", sparse_indices, output_shape, sparse_values, default)
    attrs = SparseToDenseAttrs(integers(output_shape, "sparse_to_dense"))
    return Call(_SPARSE_TO_DENSE, (sparse_indices, sparse_values, default), attrs)


def _fill_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    names = ("the indices of sparse_fill_empty_rows", "the values", "the dense shape", "the default value")
    found = tensors(types, *names)
    if found is None:
        return None
    indices, values, dense_shape, default = found
    if len(indices.shape) != 2 or len(values.shape) != 1 or len(dense_shape.shape) != 1:
        raise RelationError(
            f"sparse_fill_empty_rows takes rows of indices, a vector of values and a shape, not {indices}, {values} "
            f"and {dense_shape}"
        )
    if all(isinstance(extent, int) for extent in (*dims(dense_shape), *dims(indices)[1:])):
        rank = constant_shape(dense_shape, "the dense shape")[0]
        check_sparse(indices, values, rank, "sparse_fill_empty_rows")
    check_indices(dense_shape, "the dimensions of the dense shape")
    single = all(extent == 1 or not isinstance(extent, int) for extent in dims(default))
    if not single or len(default.shape) > 1 or default.dtype is not values.dtype:
        raise RelationError(
            f"the default value of sparse_fill_empty_rows is one {values.dtype}, not {default}"
        )
    unknown = AnyDimension()
    return TupleType(
        [
            TensorType([unknown, dims(indices)[1]], indices.dtype),
            TensorType([unknown], values.dtype),
            TensorType([AnyDimension()], "bool"),
        ]
    )


def _fill_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    sparse_indices, values, dense_shape, default = inputs
    rows, _, empty = (result_shape(field) for field in out_type.fields)
    # There are as many values as index vectors: one variable stands for both numbers.
    return topi.sparse_fill_empty_rows(sparse_indices, values, dense_shape, default, rows, rows[:1], empty)


def _fill_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    """One element more for each row that has none; indices may come in any order."""
    count, depth = inputs[0].shape

    def program(builder: Any, ins: Any, outs: Any) -> None:
        indices, dense_shape = ins[0], ins[2]
        rows = builder.let("rows", as_int64(dense_shape[0]))
        seen = builder.allocate("bool", cast("int32", maximum(rows, 1)), name="seen", scope="global")
        with builder.for_range(0, rows, name="row") as row:
            seen[row] = False
        outs[1][0] = cast("int64", count)
        with builder.for_range(0, count, name="i") as i:
            row = builder.let("row", as_int64(indices[i * depth]))
            inside = all_of(row >= 0, row < rows)
            require(builder, inside, "sparse_fill_empty_rows: an index is outside the dense shape")
            seen[row] = True
        with (
            builder.for_range(0, rows, name="row") as row,
            builder.if_scope(seen[row].equal(False)),
        ):
            outs[1][0] = outs[1][0] + number(1, "int64")
        outs[0][0] = outs[1][0]
        outs[0][1] = cast("int64", depth)
        outs[2][0] = rows

    return shape_program("sparse_fill_empty_rows_shape", inputs, [2, 1, 1], program)


def _fill_reference(attrs: Any, indices: Array, values: Array, dense_shape: Array, default: Array) -> Any:
    rows = int(dense_shape[0])
    empty = np.ones(rows, "bool")
    empty[indices[:, 0]] = False
    added = np.zeros((int(empty.sum()), indices.shape[1]), indices.dtype)
    added[:, 0] = np.flatnonzero(empty)
    all_indices = np.concatenate([indices, added])
    all_values = np.concatenate([values, np.full(len(added), default.reshape(()), values.dtype)])
    order = np.argsort(all_indices[:, 0], kind="stable")
    return all_indices[order], all_values[order], empty


_SPARSE_FILL_EMPTY_ROWS = define(
    "sparse_fill_empty_rows",
    arguments=("sparse_indices", "sparse_values", "dense_shape", "default_value"),
    relation=_fill_relation,
    compute=_fill_compute,
    reference=_fill_reference,
    kind=OpPattern.OPAQUE,
    shape_function=_fill_shape,
    data_dependent=True,
    description="A sparse tensor in which every row has an element.",
)


def sparse_fill_empty_rows(
    sparse_indices: RelayExpr, sparse_values: RelayExpr, dense_shape: RelayExpr, default_value: RelayExpr
) -> Tuple:
    """A sparse tensor in which every row has an element: an empty one gets ``default_value`` in its first column.

    Gives the index vectors, the values, and which rows were empty.
    """
    arguments = (sparse_indices, sparse_values, dense_shape, default_value)
    return Tuple(list(TupleWrapper(Call(_SPARSE_FILL_EMPTY_ROWS, arguments), 3)))


def _sparse_reshape_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of sparse_reshape", "the shape", "the new shape")
    if found is None:
        return None
    indices, before, after = found
    for one in found:
        check_indices(one, "indices and shapes of sparse_reshape")
    if len(indices.shape) != 2 or len(before.shape) != 1 or len(after.shape) != 1:
        raise RelationError(
            f"sparse_reshape takes rows of indices and two shapes, not {indices}, {before} and {after}"
        )
    same(dims(indices)[1], dims(before)[0], "the length of the index vectors of sparse_reshape")
    rank = constant_shape(after, "the new shape")[0]
    return TupleType([TensorType([dims(indices)[0], rank], indices.dtype), TensorType([rank], after.dtype)])


def _sparse_reshape_reference(attrs: Any, indices: Array, before: Array, after: Array) -> Any:
    shape = after.copy()
    given = int(np.prod(after[after >= 0], dtype="int64"))
    shape[after < 0] = int(np.prod(before, dtype="int64")) // max(given, 1)
    flat = np.ravel_multi_index(tuple(indices.T), tuple(before))
    made = np.stack(np.unravel_index(flat, tuple(shape)), axis=1)
    return made.astype(indices.dtype), shape


_SPARSE_RESHAPE = define(
    "sparse_reshape",
    arguments=("sparse_indices", "prev_shape", "new_shape"),
    relation=_sparse_reshape_relation,
    compute=lambda attrs, inputs, out_type: topi.sparse_reshape(
        inputs[0], inputs[1], inputs[2], *(result_shape(field) for field in out_type.fields)
    ),
    reference=_sparse_reshape_reference,
    kind=OpPattern.OPAQUE,
    description="A sparse tensor in another shape.",
)


def sparse_reshape(sparse_indices: RelayExpr, prev_shape: RelayExpr, new_shape: RelayExpr) -> TupleWrapper:
    """The index vectors of a sparse tensor after its dense shape changes, and that shape, with -1 filled in."""
    return TupleWrapper(Call(_SPARSE_RESHAPE, (sparse_indices, prev_shape, new_shape)), 2)
