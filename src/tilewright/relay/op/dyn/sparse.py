"""``sparse_to_dense`` to a shape that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown, vector_size, whole_numbers
from tilewright.relay.op.shapes import tensors
from tilewright.relay.op.transform.broadcast import copied_vector
from tilewright.relay.op.transform.sparse import SparseToDenseAttrs, check_sparse, of_depth
from tilewright.relay.op.transform.support import result_shape


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of sparse_to_dense", "the shape", "the values", "the default value")
    if found is None:
        return None
    indices, shape, values, default = found
    rank = vector_size(shape, "the shape")
    check_sparse(indices, values, rank, "sparse_to_dense")
    if default.shape:
        raise RelationError(f"the default value of sparse_to_dense is a scalar, not {default}")
    return TensorType(unknown(rank), values.dtype)


define(
    "dyn.sparse_to_dense",
    arguments=("sparse_indices", "output_shape", "sparse_values", "default_value"),
    attrs=SparseToDenseAttrs,
    relation=_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.sparse_to_dense(
            of_depth(inputs[0], len(out_type.shape)), result_shape(out_type), inputs[2], inputs[3]
        )
    ],
    reference=lambda attrs, indices, shape, values, default: reference_of(
        "sparse_to_dense", SparseToDenseAttrs(tuple(whole_numbers(shape))), indices, values, default
    ),
    kind=OpPattern.OPAQUE,
    shape_function=lambda attrs, inputs, out_ndims: copied_vector(
        "sparse_to_dense_shape", inputs[1], int(out_ndims[0])
    ),
    data_dependent=(False, True, False, False),
    description="The dense tensor of a sparse one, in a shape that the program computes.",
)
